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
from urllib.parse import quote, unquote, urlsplit

from reconciler.model.errors import CatalogError, Code


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

    def relative(self, location: str) -> str | None:
        """A location as written (relative, absolute, URI) as a path below the root; None when it is outside."""

    def resolved(self, path: str) -> str | None:
        """The folder that links lead to, as a path below the root; None when they lead out of it."""

    def check_open(self, path: str) -> None:
        """Raises when the dataset in this folder may not be read: lance would go on trying for seconds."""

    def check(self) -> None:
        """Raises when the root cannot be read. A root that is not there yet is fine if its parent can be read."""

    def list(self, path: str = "") -> Listing: ...

    def is_folder(self, path: str) -> bool: ...

    def list_deep(self, path: str) -> tuple[str, ...]:
        """Every file below, as paths below `path`."""

    def having(self, folders: Iterable[str], name: str) -> frozenset[str]:
        """Those folders that hold a file of that name."""

    def read(self, path: str) -> bytes | None: ...

    def create(self, path: str, data: bytes) -> bool:
        """Atomic; False when it is there already."""

    def replace(self, path: str, data: bytes) -> None:
        """Atomic."""

    def delete(self, path: str) -> None:
        """Fine when it is not there."""

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
    if "://" in root or root.startswith(("/", "file:")):
        return None
    normal = posixpath.normpath(root)
    return normal if normal.split("/")[0] in (".", "..") else f"./{normal}"


def below_shown_root(root: str, location: str) -> str | None:
    """What `shown` wrote, as a path below `root`; None when it is spelled otherwise. A user may spell it so too: for
    `path: ./lake`, `./lake/t` is `t` (and `lake/t` is a folder inside the lake, as every other relative location)."""
    above = shown_root(root)
    return inside(location[len(above) + 1 :]) if above and location.startswith(above + "/") else None


def relative_to(root: str, location: str) -> str | None:
    """A location as written (relative, absolute, URI) as a path below `root`; None when it is outside. Pure."""
    below = below_shown_root(root, location)
    if below is not None:
        return below
    if "://" not in root or root.startswith("file:"):
        return _relative_to_folder(root, location)
    if "://" not in location:
        return None if location.startswith("/") else inside(location)
    here, there = urlsplit(root), urlsplit(location)
    if (here.scheme, here.netloc) != (there.scheme, there.netloc):
        return None
    above, path = unquote(here.path).strip("/"), unquote(there.path).strip("/")
    if not above:
        return inside(path)
    return inside(path[len(above) + 1 :]) if path.startswith(above + "/") else None


def _relative_to_folder(root: str, location: str) -> str | None:
    if root.startswith("file:"):
        root = unquote(urlsplit(root).path)
    if location.startswith("file:"):
        location = unquote(urlsplit(location).path)
    elif "://" in location:
        return None
    if not os.path.isabs(location):
        return inside(location)
    normal, above = os.path.normpath(location), os.path.abspath(root).rstrip("/") + "/"
    return inside(normal[len(above) :]) if normal.startswith(above) else None


def open_storage(path: str, options: Mapping[str, str]) -> Storage:
    """`options` are the `storage.*` settings without the prefix. A relative path counts from the working directory."""
    if not path:
        raise CatalogError(Code.INVALID_INPUT, "spec.path is empty: give the catalog's root folder or URI")
    scheme = urlsplit(path).scheme if "://" in path else ""
    if scheme in ("", "file"):
        from reconciler.catalog.storage_local import LocalStorage

        return LocalStorage(unquote(urlsplit(path).path) if scheme else path)
    from reconciler.catalog.storage_objects import ObjectStorage

    return ObjectStorage(path, options)


def escape(path: str) -> str:
    """A path as part of a URI."""
    return quote(path, safe="/$!'()*,;=:@&+~")
