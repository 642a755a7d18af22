"""Where tables are, as far as the catalog itself says: before any dataset is opened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.catalog.directory_rows import TABLE, BadRow, Row, Rows, load_properties
from reconciler.catalog.marks import split
from reconciler.model.errors import Code
from reconciler.model.ident import Ident, dotted
from reconciler.model.observed import Present, Unreadable
from reconciler.model.state import NamespaceState

RESERVED = ".lance-reserved"
"""Marks a table that was declared; it stays when data is written."""
DEREGISTERED = ".lance-deregistered"
"""Hides a root table and keeps its data."""


class Place(NamedTuple):
    """A table that is in the catalog, and its folder below the root (or a foreign URI). A tuple, because a listing
    makes thousands of them."""

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


def taken(rows: Rows) -> set[str | None]:
    """Folders of tables inside namespaces: such a folder is not a root table as well."""
    return {row.location for row in rows.values() if row.object_type == TABLE and len(row.ident) > 1}


def row_place(row: Row) -> Place:
    problem = None
    if not row.location:
        problem = f"the row of {dotted(row.ident)} in __manifest has no location"
    elif ".." in row.location.split("/"):
        problem = f"the location {row.location!r} of {dotted(row.ident)} in __manifest leads out of the catalog"
    return Place(row.ident, row.location or "", row, False, problem)


def namespace_finding(row: Row) -> Present | Unreadable:
    try:
        return Present(NamespaceState(*split(load_properties(row))))
    except BadRow as error:
        return Unreadable(Code.INTERNAL, str(error))
