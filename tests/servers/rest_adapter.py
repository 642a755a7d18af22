"""pylance's own Lance REST server over directories, in a process of its own.

    def test_x(rest_adapter: RestServers, tmp_path: Path) -> None:
        endpoint = rest_adapter.serve(tmp_path / "lake")    # dir V2: what is listed is what was registered

One process serves any number of roots, each at its own port; it knows no authentication.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.process import Conversation

V2 = {"dir_listing_enabled": "false"}


class RestServers:
    def __init__(self, folder: Path) -> None:
        self._process = Conversation([sys.executable, "-c", _SERVE], folder / "rest-adapter.log")

    def serve(self, root: str | Path, **properties: str) -> str:
        """The endpoint of a server over this folder, empty or not."""
        wanted = {"root": str(root), **V2, **properties}
        return f"http://127.0.0.1:{self._process.ask(json.dumps(wanted))}"

    def stop(self, endpoint: str) -> None:
        self._process.ask(json.dumps({"stop": int(endpoint.rpartition(":")[2])}))

    def close(self) -> None:
        self._process.close()


_SERVE = """
import json, sys
from lance.namespace import RestAdapter

servers = {}
for line in sys.stdin:
    wanted = json.loads(line)
    if "stop" in wanted:
        servers.pop(wanted["stop"]).stop()
        print("stopped", flush=True)
        continue
    server = RestAdapter("dir", wanted, host="127.0.0.1", port=0)
    server.start()
    servers[server.port] = server
    print(server.port, flush=True)
"""


@pytest.fixture(scope="session")
def rest_adapter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestServers]:
    servers = RestServers(tmp_path_factory.mktemp("rest-adapter"))
    yield servers
    servers.close()
