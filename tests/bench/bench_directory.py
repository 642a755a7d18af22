"""(b) snapshot of 1000 V2 tables with schemas against pylance list + describe; (c) V1 listing of 5000 tables."""

from __future__ import annotations

import tempfile

import lance
import pyarrow as pa
from lance.namespace import DirectoryNamespace
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DescribeTableRequest,
    ListTablesRequest,
)
from timing import best, table

from reconciler.catalog.directory import DirectoryCatalog
from reconciler.engine.observe import observe
from reconciler.model.observed import Scope

SCHEMA = pa.schema([("id", pa.int64()), ("label", pa.string()), ("embedding", pa.list_(pa.float32(), 64))])
V2_TABLES = 1000
V1_TABLES = 5000


def v2_snapshot(root: str) -> list[str]:
    peer = DirectoryNamespace(root=root, dir_listing_enabled="false")
    peer.create_namespace(CreateNamespaceRequest(id=["n"]))
    for i in range(V2_TABLES):
        location = peer.declare_table(DeclareTableRequest(id=["n", f"t{i}"])).location
        lance.write_dataset([], location, schema=SCHEMA, mode="create")
    scope = Scope(detail=frozenset(("n", f"t{i}") for i in range(V2_TABLES)))

    def ours() -> None:
        catalog = DirectoryCatalog({"path": root, "dir_listing_enabled": "false"})
        assert len(observe(catalog, scope).tables) == V2_TABLES

    def theirs() -> None:
        namespace = DirectoryNamespace(root=root, dir_listing_enabled="false")
        names = namespace.list_tables(ListTablesRequest(id=["n"])).tables
        for name in names:
            found = namespace.describe_table(DescribeTableRequest(id=["n", name], load_detailed_metadata=True))
            assert found.var_schema is not None

    return _row(f"snapshot of {V2_TABLES} V2 tables", best(ours, 5), best(theirs, 2))


def v1_listing(root: str) -> list[list[str]]:
    peer = DirectoryNamespace(root=root, manifest_enabled="false")
    for i in range(V1_TABLES):
        peer.declare_table(DeclareTableRequest(id=[f"t{i}"]))

    catalog = DirectoryCatalog({"path": root, "manifest_enabled": "false"})
    namespace = DirectoryNamespace(root=root, manifest_enabled="false")

    def names() -> None:
        assert len(catalog.children(())) == V1_TABLES

    def snapshot() -> None:
        assert len(observe(catalog, Scope()).tables) == V1_TABLES

    def theirs() -> None:
        assert len(namespace.list_tables(ListTablesRequest(id=[])).tables) == V1_TABLES

    peer_seconds = best(theirs, 5)
    return [
        _row(f"names of {V1_TABLES} V1 tables", best(names, 10), peer_seconds),
        _row(f"snapshot of {V1_TABLES} V1 tables, against their names", best(snapshot, 10), peer_seconds),
    ]


def _row(what: str, ours: float, theirs: float) -> list[str]:
    return [what, f"{1000 * ours:.0f} ms", f"{1000 * theirs:.0f} ms", f"{theirs / ours:.1f}x"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        table(["what", "ours", "pylance", "pylance/ours"], [v2_snapshot(one), *v1_listing(two)])
