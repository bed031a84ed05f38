"""The object stores that the tests share."""

import os
import subprocess

import pytest
import servers


@pytest.fixture(scope="session")
def command(binary):
    def run(store, *args, env=None, ok=(0,), timeout=300):
        p = subprocess.run(
            [str(binary), *map(str, args)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **(store.env if env is None else env)},
        )
        assert p.returncode in ok, f"exit {p.returncode}: {p.stderr[-2000:]}"
        return p

    return run


def running(kind):
    @pytest.fixture(scope="session")
    def store(tmp_path_factory):
        s = kind(tmp_path_factory.mktemp(kind.__name__))
        yield s
        s.process.kill()
        s.process.wait()

    return store


azure = running(servers.Azure)
google = running(servers.Google)
s3 = running(servers.S3)
