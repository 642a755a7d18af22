"""The places where tables of a catalog service have their data: any folder, any bucket."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from reconciler.catalog.lance_remains import COPYING, copying, gone, had_versions, has_data, has_versions
from reconciler.catalog.storage import RESERVED, Storage, marker, open_storage
from reconciler.core.uris import canonical_location, folders_above, is_file_uri, with_store_scheme
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import LocationCheck

_REMAINS = frozenset({"_versions", "_transactions", "data", "_indices", "_deletions"})
Kept = Mapping[str, Callable[[str], bool]]
"""Folders that a service itself makes at a table's location, each with a test for the names of its files there."""


def lance_uri(location: str) -> str:
    """The location as lance and our storage take it: a path for local files, else the URI as written, with the scheme
    that they know."""
    if is_file_uri(location) or "://" not in location:
        return _path(location)
    return with_store_scheme(location)


def canonical(location: str) -> str:
    """`canonical_location`, with links resolved where storage has them: on local disks. Two spellings of one dataset
    give one text."""
    text = canonical_location(location if "://" in location else _path(location))
    return text if "://" in text else os.path.realpath(text)


def same_location(one: str, other: str) -> bool:
    return one == other or canonical(one) == canonical(other)


def _path(location: str) -> str:
    """Dots are resolved as text, before any link, as lance does it too."""
    return canonical_location(location) if is_file_uri(location) else os.path.abspath(location)


class OccupiedLocation(CatalogError):
    """There is no dataset, and no room for one either: somebody's files are there."""


class Surroundings:
    """Is a location inside somebody's dataset? Asked of every folder above it, up to the bucket or the root of the
    disk; of each folder once, so that many tables in one folder cost what one costs. Remembers: for one look only."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self._stores: dict[str, Storage] = {}
        self._found: dict[str, bool] = {}

    def dataset_around(self, place: str) -> str | None:
        """The folder of the dataset that a canonical location lies in. Raises CatalogError."""
        return next((folder for folder in folders_above(place) if self._is_dataset(folder)), None)

    def problem(self, location: str, place: str) -> str | None:
        around = self.dataset_around(place)
        if around is None:
            return None
        return (
            f"the location {location} is inside the dataset at {around}: cleaning that up would delete this table's "
            "files; choose another `location`"
        )

    def _is_dataset(self, folder: str) -> bool:
        if folder not in self._found:
            scheme, separator, rest = folder.rpartition("://")
            bucket, _, path = rest.partition("/") if separator else ("/", "", folder.strip("/"))
            root = f"{scheme}{separator}{bucket}"
            if root not in self._stores:
                self._stores[root] = open_storage(root, self._options)
            self._found[folder] = self._stores[root].is_dataset(path)
        return self._found[folder]


class Places:
    """`options` are the `storage.*` settings, the same for every location of a catalog."""

    def __init__(self, options: Mapping[str, str], kept: Kept | None = None) -> None:
        self._options = options
        self._kept = kept or {}

    def uri(self, location: str) -> str:
        """The location as lance takes it."""
        return lance_uri(location)

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
        if begun is None:  # Only a copy brings folders inside these: anything else is somebody's.
            remains = [n for n in listing.folders if n in _REMAINS]
            strange += [f"{n}/{inner}" for n in remains for inner in storage.list(n).folders]
        if strange:
            raise OccupiedLocation(
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
            raise gone(
                storage,
                "",
                f"the data of {name} is gone: {location} holds neither a dataset nor the mark of a declared table. "
                "Bring the folder back. If it never had data (a run was killed right after it declared the table), put "
                f"an empty file {RESERVED} there and apply again, or apply once with `state: absent` in its manifest "
                "and then again without",
            )
        return True

    def check(self, location: str, around: Surroundings) -> LocationCheck:
        """May a table be made or attached here? Raises CatalogError."""
        place = canonical(location)
        return LocationCheck(place, around.problem(location, place))

    def _is_kept(self, storage: Storage, folder: str) -> bool:
        """The service's own folder, with nothing else in it: what holds more may be somebody's table."""
        if folder not in self._kept:
            return False
        inside = storage.list(folder)
        return not inside.folders and all(n.startswith(".") or self._kept[folder](n) for n in inside.files)

    def reserve(self, location: str, owner: str | None = None) -> bool:
        """Puts the marker there; False when it is there already."""
        return self._open(location).create(RESERVED, marker(owner))

    def take(self, location: str, owner: str | None) -> None:
        """The marker of a table that is this owner's now, whatever it said before."""
        self._open(location).replace(RESERVED, marker(owner))

    def is_marked(self, location: str, owner: str) -> bool:
        return self._open(location).read(RESERVED) == marker(owner)

    def has_marker(self, location: str) -> bool:
        """Of any table that was declared there, whoever owns it."""
        return self._open(location).read(RESERVED) is not None

    def release(self, location: str) -> None:
        storage = self._open(location)
        storage.delete(RESERVED)
        storage.prune("")

    def _open(self, location: str) -> Storage:
        return open_storage(lance_uri(location), self._options)
