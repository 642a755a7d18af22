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
    wanted: int = 0
    """How many objects the run is about: a record of a lease is its first write, and shows where it would go."""

    @property
    def place(self) -> str:
        uri = self.storage.uri(self.folder)
        return uri if "://" in uri else os.path.realpath(uri)

    def numbers(self) -> Sequence[int]:
        """Those of folders and of links that lead nowhere too: reading such a record says what is wrong with it."""
        found = self.storage.list(self.folder)
        return numbers_in((*found.files, *found.folders), after=".json")

    def read(self, number: int) -> str | None:
        data = self.storage.read(self._path(number))
        return None if data is None else data.decode(errors="replace")

    def create(self, number: int, text: str) -> bool:
        self.storage.check_root(self.wanted)
        return self.storage.create(self._path(number), text.encode())

    def drop(self, number: int) -> None:
        self.storage.delete(self._path(number))

    def _path(self, number: int) -> str:
        return f"{self.folder}/{numbered(number)}.json"
