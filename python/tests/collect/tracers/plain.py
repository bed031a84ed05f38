"""A tracer that needs nothing, to look at the worker around it."""

import os
import subprocess
import sys
import time

from tracelake_worker import Column, Table, Tracer

NUMBERS = Table("numbers", (Column("n", "int64"), Column("half", "float64", "ns", "half of it"), Column("text")))


class ProbeEvents(Tracer):
    name = "probe_events"
    description = "Makes noise."
    tables = (NUMBERS,)
    requires = ()
    needs_model = False

    def run(self, ctx, output_dir):
        ctx.phase("trace")
        print("noise on stdout", flush=True)
        ctx.write_text("note.txt", "here\n")
        self.fork(ctx)
        subprocess.run([sys.executable, "-c", "print('noise of a child')"], check=True)
        time.sleep(ctx.option("seconds", 0.0))
        self.fail(ctx, ctx.option("fail", ""))
        with ctx.table("numbers") as table:
            for n in range(3):
                table.row(n=n, half=n / 2, text="two" if n == 2 else None)
        with open(os.path.join(output_dir, "unnamed.bin"), "wb") as f:
            f.write(b"\x00")
        ctx.phase("export")
        ctx.details["not_a_number"] = float("nan")

    def fork(self, ctx):
        child = os.fork()
        if child == 0:
            ctx.phase("from a forked child")
            os._exit(0)
        os.waitpid(child, 0)

    def fail(self, ctx, how):
        if how == "memory":
            raise MemoryError
        if how == "library":
            import no_such_library_at_all  # noqa: F401
        if how == "not_implemented":
            raise NotImplementedError("not for this model")
        if how == "plain":
            raise RuntimeError("something\nwith two lines")
        if how == "undeclared":
            ctx.table("ops")
        if how == "unwritten":
            ctx.artifact("missing.txt", "report")
        if how == "wrong_type":
            with ctx.table("numbers") as table:
                table.row(n="many")
        if how == "exit":
            os._exit(0)
