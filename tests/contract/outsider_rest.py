"""The outsider of the `rest` backend: pylance's own RestNamespace client. The model for the other services.

How to add the next one (X in iceberg, unity, glue): write tests/contract/outsider_X.py with

1. `class XOutsider(ServiceOutsider)`: the six methods of "what a service fills in" (outsider_service.py), through a
   client that shares no code with ours. Leave the container level out of `namespaces()`, leave the service's own keys
   (`table_type`, `lance.location`, `nessie.*`, ...) out of all properties, and put into `raw` the whole answer.
2. `def x_site(folder: Path, fixture: Callable[[str], Any]) -> Site`: starts an empty catalog that nobody else sees
   (a server, an account, a catalog of its own), with data below `folder`, and returns `service_site(...)`.
   The `copy` of a site is a new site filled by `copy_to`, or anything quicker that ends the same.

The entry in backends.BACKENDS is there already and imports `x_site` when the first test asks for it. `fixture("name")`
gives a session fixture of tests/servers/ (listed in contract/conftest.py).
"""

from __future__ import annotations

import io
import json
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import lance
import lance_namespace as ln
import pyarrow as pa
from lance.namespace import RestNamespace
from servers.rest_adapter import RestServers

from contract.backends import Site, service_site
from contract.outsider import Changes, Ident, changed, users
from contract.outsider_service import Entry, ServiceOutsider

INVENTORY = "__reconciler"
MARKS = ("reconciler.owner", "reconciler.protect", "reconciler.applied-keys")


class RestOutsider(ServiceOutsider):
    def __init__(self, root: Path, endpoint: str) -> None:
        super().__init__(root)
        self.client = RestNamespace(uri=endpoint)

    def namespaces(self) -> dict[Ident, dict[str, str]]:
        records = self._records()
        found = {}
        for ident in self._below(()):
            answer = self.client.describe_namespace(ln.DescribeNamespaceRequest(id=list(ident)))
            found[ident] = _marked(answer.properties or {}, records.get(("Namespace", ident)))
        return found

    def entries(self) -> dict[Ident, Entry]:
        records = self._records()
        found = {}
        for parent in ((), *self._below(())):
            for name in self.client.list_tables(ln.ListTablesRequest(id=list(parent))).tables:
                answer = self.client.describe_table(ln.DescribeTableRequest(id=[*parent, name]))
                record = records.get(("Table", (*parent, name)), {})
                if record.get("reconciler.location") != answer.location:
                    record = {}  # of a table of this name that was there before
                properties = _marked(answer.properties or {}, record)
                found[(*parent, name)] = Entry(
                    answer.location or "", properties, answer.model_dump(exclude={"context"})
                )
        return found

    def create_namespace(self, ident: Ident, properties: Mapping[str, str] | None = None) -> None:
        self.client.create_namespace(ln.CreateNamespaceRequest(id=list(ident), properties=dict(properties or {})))

    def create_table(self, ident: Ident, schema: pa.Schema, rows: Sequence[Mapping[str, Any]] = ()) -> None:
        """Here the server writes the data too."""
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(pa.Table.from_pylist([dict(r) for r in rows], schema=schema))
            if not rows:
                writer.write_batch(pa.RecordBatch.from_pylist([], schema=schema))
        self.client.create_table(ln.CreateTableRequest(id=list(ident)), sink.getvalue())

    def declare_table(self, ident: Ident) -> None:
        self.client.declare_table(ln.DeclareTableRequest(id=list(ident)))

    def set_properties(self, kind: str, ident: Ident, values: Changes) -> None:
        """The protocol has no such call: somebody with access to the server's own table of contents does it."""
        manifest = lance.dataset(str(self.root / "__manifest"))
        (row,) = [r for r in manifest.to_table().to_pylist() if r["object_id"] == "$".join(ident)]
        row["metadata"] = json.dumps(changed(json.loads(row["metadata"] or "{}"), values))
        table = pa.Table.from_pylist([row], schema=manifest.schema)
        manifest.merge_insert("object_id").when_matched_update_all().execute(table)

    def move(self, ident: Ident, other: Ident) -> None:
        """As with properties: in the server's own table of contents, where locations are relative."""
        manifest = lance.dataset(str(self.root / "__manifest"))
        rows = {r["object_id"]: r for r in manifest.to_table().to_pylist()}
        row = {**rows["$".join(ident)], "location": rows["$".join(other)]["location"]}
        table = pa.Table.from_pylist([row], schema=manifest.schema)
        manifest.merge_insert("object_id").when_matched_update_all().execute(table)

    def _below(self, ident: Ident) -> list[Ident]:
        names = self.client.list_namespaces(ln.ListNamespacesRequest(id=list(ident))).namespaces
        children = [(*ident, n) for n in sorted(names) if (*ident, n) != (INVENTORY,)]
        return [i for child in children for i in (child, *self._below(child))]

    def _records(self) -> dict[tuple[str, Ident], dict[str, str]]:
        """Marks that changed after the object was made: namespaces of ours two levels below `__reconciler`, the highest
        number of an object counts."""
        found: dict[tuple[str, Ident], dict[str, str]] = {}
        if INVENTORY not in self.client.list_namespaces(ln.ListNamespacesRequest(id=[])).namespaces:
            return found
        for digit in self.client.list_namespaces(ln.ListNamespacesRequest(id=[INVENTORY])).namespaces:
            for name in sorted(self.client.list_namespaces(ln.ListNamespacesRequest(id=[INVENTORY, digit])).namespaces):
                answer = self.client.describe_namespace(ln.DescribeNamespaceRequest(id=[INVENTORY, digit, name]))
                noted = answer.properties or {}
                if "reconciler.kind" not in noted:
                    continue  # the record of a lease
                found[noted["reconciler.kind"], tuple(json.loads(noted["reconciler.id"]))] = noted
        return found


def _marked(properties: Mapping[str, str], record: Mapping[str, str] | None) -> dict[str, str]:
    """The record's marks stand for all marks of the object; a table that was registered again has its properties there
    too, because the server keeps none then."""
    if not record:
        return dict(properties)
    marks = {k: v for k, v in record.items() if k.startswith(MARKS)}
    kept: dict[str, str] = json.loads(record.get("reconciler.properties", "{}"))
    return kept | users(properties) | marks


def rest_site(folder: Path, fixture: Callable[[str], Any]) -> Site:
    return _site(folder / "lake", fixture("rest_adapter"))


def _site(root: Path, servers: RestServers) -> Site:
    endpoint = servers.serve(root)
    outsider = RestOutsider(root, endpoint)

    def copy() -> Site:
        """The server keeps everything in its folder, with relative locations."""
        target = root.with_name(f"copy-{uuid.uuid4().hex[:8]}")
        shutil.copytree(root, target)
        return _site(target, servers)

    return service_site({"type": "rest", "uri": endpoint}, outsider, copy)
