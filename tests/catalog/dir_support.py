"""Short words for the directory tests."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import lance_namespace as ln
import pyarrow as pa
from lance.namespace import DirectoryNamespace

from reconciler.catalog.base import WriteContext
from reconciler.catalog.directory import DirectoryCatalog
from reconciler.model.arrow import Field, parse_type
from reconciler.model.change import (
    Change,
    CreateDataset,
    CreateNamespace,
    DeclareTable,
)
from reconciler.model.ident import Ident, Kind
from reconciler.model.observed import Finding, Gap, Present, RootSeen, Scope
from reconciler.model.state import DatasetState, Marks, TableState

CONTEXT = WriteContext("sha256:plan", "s1")
OURS = Marks("team-a", False, ())
V1 = {"manifest_enabled": "false"}
V2 = {"dir_listing_enabled": "false"}
DEFAULT: dict[str, str] = {}
LAYOUTS = {"default": DEFAULT, "v2": V2, "v1": V1}


def field(name: str, type_: str, nullable: bool = True, **more: Any) -> Field:
    return Field(name, parse_type(type_), nullable, **more)


FIELDS = (field("id", "int64", False, comment="key"), field("embedding", "fixed_size_list<float32>[8]"))


def open_catalog(root: Path | str, **options: str) -> DirectoryCatalog:
    return DirectoryCatalog({"path": str(root), **options})


def peer(root: Path | str, **options: str) -> Any:
    """pylance's own view of the same folder."""
    return DirectoryNamespace(root=str(root), **options)


def run(catalog: DirectoryCatalog, *changes: Change) -> None:
    for change in changes:
        catalog.apply(change, CONTEXT)


def create_namespace(*ident: str, marks: Marks = OURS, **properties: str) -> CreateNamespace:
    return CreateNamespace(ident, properties, marks)


def declare(*ident: str, marks: Marks = OURS, location: str | None = None, **properties: str) -> DeclareTable:
    return DeclareTable(ident, properties, marks, location)


def dataset(*ident: str, fields: tuple[Field, ...] = FIELDS, **more: Any) -> CreateDataset:
    values: dict[str, Any] = {"schema_metadata": {}, "config": {}, "owner": "team-a", "applied": (), **more}
    return CreateDataset(ident, fields, **values)


def make_table(catalog: DirectoryCatalog, *ident: str) -> None:
    run(catalog, declare(*ident), dataset(*ident))


def detail(*idents: Ident) -> Scope:
    return Scope(detail=frozenset(idents))


def find(catalog: DirectoryCatalog, *ident: str, kind: Kind = "Table", scope: Scope | None = None) -> Finding:
    """By read, with its dataset."""
    (found,) = catalog.read([(kind, ident)], scope or detail(ident))
    assert (found.kind, found.ident) == (kind, ident)
    return found.finding


def table(catalog: DirectoryCatalog, *ident: str) -> TableState:
    found = find(catalog, *ident)
    assert isinstance(found, Present), found
    assert isinstance(found.state, TableState)
    return found.state


def data(catalog: DirectoryCatalog, *ident: str) -> DatasetState:
    state = table(catalog, *ident).dataset
    assert isinstance(state, DatasetState)
    return state


def scanned(catalog: DirectoryCatalog, scope: Scope | None = None) -> dict[tuple[str, Ident], Finding]:
    found: dict[tuple[str, Ident], Finding] = {}
    for item in catalog.scan(scope or Scope()):
        if isinstance(item, RootSeen):
            continue
        assert not isinstance(item, Gap), item
        assert (item.kind, item.ident) not in found
        found[item.kind, item.ident] = item.finding
    return found


def rows_ipc(rows: int = 1) -> bytes:
    schema = pa.schema([pa.field("id", pa.int64())])
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch([pa.array(list(range(rows)), pa.int64())], schema=schema))
    return sink.getvalue()


def peer_tables(namespace: Any, *ident: str) -> set[str]:
    return set(namespace.list_tables(ln.ListTablesRequest(id=list(ident))).tables)


def peer_namespaces(namespace: Any, *ident: str) -> set[str]:
    return set(namespace.list_namespaces(ln.ListNamespacesRequest(id=list(ident))).namespaces)


def peer_table(namespace: Any, *ident: str) -> Any:
    return namespace.describe_table(ln.DescribeTableRequest(id=list(ident)))
