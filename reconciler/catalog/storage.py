"""The folder or bucket under a directory catalog: listings, small objects, and the URIs that lance gets.

Paths below the root are plain names joined by `/`; only `uri` escapes. Local disks go through `os`, everything else
through obstore, which takes the same options as lance itself.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from reconciler.core.uris import canonical_location, contains, is_file_uri
from reconciler.model.errors import CatalogError, Code
from reconciler.model.state import OWNER_KEY

LARGEST_RECORD = 16 << 20
"""Bytes of a record of ours, with ample room."""
VERSIONS = "_versions"
RESERVED = ".lance-reserved"
"""The mark of a table that was declared, as the directory layout has it. It stays when data is written."""


def marker(owner: str | None) -> bytes:
    """What that file says of whose table it is: also while there is no data yet, and where its users write it."""
    return f"{OWNER_KEY}={owner}\n".encode() if owner is not None else b""


@dataclass(frozen=True, slots=True)
class Listing:
    """What is directly inside a folder."""

    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class Storage(Protocol):
    """A missing folder lists as empty and a missing object reads as None; every other failure is a CatalogError."""

    @property
    def root(self) -> str:
        """For messages: never holds an option."""

    @property
    def lance_options(self) -> dict[str, str] | None: ...

    @property
    def threads(self) -> int:
        """How many reads are worth having under way."""

    def uri(self, path: str) -> str:
        """The folder as lance wants it."""

    def shown(self, path: str) -> str:
        """The folder as plans write it. When the root was given relative to the working directory, so is this: a plan
        that is saved in one checkout holds in every other one. `relative` reads it back."""

    def canonical(self, path: str) -> str:
        """The folder's one text for comparing, with links resolved: what `locations.canonical` says of its `uri`."""

    def relative(self, location: str) -> str | None:
        """A location as written (relative, absolute, URI) as a path below the root; None when it is outside."""

    def resolved(self, path: str) -> str | None:
        """The folder that links lead to, as a path below the root; None when they lead out of it."""

    def check_open(self, path: str) -> None:
        """Raises when the dataset in this folder may not be read: lance would go on trying for seconds."""

    def check_files(self, path: str) -> None:
        """Raises when something in this folder is no regular file: lance would wait for the writer of a pipe."""

    def check(self) -> None:
        """Raises when the root cannot be read. A root that is not there yet is fine if its parent can be read."""

    def check_root(self, wanted: int = 0) -> None:
        """As `check`, for the root of a catalog: it is still the folder that it was, and no mount point whose disk is
        not there. `wanted`: how many objects are looked for. Raises CatalogError; what was read since the last check
        then says nothing."""

    def list(self, path: str = "") -> Listing: ...

    def doubt(self, path: str) -> str | None:
        """Of a folder that lists as empty: why its content may be somewhere all the same. Raises CatalogError when that
        cannot be told."""

    def subfolders(self, path: str) -> tuple[tuple[str, ...], bool]:
        """As far as a bounded look goes: the folders directly inside, and whether these are all."""

    def is_folder(self, path: str) -> bool:
        """False when there is nothing. Raises for a file in the place of a folder."""

    def is_dataset(self, path: str) -> bool:
        """Is this the folder of a Lance dataset, or of a table that is declared only? Asked of the folders above a
        location: in a bucket, one that may not be listed counts as none, because rights often begin at a prefix."""

    def list_deep(self, path: str, ending: str | None = None) -> tuple[str, ...]:
        """Every file below, as paths below `path`. With an `ending`, also the folders that are named so: they are in
        the place of a file."""

    def having(self, folders: Iterable[str], name: str) -> frozenset[str]:
        """Those folders that hold a file of that name."""

    def read(self, path: str, most: int = LARGEST_RECORD) -> bytes | None:
        """Regular files only. A larger one is an error."""

    def create(self, path: str, data: bytes) -> bool:
        """Atomic; False when it is there already."""

    def replace(self, path: str, data: bytes) -> None:
        """Atomic."""

    def delete(self, path: str) -> None:
        """Fine when it is not there."""

    def time(self) -> float:
        """Seconds since 1970, as the storage stamps a file that is written for this, and removed. Raises when the root
        cannot be written."""

    def prune(self, path: str) -> None:
        """Removes the folder if it is empty; never fails."""


def inside(path: str) -> str | None:
    """A relative path in its normal form, or None when it is the root itself or leaves it."""
    normal = posixpath.normpath(path)
    if normal in (".", "") or normal.startswith(("../", "/")) or normal == "..":
        return None
    return normal


def shown_root(root: str) -> str | None:
    """How a root that is relative to the working directory starts the locations of its plans; None for any other."""
    if "://" in root or root.startswith("/") or is_file_uri(root):
        return None
    normal = posixpath.normpath(root)
    return normal if normal.split("/")[0] in (".", "..") else f"./{normal}"


def below_shown_root(root: str, location: str) -> str | None:
    """What `shown` wrote, as a path below `root`; None when it is spelled otherwise. A user may spell it so too: for
    `path: ./lake`, `./lake/t` is `t` (and `lake/t` is a folder inside the lake, as every other relative location)."""
    above = shown_root(root)
    return inside(location[len(above) + 1 :]) if above and location.startswith(above + "/") else None


def relative_to(root: str, location: str) -> str | None:
    """A location as written (relative, absolute, URI) as a path below `root`; None when it is outside. Lexical."""
    below = below_shown_root(root, location)
    if below is not None:
        return below
    if not ("://" in location or location.startswith("/") or is_file_uri(location)):
        return inside(location)
    here, there = canonical_location(absolute(root)), canonical_location(location)
    return inside(there[len(here.rstrip("/")) + 1 :]) if contains(here, there) else None


def absolute(root: str) -> str:
    """A path that is relative to the working directory, in full; anything else as written."""
    return root if "://" in root or is_file_uri(root) else os.path.abspath(root)


def open_storage(path: str, options: Mapping[str, str]) -> Storage:
    """`options` are the `storage.*` settings without the prefix. A relative path counts from the working directory."""
    if not path:
        raise CatalogError(Code.INVALID_INPUT, "spec.path is empty: give the catalog's root folder or URI")
    if "://" not in path or is_file_uri(path):
        from reconciler.catalog.storage_local import LocalStorage

        return LocalStorage(canonical_location(path) if is_file_uri(path) else path)
    from reconciler.catalog.storage_objects import ObjectStorage

    return ObjectStorage(path, options)


def escape(path: str) -> str:
    """A path as part of a URI."""
    return quote(path, safe="/$!'()*,;=:@&+~")
