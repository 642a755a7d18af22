"""Storage on a local disk. Links are followed; what cannot be looked into is there all the same, never missing."""

from __future__ import annotations

import errno
import os
import posixpath
import uuid
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property

from reconciler.catalog.fence import may_write
from reconciler.catalog.lance_errors import translated
from reconciler.catalog.mounts import LOST_AND_FOUND, doubt_of, refuse_missing, refuse_mount_point
from reconciler.catalog.storage import (
    LARGEST_RECORD,
    RESERVED,
    VERSIONS,
    Listing,
    below_shown_root,
    inside,
    relative_to,
    shown_root,
)
from reconciler.model.errors import CatalogError, Code
from reconciler.regular_files import NotRegular, check_regular, kind_of, read_regular

_CLOSED = (errno.EACCES, errno.ELOOP)
_NOT_MOVED = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.ENOSYS)

_MOST_ENTRIES = 10_000
"""Of a search in a folder that may hold anything."""


class LocalStorage:
    def __init__(self, path: str) -> None:
        self._given = path
        self._path = os.path.abspath(path)
        self._shown = shown_root(path) or self._path
        self._seen: tuple[int, int] | None = None
        """Device and number of the root, once it was looked at."""

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

    def shown(self, path: str) -> str:
        return f"{self._shown}/{path}"

    def canonical(self, path: str) -> str:
        return f"{self._real}/{path}" if self._plain(path) else os.path.realpath(self.uri(path))

    @cached_property
    def _real(self) -> str:
        return os.path.realpath(self._path).rstrip("/")

    def relative(self, location: str) -> str | None:
        return below_shown_root(self._given, location) or relative_to(self._path, location)

    def resolved(self, path: str) -> str | None:
        if self._plain(path):
            return path  # as nearly always: no need to look at the folders above the root as well
        root = f"{self._real}/"
        real = os.path.realpath(self.uri(path))
        return inside(real[len(root) :]) if real.startswith(root) else None

    def _plain(self, path: str) -> bool:
        """Written in its normal form, and no link on the way."""
        if "/" not in path:
            return path not in ("", ".", "..") and not os.path.islink(f"{self._path}/{path}")
        above = [path[:at] for at, letter in enumerate(path) if letter == "/"]
        return inside(path) == path and not any(os.path.islink(self.uri(part)) for part in (*above, path))

    def check_open(self, path: str) -> None:
        versions = f"{self._path}/{path}/_versions"
        if _readable(versions):
            return
        with translated(f"read {versions}"):
            try:
                mode = os.stat(versions).st_mode
            except (FileNotFoundError, NotADirectoryError):
                return
            if (kind := kind_of(mode) or "a file") != "a folder":
                raise NotRegular(versions, f"it is {kind}, not a folder")
            if not _readable(versions):  # asked again: it may have been made between the two questions
                raise PermissionError(errno.EACCES, "permission denied")

    def check_files(self, path: str) -> None:
        with translated(f"read {self.uri(path)}"), suppress(FileNotFoundError), os.scandir(self.uri(path)) as entries:
            for entry in entries:
                if not entry.is_file() and os.path.lexists(entry.path):
                    raise NotRegular(entry.path, "it is not a regular file")

    def check(self) -> None:
        with translated(f"read {self._path}"):
            try:
                os.scandir(self._path).close()
            except FileNotFoundError:
                _refuse_dangling_link(self._path)
                self._check_parent()
            except NotADirectoryError:
                raise CatalogError(
                    Code.INVALID_INPUT, f"{self._path} is not a folder: spec.path must name the catalog's root folder"
                ) from None

    def check_root(self, wanted: int = 0) -> None:
        """A disk that is unmounted leaves its mount point: a folder without tables, which reads as an empty lake. See
        `mounts`. A root that changes during a run is an error too."""
        seen = self._seen  # before looking: another thread may create the root meanwhile, and note it
        self.check()
        with translated(f"read {self._path}"):
            try:
                status = os.stat(self._path)
                found = (status.st_dev, status.st_ino)
                if found == seen:
                    return
                with os.scandir(self._path) as entries:
                    empty = not any(map(_is_folder, entries))
            except FileNotFoundError:
                if seen is not None:
                    raise self._changed("it is gone") from None
                refuse_missing(self._path, wanted, self._given)
                return
        if seen is not None and (empty or found[0] != seen[0]):
            raise self._changed("another folder is in its place")
        if empty and wanted:
            refuse_mount_point(self._path, wanted)
        if not empty:
            self._seen = found

    def _changed(self, how: str) -> CatalogError:
        return CatalogError(
            Code.INTERNAL,
            f"the root {self._path} was there when this run began, and now {how}: mount the disk again, then run again",
        )

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

    def _refuse_dangling(self, path: str) -> None:
        """Not found: because it is not there, or because a link on the way leads to a disk that is not mounted?"""
        at = self._path
        _refuse_dangling_link(at)
        for part in path.split("/"):
            at = f"{at}/{part}"
            _refuse_dangling_link(at)

    def list(self, path: str = "") -> Listing:
        where = self.uri(path)
        folders: list[str] = []
        files: list[str] = []
        with translated(f"list {where}"):
            try:
                with os.scandir(where) as entries:
                    for entry in entries:
                        (folders if _is_folder(entry) else files).append(entry.name)
            except FileNotFoundError:
                self._refuse_dangling(path)
                return Listing()
        return Listing(tuple(folders), tuple(files))

    def doubt(self, path: str) -> str | None:
        where = self.uri(path)
        with translated(f"read {where}"):
            return doubt_of(where)

    def subfolders(self, path: str) -> tuple[tuple[str, ...], bool]:
        found: list[str] = []
        with translated(f"list {self.uri(path)}"), os.scandir(self.uri(path)) as entries:
            for number, entry in enumerate(entries):
                if number >= _MOST_ENTRIES:
                    return tuple(found), False
                if _is_folder(entry):
                    found.append(entry.name)
        return tuple(found), True

    def is_folder(self, path: str) -> bool:
        where = self.uri(path)
        with translated(f"read {where}"):
            try:
                kind = kind_of(os.stat(where).st_mode) or "a regular file"
            except FileNotFoundError:
                self._refuse_dangling(path)
                return False
            if kind != "a folder":
                raise NotRegular(where, f"it is {kind}, not the folder of a table: move it away")
            return True

    def is_dataset(self, path: str) -> bool:
        where = self.uri(path)
        with translated(f"read {where}"):
            if os.path.lexists(f"{where}/{RESERVED}"):
                return True
            try:
                with os.scandir(f"{where}/{VERSIONS}") as entries:
                    return next(entries, None) is not None
            except (FileNotFoundError, NotADirectoryError):
                return False
            except PermissionError:
                return os.path.isdir(f"{where}/{VERSIONS}")  # It is there, and not for us to look into.

    def list_deep(self, path: str, ending: str | None = None) -> tuple[str, ...]:
        found: list[str] = []
        pending = [""]
        while pending:
            at = pending.pop()
            listing = self.list(posixpath.join(path, at))
            found.extend(posixpath.join(at, name) for name in listing.files)
            for name in listing.folders:
                is_file = ending is not None and name.endswith(ending)
                (found if is_file else pending).append(posixpath.join(at, name))
        return tuple(found)

    def having(self, folders: Iterable[str], name: str) -> frozenset[str]:
        root, found = self._path, []
        with translated(f"list {root}"):
            for folder in folders:
                try:
                    status = os.stat(f"{root}/{folder}/{name}")
                    check_regular(f"{root}/{folder}/{name}", status, status.st_size)
                except FileNotFoundError:
                    _refuse_dangling_link(f"{root}/{folder}/{name}")
                    continue
                except OSError as error:
                    if error.errno in _CLOSED:
                        continue  # that folder is there; reading it says what is wrong, and the others are fine
                    raise
                found.append(folder)
        return frozenset(found)

    def read(self, path: str, most: int = LARGEST_RECORD) -> bytes | None:
        where = self.uri(path)
        with translated(f"read {where}"):
            try:
                return read_regular(where, most)
            except FileNotFoundError:
                self._refuse_dangling(path)
                return None

    def create(self, path: str, data: bytes) -> bool:
        where = self.uri(path)
        may_write()
        with translated(f"write {where}", write=True):
            if self._create_folder(where, data):
                return True
            temporary = self._write_beside(where, data)
            try:
                os.link(temporary, where)  # unlike O_EXCL, never shows a half-written file
            except FileExistsError:
                return False
            finally:
                os.unlink(temporary)
        return True

    def _create_folder(self, where: str, data: bytes) -> bool:
        """A new folder appears together with its first file, never empty: an empty one says nothing about who made it.
        False when the folder is there already, or when this disk does not move folders."""
        folder, name = os.path.split(where)
        if os.path.lexists(folder):
            return False
        above = os.path.dirname(folder)
        os.makedirs(above, exist_ok=True)
        temporary = os.path.join(above, f".tmp-{uuid.uuid4().hex}")
        os.mkdir(temporary)
        file = os.path.join(temporary, name)
        try:
            with open(file, "xb") as out:
                out.write(data)
            os.rename(temporary, folder)  # refused when somebody else has put something there
        except BaseException as error:
            with suppress(FileNotFoundError):
                os.unlink(file)
            os.rmdir(temporary)
            if isinstance(error, OSError) and error.errno in _NOT_MOVED:
                return False
            raise
        return True

    def replace(self, path: str, data: bytes) -> None:
        where = self.uri(path)
        may_write()
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
        may_write()
        with translated(f"remove {where}", write=True):
            try:
                os.unlink(where)
            except FileNotFoundError:
                return

    def time(self) -> float:
        where = self.uri(".reconciler-time")
        may_write()
        with translated(f"write {where}", write=True):
            temporary = self._write_beside(where, b"")
            try:
                return os.stat(temporary).st_mtime
            finally:
                os.unlink(temporary)

    def prune(self, path: str) -> None:
        with suppress(OSError, CatalogError):
            may_write()
            os.rmdir(self.uri(path))


def _readable(folder: str) -> bool:
    return os.access(folder, os.R_OK | os.X_OK, effective_ids=True)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """A link that leads nowhere, or where we may not look, may be a table on another disk. A disk that was just
    formatted has a folder already."""
    if entry.name == LOST_AND_FOUND:
        return False
    try:
        return entry.is_dir() or (entry.is_symlink() and not os.path.exists(entry.path))
    except OSError:
        return True


def _refuse_dangling_link(path: str) -> None:
    if os.path.islink(path) and not os.path.exists(path):
        raise CatalogError(
            Code.INVALID_INPUT,
            f"{path} is a link to {os.readlink(path)}, which does not exist: mount the disk, or correct the link",
        ) from None
