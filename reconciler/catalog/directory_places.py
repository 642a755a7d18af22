"""Where tables are, as far as the catalog itself says: before any dataset is opened."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.catalog.directory_rows import TABLE, BadRow, Row, Rows, load_properties
from reconciler.catalog.marks import split
from reconciler.model.errors import Code
from reconciler.model.ident import Ident, dotted
from reconciler.model.observed import Present, Unreadable
from reconciler.model.state import NamespaceState

DEREGISTERED = ".lance-deregistered"
"""Hides a root table and keeps its data."""


class Place(NamedTuple):
    """A table that is in the catalog, and its folder below the root. A tuple, because a listing makes thousands
    of them."""

    ident: Ident
    location: str
    row: Row | None = None
    listed: bool = False
    """Root table of the default layout or V1: its folder is its existence, the inventory holds its marks."""
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class View:
    """The catalog's side of everything, before any dataset is opened."""

    rows: Rows
    places: dict[Ident, Place] = field(default_factory=dict)
    deregistered: dict[Ident, str] = field(default_factory=dict)
    records: frozenset[str] = frozenset()


def listed_place(ident: Ident, folder: str, row: Row | None = None) -> Place:
    """Of a root table, by its folder."""
    problem = location_problem(row) if row is not None and row.location == folder else None
    return Place(ident, folder, row, True, problem or _name_problem(folder))


def _name_problem(folder: str) -> str | None:
    """Lance and `__manifest` know texts only. A disk also gives names that are none: they come with surrogates."""
    if folder.isascii() or (name := escaped(folder)) == folder:
        return None
    return f"the name of the folder {name} is not UTF-8: rename it, or move it out of the catalog's root"


def escaped(folder: str) -> str:
    """The name as UTF-8, with escapes for the bytes that are not."""
    return folder.encode(errors="surrogateescape").decode(errors="backslashreplace")


def both_claim(folders: Iterable[str], name: str) -> str:
    both = " and ".join(sorted(map(escaped, folders)))
    return f"{both} both claim the name {name!r}: remove or rename one of them"


def taken(rows: Rows) -> set[str | None]:
    """Folders of tables inside namespaces: such a folder is not a root table as well."""
    return {row.location for row in rows.values() if row.object_type == TABLE and len(row.ident) > 1}


def row_place(row: Row) -> Place:
    return Place(row.ident, row.location or "", row, False, location_problem(row))


def location_problem(row: Row) -> str | None:
    """A location is a path below the root. pylance takes any other for one as well, and finds nothing there; the data
    that such a row names is not this catalog's to read or to change. Nor are the catalog's own records a table."""
    what_to_do = "correct the row, or remove it with pylance"
    if not row.location:
        return f"the row of {dotted(row.ident)} in __manifest has no location: {what_to_do}"
    where = f"the location {row.location!r} of {dotted(row.ident)} in __manifest"
    outside = "://" in row.location or row.location.startswith("/") or ".." in row.location.split("/")
    folder = posixpath.normpath(row.location)
    if outside or folder == "." or "\0" in folder:
        return f"{where} is not a path below the catalog's root: {what_to_do}"
    if folder.startswith("__"):
        return f"{where} is reserved, folders that start with '__' hold the catalog's own records: {what_to_do}"
    return None


def namespace_finding(row: Row) -> Present | Unreadable:
    try:
        return Present(NamespaceState(*split(load_properties(row))))
    except BadRow as error:
        return Unreadable(Code.INTERNAL, str(error))
