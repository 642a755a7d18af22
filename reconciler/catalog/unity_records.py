"""What we keep beside the tables, because Unity cannot update an entry: `<root>/__reconciler/unity/<catalog>/`.

    marks/<table id>.json                 our marks that changed after the entry was made
    replacing/<schema>/<table>/entry.json an entry as it was before its replacement, written before it is removed
    detached/<schema>/<table>/entry.json  where a deregistered table left its data, when the rule does not say
    lease/<number>.json                   whose turn it is to write

Marks go by the id of the entry, so that they follow it through a rename of its schema and never fall to a stranger's
table of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from reconciler.catalog.lease_files import LeaseFiles
from reconciler.catalog.record_files import RecordFiles, marks_values
from reconciler.catalog.storage import Storage
from reconciler.model.ident import Ident
from reconciler.model.state import Marks

_FILE = "entry.json"


class Records:
    def __init__(self, storage: Storage, catalog: str) -> None:
        self._catalog = catalog
        self._records = RecordFiles(storage, f"__reconciler/unity/{quote(catalog, safe='')}")

    def files(self) -> frozenset[str]:
        """Every record, in one listing."""
        return self._records.names()

    def lease(self) -> LeaseFiles:
        return LeaseFiles(self._records.storage, f"{self._records.folder}/lease")

    # marks

    def marks(self, table_id: str) -> Marks | None:
        value = self._records.read(marks_file(table_id))
        return None if value is None else self._records.marks(marks_file(table_id), value)

    def save_marks(self, table_id: str, marks: Marks) -> None:
        self._records.replace(marks_file(table_id), marks_values(marks))

    def forget_marks(self, table_id: str) -> None:
        self._records.delete(marks_file(table_id))

    # replacements

    def replacing(self, files: frozenset[str]) -> list[Ident]:
        """The tables whose replacement was begun, from a listing of `files`."""
        parts = [f.split("/") for f in files]
        return sorted(
            (self._catalog, p[1], p[2]) for p in parts if p[0] == "replacing" and len(p) == 4 and p[3] == _FILE
        )

    def replaced(self, ident: Ident) -> dict[str, Any] | None:
        """The entry as the server last answered it."""
        value = self._records.read(_file("replacing", ident))
        if value is None:
            return None
        entry = value.get("entry")
        if not isinstance(entry, dict):
            raise self._records.bad(_file("replacing", ident), "entry must be an object")
        if not isinstance(entry.get("storage_location"), str) or not isinstance(entry.get("properties"), dict | None):
            raise self._records.bad(_file("replacing", ident), "entry must have a location, and properties be a map")
        return entry

    def file_of(self, ident: Ident) -> str:
        """Where the record of a replacement is, for people."""
        return self._records.uri(_file("replacing", ident))

    def begin(self, ident: Ident, entry: Mapping[str, Any]) -> bool:
        """False when a record of this very entry is there already: of a run that died, or of one that is at it now.
        A record of an older entry is of a run that died when all was done but this: it is of no use any more."""
        file, values = _file("replacing", ident), {"entry": dict(entry)}
        if self._records.create(file, values):
            return True
        older = self.replaced(ident)
        if older is not None and older.get("table_id") == entry.get("table_id"):
            return False
        if older is not None:
            self.forget_marks(str(older.get("table_id")))
        self._records.replace(file, values)
        return True

    def void(self, ident: Ident, live: object) -> None:
        """An entry with the id `live` is in the catalog now. The record of an older one is of a replacement that was
        done, and must not speak for this one when it is gone some day."""
        older = self.replaced(ident)
        if older is not None and older.get("table_id") != live:
            self.forget_marks(str(older.get("table_id")))
            self.end(ident, older.get("table_id"))

    def end(self, ident: Ident, table_id: object = None) -> None:
        """Removes the record: any, or, with an id, that of this entry, and another run's of a newer one stays."""
        if table_id is not None:
            found = self.replaced(ident)
            if found is None or found.get("table_id") != table_id:
                return
        self._records.delete(_file("replacing", ident))
        self._records.prune(f"replacing/{ident[1]}/{ident[2]}")

    # deregistered tables

    def detached(self, ident: Ident) -> str | None:
        value = self._records.read(_file("detached", ident))
        location = value.get("location") if value is not None else None
        if value is not None and not isinstance(location, str):
            raise self._records.bad(_file("detached", ident), "location must be a string")
        return location

    def detached_file(self, ident: Ident) -> str:
        """Where that record is, for people."""
        return self._records.uri(_file("detached", ident))

    def detach(self, ident: Ident, location: str | None) -> None:
        """None: it is where the rule says."""
        if location is None:
            self._records.delete(_file("detached", ident))
        else:
            self._records.replace(_file("detached", ident), {"location": location})


def marks_file(table_id: str) -> str:
    return f"marks/{quote(table_id, safe='')}.json"


def _file(kind: str, ident: Ident) -> str:
    return f"{kind}/{ident[1]}/{ident[2]}/{_FILE}"
