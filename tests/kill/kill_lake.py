"""The lake of the kill tests: its manifests, and what plain pylance (none of our code) sees of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import lance
import lance_namespace as ln
from lance.namespace import DirectoryNamespace

HEAD = "apiVersion: reconciler.lance/v1\n"
RICH = """  schema:
    - {name: id, type: int64, nullable: false, comment: the key}
    - {name: tags, type: list<string>}
    - {name: vector, type: "fixed_size_list<float32>[8]", metadata: {unit: m}}
  config: {team: vision}
  schemaMetadata: {made: for tests}
  indexes: [{column: id, type: btree}]
"""
LEAN = "  schema: [{name: id, type: int64}]\n"


def manifests(tables: int) -> str:
    """Two namespaces. Every fifth table is a rich one, with an index; the others cost little."""
    documents = [
        f"{HEAD}kind: Catalog\nmetadata: {{name: lake}}\n"
        "spec:\n  type: dir\n  path: ./lake\n  management: {owner: us}\n"
    ]
    for n in range(2):
        documents.append(
            f"{HEAD}kind: Namespace\nmetadata: {{catalog: lake, id: [n{n}]}}\nspec: {{properties: {{nr: '{n}'}}}}\n"
        )
    for t in range(tables):
        documents.append(
            f"{HEAD}kind: Table\nmetadata: {{catalog: lake, id: [n{t % 2}, t{t:03}]}}\n"
            f"spec:\n  description: table {t}\n  properties: {{nr: '{t}'}}\n{LEAN if t % 5 else RICH}"
        )
    return "---\n".join(documents)


def described(root: Path) -> dict[str, Any]:
    """Everything a user of plain pylance can see through its namespace, without versions and folder names."""
    namespace = DirectoryNamespace(root=str(root))

    def walk(ident: list[str]) -> Iterator[tuple[str, Any]]:
        for name in namespace.list_namespaces(ln.ListNamespacesRequest(id=ident)).namespaces:
            below = [*ident, name]
            found = namespace.describe_namespace(ln.DescribeNamespaceRequest(id=below))
            yield ".".join(below), unsigned(found.properties)
            yield from walk(below)
        for name in namespace.list_tables(ln.ListTablesRequest(id=ident)).tables:
            table = namespace.describe_table(ln.DescribeTableRequest(id=[*ident, name]))
            yield ".".join([*ident, name]), (unsigned(table.properties or {}), dataset(table.location))

    return dict(walk([]))


def seen(root: Path) -> dict[str, Any]:
    """The same from one read of `__manifest` and one open of every dataset: a sixth of the time of `described`."""
    found: dict[str, Any] = {}
    for row in lance.dataset(str(root / "__manifest")).to_table().to_pylist():
        name = row["object_id"].replace("$", ".")
        assert name not in found, f"{name} has two rows"
        properties = unsigned(json.loads(row["metadata"]))
        found[name] = (
            properties if row["object_type"] == "namespace" else (properties, dataset(str(root / row["location"])))
        )
    return found


def unsigned(properties: Mapping[str, str]) -> dict[str, str]:
    """Without the note of the run, which has its time: another run leaves another one."""
    return {k: v for k, v in properties.items() if k != "reconciler.applied-by"}


def dataset(location: str) -> dict[str, Any]:
    opened = lance.dataset(location)
    indexes = sorted((i.name, i.type_url, tuple(i.field_names)) for i in opened.describe_indices())
    schema = opened.schema
    notes = unsigned(opened.metadata)
    record = json.loads(notes.pop("reconciler.indexes", "{}"))
    live = {i.name: {str(s.uuid) for s in i.segments} for i in opened.describe_indices()}
    builds = {name: {segment for segment, *_ in entry.pop("segments")} for name, entry in record.items()}
    return {
        "schema": schema.to_string(show_field_metadata=True, show_schema_metadata=True),
        "config": opened.config(),
        "metadata": notes,
        "record of indexes": record,
        "recorded builds": {name: uuids <= builds.get(name, set()) for name, uuids in live.items()},
        "indexes": indexes,
        "rows": opened.count_rows(),
    }
