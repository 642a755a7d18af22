"""The table that rows are moved from: read through its own catalog, never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reconciler.catalog.base import Catalog, DataPlace
from reconciler.catalog.lance_remains import copying, is_shown
from reconciler.catalog.storage import open_storage
from reconciler.model.data import Migration
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, dotted
from reconciler.model.observed import Detached, Origin, Present, Scope, Unreadable
from reconciler.model.state import DatasetState, TableState

Hide = Callable[[Iterable[str]], None]


def source_table(catalog: Catalog, name: str, ident: Ident) -> tuple[TableState, DatasetState]:
    """Raises CatalogError: why it has no dataset that could be read."""
    (found,) = catalog.read([("Table", ident)], Scope(detail=frozenset({ident})))
    told = f"{name} {dotted(ident)}"
    match found.finding:
        case Present(state=TableState(dataset=DatasetState() as dataset) as state):
            return state, dataset
        case Present():
            raise CatalogError(Code.INVALID_TABLE_STATE, f"{told} is declared only: it has no data yet")
        case Unreadable(code, message):
            raise CatalogError(code, f"{told} cannot be read: {message}")
        case Detached(location):
            raise CatalogError(Code.TABLE_NOT_FOUND, f"{told} is not in the catalog; its data is still at {location}")
        case _:
            raise CatalogError(Code.TABLE_NOT_FOUND, f"{told} is not in the catalog")


def look_at_origin(catalog: Catalog, migration: Migration) -> Origin:
    """For a plan."""
    try:
        _, dataset = source_table(catalog, migration.catalog, migration.ident)
    except CatalogError as error:
        return Origin(problem=error.message)
    if dataset.data is not None and dataset.data.lost:
        return Origin(problem="a data step on it was cut off, and nothing tells whether its rows are in")
    return Origin(dataset)


def is_copied(catalog: Catalog, ident: Ident, state: TableState, migration: Migration, hide: Hide) -> bool:
    """Whether the dataset of a table is the copy that a run of ours did not come to mark. Raises CatalogError."""
    place = catalog.data_place(ident, state)
    hide(place.storage_options.values())
    folder = open_storage(place.uri, place.storage_options)
    begun = copying(folder)
    return begun is not None and begun.digest == migration.digest and is_shown(folder, begun)


def source_place(catalog: Catalog | None, name: str, ident: Ident, hide: Hide) -> DataPlace:
    """Raises CatalogError."""
    if catalog is None:
        raise CatalogError(Code.INVALID_INPUT, f"the catalog {name}, from which it is copied, is not open")
    state, _ = source_table(catalog, name, ident)
    place = catalog.data_place(ident, state)
    hide(place.storage_options.values())
    return place
