"""The jobs that the tests look at, by name: TRACER/MODE, or a name of their own."""

from harness import HERE

TRACERS = (
    "torch_profiler",
    "torch_dispatch",
    "torch_dynamo",
    "print_fx",
    "print_aten_ops",
    "torch_inductor",
    "torch_export",
    "execution_trace",
    "meta_ops",
)
BOTH = [f"{t}/{m}" for t in TRACERS for m in ("eval", "train")]

# Jobs that go through tracelake collect into a dataset, TRACER/MODE.
COLLECTED = [*BOTH, "averages/eval", "averages/train", "breaks/eval", "vllm_profiler/eval"]
OWN = ("tracers/averages.py", "tracers/breaks.py")
PROMPTS = ["the quick fox", "every kernel"]

FAMILIES = {"tracer_path": [str(HERE / "tracers" / "families.py")]}

# What goes to the worker itself, name: (model, job).
OTHERS = {
    "families/train": ("llama", {"tracer": "families", "mode": "train", "batch_size": 2, **FAMILIES}),
    "families/eval": ("llama", {"tracer": "families", "mode": "eval", **FAMILIES}),
    "shaped": (
        "llama",
        {"tracer": "torch_dispatch", "mode": "train", "batch_size": 2, "sequence_length": 8, "layers": 1, "dummy_weights": True, "seed": 7},
    ),
    "prompts": ("llama", {"tracer": "torch_dispatch", "mode": "eval", "prompts": ["the quick brown fox", "dog"], "batch_size": 3}),
    "layers_alias": ("families/gpt2", {"tracer": "meta_ops", "mode": "eval", "layers": 1}),
    "speech": ("families/whisper", {"tracer": "torch_dispatch", "mode": "train"}),
    "experts": ("mixtral", {"tracer": "meta_ops", "mode": "train", "sequence_length": 16}),
    "eight_billion": ("llama_8b", {"tracer": "meta_ops", "mode": "eval", "sequence_length": 512, "dtype": "bfloat16"}),
}


def job(name, models):
    model, fields = OTHERS[name]
    return {"framework": "huggingface", "dtype": "float32", "device": "cpu", "model_path": str(models / model), **fields}
