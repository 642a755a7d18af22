"""A real S3 server (moto) in its own process, one for the whole test session."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

_START_SECONDS = 60


@dataclass(frozen=True)
class Moto:
    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def storage_options(self) -> dict[str, str]:
        """As lance and obstore take them; a catalog wants them with the prefix `storage.`."""
        return {
            "aws_access_key_id": "test-key",
            "aws_secret_access_key": "test-secret-canary",
            "aws_region": "us-east-1",
            "aws_endpoint": self.endpoint,
            "allow_http": "true",
        }

    def catalog_options(self, path: str, **more: str) -> dict[str, str]:
        return {"path": path, **{f"storage.{k}": v for k, v in self.storage_options.items()}, **more}

    def make_bucket(self, name: str) -> str:
        import boto3

        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id="test-key",
            aws_secret_access_key="test-secret-canary",
            region_name="us-east-1",
        )
        client.create_bucket(Bucket=name)
        return f"s3://{name}"


@pytest.fixture(scope="session")
def moto() -> Iterator[Moto]:
    process = subprocess.Popen(
        [sys.executable, __file__], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.PIPE, text=True
    )
    watchdog = threading.Timer(_START_SECONDS, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        line = process.stdout.readline()  # printed once the server listens
        watchdog.cancel()
        assert line.strip().isdigit(), "the moto server did not start"
        yield Moto(int(line))
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()


def _serve() -> None:
    """Ends when its parent does: standard input is a pipe that closes then."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    print(server.get_host_and_port()[1], flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    # The folder of this file is first on the path, and the file is called moto too.
    sys.path.pop(0)
    _serve()
