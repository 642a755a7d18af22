"""What we keep beside the tables, because Unity cannot update an entry: `<root>/__reconciler/unity/<catalog>/`.

    marks/<table id>.json                 our marks that changed after the entry was made
    replacing/<schema>/<table>/entry.json an entry as it was before its replacement, written before it is removed
    detached/<schema>/<table>/entry.json  where a deregistered table left its data, when the rule does not say

Marks go by the id of the entry, so that they follow it through a rename of its schema and never fall to a stranger's
table of the same name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from reconciler.catalog.storage import Storage
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident
from reconciler.model.state import Marks

_VERSION = 1
_FILE = "entry.json"


class Records:
    def __init__(self, storage: Storage, catalog: str) -> None:
        self._storage = storage
        self._catalog = catalog
        self._folder = f"__reconciler/unity/{quote(catalog, safe='')}"

    def files(self) -> frozenset[str]:
        """Every record, in one listing. Raises when it cannot be known what there is: marks may not be overlooked."""
        return frozenset(self._storage.list_deep(self._folder))

    # marks

    def marks(self, table_id: str) -> Marks | None:
        value = self._read(marks_file(table_id))
        if value is None:
            return None
        owner, applied = value.get("owner"), value.get("applied")
        if not isinstance(owner, str | None) or not isinstance(applied, list):
            raise self._bad(marks_file(table_id), "owner must be a string and applied a list")
        return Marks(owner, value.get("protect") is True, tuple(sorted(str(k) for k in applied)))

    def save_marks(self, table_id: str, marks: Marks) -> None:
        value = {"owner": marks.owner, "protect": marks.protect, "applied": list(marks.applied)}
        self._storage.replace(self._path(marks_file(table_id)), _dump(value))

    def forget_marks(self, table_id: str) -> None:
        self._storage.delete(self._path(marks_file(table_id)))

    # replacements

    def replacing(self, files: frozenset[str]) -> list[Ident]:
        """The tables whose replacement was begun, from a listing of `files`."""
        parts = [f.split("/") for f in files]
        return sorted(
            (self._catalog, p[1], p[2]) for p in parts if p[0] == "replacing" and len(p) == 4 and p[3] == _FILE
        )

    def replaced(self, ident: Ident) -> dict[str, Any] | None:
        """The entry as the server last answered it."""
        value = self._read(_file("replacing", ident))
        if value is None:
            return None
        entry = value.get("entry")
        if not isinstance(entry, dict):
            raise self._bad(_file("replacing", ident), "entry must be an object")
        return entry

    def begin(self, ident: Ident, entry: Mapping[str, Any]) -> bool:
        """False when a record of this very entry is there already: of a run that died, or of one that is at it now.
        A record of an older entry is of a run that died when all was done but this: it is of no use any more."""
        path, data = self._path(_file("replacing", ident)), _dump({"entry": dict(entry)})
        if self._storage.create(path, data):
            return True
        older = self.replaced(ident)
        if older is not None and older.get("table_id") == entry.get("table_id"):
            return False
        if older is not None:
            self.forget_marks(str(older.get("table_id")))
        self._storage.replace(path, data)
        return True

    def end(self, ident: Ident, table_id: object = None) -> None:
        """Removes the record: any, or, with an id, that of this entry, and another run's of a newer one stays."""
        if table_id is not None:
            found = self.replaced(ident)
            if found is None or found.get("table_id") != table_id:
                return
        self._storage.delete(self._path(_file("replacing", ident)))
        self._storage.prune(self._path(f"replacing/{ident[1]}/{ident[2]}"))

    # deregistered tables

    def detached(self, ident: Ident) -> str | None:
        value = self._read(_file("detached", ident))
        location = value.get("location") if value is not None else None
        if value is not None and not isinstance(location, str):
            raise self._bad(_file("detached", ident), "location must be a string")
        return location

    def detach(self, ident: Ident, location: str | None) -> None:
        """None: it is where the rule says."""
        path = self._path(_file("detached", ident))
        if location is None:
            self._storage.delete(path)
        else:
            self._storage.replace(path, _dump({"location": location}))

    def _path(self, file: str) -> str:
        return f"{self._folder}/{file}"

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


def marks_file(table_id: str) -> str:
    return f"marks/{quote(table_id, safe='')}.json"


def _file(kind: str, ident: Ident) -> str:
    return f"{kind}/{ident[1]}/{ident[2]}/{_FILE}"


def _dump(value: Mapping[str, Any]) -> bytes:
    return (json.dumps({"version": _VERSION, **value}, sort_keys=True, ensure_ascii=False) + "\n").encode()
