"""The places where tables of a catalog service have their data: any folder, any bucket."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from urllib.parse import unquote

from reconciler.catalog.lance_remains import COPYING, copying, had_versions, has_data, has_versions
from reconciler.catalog.storage import Storage, open_storage
from reconciler.model.errors import CatalogError, Code

RESERVED = ".lance-reserved"
"""The mark of a table that is declared and has no data yet, as the directory layout has it. It stays."""
_REMAINS = frozenset({"_versions", "_transactions", "data", "_indices", "_deletions"})
Kept = Mapping[str, Callable[[str], bool]]
"""Folders that a service itself makes at a table's location, each with a test for the names of its files there."""


def normal(location: str) -> str:
    """One text for one place: no trailing slash, no `file://`, no `..`, one spelling of S3. A `#` or a `?` belongs to
    the path: a place has no query, and what stands behind it would else be lost."""
    if location[:5].lower() == "file:":
        path = location[5:]
        if path.startswith("//"):
            path = "".join(path[2:].partition("/")[1:])
        return os.path.normpath(unquote(path))
    if "://" not in location:
        return os.path.abspath(location)
    scheme, _, rest = location.partition("://")
    scheme = {"s3a": "s3", "s3n": "s3"}.get(scheme.lower(), scheme.lower())
    return f"{scheme}://{rest.rstrip('/')}"


def same_place(one: str, other: str) -> bool:
    return normal(one) == normal(other)


class Places:
    """`options` are the `storage.*` settings, the same for every location of a catalog."""

    def __init__(self, options: Mapping[str, str], kept: Kept | None = None) -> None:
        self._options = options
        self._kept = kept or {}

    def uri(self, location: str) -> str:
        """The location as lance takes it."""
        return normal(location)

    def has_versions(self, location: str) -> bool:
        return has_versions(self._open(location))

    def is_declared_only(self, location: str, name: str, *, ours: bool) -> bool:
        """No dataset is there: fine where nothing is, or the remains of an interrupted create or copy. False when
        there is one after all: another run may just have written it. A table of ours always has the marker or its
        data; without both, the data is gone, and that is for a person to look at."""
        storage = self._open(location)
        listing = storage.list()
        begun = copying(storage) if COPYING in listing.files else None
        lost = had_versions(storage, since=begun.version) if begun else had_versions(storage) or has_data(storage)
        if has_versions(storage):
            return False
        strange = [n for n in (*listing.files, *listing.folders) if not n.startswith(".") and n not in _REMAINS]
        strange = [n for n in strange if n in listing.files or not self._is_kept(storage, n)]
        if strange:
            raise CatalogError(
                Code.INVALID_TABLE_STATE,
                f"{location} holds {strange[0]!r} but no Lance dataset: move it away, or correct the table's location",
            )
        if lost:
            raise CatalogError(
                Code.INVALID_TABLE_STATE,
                f"the versions of the dataset of {name} are missing: {location} holds its transactions or data files "
                "only. Bring the folder back from a backup",
            )
        if ours and RESERVED not in listing.files:
            raise CatalogError(
                Code.INVALID_TABLE_STATE,
                f"the data of {name} is gone: {location} holds neither a dataset nor the mark of a declared table. "
                "Bring the folder back. If it never had data (a run was killed right after it declared the table), put "
                f"an empty file {RESERVED} there and apply again, or apply once with `state: absent` in its manifest "
                "and then again without",
            )
        return True

    def _is_kept(self, storage: Storage, folder: str) -> bool:
        """The service's own folder, with nothing else in it: what holds more may be somebody's table."""
        if folder not in self._kept:
            return False
        inside = storage.list(folder)
        return not inside.folders and all(n.startswith(".") or self._kept[folder](n) for n in inside.files)

    def reserve(self, location: str) -> bool:
        """Puts the marker there; False when it is there already."""
        return self._open(location).create(RESERVED, b"")

    def release(self, location: str) -> None:
        storage = self._open(location)
        storage.delete(RESERVED)
        storage.prune("")

    def _open(self, location: str) -> Storage:
        return open_storage(normal(location), self._options)
