"""Our own notes as small JSON files in a folder of the catalog's storage: one object each, with a format version.

Created only if absent and replaced atomically. A note that cannot be read, or that a newer version wrote, is an error
and never taken for none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from reconciler.catalog.storage import Storage
from reconciler.model.errors import CatalogError, Code
from reconciler.model.state import Marks

SUFFIX = ".json"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class RecordFiles:
    storage: Storage
    folder: str

    def names(self) -> frozenset[str]:
        """Every file, in one listing. Raises when it cannot be known what there is: marks may not be overlooked."""
        return frozenset(self.storage.list_deep(self.folder, ending=SUFFIX))

    def read(self, file: str) -> dict[str, Any] | None:
        data = self.storage.read(self._path(file))
        if data is None:
            return None
        try:
            value = json.loads(data)
        except ValueError as error:
            raise self.bad(file, error) from None
        if not isinstance(value, dict):
            raise self.bad(file, "not an object")
        version = value.get("version")
        if isinstance(version, int) and version > _VERSION:
            raise CatalogError(
                Code.UNSUPPORTED,
                f"the record {self.uri(file)} was written by a newer version of reconciler: upgrade reconciler",
            )
        if version != _VERSION:
            raise self.bad(file, f"version {version!r} is not known")
        return value

    def create(self, file: str, values: dict[str, Any]) -> bool:
        """False when it is there already."""
        return self.storage.create(self._path(file), _dump(values))

    def replace(self, file: str, values: dict[str, Any]) -> None:
        self.storage.replace(self._path(file), _dump(values))

    def delete(self, file: str) -> None:
        """Fine when it is not there."""
        self.storage.delete(self._path(file))

    def prune(self, folder: str) -> None:
        self.storage.prune(self._path(folder))

    def marks(self, file: str, value: dict[str, Any]) -> Marks:
        """Those in a record that has them."""
        owner, applied = value.get("owner"), value.get("applied")
        if not isinstance(owner, str | None) or not isinstance(applied, list):
            raise self.bad(file, "owner must be a string and applied a list")
        run = value.get("applied_by")
        keys = tuple(sorted(str(k) for k in applied))
        return Marks(owner, value.get("protect") is True, keys, run if isinstance(run, str) else None)

    def uri(self, file: str) -> str:
        return self.storage.uri(self._path(file))

    def bad(self, file: str, why: object) -> CatalogError:
        return CatalogError(Code.INTERNAL, f"the record {self.uri(file)} cannot be read ({why}): repair or remove it")

    def _path(self, file: str) -> str:
        return f"{self.folder}/{file}"


def marks_values(marks: Marks) -> dict[str, Any]:
    values: dict[str, Any] = {"owner": marks.owner, "protect": marks.protect, "applied": list(marks.applied)}
    return values if marks.applied_by is None else {**values, "applied_by": marks.applied_by}


def _dump(values: dict[str, Any]) -> bytes:
    return (json.dumps({"version": _VERSION, **values}, sort_keys=True, ensure_ascii=False) + "\n").encode()
