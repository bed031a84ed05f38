"""What a tracer is, and what it is given."""

import os
from dataclasses import dataclass, field

from .errors import WorkerError
from .tables import KNOWN, Table, TableWriter

ARTIFACT_KINDS = ("trace", "table", "report", "other")


class Tracer:
    """Base of every tracer. Subclass it, give it a name and write run()."""

    name = ""
    description = ""
    version = "1"
    frameworks = ("huggingface",)
    modes = ("eval", "train")
    # Of the tracers of one group, the first that succeeds stands for all.
    exclusive_group = None
    # Names of known tables, or Table objects of one's own.
    tables = ()
    # Files that it writes, relative to its directory, for people.
    files = ()
    # Python modules that must be there.
    requires = ("torch", "transformers")
    # Whether ctx.model is loaded before run(); without it only the paths are given.
    needs_model = True
    # Whether the model's weights must be there; config.json always must.
    needs_weights = True

    def run(self, ctx, output_dir):
        raise NotImplementedError(f"tracer {self.name} does not say how to run")

    @classmethod
    def table_objects(cls):
        out = []
        for table in cls.tables:
            if isinstance(table, Table):
                out.append(table)
            elif table in KNOWN:
                out.append(KNOWN[table])
            else:
                raise ValueError(f"tracer {cls.name}: table {table!r} is none of {', '.join(KNOWN)}; give a Table object")
        return out


@dataclass
class Context:
    """All that a tracer may use: the job, the model, one step, and where to write."""

    job: object
    output_dir: str
    tracer: Tracer
    model_path: str = ""
    events: object = None
    device: object = None
    dtype: object = None
    config: object = None
    model: object = None
    inputs: dict = field(default_factory=dict)
    step: object = None
    family: str = ""
    details: dict = field(default_factory=dict)
    current_phase: str = ""
    _tables: list = field(default_factory=list)
    _artifacts: dict = field(default_factory=dict)

    @property
    def mode(self):
        return self.job.mode

    @property
    def framework(self):
        return self.job.framework

    @property
    def train(self):
        return self.job.mode == "train"

    def option(self, name, default):
        """An option of the job, of the same type as its default."""
        value = self.job.options.get(name, default)
        if default is not None and not isinstance(value, type(default)):
            if isinstance(default, float) and isinstance(value, int):
                return float(value)
            raise WorkerError("bad_request", f"option {name}: {value!r} is no {type(default).__name__}")
        return value

    def phase(self, name):
        """Says what begins now: import, load_model, inputs, warmup, trace or export."""
        self.current_phase = name
        if self.events is not None:
            self.events.emit("phase", name=name)

    def progress(self, done, total, what):
        if self.events is not None:
            self.events.emit("progress", done=done, total=total, what=what)

    def path(self, *parts):
        """A path in the output directory, its folder made."""
        full = os.path.join(self.output_dir, *parts)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        return full

    def table(self, table):
        """A writer for a table that the tracer declares."""
        declared = {t.name: t for t in type(self.tracer).table_objects()}
        name = table.name if isinstance(table, Table) else table
        if name not in declared:
            raise WorkerError("tracer", f"tracer {self.tracer.name} does not declare a table {name!r}")
        writer = TableWriter(declared[name], self.output_dir, self.tracer.name, self.tracer.version)
        self._tables.append(writer)
        return writer

    def artifact(self, path, kind="other"):
        """Names a file of the output, by its path in the output directory."""
        if kind not in ARTIFACT_KINDS:
            raise WorkerError("tracer", f"artifact {path}: kind {kind!r}, want one of {', '.join(ARTIFACT_KINDS)}")
        self._artifacts[path] = kind

    def write_json(self, path, value, kind="report"):
        import json

        with open(self.path(path), "w", encoding="utf-8", errors="backslashreplace") as f:
            json.dump(value, f, indent=1, default=str)
            f.write("\n")
        self.artifact(path, kind)

    def write_text(self, path, text, kind="report"):
        with open(self.path(path), "w", encoding="utf-8", errors="backslashreplace") as f:
            f.write(text)
        self.artifact(path, kind)

    def finish(self):
        """Closes the tables; lists the files that were named. The supervisor finds the others."""
        for writer in self._tables:
            writer.close()
            self._artifacts[writer.path] = "table"
        for path in self._artifacts:
            if not os.path.exists(os.path.join(self.output_dir, path)):
                raise WorkerError("tracer", f"tracer {self.tracer.name} named {path!r} but did not write it")
        artifacts = [{"path": p, "kind": k} for p, k in sorted(self._artifacts.items())]
        tables = [{"name": w.table.name, "path": w.path, "rows": w.rows} for w in self._tables]
        return artifacts, tables
