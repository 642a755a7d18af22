"""What the outsiders of all catalog services share: datasets in a local folder, opened with plain pylance.

A service adds how its entries are listed, made and changed, through a client that is not ours: see outsider_rest.py.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import lance
import pyarrow as pa

from contract.outsider import OWNER, Changes, Ident, TableView, View, change_config, users, with_dataset
from contract.outsider_dir import LocalFiles

MARKERS = (".lance-deregistered", ".lance-reserved")


@dataclass(frozen=True)
class Entry:
    """A Lance table as the service shows it. `properties` as stored, our marks among them, without the service's own
    keys; `raw` is the whole answer, to tell whether anything at all changed."""

    location: str
    properties: Mapping[str, str] = field(default_factory=dict)
    raw: object = None


def path_of(location: str) -> Path:
    return Path(unquote(urlsplit(location).path)) if location.startswith("file:") else Path(location)


class ServiceOutsider:
    """`root` is the folder below which every table of this site has its data."""

    holds_rows = True

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root
        self._places: dict[Ident, Path] = {}

    # what a service fills in

    def namespaces(self) -> dict[Ident, dict[str, str]]:
        """Everything below the container (the warehouse, the catalog), the container itself not; where marks are kept
        elsewhere (an inventory), as if they were properties."""
        raise NotImplementedError

    def entries(self) -> dict[Ident, Entry]:
        """Every Lance table, in every namespace; marks as above."""
        raise NotImplementedError

    def create_namespace(self, ident: Ident, properties: Mapping[str, str] | None = None) -> None:
        raise NotImplementedError

    def put_table(self, ident: Ident, location: str, properties: Mapping[str, str]) -> None:
        """The entry of a Lance table; the data is there already, or never will be."""
        raise NotImplementedError

    def point(self, ident: Ident, location: str) -> None:
        """The entry gets another location, and keeps all else."""
        raise NotImplementedError

    def move(self, ident: Ident, other: Ident) -> None:
        self.point(ident, str(self.place(other)))

    def set_properties(self, kind: str, ident: Ident, values: Changes) -> None:
        raise NotImplementedError

    def foreign_table(self, ident: Ident) -> None:
        """Something of the service's own that is no Lance table: a native table or a view."""
        raise NotImplementedError

    # writes

    def create_table(self, ident: Ident, schema: pa.Schema, rows: Sequence[Mapping[str, Any]] = ()) -> None:
        place = self._new_place()
        lance.write_dataset(pa.Table.from_pylist([dict(r) for r in rows], schema=schema), str(place))
        self.put_table(ident, str(place), {})

    def declare_table(self, ident: Ident) -> None:
        self.put_table(ident, str(self._new_place()), {})

    def append(self, ident: Ident, rows: Sequence[Mapping[str, Any]]) -> None:
        dataset = self.open(ident)
        table = pa.Table.from_pylist([dict(r) for r in rows], schema=dataset.schema)
        lance.write_dataset(table, str(self.place(ident)), mode="append")

    def set_config(self, ident: Ident, values: Changes) -> None:
        change_config(self.open(ident), values)

    def mark_data(self, ident: Ident, owner: str) -> None:
        self.open(ident).update_metadata({"reconciler.owner": owner})

    def lose(self, ident: Ident) -> None:
        shutil.rmtree(self.place(ident))

    def spoil(self, ident: Ident) -> None:
        for file in (self.place(ident) / "_versions").iterdir():
            file.write_bytes(b"spoiled")

    # reads

    def place(self, ident: Ident) -> Path:
        """Where the data is; remembered for when the table is gone."""
        entry = self.entries().get(ident)
        if entry is not None:
            self._places[ident] = path_of(entry.location)
        return self._places[ident]

    def open(self, ident: Ident, version: str | None = None) -> Any:
        return lance.dataset(str(self.place(ident)), version=version)

    def tagged(self, ident: Ident, tag: str) -> TableView:
        return with_dataset(TableView({}, None), self.open(ident, tag))

    def data_of(self, ident: Ident) -> object:
        place = self.place(ident)
        files = LocalFiles(place).all()
        return place.name, {p: d for p, d in files.items() if not p.endswith(MARKERS) and "_refs/tags/" not in p}

    def state(self) -> View:
        tables = {ident: self._view(entry) for ident, entry in sorted(self.entries().items())}
        return View(self.namespaces(), tables)

    def raw(self) -> object:
        return self.namespaces(), self.entries(), LocalFiles(self.root).all()

    def raw_of(self, ident: Ident) -> object:
        entry = self.entries().get(ident)
        if entry is None:
            return self.namespaces().get(ident)
        return entry, LocalFiles(path_of(entry.location)).all()

    # copies

    def copy_to(self, other: ServiceOutsider) -> None:
        """Everything into an empty site: entries made anew, with locations and properties that point below its root."""
        shutil.copytree(self.root, other.root, dirs_exist_ok=True)
        old, new = str(self.root), str(other.root)
        for ident, properties in sorted(self.namespaces().items()):
            other.create_namespace(ident, properties)
        for ident, entry in sorted(self.entries().items()):
            properties = {k: v.replace(old, new) for k, v in entry.properties.items()}
            other.put_table(ident, entry.location.replace(old, new), properties)
        other._places = {i: Path(str(p).replace(old, new)) for i, p in self._places.items()}

    def _new_place(self) -> Path:
        """Not where our rules would put a table."""
        return self.root / "of-others" / uuid.uuid4().hex[:12]

    def _view(self, entry: Entry) -> TableView:
        view = TableView(users(entry.properties), entry.properties.get(OWNER))
        place = path_of(entry.location)
        if not (place / "_versions").is_dir():
            return view
        return with_dataset(view, lance.dataset(str(place)))
