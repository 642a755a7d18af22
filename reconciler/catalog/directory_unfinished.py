"""Tables that are being made this moment, or whose making was cut short: seldom seen, easily taken for damage.

A create in progress passes through states that look broken: a folder without its marker, data files before the first
version. So nothing of the kind is believed at first sight; it is read again a few times. What stays as it is was left
behind by a run that died, and is resumed if it is ours, or it is damaged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from reconciler.catalog.directory_inventory import Inventory
from reconciler.catalog.directory_places import Place
from reconciler.catalog.lance_remains import COPYING, DataGone, copying, gone, had_versions, has_versions
from reconciler.catalog.storage import RESERVED, Listing, Storage
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import dotted
from reconciler.model.observed import Finding

PAUSES: Final = (0.05, 0.1, 0.2)
"""Seconds between the looks at what may be unfinished. Paid once for all tables of a read, however many they are."""

_TEMPORARY = re.compile(r"\.tmp-[0-9a-f]{32}")
_REMAINS = frozenset({"_versions", "_transactions"})
_OF_A_COPY = _REMAINS | {"data", "_indices", "_deletions"}


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A finding that may be another one in a moment."""

    finding: Finding


class Unfinished(CatalogError):
    """Unreadable, unless a create is under way."""


class UnfinishedOrGone(Unfinished, DataGone):
    """A create may be under way there; what stays so is gone."""


class OnlyClaimed(CatalogError):
    """A run of ours took the name and died, or has not come further: there is a folder, but no table yet."""


def is_temporary(name: str) -> bool:
    """A file that `LocalStorage` writes before it gives it its name: ours, and of no use to anybody."""
    return _TEMPORARY.fullmatch(name) is not None


def check_declared_only(place: Place, where: str, storage: Storage, inventory: Inventory) -> None:
    """No dataset: fine if the folder holds markers or the remains of an interrupted create or copy, an error if it
    holds anything else. A listed folder without a marker was not declared by anybody."""
    listing = storage.list(place.location)
    begun = copying(storage, place.location) if COPYING in listing.files else None
    since = begun.version if begun is not None else 1
    had = "_transactions" in listing.folders and had_versions(storage, place.location, since)
    if "_versions" in listing.folders and has_versions(storage, place.location):
        raise Unfinished(Code.INTERNAL, f"the dataset {where} has versions but cannot be opened")
    _refuse_strange(place, where, listing, inventory, _OF_A_COPY if begun is not None else _REMAINS)
    if had:
        raise Unfinished(
            Code.INVALID_TABLE_STATE,
            f"the data of {dotted(place.ident)} is gone: {where} holds the transactions of a dataset, but neither its "
            "versions nor its data files. Bring the folder back from a backup, or deregister the table",
        )
    if RESERVED in listing.files:
        return
    if place.listed and _left_by_us(place, listing, inventory):
        raise OnlyClaimed(Code.TABLE_NOT_FOUND, f"{where} is not a table yet: it was claimed, but not declared")
    if place.row is not None:
        raise _gone(
            storage,
            place,
            f"the data of {dotted(place.ident)} is gone: {where} holds neither a dataset nor the mark of a "
            "declared table. Bring the folder back, or deregister the table",
        )
    if place.listed:
        raise Unfinished(
            Code.INVALID_TABLE_STATE,
            f"{where} is an empty folder, not a Lance dataset: remove it, or write a dataset there",
        )


def _gone(storage: Storage, place: Place, message: str) -> Unfinished:
    error = gone(storage, place.location, message)
    return (UnfinishedOrGone if isinstance(error, DataGone) else Unfinished)(error.code, error.message)


def _refuse_strange(place: Place, where: str, listing: Listing, inventory: Inventory, remains: frozenset[str]) -> None:
    strange = [n for n in listing.files if not n.startswith(".")]
    strange += [n for n in listing.folders if n not in remains and not n.startswith(".")]
    if not strange:
        return
    if "data" not in listing.folders:
        raise CatalogError(
            Code.INVALID_TABLE_STATE,
            f"{where} holds {strange[0]!r} but no Lance dataset: move the folder away if it is not a table",
        )
    lost = f"{where} holds data files, but the versions of the dataset are missing"
    if RESERVED in listing.files or place.row is not None or (place.listed and inventory.table(place.ident[0])):
        raise Unfinished(Code.INVALID_TABLE_STATE, f"{lost}: restore its _versions folder from a backup")
    raise Unfinished(
        Code.INVALID_TABLE_STATE,
        f"{lost}: restore its _versions folder from a backup, or move the folder away if it is not a table",
    )


def _left_by_us(place: Place, listing: Listing, inventory: Inventory) -> bool:
    """A folder with nothing in it, or with nothing but our own temporary files, is where a run of ours died, if the
    name is claimed: the next one goes on from there. Any other empty folder is somebody's, for a reason."""
    if listing.folders or not all(map(is_temporary, listing.files)):
        return False
    record = inventory.table(place.ident[0])
    return record.state == "claimed" if record is not None else bool(listing.files) and place.row is None
