"""Root tables of the default layout and of V1: a folder of the root is a table, unless it is marked as deregistered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.catalog.directory_capabilities import DELIMITER, SUFFIX, DirectoryCapabilities, hidden
from reconciler.catalog.directory_places import (
    DEREGISTERED,
    Place,
    View,
    both_claim,
    escaped,
    listed_place,
    row_place,
    taken,
)
from reconciler.catalog.directory_rows import TABLE, Row, Rows, object_id
from reconciler.catalog.directory_strays import is_made
from reconciler.catalog.lance_remains import had_versions
from reconciler.catalog.storage import Storage
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident, Kind


class Roots:
    def __init__(self, storage: Storage, capabilities: DirectoryCapabilities) -> None:
        self.storage = storage
        self.capabilities = capabilities

    def place_all(self, view: View, listed: Sequence[str], named: Iterable[str] = ()) -> int:
        """`named`: tables that are asked for by name, or are ours: each may be in a folder that is not listed. Returns
        how many folders are no table's."""
        used = taken(view.rows)
        claims: dict[str, list[str]] = {}
        rest: set[str] = set()
        for folder in listed:
            name = self._name(folder, used)
            if name is not None:
                claims.setdefault(name, []).append(folder)
            elif folder not in used and not folder.startswith("__") and not is_made(folder):
                rest.add(folder)
        for name in rest.intersection(named):
            if not hidden(name) and self._is_dataset(name):
                claims.setdefault(name, []).append(name)
                rest.discard(name)
        marked = self.storage.having([f for folders in claims.values() for f in folders], DEREGISTERED)
        roots = {k: r for k, r in view.rows.items() if r.object_type == TABLE and DELIMITER not in k}
        for name, folders in claims.items():
            if len(folders) == 1 and name not in roots and folders[0] not in marked:
                view.places[(name,)] = listed_place((name,), folders[0])
            else:
                self._place(view, name, folders, marked, roots.get(name))
        for name, row in roots.items():
            if name not in claims and not hidden(name):
                self._place(view, name, [], marked, row)
        return len(rest)

    def _is_dataset(self, folder: str) -> bool:
        """Or what is left of one: a table is never made beside it."""
        return self.storage.is_dataset(folder) or had_versions(self.storage, folder)

    def _name(self, folder: str, used: set[str | None]) -> str | None:
        """The root table that this folder is, or None."""
        if folder in used or hidden(folder):
            return None
        name = folder if folder.isascii() else escaped(folder)
        if folder.endswith(SUFFIX):
            return name[: -len(SUFFIX)] or None
        return name if self.capabilities.lists_plain(folder) else None

    def _place(self, view: View, name: str, folders: Sequence[str], marked: frozenset[str], row: Row | None) -> None:
        ident = (name,)
        live = [f for f in folders if f not in marked]
        if row is not None and row.location is not None and row.location not in live:
            live.append(row.location)  # a row without a folder, or one whose removal was cut short
        if not live:
            if folders:
                view.deregistered[ident] = folders[0]
            return
        place = listed_place(ident, live[0], row)
        if len(live) > 1:
            place = place._replace(problem=both_claim(live, name))
        view.places[ident] = place

    def folders(self, key: tuple[Kind, Ident]) -> Sequence[str] | CatalogError:
        """Where the root table of that name may be."""
        if key[0] != "Table" or not self.capabilities.listed(key[1]):
            return ()
        try:
            found = [f for f in self.capabilities.root_folders(key[1][0]) if self.storage.is_folder(f)]
            return [f for f in found if self._name(f, set()) is not None or self._is_dataset(f)]
        except CatalogError as error:
            return error

    def left(self, ident: Ident, rows: Rows, marked: str | None) -> Sequence[str]:
        """Folders that may hold the data of a table that is not in the catalog: the one that it was deregistered from
        (`marked`), or, where not the folder but a row is its existence, the datasets of its name that no row has. Such
        a dataset is never shadowed by an empty table beside it. Raises CatalogError."""
        if marked is not None:
            return (marked,)
        if len(ident) > 1 or self.capabilities.listing:
            return ()
        used = {row.location for row in rows.values()}
        free = [f for f in self.capabilities.root_folders(ident[0]) if f not in used]
        return [f for f in free if self.storage.is_folder(f) and self._is_dataset(f)]

    def locate(self, ident: Ident, rows: Rows, folders: Sequence[str]) -> tuple[Place | None, str | None]:
        """Where the table is; if it is not in the catalog, the folder it was deregistered from, if any."""
        row = rows.get(object_id(ident))
        if row is not None and row.object_type != TABLE:
            row = None
        if not self.capabilities.listed(ident):
            return (row_place(row), None) if row is not None else (None, None)
        used = taken(rows)
        live = [f for f in folders if f not in used]
        view = View(rows)
        self._place(view, ident[0], live, self.storage.having(live, DEREGISTERED), row)
        return view.places.get(ident), view.deregistered.get(ident)
