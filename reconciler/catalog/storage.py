"""The folder or bucket under a directory catalog: listings, small objects, and the URIs that lance gets.

Paths below the root are plain names joined by `/`; only `uri` escapes. Local disks go through `os`, everything else
through obstore, which takes the same options as lance itself.
"""

from __future__ import annotations

import os
import posixpath
import stat
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, unquote, urlsplit

from reconciler.catalog.lance_errors import translated
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

    def relative(self, location: str) -> str | None:
        """A location as written (relative, absolute, URI) as a path below the root; None when it is outside."""

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


def relative_to(root: str, location: str) -> str | None:
    """A location as written (relative, absolute, URI) as a path below `root`; None when it is outside. Pure."""
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


class LocalStorage:
    def __init__(self, path: str) -> None:
        self._path = os.path.abspath(path)

    @property
    def root(self) -> str:
        return self._path

    @property
    def lance_options(self) -> dict[str, str] | None:
        return None

    @property
    def threads(self) -> int:
        return 4  # more only fight for the interpreter

    def uri(self, path: str) -> str:
        return f"{self._path}/{path}" if path else self._path

    def relative(self, location: str) -> str | None:
        return relative_to(self._path, location)

    def check(self) -> None:
        with translated(f"read {self._path}"):
            try:
                os.scandir(self._path).close()
            except FileNotFoundError:
                if os.path.islink(self._path):
                    raise CatalogError(
                        Code.INVALID_INPUT,
                        f"{self._path} is a link to {os.readlink(self._path)}, which does not exist: "
                        "mount the disk, or correct the link",
                    ) from None
                self._check_parent()
            except NotADirectoryError:
                raise CatalogError(
                    Code.INVALID_INPUT, f"{self._path} is not a folder: spec.path must name the catalog's root folder"
                ) from None

    def _check_parent(self) -> None:
        above = os.path.dirname(self._path)
        try:
            os.scandir(above).close()
        except (FileNotFoundError, NotADirectoryError):
            raise CatalogError(
                Code.INVALID_INPUT,
                f"{self._path} does not exist, and neither does its parent folder {above}: create the parent, mount "
                "the disk, or correct spec.path",
            ) from None

    def list(self, path: str = "") -> Listing:
        where = self.uri(path)
        folders: list[str] = []
        files: list[str] = []
        with translated(f"list {where}"):
            try:
                with os.scandir(where) as entries:
                    for entry in entries:
                        (folders if entry.is_dir() else files).append(entry.name)
            except FileNotFoundError:
                return Listing()
        return Listing(tuple(folders), tuple(files))

    def is_folder(self, path: str) -> bool:
        where = self.uri(path)
        with translated(f"read {where}"):
            try:
                return stat.S_ISDIR(os.stat(where).st_mode)
            except FileNotFoundError:
                return False

    def list_deep(self, path: str) -> tuple[str, ...]:
        found: list[str] = []
        pending = [""]
        while pending:
            at = pending.pop()
            listing = self.list(posixpath.join(path, at))
            found.extend(posixpath.join(at, name) for name in listing.files)
            pending.extend(posixpath.join(at, name) for name in listing.folders)
        return tuple(found)

    def having(self, folders: Iterable[str], name: str) -> frozenset[str]:
        root, found = self._path, []
        with translated(f"list {root}"):
            for folder in folders:
                try:
                    os.stat(f"{root}/{folder}/{name}")
                except FileNotFoundError:
                    continue
                found.append(folder)
        return frozenset(found)

    def read(self, path: str) -> bytes | None:
        where = self.uri(path)
        with translated(f"read {where}"):
            try:
                with open(where, "rb") as file:
                    return file.read()
            except FileNotFoundError:
                return None

    def create(self, path: str, data: bytes) -> bool:
        where = self.uri(path)
        with translated(f"write {where}", write=True):
            temporary = self._write_beside(where, data)
            try:
                os.link(temporary, where)  # unlike O_EXCL, never shows a half-written file
            except FileExistsError:
                return False
            finally:
                os.unlink(temporary)
        return True

    def replace(self, path: str, data: bytes) -> None:
        where = self.uri(path)
        with translated(f"write {where}", write=True):
            os.replace(self._write_beside(where, data), where)

    def _write_beside(self, where: str, data: bytes) -> str:
        os.makedirs(os.path.dirname(where), exist_ok=True)
        temporary = os.path.join(os.path.dirname(where), f".tmp-{uuid.uuid4().hex}")
        try:
            with open(temporary, "xb") as file:
                file.write(data)
        except BaseException:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise
        return temporary

    def delete(self, path: str) -> None:
        where = self.uri(path)
        with translated(f"remove {where}", write=True):
            try:
                os.unlink(where)
            except FileNotFoundError:
                return

    def prune(self, path: str) -> None:
        with suppress(OSError):
            os.rmdir(self.uri(path))


def open_storage(path: str, options: Mapping[str, str]) -> Storage:
    """`options` are the `storage.*` settings without the prefix. A relative path counts from the working directory."""
    if not path:
        raise CatalogError(Code.INVALID_INPUT, "spec.path is empty: give the catalog's root folder or URI")
    scheme = urlsplit(path).scheme if "://" in path else ""
    if scheme == "file":
        return LocalStorage(unquote(urlsplit(path).path))
    if not scheme:
        return LocalStorage(path)
    from reconciler.catalog.storage_objects import ObjectStorage

    return ObjectStorage(path, options)


def escape(path: str) -> str:
    """A path as part of a URI."""
    return quote(path, safe="/$!'()*,;=:@&+~")
