"""`__reconciler/` beside the tables: the marks of root tables, and where deregistered tables left their data.

    tables/<name>.json        marks of a root table; the claim on its name, written before the table is declared
    detached/<object id>.json where the data of a table is that we took out of `__manifest`
    lease/<number>.json       whose turn it is to write (`lease_files`)

Files are created only if absent and replaced atomically. A claim that was never confirmed (the run died in between)
counts only if the table's marker file carries the claim's token: somebody else may have made the table since.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import quote

from reconciler.catalog.record_files import RecordFiles, marks_values
from reconciler.catalog.stats import Stats
from reconciler.catalog.storage import Storage
from reconciler.model.errors import CatalogError, Code
from reconciler.model.state import Marks

FOLDER = "__reconciler"
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
        self._records = RecordFiles(storage, FOLDER)
        self._stats = stats

    def files(self) -> frozenset[str]:
        """Every record file, in one listing."""
        self._stats.count("listings")
        names = self._records.names()
        for folder in ("tables", "detached"):
            if folder in names:
                raise self._records.bad(folder, "it is not a folder")
        return names

    def uri(self, file: str) -> str:
        """Where a record is, for people."""
        return self._records.uri(file)

    def table(self, name: str) -> TableRecord | None:
        value = self._records.read(table_file(name))
        if value is None:
            return None
        marks = self._records.marks(table_file(name), value)
        try:
            state: Literal["claimed", "declared"] = "claimed" if value["state"] == "claimed" else "declared"
            return TableRecord(name, marks, str(value["claim"]), state)
        except (KeyError, TypeError) as error:
            raise self._records.bad(table_file(name), error) from None

    def claim(self, name: str, marks: Marks) -> TableRecord:
        """Takes the name before the table is made. Another owner's claim is never replaced; one of our own is joined,
        so that two runs that declare one table at once agree on the token whichever of them wins."""
        record = TableRecord(name, marks, uuid.uuid4().hex, "claimed")
        self._stats.count("writes")
        if self._records.create(table_file(name), _table_values(record)):
            return record
        existing = self.table(name)
        if existing is None:
            raise CatalogError(Code.CONCURRENT_MODIFICATION, f"the claim on {name!r} was removed just now: try again")
        if existing.marks.owner != marks.owner:
            raise CatalogError(
                Code.PERMISSION_DENIED,
                f"the name {name!r} is claimed by owner {existing.marks.owner!r} in "
                f"{self._records.uri(table_file(name))}: remove that file if the claim is stale",
            )
        if existing.claim:
            return replace(existing, marks=marks)
        # Of an adopted table that is gone, which never had a token: the folder to come needs one.
        self.save(name, marks, record.claim)
        return replace(existing, marks=marks, claim=record.claim)

    def confirm(self, record: TableRecord) -> None:
        self.save(record.table, record.marks, record.claim)

    def save(self, name: str, marks: Marks, claim: str = "") -> None:
        """The marks of a table that exists. The token of its folder stays."""
        self._stats.count("writes")
        known = None if claim else self.table(name)
        record = TableRecord(name, marks, known.claim if known is not None else claim, "declared")
        self._records.replace(table_file(name), _table_values(record))

    def forget(self, name: str) -> None:
        self._records.delete(table_file(name))

    def detached(self, object_id: str) -> DetachedRecord | None:
        file = detached_file(object_id)
        value = self._records.read(file)
        if value is None:
            return None
        try:
            previous = tuple(str(p) for p in value.get("previous", ()))
            return DetachedRecord(object_id, str(value["location"]), value.get("owner"), previous)
        except (KeyError, TypeError) as error:
            raise self._records.bad(file, error) from None

    def detach(self, record: DetachedRecord) -> None:
        """Written before the row goes. An older record of that name keeps its place in `previous`."""
        self._stats.count("writes")
        file = detached_file(record.object_id)
        if self._records.create(file, _detached_values(record)):
            return
        old = self.detached(record.object_id)
        if old is not None:
            known = (old.location, *old.previous) if old.location != record.location else old.previous
            record = replace(record, previous=known)
        self._records.replace(file, _detached_values(record))

    def reattached(self, object_id: str, location: str) -> None:
        """The data is in the catalog again."""
        record = self.detached(object_id)
        if record is None or record.location != location:
            return
        file = detached_file(object_id)
        if record.previous:
            rest = DetachedRecord(object_id, record.previous[0], record.owner, record.previous[1:])
            self._records.replace(file, _detached_values(rest))
        else:
            self._records.delete(file)


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


def _table_values(record: TableRecord) -> dict[str, Any]:
    return {"table": record.table, **marks_values(record.marks), "claim": record.claim, "state": record.state}


def _detached_values(record: DetachedRecord) -> dict[str, Any]:
    return {
        "object_id": record.object_id,
        "location": record.location,
        "owner": record.owner,
        "previous": list(record.previous),
    }
