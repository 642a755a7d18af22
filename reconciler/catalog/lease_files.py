"""The records of a lease as files in the catalog's storage. Of several who make a file one succeeds: by a hard link on
a local disk, by `If-None-Match` in an object store."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.catalog.storage import Storage
from reconciler.model.errors import CatalogError, Code

_NAME = re.compile(r"([0-9]{10})\.json")


@dataclass(frozen=True)
class LeaseFiles:
    storage: Storage
    folder: str

    @property
    def place(self) -> str:
        uri = self.storage.uri(self.folder)
        return uri if "://" in uri else os.path.realpath(uri)

    def numbers(self) -> Sequence[int]:
        return [int(m[1]) for name in self.storage.list(self.folder).files if (m := _NAME.fullmatch(name))]

    def read(self, number: int) -> str | None:
        data = self.storage.read(self._path(number))
        return None if data is None else data.decode(errors="replace")

    def create(self, number: int, text: str) -> bool:
        self.storage.check()
        return self.storage.create(self._path(number), text.encode())

    def drop(self, number: int) -> None:
        self.storage.delete(self._path(number))

    def _path(self, number: int) -> str:
        return f"{self.folder}/{number:010d}.json"


def is_there(error: CatalogError) -> bool:
    """The answer of a service that has an object of that name."""
    return error.code in (Code.NAMESPACE_ALREADY_EXISTS, Code.TABLE_ALREADY_EXISTS)


def is_missing(error: CatalogError) -> bool:
    return error.code in (Code.NAMESPACE_NOT_FOUND, Code.TABLE_NOT_FOUND)
