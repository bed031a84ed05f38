"""Says what is installed, and whether it works."""

import importlib
import os
import platform
import shutil
import subprocess
import sys

from .runner import library_version

LIBRARIES = ("torch", "transformers", "vllm", "huggingface_hub", "tokenizers", "safetensors", "triton")
COMPILERS = ("g++", "clang++")


def probe(vllm_architectures=False, unused=()):
    """unused names libraries that are not imported, as that can take long."""
    libraries = {name: _installed(name) if name in unused else _library(name) for name in LIBRARIES}
    answer = {
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "platform": platform.platform(),
        "libraries": libraries,
        "cuda": _cuda(libraries["torch"]["importable"]),
        "compiler": _compiler(),
    }
    if vllm_architectures:
        answer["vllm_architectures"] = architectures() if libraries["vllm"]["importable"] else None
    return answer


def _installed(name):
    version = library_version(name)
    return {"version": version, "importable": version is not None, "error": None}


def _library(name):
    version = library_version(name)
    try:
        module = importlib.import_module(name)
    except BaseException as error:  # a broken extension may even raise SystemExit
        if isinstance(error, KeyboardInterrupt):
            raise
        text = " ".join(str(error).split())[:400]
        return {"version": version, "importable": False, "error": f"{type(error).__name__}: {text}"}
    return {"version": version or getattr(module, "__version__", None), "importable": True, "error": None}


def _cuda(torch_works):
    none = {"available": False, "device_count": 0, "devices": []}
    if not torch_works:
        return none
    import torch

    try:
        if not torch.cuda.is_available():
            return none
        found = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    except RuntimeError as error:
        return {**none, "error": str(error)}
    devices = [{"name": p.name, "total_bytes": p.total_memory} for p in found]
    return {"available": True, "device_count": len(devices), "devices": devices}


def _compiler():
    """The C++ compiler that Inductor would use."""
    for name in filter(None, (os.environ.get("CXX"), *COMPILERS)):
        path = shutil.which(name)
        if not path:
            continue
        try:
            out = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20).stdout
        except (OSError, subprocess.TimeoutExpired):
            continue
        return {"path": path, "version": out.partition("\n")[0]}
    return None


def architectures():
    """Architectures that the installed vLLM says it supports."""
    from vllm.model_executor.models import ModelRegistry

    return sorted(ModelRegistry.get_supported_archs())
