"""A worker that speaks the protocol and traces nothing.

Its tracers do what their names say, so that tests see each way to end without
torch. What a test wants to change between two runs it puts into files below
STANDIN_DIR.
"""

import ctypes
import json
import os
import signal
import sys
import time

FD = int(os.environ["TRACELAKE_EVENTS_FD"])
CONTROL = os.environ.get("STANDIN_DIR", "")


def emit(event, **fields):
    os.write(FD, (json.dumps({"event": event, **fields}) + "\n").encode())


def control(name):
    path = os.path.join(CONTROL, name)
    return open(path).read().strip() if CONTROL and os.path.exists(path) else ""


def tracer(name, **more):
    return {
        "name": name,
        "description": name,
        "version": control("version") or "1",
        "frameworks": ["huggingface", "vllm"],
        "modes": ["eval", "train"],
        "exclusive_group": None,
        "tables": [],
        "files": [],
        "requires": ["torch"],
        "needs_weights": True,
        "source": "built-in",
        **more,
    }


TRACERS = [
    tracer("good"),
    tracer("print_fx"),
    tracer("flaky"),
    tracer("segv"),
    tracer("abort"),
    tracer("hang"),
    tracer("allocate"),
    tracer("escape"),
    tracer("flood"),
    tracer("device_full"),
    tracer("closed"),
    tracer("liar"),
    tracer("outsider"),
    tracer("slot"),
    tracer("environment"),
    tracer("config_only", needs_weights=False),
    tracer("only_vllm", frameworks=["vllm"]),
    tracer("only_train", modes=["train"]),
    tracer("no_library", requires=["absent"]),
    tracer("first", exclusive_group="g"),
    tracer("second", exclusive_group="g"),
]


def probe():
    lib = {"importable": True, "error": None}
    libraries = {
        "torch": {"version": control("torch") or "2.9.0", **lib},
        "transformers": {"version": "5.0.0", **lib},
        "huggingface_hub": {"version": "1.0.0", **lib},
        "vllm": {"version": "0.32.0", **lib},
        "absent": {"version": None, "importable": False, "error": "ModuleNotFoundError"},
    }
    if control("no_torch"):
        libraries["torch"] = {"version": None, "importable": False, "error": "ModuleNotFoundError"}
    gpus = int(control("gpus") or 0)
    return {
        "python": {"version": "3.11.0", "executable": sys.executable},
        "platform": "test",
        "libraries": libraries,
        "cuda": {"available": gpus > 0, "device_count": gpus, "devices": [{"name": "T", "total_bytes": 1}] * gpus},
        "compiler": None,
        "vllm_architectures": ["LlamaForCausalLM"],
    }


def write(job, name, text):
    path = os.path.join(job["output_dir"], name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    return {"path": name, "kind": "other"}


def run(job):
    name = job["tracer"]
    emit("start", protocol=1, pid=os.getpid(), versions={}, tracer={"name": name, "version": "1"})
    emit("phase", name="trace")
    if CONTROL:
        with open(os.path.join(CONTROL, "runs"), "a") as f:
            f.write(f"{job['model_path']} {name}\n")
    print("output of", name, flush=True)
    artifacts = [write(job, "out/result.json", json.dumps(job))]
    if name == "segv":
        ctypes.string_at(0)
    if name == "abort":
        os.abort()
    if name in ("hang", "flaky") and control("hang") != "no" and (name == "hang" or control("flaky") == "hang"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            emit("heartbeat", rss_bytes=1)
            time.sleep(0.1)
    if name == "flaky":
        left = int(control("flaky") or 0)
        if left > 0:
            with open(os.path.join(CONTROL, "flaky"), "w") as f:
                f.write(str(left - 1))
            os.abort()
    if name == "allocate":
        kept = []
        while True:
            kept.append(bytearray(20 << 20))
            time.sleep(0.02)
    if name == "escape" and os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                time.sleep(1)
        os._exit(0)
    if name == "flood":
        for _ in range(12 << 10):
            os.write(1, b"x" * 1023 + b"\n")
    if name == "device_full":
        emit("result", ok=False, error={"class": "oom_device", "type": "OutOfMemoryError", "message": "no room"})
        sys.exit(1)
    if name == "closed":
        os.close(FD)
        sys.exit(0)
    if name == "liar":
        artifacts.append({"path": "never/written.json", "kind": "trace"})
    if name == "outsider":
        artifacts.append({"path": "../../stolen", "kind": "trace"})
    if name == "print_fx":
        artifacts.append(write(job, "print_fx.json", "{}"))
    if name == "first" and control("first") == "fail":
        emit("result", ok=False, error={"class": "tracer", "type": "E", "message": "first fails"})
        sys.exit(1)
    if name == "slot":
        held = []
        for gpu in os.environ["CUDA_VISIBLE_DEVICES"].split(","):
            held.append(os.path.join(CONTROL, "gpu" + gpu))
            os.close(os.open(held[-1], os.O_CREAT | os.O_EXCL))
        time.sleep(0.5)
        for path in held:
            os.unlink(path)
    if name == "environment":
        artifacts.append(write(job, "env.json", json.dumps(dict(os.environ))))
    emit("result", ok=True, artifacts=artifacts, tables=[], peak_device_bytes=None, details={}, architecture="Tiny")


def main():
    command = sys.argv[1]
    if command == "list":
        emit("result", ok=True, tracers=TRACERS, errors=[{"source": "x.py", "message": "broken"}] if control("broken") else [])
    elif command == "probe":
        emit("result", ok=True, **probe())
    elif command == "run":
        run(json.load(open(sys.argv[sys.argv.index("--job") + 1])))
    elif command == "download" and "REAL_WORKER" in os.environ:
        os.environ["PYTHONPATH"] = os.environ["REAL_WORKER"]
        os.execv(sys.executable, [sys.executable, "-m", "tracelake_worker", *sys.argv[1:]])
    else:
        sys.exit(f"no command {command}")


main()
