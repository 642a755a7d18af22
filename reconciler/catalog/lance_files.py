"""What lance is about to read of a dataset on a local disk: regular files. It would wait for ever for the writer of a
pipe, and no time-out of a library ends that."""

from __future__ import annotations

import os
from contextlib import suppress

from reconciler.catalog.locations import lance_uri
from reconciler.model.errors import CatalogError, Code
from reconciler.regular_files import NotRegular

_MAGIC = b"LANC"
_LANCE_FILES = (".idx", ".lance")
_ROWS = ("data", "_deletions")


def check_rows(uri: str) -> None:
    """Before the rows of a dataset are read; its versions are checked when it is opened. Raises CatalogError."""
    where = lance_uri(uri)
    if "://" in where:
        return
    try:
        for folder in _ROWS:
            _check_below(f"{where}/{folder}")
    except NotRegular as error:
        raise CatalogError(Code.INVALID_TABLE_STATE, f"the rows of {uri} cannot be read: {error}") from error
    except OSError:
        return  # No rows, or none that this user may see: lance has the words for that.


def _check_below(folder: str) -> None:
    """Large values have folders of their own beside the files of the rows."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _check_below(entry.path)
            elif not entry.is_file() and not entry.is_dir():
                _need_gone(entry)


def check_folder(uri: str, folder: str) -> None:
    """Of an index: its files end as those of lance do, which would search a file of another kind to its end. Raises
    OSError."""
    where = lance_uri(uri)
    if "://" in where:
        return
    with suppress(FileNotFoundError), os.scandir(f"{where}/{folder}") as entries:
        for entry in entries:
            if not entry.is_file():
                _need_gone(entry)
            elif entry.name.endswith(_LANCE_FILES) and not _ends_as_lance(entry.path):
                raise NotRegular(entry.path, "it is not a file of Lance")


def _need_gone(entry: os.DirEntry[str]) -> None:
    if os.path.lexists(entry.path):  # It may have been removed meanwhile.
        raise NotRegular(entry.path, "it is not a regular file")


def _ends_as_lance(path: str) -> bool:
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - len(_MAGIC)))
        return file.read() == _MAGIC
