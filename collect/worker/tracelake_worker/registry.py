"""Finds tracers: the built-in ones, a user's files and packages, and entry points."""

import importlib
import importlib.metadata
import importlib.util
import os
import pkgutil
import sys

from .errors import bad_request
from .tracer import Tracer

ENTRY_POINTS = "tracelake.tracers"

# In the order in which they are listed and run.
BUILT_IN = (
    "torch_profiler",
    "torch_dispatch",
    "torch_dynamo",
    "print_fx",
    "print_aten_ops",
    "torch_inductor",
    "torch_export",
    "execution_trace",
    "meta_ops",
    "vllm_profiler",
)


class Registry:
    def __init__(self):
        self.tracers = {}
        self.sources = {}
        self.errors = []

    def add(self, cls, source):
        problem = _problem(cls)
        if problem:
            self.errors.append({"source": source, "message": problem})
        elif cls.name in self.tracers and self.tracers[cls.name] is not cls:
            self.errors.append({"source": source, "message": f"the name {cls.name!r} is taken by a tracer of {self.sources[cls.name]}"})
        else:
            self.tracers[cls.name] = cls
            self.sources.setdefault(cls.name, source)

    def get(self, name):
        if name in self.tracers:
            return self.tracers[name]
        broken = "; ".join(f"{e['source']}: {e['message']}" for e in self.errors)
        raise bad_request(f"no tracer {name!r}; there are {', '.join(self.tracers)}" + (f" ({broken})" if broken else ""))


def load(tracer_paths=()):
    registry = Registry()
    for name in BUILT_IN:
        if not importlib.util.find_spec(f".tracers.{name}", __package__):
            continue
        module = importlib.import_module(f".tracers.{name}", __package__)
        for cls in _classes(module):
            registry.add(cls, "built-in")
    for path in tracer_paths:
        _guarded(registry, path, lambda path=path: _from_path(path))
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        source = f"entry point {point.name}"
        _guarded(registry, source, lambda point=point: _from_entry_point(point))
    return registry


def describe(cls, source):
    return {
        "name": cls.name,
        "description": cls.description,
        "version": cls.version,
        "frameworks": list(cls.frameworks),
        "modes": list(cls.modes),
        "exclusive_group": cls.exclusive_group,
        "tables": [t.name for t in cls.table_objects()],
        "files": list(cls.files),
        "requires": list(cls.requires),
        "needs_model": cls.needs_model,
        "needs_weights": cls.needs_weights,
        "source": source,
    }


def _guarded(registry, source, find):
    """A user's code may fail in any way while it is imported; the rest goes on."""
    try:
        classes = find()
    except Exception as error:
        registry.errors.append({"source": source, "message": f"{type(error).__name__}: {error}"})
        return
    if not classes:
        registry.errors.append({"source": source, "message": "no subclass of tracelake_worker.Tracer with a name in it"})
    for cls in classes:
        registry.add(cls, source)


def _problem(cls):
    if not isinstance(cls.name, str) or not cls.name or os.sep in cls.name or cls.name.startswith((".", "_")):
        return f"{cls.__name__}.name is {cls.name!r}: a tracer's name is also its folder"
    if not set(cls.modes) <= {"eval", "train"} or not cls.modes:
        return f"{cls.name}: modes {cls.modes!r}: eval, train or both"
    if not set(cls.frameworks) <= {"huggingface", "vllm"} or not cls.frameworks:
        return f"{cls.name}: frameworks {cls.frameworks!r}: huggingface, vllm or both"
    try:
        cls.table_objects()
    except (TypeError, ValueError) as error:
        return str(error)
    return None


def _classes(module):
    """Tracers that the module, or a module below it, defines."""
    out = []
    for value in vars(module).values():
        inside = isinstance(value, type) and (value.__module__ == module.__name__ or value.__module__.startswith(module.__name__ + "."))
        if inside and issubclass(value, Tracer) and value.name:
            out.append(value)
    return out


def _from_path(path):
    if path.endswith(".py") or os.path.isfile(path):
        return _classes(_from_file(path))
    if os.path.isdir(path):
        full = os.path.abspath(path)
        if not os.path.isfile(os.path.join(full, "__init__.py")):
            raise ImportError(f"{path} is a directory without __init__.py")
        sys.path.insert(0, os.path.dirname(full))
        return _package(os.path.basename(full))
    return _package(path)


def _from_file(path):
    full = os.path.abspath(path)
    if not os.path.isfile(full):
        raise ImportError(f"{path}: no such file")
    name = os.path.splitext(os.path.basename(full))[0]
    spec = importlib.util.spec_from_file_location(name, full)
    if spec is None:
        raise ImportError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickling look their module up by name.
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module


def _package(name):
    module = importlib.import_module(name)
    classes = _classes(module)
    for info in pkgutil.walk_packages(getattr(module, "__path__", ()), name + "."):
        classes += [c for c in _classes(importlib.import_module(info.name)) if c not in classes]
    return classes


def _from_entry_point(point):
    value = point.load()
    return [value] if isinstance(value, type) else _classes(value)
