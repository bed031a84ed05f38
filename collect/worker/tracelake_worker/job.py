"""What the supervisor asks for: JOB.json, checked field by field."""

import json
import os
from dataclasses import dataclass, field, fields

from .errors import bad_request

PROTOCOL = 1
MAX_JOB_BYTES = 64 << 20
DTYPES = ("auto", "float32", "float16", "bfloat16")


@dataclass
class Job:
    framework: str = "huggingface"
    model_id: str | None = None
    model_path: str | None = None
    revision: str | None = None
    tracer: str = ""
    mode: str = "eval"
    output_dir: str = ""
    device: str = "cpu"
    tensor_parallel_size: int = 1
    dtype: str = "auto"
    batch_size: int = 1
    sequence_length: int | None = None
    prompts: list | None = None
    layers: int | None = None
    dummy_weights: bool = False
    trust_remote_code: bool = False
    seed: int = 0
    options: dict = field(default_factory=dict)
    tracer_path: list = field(default_factory=list)
    heartbeat_seconds: float = 1.0
    extra: dict = field(default_factory=dict)


KINDS = {
    "str": (str,),
    "str | None": (str, type(None)),
    "int": (int,),
    "int | None": (int, type(None)),
    "float": (int, float),
    "bool": (bool,),
    "list": (list,),
    "list | None": (list, type(None)),
    "dict": (dict,),
}


def read(path):
    """The raw object of a job file."""
    try:
        if os.path.getsize(path) > MAX_JOB_BYTES:
            raise bad_request(f"{path}: larger than {MAX_JOB_BYTES} bytes, which no job file is")
        with open(path, encoding="utf-8") as f:
            raw = json.load(f)
    except OSError as error:
        raise bad_request(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise bad_request(f"{path}: not a JSON job: {error}") from error
    if not isinstance(raw, dict):
        raise bad_request(f"{path}: a job is a JSON object, not a {type(raw).__name__}")
    protocol = raw.get("protocol", PROTOCOL)
    if protocol != PROTOCOL:
        raise bad_request(f"{path}: protocol {protocol!r}; this worker speaks {PROTOCOL}")
    return raw


def parse(raw, path="job"):
    """A Job from its raw object. Unknown fields are kept in extra: a newer
    supervisor may say more than this worker knows."""
    job = Job()
    known = {f.name: f for f in fields(Job) if f.name != "extra"}
    for key, value in raw.items():
        if key == "protocol":
            continue
        if key not in known:
            job.extra[key] = value
            continue
        kinds = KINDS[known[key].type if isinstance(known[key].type, str) else _spelled(known[key].type)]
        wrong = not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)
        if wrong:
            raise bad_request(f"{path}: {key} must be {' or '.join(_json_name(k) for k in kinds)}, not {value!r}")
        setattr(job, key, value)
    _check(job, path)
    return job


def _spelled(kind):
    return getattr(kind, "__name__", None) if isinstance(kind, type) else str(kind)


def _json_name(kind):
    return {"str": "a string", "NoneType": "null", "int": "an integer", "float": "a number", "bool": "true or false"}.get(
        kind.__name__, "an object" if kind is dict else "a list"
    )


def _check(job, path):
    def need(condition, message):
        if not condition:
            raise bad_request(f"{path}: {message}")

    need(job.framework in ("huggingface", "vllm"), f"framework {job.framework!r}: huggingface or vllm")
    need(job.mode in ("eval", "train"), f"mode {job.mode!r}: eval or train")
    need(job.dtype in DTYPES, f"dtype {job.dtype!r}: one of {', '.join(DTYPES)}")
    need(job.batch_size >= 1, f"batch_size {job.batch_size}: at least 1")
    need(job.tensor_parallel_size >= 1, f"tensor_parallel_size {job.tensor_parallel_size}: at least 1")
    need(job.sequence_length is None or job.sequence_length >= 1, f"sequence_length {job.sequence_length}: at least 1")
    need(job.layers is None or job.layers >= 1, f"layers {job.layers}: at least 1")
    need(job.heartbeat_seconds > 0, f"heartbeat_seconds {job.heartbeat_seconds}: more than 0")
    need(job.prompts is None or all(isinstance(p, str) and p for p in job.prompts), "prompts: a list of non-empty strings")
    need(job.prompts is None or job.prompts, "prompts: at least one, or null")
    need(all(isinstance(p, str) for p in job.tracer_path), "tracer_path: a list of strings")


def need_output_dir(job):
    if not job.output_dir or not os.path.isdir(job.output_dir):
        raise bad_request(f"output_dir {job.output_dir!r} is not a directory")
    return os.path.abspath(job.output_dir)


def need_model(job):
    """The model's directory, which must hold a config.json."""
    if not job.model_path:
        raise bad_request("model_path is missing")
    if not os.path.isdir(job.model_path):
        raise bad_request(f"model_path {job.model_path!r} is not a directory")
    if not os.path.isfile(os.path.join(job.model_path, "config.json")):
        raise bad_request(f"model_path {job.model_path!r} has no config.json")
    return os.path.abspath(job.model_path)
