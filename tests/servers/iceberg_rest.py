"""Apache Iceberg's own REST server (1.11.0), as many empty ones as tests ask for, all in one Java process.

    def test_x(iceberg_rest: IcebergRest) -> None:
        server = iceberg_rest.new()        # .endpoint, .close()
        server = iceberg_rest.new(files=True)   # writes `metadata/` into the folder of every table, as many servers do

Every `?warehouse=` shows the same catalog there, and it listens on all interfaces; neither can be set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from servers.cache import jars, needs
from servers.process import Conversation

_SOURCE = Path(__file__).with_name("java") / "IcebergServers.java"


@dataclass(frozen=True)
class IcebergServer:
    port: int
    _owner: IcebergRest

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._owner.stop(self)


class IcebergRest:
    def __init__(self, folder: Path) -> None:
        java = needs("java", "Iceberg's REST server")
        needs("javac", "Iceberg's REST server")  # the few lines of Java above are compiled as it starts
        flags = ["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        self._process = Conversation(
            [java, *flags, "-cp", f"{jars('iceberg-rest')}/*", str(_SOURCE)], folder / "iceberg-rest.log"
        )

    def new(self, files: bool = False) -> IcebergServer:
        return IcebergServer(int(self._process.ask("new files" if files else "new")), self)

    def stop(self, server: IcebergServer) -> None:
        self._process.ask(f"stop {server.port}")

    def close(self) -> None:
        self._process.close()


@pytest.fixture(scope="session")
def iceberg_rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergRest]:
    servers = IcebergRest(tmp_path_factory.mktemp("iceberg-rest"))
    yield servers
    servers.close()
