"""pylance's REST server over a folder, our client, and the proxy between the two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance_namespace as ln
import pytest
from lance.namespace import RestNamespace
from servers.proxy import Proxy
from servers.rest_adapter import RestServers

from reconciler.catalog.base import WriteContext
from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.catalog.rest import connect
from reconciler.model import change as c
from reconciler.model.arrow import Field, parse_type
from reconciler.model.ident import Ident, Kind
from reconciler.model.observed import Finding, Gap, Observation, Occupied, Scope
from reconciler.model.state import Marks

US = Marks("team-a")
WRITE = WriteContext()
ID = (Field("id", parse_type("int64")),)
PRUDENT = {"max_retries": "0"}


@dataclass
class Rig:
    root: Path
    server: str
    proxy: Proxy
    catalog: EntryCatalog = field(init=False)
    _opened: list[EntryCatalog] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.catalog = self.open()

    def open(self, **options: str) -> EntryCatalog:
        """Keys with dots are given as `{"header.x": …}`."""
        opened = connect({"uri": self.proxy.endpoint, **options})
        self._opened.append(opened)
        return opened

    def close(self) -> None:
        for opened in self._opened:
            opened.close()
        self.proxy.close()

    @property
    def stranger(self) -> Any:
        """Straight to the server, with pylance's own client."""
        return RestNamespace(uri=self.server)

    def apply(self, *changes: c.Change, catalog: EntryCatalog | None = None) -> None:
        for change in changes:
            (catalog or self.catalog).apply(change, WRITE)

    def namespace(self, *ident: str, properties: Mapping[str, str] | None = None, marks: Marks = US) -> None:
        self.apply(c.CreateNamespace(ident, dict(properties or {}), marks))

    def table(self, *ident: str, properties: Mapping[str, str] | None = None, data: bool = True) -> None:
        self.apply(c.DeclareTable(ident, dict(properties or {}), US))
        if data:
            self.apply(c.CreateDataset(ident, ID, {}, {}, "team-a", ()))

    def find(self, kind: Kind, *ident: str, catalog: EntryCatalog | None = None) -> Finding:
        scope = Scope(detail=frozenset({ident}))
        return next(iter((catalog or self.catalog).read([(kind, ident)], scope))).finding

    def scan(
        self, detail: Sequence[Ident] = (), ignore: Sequence[str] = (), catalog: EntryCatalog | None = None
    ) -> dict[tuple[str, Ident], Any]:
        scope = Scope(detail=frozenset(detail), ignore=tuple(ignore))
        return {_key(found): found for found in (catalog or self.catalog).scan(scope)}

    def records(self) -> list[dict[str, str]]:
        """What is in the inventory, read with the stranger's client."""
        client, found = self.stranger, []
        for digit in _below(client, "__reconciler"):
            for name in _below(client, "__reconciler", digit):
                answer = client.describe_namespace(ln.DescribeNamespaceRequest(id=["__reconciler", digit, name]))
                found.append(dict(answer.properties or {}))
        return found


def _below(client: Any, *ident: str) -> list[str]:
    return sorted(client.list_namespaces(ln.ListNamespacesRequest(id=list(ident))).namespaces)


def _key(found: Observation | Gap | Occupied) -> tuple[str, Ident]:
    if isinstance(found, Observation):
        return found.kind, found.ident
    return type(found).__name__, found.ident


@pytest.fixture
def rig(rest_adapter: RestServers, tmp_path: Path) -> Iterator[Rig]:
    endpoint = rest_adapter.serve(tmp_path / "lake")
    rig = Rig(tmp_path / "lake", endpoint, Proxy(endpoint))
    yield rig
    rig.close()
    rest_adapter.stop(endpoint)
