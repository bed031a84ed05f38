"""Servers on this machine that speak as object stores do, and a proxy that fails as networks do."""

import base64
import hashlib
import hmac
import http.client
import json
import os
import shutil
import socket
import subprocess
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BUCKET = "traces"
NO_CREDENTIALS = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_PROFILE": "", "AWS_SESSION_TOKEN": "", "AWS_REGION": "us-east-1"}


def installed(kind, needs):
    """The program of a server, installed at its first use."""
    if not shutil.which(needs):
        pytest.skip(f"SKIPPED: {kind} is not tested: {needs} is not there to install its server")
    p = subprocess.run([ROOT / "scripts" / "emulators.sh", kind], capture_output=True, text=True, timeout=900)
    if p.returncode:
        pytest.skip(f"SKIPPED: {kind} is not tested: its server cannot be installed: {(p.stderr.strip() or '?').splitlines()[-1]}")
    return p.stdout.strip()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def started(command, port, **kw):
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kw)
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return p
        except OSError:
            assert p.poll() is None, f"{command[0]} ended with {p.returncode}"
            time.sleep(0.05)
    p.kill()
    raise AssertionError(f"{command[0]} does not answer")


def request(port, method, path, body=b"", headers=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    c.request(method, path, body, headers or {})
    r = c.getresponse()
    text = r.read()
    assert r.status in (200, 201), (r.status, text)
    return text


class Azure:
    """Azurite, with a container."""

    account = "devstoreaccount1"
    # a key of our own: no well-known one in the logs of whoever runs this
    secret = base64.b64encode(b"a-secret-that-no-log-may-hold").decode()

    def __init__(self, tmp):
        program = installed("azblob", "npm")
        self.port = free_port()
        command = ["node", program, "--silent", "--loose", "--disableTelemetry", "--skipApiVersionCheck"]
        command += ["--location", str(tmp), "--blobHost", "127.0.0.1", "--blobPort", str(self.port)]
        self.process = started(command, self.port, env={**os.environ, "AZURITE_ACCOUNTS": f"{self.account}:{self.secret}"})
        self.env = {"AZURE_STORAGE_ACCOUNT": self.account, "AZURE_STORAGE_KEY": self.secret}
        self.wrong = {**self.env, "AZURE_STORAGE_KEY": base64.b64encode(b"another-secret-of-nobody").decode()}
        self.secrets = [self.secret, self.wrong["AZURE_STORAGE_KEY"]]
        self._ask("PUT", f"/{self.account}/{BUCKET}", query={"restype": "container"})

    def _ask(self, method, path, body=b"", query=None, **more):
        """Asks with a signature of the kind SharedKey."""
        query = query or {}
        ms = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2023-11-03"}
        ms.update({f"x-ms-{k.replace('_', '-')}": v for k, v in more.items()})
        length = str(len(body)) if body else ""
        text = method + "\n\n\n" + length + "\n" * 9 + "".join(f"{k}:{v}\n" for k, v in sorted(ms.items()))
        text += f"/{self.account}{path}" + "".join(f"\n{k}:{v}" for k, v in query.items())
        sign = base64.b64encode(hmac.new(base64.b64decode(self.secret), text.encode(), hashlib.sha256).digest()).decode()
        at = path + "".join(f"?{k}={v}" for k, v in query.items())
        return request(self.port, method, at, body, {**ms, "Authorization": f"SharedKey {self.account}:{sign}"})

    def upload(self, key, data):
        self._ask("PUT", f"/{self.account}/{BUCKET}/{key}", data, blob_type="BlockBlob")

    def download(self, key):
        return self._ask("GET", f"/{self.account}/{BUCKET}/{key}")

    def url(self, key, bucket=BUCKET):
        return f"azblob://{bucket}/{key}?domain=127.0.0.1:{self.port}&protocol=http&localemu=true"


class Google:
    """fake-gcs-server, with a bucket."""

    secret = None

    def __init__(self, tmp):
        program = installed("gs", "go")
        self.port = free_port()
        command = [program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(self.port), "-backend", "memory"]
        command += ["-external-url", f"http://127.0.0.1:{self.port}", "-public-host", f"127.0.0.1:{self.port}"]
        self.process = started(command, self.port, cwd=tmp)
        self.env = {"STORAGE_EMULATOR_HOST": f"127.0.0.1:{self.port}"}
        self.wrong = None
        request(self.port, "POST", "/storage/v1/b?project=p", json.dumps({"name": BUCKET}).encode(), {"Content-Type": "application/json"})

    def upload(self, key, data):
        request(self.port, "POST", f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={key}", data)

    def download(self, key):
        return request(self.port, "GET", f"/download/storage/v1/b/{BUCKET}/o/{key.replace('/', '%2F')}?alt=media")

    def url(self, key, bucket=BUCKET):
        return f"gs://{bucket}/{key}"


class S3:
    """Versity's gateway, which keeps objects as files, behind a proxy that can fail."""

    access = "AKIATRACELAKETEST"
    secret = "a-secret-that-no-log-may-hold"

    def __init__(self, tmp):
        program = installed("s3", "go")
        self.dir = tmp / BUCKET
        self.dir.mkdir()
        self.port = free_port()
        command = [program, "--port", f"127.0.0.1:{self.port}", "--quiet", "--keep-alive", "posix", str(tmp)]
        keys = {"ROOT_ACCESS_KEY": self.access, "ROOT_SECRET_KEY": self.secret}
        self.process = started(command, self.port, env={**os.environ, **keys})
        self.proxy = Proxy(self.port)
        self.env = {**NO_CREDENTIALS, "AWS_ACCESS_KEY_ID": self.access, "AWS_SECRET_ACCESS_KEY": self.secret}
        self.wrong = {**self.env, "AWS_SECRET_ACCESS_KEY": "another-" + self.secret}
        self.secrets = [self.secret, self.access]

    def upload(self, key, data):
        (self.dir / key).parent.mkdir(parents=True, exist_ok=True)
        (self.dir / key).write_bytes(data)

    def download(self, key):
        return (self.dir / key).read_bytes()

    def url(self, key, bucket=BUCKET):
        return f"s3://{bucket}/{key}?endpoint=http://127.0.0.1:{self.proxy.port}&use_path_style=true"


class Proxy:
    """Forwards requests, unless fault(method, path) says otherwise: a status answers with it, ("cut", n) breaks the
    answer off after n bytes, "drop" closes the connection."""

    def __init__(self, to):
        self.fault, self.requests = None, 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *a):
                pass

            def forward(self):
                outer.requests += 1
                body = self.body()
                what = outer.fault(self.command, self.path) if outer.fault else None
                if what == "drop":
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                if isinstance(what, int):
                    text = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
                    self.send_response(what)
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                    return
                self.answer(body, what[1] if what else None)

            def body(self):
                if self.headers.get("Transfer-Encoding", "") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                out = b""
                while n := int(self.rfile.readline().split(b";")[0], 16):
                    out += self.rfile.read(n)
                    self.rfile.readline()
                self.rfile.readline()
                return out

            def answer(self, body, cut):
                c = http.client.HTTPConnection("127.0.0.1", to, timeout=60)
                try:
                    c.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                    for k, v in self.headers.items():
                        if k.lower() != "transfer-encoding":
                            c.putheader(k, v)
                    if self.headers.get("Transfer-Encoding"):
                        c.putheader("Content-Length", str(len(body)))
                    c.endheaders(body)
                    r = c.getresponse()
                    data = r.read()
                except OSError:
                    self.close_connection = True
                    return
                self.send_response(r.status)
                for k, v in r.getheaders():
                    if k.lower() not in ("transfer-encoding", "connection", "date", "server"):
                        self.send_header(k, v)
                if not r.getheader("Content-Length") and self.command != "HEAD" and r.status != 204:
                    self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data if cut is None else data[:cut])
                if cut is not None and cut < len(data):
                    self.close_connection = True

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = forward

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
