"""A folder without a dataset in it: was there ever one, or is one being copied there?

An interrupted create and a dataset that lost its files look alike. What tells them apart is a file that lance
writes along with every commit, `_transactions/<version it started from>-<id>.txn`: a create starts from version 0 and
writes no data file, so a later start, or a data file, proves that there was something to lose.

A copy of another dataset brings its files before its version. It says so first, in a file beside them: then data files
prove nothing, and only a transaction that started from the copied version or a later one does.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from reconciler.catalog.storage import Storage
from reconciler.model.errors import CatalogError, Code

COPYING = ".reconciler-migration"
LARGEST_VERSION = 512 << 20
"""Bytes of the file of a version; that of a table with a million fragments has a fifth of it."""


@dataclass(frozen=True, slots=True)
class Copying:
    """A copy that was begun, and is not marked as ours yet."""

    digest: str
    """Of the table that it comes from."""
    version: int
    """Of the source: every run that goes on copies this one."""
    doubted: bool = False
    """The files that are there did not have the rows of the source: all are copied anew."""
    shown: str = ""
    """`name:sha256` of the file that shows the copy, noted before it is put: a version without it is not the copy."""

    def dumped(self) -> bytes:
        return json.dumps(asdict(self)).encode()


class DataGone(CatalogError):
    """Of a table that has an owner: storage answered, and nothing is left of its data. Never concluded from an error,
    nor where a disk may be missing."""


def gone(storage: Storage, folder: str, message: str) -> CatalogError:
    """What to raise of a folder that was listed and holds nothing of a table."""
    doubt = storage.doubt(folder)
    if doubt is None:
        return DataGone(Code.INVALID_TABLE_STATE, message)
    return CatalogError(Code.INVALID_TABLE_STATE, f"{message}. {doubt}")


def copying(storage: Storage, folder: str = "") -> Copying | None:
    """Raises CatalogError: a note that cannot be read is not taken for none."""
    text = storage.read(_below(folder, COPYING))
    if text is None:
        return None
    try:
        value = json.loads(text)
        shown = str(value.get("shown", ""))
        return Copying(str(value["digest"]), int(value["version"]), bool(value["doubted"]), shown)
    except (KeyError, TypeError, ValueError) as error:
        where = storage.uri(_below(folder, COPYING))
        raise CatalogError(Code.INVALID_TABLE_STATE, f"{where} cannot be read: look at it by hand") from error


def shown_as(name: str, manifest: bytes) -> str:
    return f"{name}:{hashlib.sha256(manifest).hexdigest()}"


def is_shown(storage: Storage, begun: Copying) -> bool:
    """The copy that the note speaks of is what the folder shows, or showed first: others may have gone on from it."""
    name = begun.shown.partition(":")[0]
    manifest = storage.read(f"_versions/{name}", LARGEST_VERSION) if name else None
    return manifest is not None and shown_as(name, manifest) == begun.shown


def has_versions(storage: Storage, folder: str = "") -> bool:
    """A version that lance calls detached (`d…`) is no version of the table."""
    return any(n.endswith(".manifest") and n[0] != "d" for n in storage.list(_below(folder, "_versions")).files)


def dataset_inside(storage: Storage) -> str | None:
    """The folder of a dataset inside this one's. The branches of a dataset are its own."""
    for path in storage.list_deep(""):
        folder, versions, _ = path.partition("/_versions/")
        if versions and folder.split("/")[0] != "tree":
            return folder
    return None


def had_versions(storage: Storage, folder: str = "", since: int = 1) -> bool:
    """Ask before `has_versions`: a dataset that is being made has its first version before this is true."""
    starts = (name.partition("-")[0] for name in storage.list(_below(folder, "_transactions")).files)
    return any(start.isdecimal() and int(start) >= since for start in starts)


def has_data(storage: Storage, folder: str = "") -> bool:
    return bool(storage.list(_below(folder, "data")).files)


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
