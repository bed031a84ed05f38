"""Starts a vLLM engine and sends it prompts."""

import json
import os

from .errors import bad_request
from .inputs import DEFAULT_PROMPT
from .models import truncate

# What a run must not share with another, and what it need not ask the network.
ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}


def environment(job, output_dir):
    """Set before vLLM is imported."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("VLLM_CACHE_ROOT", os.path.join(output_dir, "vllm_cache"))
    if job.tensor_parallel_size == 1:
        # The engine in this very process: one trace, and nothing that outlives it.
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    if job.device.startswith("cpu"):
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
        os.environ.setdefault("VLLM_TARGET_DEVICE", "cpu")
    elif job.device.startswith("cuda:") and job.tensor_parallel_size == 1:
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", job.device.partition(":")[2])


def layer_overrides(path, layers):
    """What to change of config.json so that the model has that many layers."""
    with open(os.path.join(path, "config.json"), encoding="utf-8") as f:
        before = json.load(f)
    after = json.loads(json.dumps(before))
    if not truncate(after, layers):
        raise bad_request(f"layers {layers}: config.json does not say how many layers there are")
    return _changed(before, after)


def _changed(before, after):
    out = {}
    for key, value in after.items():
        if isinstance(value, dict) and isinstance(before.get(key), dict):
            inner = _changed(before[key], value)
            if inner:
                out[key] = inner
        elif before.get(key) != value:
            out[key] = value
    return out


def arguments(job, path, profile_dir, record):
    """Keyword arguments of vllm.LLM."""
    options = job.options
    kwargs = {
        "model": path,
        "dtype": job.dtype,
        "tensor_parallel_size": job.tensor_parallel_size,
        "trust_remote_code": job.trust_remote_code,
        "enforce_eager": bool(options.get("enforce_eager", True)),
        "seed": job.seed,
        "disable_log_stats": True,
        "max_num_seqs": int(options.get("max_num_seqs", max(8, job.batch_size))),
    }
    length = options.get("max_model_len")
    if length:
        kwargs["max_model_len"] = int(length)
    if options.get("gpu_memory_utilization"):
        kwargs["gpu_memory_utilization"] = float(options["gpu_memory_utilization"])
    if job.dummy_weights:
        kwargs["load_format"] = "dummy"
    if job.layers is not None:
        kwargs["hf_overrides"] = layer_overrides(path, job.layers)
    kwargs.update(profiling(profile_dir, record))
    return kwargs


def profiling(profile_dir, record):
    """Profiler settings: a ProfilerConfig since vLLM 0.13, the environment before."""
    try:
        from vllm.config import ProfilerConfig
    except ImportError:
        os.environ["VLLM_TORCH_PROFILER_DIR"] = profile_dir
        os.environ["VLLM_TORCH_PROFILER_WITH_STACK"] = "1" if record["stack"] else "0"
        for name, key in (("RECORD_SHAPES", "shapes"), ("WITH_PROFILE_MEMORY", "memory"), ("WITH_FLOPS", "flops")):
            os.environ[f"VLLM_TORCH_PROFILER_{name}"] = "1" if record[key] else "0"
        return {}
    known = set(getattr(ProfilerConfig, "__dataclass_fields__", {}))
    wanted = {
        "profiler": "torch",
        "torch_profiler_dir": profile_dir,
        "torch_profiler_with_stack": record["stack"],
        "torch_profiler_record_shapes": record["shapes"],
        "torch_profiler_with_memory": record["memory"],
        "torch_profiler_with_flops": record["flops"],
        "torch_profiler_use_gzip": True,
    }
    return {"profiler_config": {k: v for k, v in wanted.items() if not known or k in known}}


def tasks(llm):
    """What the engine can do: generate, embed, classify …"""
    found = getattr(llm, "supported_tasks", None)
    if found is None:
        ask = getattr(llm.llm_engine, "get_supported_tasks", None)
        found = ask() if ask is not None else ("generate",)
    return tuple(found)


def prompts(job, llm):
    """Prompts of the job, one a row of the batch; of an exact length where one
    was asked for."""
    texts = job.prompts or [DEFAULT_PROMPT]
    rows = max(job.batch_size, len(texts))
    texts = [texts[i % len(texts)] for i in range(rows)]
    if job.sequence_length is None:
        return texts
    tokenizer = llm.get_tokenizer()
    out = []
    for text in texts:
        ids = list(tokenizer(text)["input_ids"])
        if not ids:
            raise bad_request("a prompt gives no tokens")
        while len(ids) < job.sequence_length and not job.prompts:
            ids += ids
        out.append({"prompt_token_ids": ids[: job.sequence_length]})
    return out


def run_once(llm, task, prompts_of_batch, tokens):
    """One batch through the engine; how many tokens came out."""
    if task == "generate":
        from vllm import SamplingParams

        # Greedy and never ending early: each run has the same steps.
        params = SamplingParams(max_tokens=tokens, temperature=0.0, ignore_eos=True)
        answers = llm.generate(prompts_of_batch, params, use_tqdm=False)
        return sum(len(c.token_ids) for a in answers for c in a.outputs)
    call = {"embed": "embed", "classify": "classify", "score": "classify"}.get(task, "encode")
    getattr(llm, call)(prompts_of_batch, use_tqdm=False)
    return 0


def shut_down(llm):
    """Ends the engine's own processes, where it has any."""
    for holder in (llm, getattr(llm, "llm_engine", None), getattr(getattr(llm, "llm_engine", None), "engine_core", None)):
        stop = getattr(holder, "shutdown", None)
        if callable(stop):
            stop()
            return
