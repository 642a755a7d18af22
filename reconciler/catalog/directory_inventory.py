"""`__reconciler/` beside the tables: the marks of root tables, and where deregistered tables left their data.

    tables/<name>.json        marks of a root table; the claim on its name, written before the table is declared
    detached/<object id>.json where the data of a table is that we took out of `__manifest`

Files are created only if absent and replaced atomically. A claim that was never confirmed (the run died in between)
counts only if the table's marker file carries the claim's token: somebody else may have made the table since.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import quote

from reconciler.catalog.stats import Stats
from reconciler.catalog.storage import Storage
from reconciler.model.errors import CatalogError, Code
from reconciler.model.state import Marks

FOLDER = "__reconciler"
_VERSION = 1
_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class TableRecord:
    table: str
    marks: Marks
    claim: str
    state: Literal["claimed", "declared"]


@dataclass(frozen=True, slots=True)
class DetachedRecord:
    object_id: str
    location: str
    owner: str | None = None
    previous: tuple[str, ...] = ()
    """Locations of earlier tables of this name, newest first: their data is kept too."""


class Inventory:
    def __init__(self, storage: Storage, stats: Stats) -> None:
        self._storage = storage
        self._stats = stats

    def files(self) -> frozenset[str]:
        """Every record file, in one listing."""
        self._stats.count("listings")
        return frozenset(self._storage.list_deep(FOLDER))

    def table(self, name: str) -> TableRecord | None:
        value = self._read(table_file(name))
        if value is None:
            return None
        if not isinstance(value.get("owner"), (str, type(None))) or not isinstance(value.get("applied"), list):
            raise self._bad(table_file(name), TypeError("owner must be a string and applied a list"))
        try:
            marks = Marks(value["owner"], bool(value["protect"]), tuple(sorted(map(str, value["applied"]))))
            state: Literal["claimed", "declared"] = "claimed" if value["state"] == "claimed" else "declared"
            return TableRecord(name, marks, str(value["claim"]), state)
        except (KeyError, TypeError) as error:
            raise self._bad(table_file(name), error) from None

    def claim(self, name: str, marks: Marks) -> TableRecord:
        """Takes the name before the table is made. Another owner's claim is never replaced; one of our own is joined,
        so that two runs that declare one table at once agree on the token whichever of them wins."""
        record = TableRecord(name, marks, uuid.uuid4().hex, "claimed")
        self._stats.count("writes")
        if self._storage.create(self._path(table_file(name)), _dump_table(record)):
            return record
        existing = self.table(name)
        if existing is None:
            raise CatalogError(Code.CONCURRENT_MODIFICATION, f"the claim on {name!r} was removed just now: try again")
        if existing.marks.owner != marks.owner:
            raise CatalogError(
                Code.PERMISSION_DENIED,
                f"the name {name!r} is claimed by owner {existing.marks.owner!r} in "
                f"{self._storage.uri(self._path(table_file(name)))}: remove that file if the claim is stale",
            )
        return replace(existing, marks=marks)

    def confirm(self, record: TableRecord) -> None:
        self.save(record.table, record.marks, record.claim)

    def save(self, name: str, marks: Marks, claim: str = "") -> None:
        """The marks of a table that exists."""
        self._stats.count("writes")
        record = TableRecord(name, marks, claim, "declared")
        self._storage.replace(self._path(table_file(name)), _dump_table(record))

    def forget(self, name: str) -> None:
        self._storage.delete(self._path(table_file(name)))

    def detached(self, object_id: str) -> DetachedRecord | None:
        file = detached_file(object_id)
        value = self._read(file)
        if value is None:
            return None
        try:
            previous = tuple(str(p) for p in value.get("previous", ()))
            return DetachedRecord(object_id, str(value["location"]), value.get("owner"), previous)
        except (KeyError, TypeError) as error:
            raise self._bad(file, error) from None

    def detach(self, record: DetachedRecord) -> None:
        """Written before the row goes. An older record of that name keeps its place in `previous`."""
        self._stats.count("writes")
        path = self._path(detached_file(record.object_id))
        if self._storage.create(path, _dump_detached(record)):
            return
        old = self.detached(record.object_id)
        if old is not None:
            known = (old.location, *old.previous) if old.location != record.location else old.previous
            record = replace(record, previous=known)
        self._storage.replace(path, _dump_detached(record))

    def reattached(self, object_id: str, location: str) -> None:
        """The data is in the catalog again."""
        record = self.detached(object_id)
        if record is None or record.location != location:
            return
        path = self._path(detached_file(object_id))
        if record.previous:
            rest = DetachedRecord(object_id, record.previous[0], record.owner, record.previous[1:])
            self._storage.replace(path, _dump_detached(rest))
        else:
            self._storage.delete(path)

    def _path(self, file: str) -> str:
        return f"{FOLDER}/{file}"

    def _read(self, file: str) -> dict[str, Any] | None:
        data = self._storage.read(self._path(file))
        if data is None:
            return None
        try:
            value = json.loads(data)
        except ValueError as error:
            raise self._bad(file, error) from None
        if not isinstance(value, dict):
            raise self._bad(file, "not an object")
        version = value.get("version")
        if isinstance(version, int) and version > _VERSION:
            where = self._storage.uri(self._path(file))
            raise CatalogError(
                Code.UNSUPPORTED, f"the record {where} was written by a newer version of reconciler: upgrade reconciler"
            )
        if version != _VERSION:
            raise self._bad(file, f"version {version!r} is not known")
        return value

    def _bad(self, file: str, why: object) -> CatalogError:
        where = self._storage.uri(self._path(file))
        return CatalogError(Code.INTERNAL, f"the record {where} cannot be read ({why}): repair or remove it")


def table_file(name: str) -> str:
    return f"tables/{_file_name(name)}"


def detached_file(object_id: str) -> str:
    return f"detached/{_file_name(object_id)}"


def _file_name(name: str) -> str:
    """Escaping triples some names: past the limit of a file name, a hash takes the place of the end."""
    escaped = quote(name, safe="")
    if len(escaped) > _MAX_NAME:
        escaped = f"{escaped[:120]}~{hashlib.sha256(name.encode()).hexdigest()}"
    return f"{escaped}.json"


def _dump_table(record: TableRecord) -> bytes:
    return _dump(
        table=record.table,
        owner=record.marks.owner,
        protect=record.marks.protect,
        applied=list(record.marks.applied),
        claim=record.claim,
        state=record.state,
    )


def _dump_detached(record: DetachedRecord) -> bytes:
    return _dump(
        object_id=record.object_id, location=record.location, owner=record.owner, previous=list(record.previous)
    )


def _dump(**values: object) -> bytes:
    return (json.dumps({"version": _VERSION, **values}, sort_keys=True, ensure_ascii=False) + "\n").encode()
