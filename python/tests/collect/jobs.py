"""The jobs that the tests look at, by name: TRACER/MODE, or a name of its own."""

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

# name: (model, job)
OTHERS = {
    "vllm": ("llama", {"framework": "vllm", "tracer": "vllm_profiler", "mode": "eval", "prompts": ["the quick fox", "every kernel"]}),
    "averages": ("llama", {"tracer": "averages", "mode": "train", "tracer_path": ["tracers/averages.py"]}),
    "breaks": ("llama", {"tracer": "breaks", "mode": "eval", "tracer_path": ["tracers/breaks.py"]}),
    "shaped": (
        "llama",
        {"tracer": "torch_dispatch", "mode": "train", "batch_size": 2, "sequence_length": 8, "layers": 1, "dummy_weights": True, "seed": 7},
    ),
    "prompts": ("llama", {"tracer": "torch_dispatch", "mode": "eval", "prompts": ["the quick brown fox", "dog"], "batch_size": 3}),
    "layers_alias": ("gpt2", {"tracer": "meta_ops", "mode": "eval", "layers": 1}),
    "sequence_to_sequence": ("t5", {"tracer": "torch_dispatch", "mode": "train"}),
    "masked": ("bert", {"tracer": "torch_dispatch", "mode": "train"}),
    "classifier": ("bert_classifier", {"tracer": "torch_dispatch", "mode": "train"}),
    "encoder": ("bert_base", {"tracer": "torch_dispatch", "mode": "train"}),
    "vision": ("vit", {"tracer": "torch_dispatch", "mode": "train"}),
    "speech": ("whisper", {"tracer": "torch_dispatch", "mode": "train"}),
    "experts": ("mixtral", {"tracer": "meta_ops", "mode": "train", "sequence_length": 16}),
    "eight_billion": ("llama_8b", {"tracer": "meta_ops", "mode": "eval", "sequence_length": 512, "dtype": "bfloat16"}),
}


def job(name, models, here):
    if name in OTHERS:
        model, fields = OTHERS[name]
    else:
        tracer, _, mode = name.partition("/")
        model, fields = "llama", {"tracer": tracer, "mode": mode}
    fields = {"framework": "huggingface", "dtype": "float32", "device": "cpu", "model_path": str(models / model), **fields}
    fields["tracer_path"] = [str(here / p) for p in fields.get("tracer_path", [])]
    return fields
