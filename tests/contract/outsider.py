"""The other user of the catalog: makes, changes and reads objects without going through the reconciler.

`state` is what the objects are (two runs that end alike have equal states); `raw` is every bit of it (equal only when
nothing was written at all).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

Ident = tuple[str, ...]
OWNER = "reconciler.owner"
INDEXES = "reconciler.indexes"
INDEX_TYPES = {"fts": "inverted", "labellist": "label_list"}


@dataclass(frozen=True)
class TableView:
    """One table as a stranger sees it. `schema` is None while there is no data."""

    properties: dict[str, str]
    owner: str | None
    schema: pa.Schema | None = None
    config: dict[str, str] = field(default_factory=dict)
    indexes: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Name -> type, column."""
    notes: dict[str, str] = field(default_factory=dict)
    rows: list[dict[str, Any]] | None = None

    def comparable(self) -> tuple[object, ...]:
        fields = sorted((describe(f) for f in self.schema), key=str) if self.schema is not None else None
        return self.properties, self.owner, fields, self.config, self.indexes, self._definitions(), self.rows

    def _definitions(self) -> dict[str, object]:
        """Our notes. Two runs that end alike have built their indexes each for itself. What is recorded about an index
        that is not there says nothing: a run that ends right after a drop leaves it."""
        record = json.loads(self.notes.get(INDEXES, "{}"))
        live = {
            name: {k: v for k, v in e.items() if k not in _OF_ONE_BUILD} | {"segments": len(e["segments"]) > 0}
            for name, e in record.items()
            if name in self.indexes
        }
        return {**self.notes, INDEXES: live} if record else {**self.notes}


_OF_ONE_BUILD = ("last", "earlier")


@dataclass(frozen=True)
class View:
    namespaces: dict[Ident, dict[str, str]]
    """With our marks, as they are stored."""
    tables: dict[Ident, TableView]

    def comparable(self, container: Ident = ()) -> tuple[object, ...]:
        """Equal for equal states of two sites, also where their containers have different names."""
        cut = len(container)
        namespaces = {ident[cut:]: properties for ident, properties in self.namespaces.items()}
        return namespaces, {ident[cut:]: table.comparable() for ident, table in self.tables.items()}


def describe(f: pa.Field) -> tuple[object, ...]:
    """A field with everything below it: `==` of pyarrow leaves metadata out."""
    children = [f.type.field(i) for i in range(f.type.num_fields)] if pa.types.is_nested(f.type) else []
    metadata = dict(f.metadata or {})
    return f.name, str(f.type), f.nullable, metadata, tuple(describe(c) for c in children)


Changes = Mapping[str, str | None]
"""None takes the key away."""


def changed(values: Mapping[str, str], changes: Changes) -> dict[str, str]:
    return {k: v for k, v in {**values, **changes}.items() if v is not None}


def change_config(dataset: Any, changes: Changes) -> None:
    dataset.update_config(changed({}, changes))
    gone = [k for k, v in changes.items() if v is None]
    if gone:
        dataset.delete_config_keys(gone)


def users(properties: Mapping[str, str]) -> dict[str, str]:
    """Without our marks."""
    return {k: v for k, v in properties.items() if not k.startswith("reconciler.")}


def with_dataset(view: TableView, dataset: Any) -> TableView:
    """The view with what plain pylance shows of the dataset."""
    indexes = {}
    for index in dataset.describe_indices():
        type_ = str(index.index_type).lower()
        indexes[index.name] = (INDEX_TYPES.get(type_, type_), ".".join(index.field_names))
    rows = sorted(dataset.to_table().to_pylist(), key=str)
    return TableView(
        view.properties, view.owner, dataset.schema, dataset.config(), indexes, dict(dataset.metadata), rows
    )


class Outsider(Protocol):
    holds_rows: bool

    def create_namespace(self, ident: Ident, properties: Mapping[str, str] | None = None) -> None: ...

    def create_table(self, ident: Ident, schema: pa.Schema, rows: Sequence[Mapping[str, Any]] = ()) -> None: ...

    def declare_table(self, ident: Ident) -> None: ...

    def append(self, ident: Ident, rows: Sequence[Mapping[str, Any]]) -> None: ...

    def set_config(self, ident: Ident, values: Changes) -> None: ...

    def mark_data(self, ident: Ident, owner: str) -> None:
        """As somebody's reconciler does that knows the data by another catalog."""

    def move(self, ident: Ident, other: Ident) -> None:
        """Points the entry of a table at the data of another one, and leaves its properties as they are."""

    def set_properties(self, kind: str, ident: Ident, values: Changes) -> None:
        """Where the backend has a place for them: over whatever is there."""

    def lose(self, ident: Ident) -> None:
        """Removes the data with its folder, and leaves the catalog as it is."""

    def spoil(self, ident: Ident) -> None:
        """Makes the table unreadable."""

    def data_of(self, ident: Ident) -> object:
        """Where the data is and every bit of it. Remembered, so that it can be asked for after a deregister."""

    def tagged(self, ident: Ident, tag: str) -> TableView:
        """The table as it was when the tag was set."""

    def state(self) -> View: ...

    def raw(self) -> object: ...

    def raw_of(self, ident: Ident) -> object:
        """Every bit of one object: its entry in the catalog and its data."""
