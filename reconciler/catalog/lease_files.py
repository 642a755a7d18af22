"""The records of a lease as files in the catalog's storage. Of several who make a file one succeeds: by a hard link on
a local disk, by `If-None-Match` in an object store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.catalog.lease_records import numbered, numbers_in
from reconciler.catalog.storage import Storage


@dataclass(frozen=True)
class LeaseFiles:
    storage: Storage
    folder: str

    @property
    def place(self) -> str:
        uri = self.storage.uri(self.folder)
        return uri if "://" in uri else os.path.realpath(uri)

    def numbers(self) -> Sequence[int]:
        return numbers_in(self.storage.list(self.folder).files, after=".json")

    def read(self, number: int) -> str | None:
        data = self.storage.read(self._path(number))
        return None if data is None else data.decode(errors="replace")

    def create(self, number: int, text: str) -> bool:
        self.storage.check()
        return self.storage.create(self._path(number), text.encode())

    def drop(self, number: int) -> None:
        self.storage.delete(self._path(number))

    def _path(self, number: int) -> str:
        return f"{self.folder}/{numbered(number)}.json"
