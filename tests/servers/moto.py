"""Real S3, Glue and STS servers (moto) in one process, one for the whole session of a test worker.

moto.endpoint, moto.storage_options          # S3
moto.endpoint_of("glue"), moto.endpoint_of("sts")
moto.account()                               # credentials of a new, empty AWS account: nothing of Glue is shared
moto.client_of("glue", moto.account())       # boto3, somebody else's way in
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from servers.process import Conversation

_accounts = itertools.count(os.getpid() * 1000)
KEYS = {"aws_access_key_id": "test-key", "aws_secret_access_key": "test-secret-canary"}


@dataclass(frozen=True)
class Moto:
    _process: Conversation
    _ports: dict[str, str] = field(default_factory=dict)

    def endpoint_of(self, service: str) -> str:
        """Each service has its port and starts when it is first asked for: `s3`, `glue`, `sts`, `iam`."""
        if service not in self._ports:
            self._ports[service] = self._process.ask(service)
        return f"http://127.0.0.1:{self._ports[service]}"

    @property
    def endpoint(self) -> str:
        return self.endpoint_of("s3")

    @property
    def storage_options(self) -> dict[str, str]:
        """As lance and obstore take them; a catalog wants them with the prefix `storage.`."""
        return {
            **KEYS,
            "aws_region": "us-east-1",
            "aws_endpoint": self.endpoint,
            "allow_http": "true",
        }

    def catalog_options(self, path: str, **more: str) -> dict[str, str]:
        return {"path": path, **{f"storage.{k}": v for k, v in self.storage_options.items()}, **more}

    @property
    def client(self) -> Any:
        """Somebody else's way in. It is shared: making a boto3 client costs as much as twenty requests."""
        return _client("s3", self.endpoint, tuple(KEYS.items()))

    def client_of(self, service: str, keys: Mapping[str, str] | None = None) -> Any:
        return _client(service, self.endpoint_of(service), tuple((keys or KEYS).items()))

    def account(self) -> dict[str, str]:
        """Credentials (as boto3 takes them) of a role in an account that nobody else uses."""
        role = f"arn:aws:iam::{next(_accounts) % 10**12:012}:role/tester"
        made = self.client_of("sts").assume_role(RoleArn=role, RoleSessionName="tests")["Credentials"]
        return {
            "aws_access_key_id": made["AccessKeyId"],
            "aws_secret_access_key": made["SecretAccessKey"],
            "aws_session_token": made["SessionToken"],
        }

    def make_bucket(self, name: str) -> str:
        self.client.create_bucket(Bucket=name)
        return f"s3://{name}"


@lru_cache
def _client(service: str, endpoint: str, keys: tuple[tuple[str, str], ...]) -> Any:
    import boto3

    return boto3.client(service, endpoint_url=endpoint, region_name="us-east-1", **dict(keys))  # type: ignore[call-overload]


@contextmanager
def one_certificate(folder: Path) -> Iterator[None]:
    """The server speaks plain HTTP, and yet every client of obstore and of lance first reads all certificates of the
    machine: 9 ms each time, two thirds of the client's work in these tests. One certificate is as good here."""
    import botocore

    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    body = Path(botocore.__file__).with_name("cacert.pem").read_text().partition(begin)[2].partition(end)[0]
    file = folder / "one.pem"
    file.write_text(f"{begin}{body}{end}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        patch.delenv("SSL_CERT_DIR", raising=False)
        yield


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moto]:
    from servers.process import Conversation

    folder = tmp_path_factory.mktemp("moto")
    process = Conversation([sys.executable, __file__], folder / "moto.log")
    try:
        with one_certificate(folder):
            yield Moto(process)
    finally:
        process.close()


def _serve() -> None:
    """A line names a service, the answer is its port. Ends when its parent does: standard input closes then.

    A service is served without moto's dispatcher, which guesses the service anew for every request by listing moto's
    own folder: more than a quarter of the time of a small request.
    """
    from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    class Quiet(MotoRequestHandler):
        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Nobody reads it."""

    for line in sys.stdin:
        server = make_server("127.0.0.1", 0, create_backend_app(line.strip()), threaded=True, request_handler=Quiet)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_address[1], flush=True)


if __name__ == "__main__":
    # The folder of this file is first on the path, and the file is called moto too.
    sys.path.pop(0)
    _serve()
