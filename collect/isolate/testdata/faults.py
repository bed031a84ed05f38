"""Workers that go wrong, one per name."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time

FD = int(os.environ["TRACELAKE_EVENTS_FD"])


def emit(event, **fields):
    os.write(FD, (json.dumps({"event": event, **fields}) + "\n").encode())


def result(**fields):
    emit("result", ok=True, artifacts=[], tables=[], **fields)


def heartbeats():
    def beat():
        while True:
            emit("heartbeat", rss_bytes=1)
            time.sleep(0.05)

    threading.Thread(target=beat, daemon=True).start()


def forever():
    while True:
        time.sleep(1)


def ok():
    emit("start", protocol=1, pid=os.getpid(), versions={"torch": "1"}, tracer={"name": "t", "version": "1"})
    emit("phase", name="load_model")
    print("hello")
    emit("phase", name="trace")
    result(peak_device_bytes=7, architecture="Tiny")


def no_result():
    print("SUCCESS")


def exit_7():
    print("some words\nlast words", file=sys.stderr)
    sys.exit(7)


def segv():
    emit("phase", name="trace")
    ctypes.string_at(0)


def abort():
    os.abort()


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def allocate():
    kept = []
    while True:
        kept.append(bytearray(20 << 20))
        time.sleep(0.02)


def allocate_in_child():
    subprocess.Popen([sys.executable, __file__, "allocate"], pass_fds=[FD], start_new_session=True).wait()


def shared():
    """300 MB in all, though each of four processes shows them."""
    block = bytearray(300 << 20)
    pids = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            time.sleep(1.5)
            os._exit(len(block) & 0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    result()


def hang():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    forever()


def hang_with_heartbeats():
    heartbeats()
    forever()


def same_progress():
    while True:
        emit("progress", done=1, total=2, what="steps")
        time.sleep(0.05)


def slow_but_moving():
    for i in range(12):
        emit("progress", done=i, total=12, what="steps")
        time.sleep(0.2)
    result()


def slow_but_talking():
    for i in range(12):
        print("still here", i, flush=True)
        time.sleep(0.2)
    result()


def double_fork():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            forever()
        os._exit(0)


def escape():
    double_fork()
    os.wait()
    result()


def escape_and_hang():
    double_fork()
    double_fork()
    forever()


def fork_tree():
    for _ in range(4):
        os.fork()
    forever()


def flood():
    line = b"x" * 1023 + b"\n"
    os.write(1, b"first line\n")
    for _ in range(64 << 10):
        os.write(1, line)
    os.write(1, b"last line\n")
    result()


def garbage():
    os.write(FD, b"not json\n\xff\xfe\x00\n[1,2]\n{\"no\":\"event\"}\n")
    os.write(FD, b"{\"event\":\"unheard-of\"}\n")
    os.write(FD, b"y" * (6 << 20) + b"\n")
    result()
    result()


def half_line():
    os.write(FD, b'{"event":"result","ok":true')


def closed_descriptor():
    os.close(FD)
    forever()


def result_then_hang():
    result()
    forever()


def result_then_exit_3():
    result()
    sys.exit(3)


def failed():
    emit("result", ok=False, error={"class": "oom_device", "type": "OutOfMemoryError", "message": "no room"})
    sys.exit(1)


def lies():
    emit("result", ok=False, error={"class": "ok", "message": "m" * (1 << 20)})
    sys.exit(1)


def interrupt_ignored():
    print("SIGINT", signal.getsignal(signal.SIGINT))
    result(details={"default": signal.getsignal(signal.SIGINT) is signal.default_int_handler})


globals()[sys.argv[1]]()
