"""Writes down what it was asked for."""

import dataclasses
import os

from tracelake_worker import Tracer


class Echo(Tracer):
    name = "echo"
    frameworks = ("huggingface", "vllm")
    requires = ()
    needs_model = False
    needs_weights = False

    def run(self, ctx, output_dir):
        kept = {k: v for k, v in os.environ.items() if k.startswith(("HF_", "TRANSFORMERS_", "VLLM_", "CUDA_", "MARK_"))}
        ctx.write_json("job.json", {**dataclasses.asdict(ctx.job), "environment": kept})
