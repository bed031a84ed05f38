"""Two steps of every model of a folder beside the given model, made ready by the worker's own
code: one process for all, as most of a job's time is importing libraries."""

import os
import sys

from tracelake_worker import Tracer, errors, runner
from tracelake_worker.tracer import Context


class Families(Tracer):
    name = "families"
    needs_model = False

    def run(self, ctx, output_dir):
        import torch

        folder = os.path.join(os.path.dirname(ctx.model_path), "families")
        ctx.phase("trace")
        found = {}
        for name in sorted(os.listdir(folder)):
            one = Context(job=ctx.job, output_dir=output_dir, tracer=self, model_path=os.path.join(folder, name))
            try:
                runner.prepare(one)
                with torch.profiler.profile() as p:
                    one.step()
                one.step()
                found[name] = {**runner.result(one), "ranges": sorted({e.name for e in p.events()} & {"forward", "backward", "optimizer"})}
            except errors.WorkerError as error:
                found[name] = {"error": error.error_class, "message": str(error)}
            ctx.progress(len(found), None, "models")
        ctx.write_json("families.json", found)
        ctx.write_json("modules.json", sorted(m for m in sys.modules if "." not in m))
