"""Loads a model's configuration and tokenizer, offline and without its code."""

import os

from . import inputs, models
from .job import need_model


def check(job):
    path = need_model(job)
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        os.environ[name] = "1"
    from .runner import require

    require("transformers", "check")
    config = models.load_config(job, path)
    tokenizer, problem = inputs.load_tokenizer(job, path)
    architecture = models.architecture(config)
    supported = None
    if job.framework == "vllm":
        require("vllm", "check")
        from .probe import architectures

        supported = architecture in architectures()
    return {
        "architecture": architecture,
        "model_type": getattr(config, "model_type", ""),
        "family": models.family(config)[0],
        "tokenizer": tokenizer is not None,
        "tokenizer_error": problem,
        "vllm_supported": supported,
    }
