"""vLLM's own profiler around one batch of generation."""

import collections
import os
import re
import shutil
import time

from .. import engine, kernel_profile, kineto, models
from ..errors import WorkerError
from ..tracer import Tracer

SUFFIXES = (".pt.trace.json.gz", ".pt.trace.json")
FLUSH_SECONDS = 60
SETTLE_SECONDS = 0.5
# execute_context_1(15)_generation_0(0): requests, and tokens, in either phase.
STEP = re.compile(r"execute(?:_\d+)?_context_(\d+).*_generation_(\d+)")


class VllmProfiler(Tracer):
    name = "vllm_profiler"
    description = (
        "torch.profiler inside a vLLM engine while it generates: prefill and decode steps, operators and kernels. "
        "Options: max_tokens (8), with_stack (true), enforce_eager (true), max_model_len, gpu_memory_utilization, "
        "profile_memory (false), with_flops (true)."
    )
    frameworks = ("vllm",)
    modes = ("eval",)
    tables = ("ops",)
    files = ("trace/*.pt.trace.json.gz", "vllm_profile.json", "vllm_kernel_profile.json", "vllm_kernel_profile.csv")
    requires = ("torch", "transformers", "vllm")
    needs_model = False

    def run(self, ctx, output_dir):
        ctx.phase("load_model")
        ctx.config = models.load_config(ctx.job, ctx.model_path)
        ctx.family = models.family(ctx.config)[0]
        self.check_supported(ctx)
        traces = os.path.join(output_dir, "trace")
        os.makedirs(traces)
        record = {
            "stack": ctx.option("with_stack", True),
            "shapes": True,
            "memory": ctx.option("profile_memory", False),
            "flops": ctx.option("with_flops", True),
        }
        from vllm import LLM

        llm = LLM(**engine.arguments(ctx.job, ctx.model_path, traces, record))
        try:
            self.generate(ctx, llm)
            found = self.wait(traces)
        finally:
            engine.shut_down(llm)
            shutil.rmtree(os.path.join(output_dir, "vllm_cache"), ignore_errors=True)
        ctx.phase("export")
        self.report(ctx, found)

    def check_supported(self, ctx):
        from ..probe import architectures

        name = models.architecture(ctx.config)
        if name and name not in architectures():
            raise WorkerError("unsupported", f"the installed vLLM does not support the architecture {name}")

    def generate(self, ctx, llm):
        tasks = engine.tasks(llm)
        task = next((t for t in ("generate", "embed", "classify") if t in tasks), tasks[0] if tasks else "generate")
        ctx.phase("inputs")
        batch = engine.prompts(ctx.job, llm)
        tokens = ctx.option("max_tokens", 8)
        ctx.phase("warmup")
        engine.run_once(llm, task, batch, tokens)
        ctx.phase("trace")
        llm.start_profile()
        try:
            made = engine.run_once(llm, task, batch, tokens)
        finally:
            llm.stop_profile()
        ctx.details.update(task=task, requests=len(batch), generated_tokens=made)

    def wait(self, folder):
        """The workers' traces, once their sizes stand still."""
        deadline = time.monotonic() + FLUSH_SECONDS
        before = None
        while time.monotonic() < deadline:
            now = {n: os.path.getsize(os.path.join(folder, n)) for n in sorted(os.listdir(folder)) if worker_trace(n)}
            if now and now == before and all(now.values()):
                return list(now)
            before = now
            time.sleep(SETTLE_SECONDS)
        raise WorkerError("tracer", f"vLLM's profiler wrote no trace into {folder} within {FLUSH_SECONDS} s")

    def report(self, ctx, names):
        for name in names:
            ctx.artifact(os.path.join("trace", name), "trace")
        first = names[0]  # rank 0: the others run the same operators
        profile = kineto.load(os.path.join(ctx.output_dir, "trace", first), phase)
        ctx.write_json("vllm_profile.json", by_name(profile))
        kernel_profile.write(ctx, profile, "vllm")
        kernel_profile.write_ops(ctx, profile, ("execute_",))
        steps = collections.Counter(p for _, _, n in profile.annotations if (p := phase(n)))
        ctx.details.update(kernel_profile.counts(profile))
        ctx.details.update(traces=names, reported_trace=first, prefill_steps=steps["prefill"], decode_steps=steps["decode"])


def worker_trace(name):
    """A trace of a worker, not of the front end beside it."""
    return name.endswith(SUFFIXES) and ".async_llm." not in name


def phase(name):
    """prefill or decode, from the annotation that vLLM puts around a step. A
    step that does both is a prefill."""
    found = STEP.match(name)
    if not found:
        return None
    return "prefill" if int(found[1]) > 0 else "decode"


def by_name(profile):
    out = {}
    for op in profile.ops:
        one = out.setdefault(op.name, {"count": 0, "cpu_time_total": 0})
        one["count"] += 1
        one["cpu_time_total"] += op.end - op.start
    for one in out.values():
        one["cpu_time_total"] = round(one["cpu_time_total"] / 1000, 3)
    return out
