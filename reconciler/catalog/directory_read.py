"""Reads of a directory catalog: one scan of `__manifest`, one listing of the root, one of our inventory, and the
datasets that were asked for, opened on threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from reconciler.catalog.directory_capabilities import DirectoryCapabilities, hidden
from reconciler.catalog.directory_inventory import Inventory, detached_file, table_file
from reconciler.catalog.directory_manifest import Manifest
from reconciler.catalog.directory_places import (
    RESERVED,
    Place,
    View,
    namespace_finding,
    row_place,
)
from reconciler.catalog.directory_roots import Roots
from reconciler.catalog.directory_rows import NAMESPACE, TABLE, BadRow, Rows, load_properties, object_id
from reconciler.catalog.directory_strays import stray_folders, strays
from reconciler.catalog.directory_unfinished import PAUSES, OnlyClaimed, Unfinished, Unsettled, check_declared_only
from reconciler.catalog.lance_dataset import Datasets
from reconciler.catalog.marks import split
from reconciler.catalog.storage import Storage
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import ROOT, Ident, Kind, dotted
from reconciler.model.observed import (
    Absent,
    Detached,
    Finding,
    Gap,
    Observation,
    Present,
    Scope,
    Unreadable,
)
from reconciler.model.state import EMPTY, UNKNOWN, DatasetState, Marks, TableState

_PORTION = 250
T = TypeVar("T")
R = TypeVar("R")
_NO_ROWS: Rows = {}
_NO_MARKS = Marks()


class DirectoryReader:
    def __init__(
        self,
        storage: Storage,
        manifest: Manifest,
        inventory: Inventory,
        datasets: Datasets,
        capabilities: DirectoryCapabilities,
    ) -> None:
        self.storage = storage
        self.manifest = manifest
        self.inventory = inventory
        self.datasets = datasets
        self.capabilities = capabilities
        self.roots = Roots(storage, capabilities)

    def rows(self) -> Rows:
        return self.manifest.rows() if self.capabilities.manifest else _NO_ROWS

    # scan

    def scan(self, scope: Scope) -> Iterator[Observation | Gap]:
        self.storage.check()
        folders, gap = self._root_listing()
        rows = self.rows()
        view = View(rows)
        for row in rows.values():
            if row.object_type == TABLE and not self.capabilities.listed(row.ident):
                view.places[row.ident] = row_place(row)
        if folders is not None:
            try:
                self.roots.place_all(view, folders)
            except CatalogError as error:
                gap = self._gap(error)
        view = replace(view, records=self.inventory.files())
        if gap is not None:
            yield gap
        yield from self._namespaces(rows)
        yield from self._tables(view, scope)

    def _root_listing(self) -> tuple[Sequence[str] | None, Gap | None]:
        """The folders of the root, before rows and records are read: both are older than the folder they are about,
        so that a table that is just being made is seen with its properties and its owner, or not at all."""
        if not self.capabilities.listing:
            return None, None
        self.datasets.stats.count("listings")
        try:
            return self.storage.list().folders, None
        except CatalogError as error:
            return None, self._gap(error)

    def _gap(self, error: CatalogError) -> Gap:
        if not self.capabilities.manifest:
            raise error
        return Gap(ROOT, error.code, error.message)

    def _namespaces(self, rows: Rows) -> Iterator[Observation]:
        for row in rows.values():
            if row.object_type == NAMESPACE and not hidden(row.object_id):
                yield Observation("Namespace", row.ident, namespace_finding(row))

    def _tables(self, view: View, scope: Scope) -> Iterator[Observation]:
        """Only what needs a file goes to the threads. What may be unfinished is looked at again in the end."""
        costly: list[Place] = []
        for place in view.places.values():
            if hidden(place.ident[0]):
                continue
            if place.ident in scope.detail or (place.listed and view.records):
                costly.append(place)
            elif place.row is None and place.problem is None:
                bare = TableState(self.storage.shown(place.location), EMPTY, _NO_MARKS, UNKNOWN)
                yield Observation("Table", place.ident, Present(bare))
            elif not isinstance(found := self.observe(place, scope, view.records), (Absent, Unsettled)):
                yield Observation("Table", place.ident, found)
            else:
                costly.append(place)
        missing = sorted(i for i in scope.detail if i not in view.places)
        strayed = self._strays(view, missing)
        with ThreadPoolExecutor(self.storage.threads) as pool:
            seen = self._spread(pool, lambda p: self.observe(p, scope, view.records), costly)
            lost = self._spread(pool, lambda i: self._lost(i, scope, view, strayed), missing)
            unsettled: dict[tuple[Kind, Ident], Finding | Unsettled] = {}
            for ident, finding in zip([*(p.ident for p in costly), *missing], chain(seen, lost), strict=True):
                if isinstance(finding, Unsettled):
                    unsettled["Table", ident] = finding
                elif not isinstance(finding, Absent):
                    yield Observation("Table", ident, finding)
        for (kind, ident), settled in self._settled(unsettled, scope).items():
            if not isinstance(settled, Absent):
                yield Observation(kind, ident, settled)

    def _strays(self, view: View, missing: Sequence[Ident]) -> Mapping[str, list[str]]:
        """Only asked for when something is missing: a scan that finds everything lists nothing for it."""
        if all(self.capabilities.listed(i) for i in missing):
            return {}
        self.datasets.stats.count("listings")
        return strays(self.storage.list().folders, {row.location for row in view.rows.values()})

    def _lost(
        self, ident: Ident, scope: Scope, view: View, strayed: Mapping[str, list[str]]
    ) -> Absent | Detached | Unreadable | Unsettled:
        found = self.lost(ident, scope, view.deregistered.get(ident), view.records)
        if not isinstance(found, Absent) or ident in scope.locations or self.capabilities.listed(ident):
            return found
        ours: list[Detached] = []
        for folder in stray_folders(strayed, object_id(ident)):
            try:
                state = self._state(folder)
            except CatalogError as error:
                if error.code is Code.TABLE_NOT_FOUND:
                    continue
                return Unreadable(error.code, error.message)
            if state.owner is not None:
                ours.append(Detached(self.storage.shown(folder), state))
        if len(ours) > 1:
            places = " and ".join(d.location for d in ours)
            reason = f"{places} both hold data of {dotted(ident)}: say which one with `location`, or remove one"
            return Unreadable(Code.INVALID_TABLE_STATE, reason)
        return ours[0] if ours else found

    def _spread(self, pool: ThreadPoolExecutor, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """In order. A few large portions: handing over a portion costs as much as opening a local dataset."""
        size = max(1, min(-(-len(items) // self.storage.threads), _PORTION))
        portions = [items[at : at + size] for at in range(0, len(items), size)]
        done = pool.map(lambda portion: [work(item) for item in portion], portions)
        return (result for results in done for result in results)

    # read

    def read(self, keys: Sequence[tuple[Kind, Ident]], scope: Scope) -> Iterator[Observation]:
        if not keys:
            return
        self.storage.check()
        found = self._settled(self._find_all(keys, scope), scope)
        for kind, ident in keys:
            yield Observation(kind, ident, found[kind, ident])

    def _find_all(
        self, keys: Sequence[tuple[Kind, Ident]], scope: Scope
    ) -> dict[tuple[Kind, Ident], Finding | Unsettled]:
        """Folders, then rows, then records: the order of `_root_listing`."""
        if len(keys) == 1:
            folders = self.roots.folders(keys[0])
            return {keys[0]: self._find(keys[0], self.rows(), scope, folders)}
        with ThreadPoolExecutor(self.storage.threads) as pool:
            seen = list(self._spread(pool, self.roots.folders, keys))
            rows = self.rows()
            found = self._spread(pool, lambda i: self._find(keys[i], rows, scope, seen[i]), range(len(keys)))
            return dict(zip(keys, found, strict=True))

    def _settled(
        self, found: dict[tuple[Kind, Ident], Finding | Unsettled], scope: Scope
    ) -> dict[tuple[Kind, Ident], Finding]:
        """Looks again, a few times, at what another run may be making this moment; then it is believed."""
        for pause in PAUSES:
            again = [key for key, finding in found.items() if isinstance(finding, Unsettled)]
            if not again:
                break
            time.sleep(pause)
            found.update(self._find_all(again, scope))
        return {key: f.finding if isinstance(f, Unsettled) else f for key, f in found.items()}

    def _find(
        self, key: tuple[Kind, Ident], rows: Rows, scope: Scope, folders: Sequence[str] | CatalogError
    ) -> Finding | Unsettled:
        kind, ident = key
        if isinstance(folders, CatalogError):
            return Unreadable(folders.code, folders.message)
        if kind == "Table":
            return self._table(ident, rows, scope, folders)
        row = rows.get(object_id(ident))
        return namespace_finding(row) if row is not None and row.object_type == NAMESPACE else Absent()

    def _table(self, ident: Ident, rows: Rows, scope: Scope, folders: Sequence[str]) -> Finding | Unsettled:
        try:
            place, left = self.roots.locate(ident, rows, folders)
            return self.observe(place, scope) if place else self.lost(ident, scope, left)
        except CatalogError as error:
            return Unreadable(error.code, error.message)

    def locate(self, ident: Ident) -> tuple[Place | None, str | None]:
        """Where the table is; if it is not in the catalog, the folder it was deregistered from, if any."""
        folders = self.roots.folders(("Table", ident))
        if isinstance(folders, CatalogError):
            raise folders
        return self.roots.locate(ident, self.rows(), folders)

    # one table

    def observe(
        self, place: Place, scope: Scope, records: frozenset[str] | None = None
    ) -> Present | Absent | Unreadable | Unsettled:
        """`records` is the inventory's listing when there is one: a file that is not in it need not be read."""
        if place.problem:
            return Unreadable(Code.INVALID_TABLE_STATE, place.problem)
        try:
            properties, marks = split(load_properties(place.row)) if place.row else (EMPTY, _NO_MARKS)
            confirmed = True
            if place.listed:
                marks, confirmed = self.record_marks(place, records)
            dataset = self.dataset(place) if place.ident in scope.detail else UNKNOWN
            location = self.shown(place.ident, place.location, scope)
            found = Present(TableState(location, properties, marks, dataset, place=self.uri(place.location)))
            return found if confirmed else Unsettled(found)
        except BadRow as error:
            return Unreadable(Code.INTERNAL, str(error))
        except OnlyClaimed:
            return Absent()
        except CatalogError as error:
            return _unreadable(error)

    def record_marks(self, place: Place, records: frozenset[str] | None) -> tuple[Marks, bool]:
        """And whether they are confirmed: if not, the run that declares the table is not done yet, or died."""
        name = place.ident[0]
        if records is not None and table_file(name) not in records:
            return _NO_MARKS, True
        record = self.inventory.table(name)
        if record is None:
            return _NO_MARKS, True
        if record.state == "claimed":
            token = self.storage.read(f"{place.location}/{RESERVED}")
            if token is None and self.only_claimed(place):
                raise OnlyClaimed(Code.TABLE_NOT_FOUND, f"table {dotted(place.ident)} is claimed, but not declared")
            ours = token is not None and token.decode("ascii", "replace") == record.claim
            return (record.marks, False) if ours else (_NO_MARKS, True)
        return record.marks, True

    def dataset(self, place: Place) -> DatasetState | None:
        """None: declared only. Raises CatalogError when something is there that cannot be read."""
        try:
            return self._state(place.location)
        except CatalogError as error:
            if error.code is not Code.TABLE_NOT_FOUND:
                raise
        self.check_declared_only(place)
        return None

    def _state(self, location: str) -> DatasetState:
        self.need_inside(location)
        if not _foreign(location):
            self.storage.check_open(location)
        return self.datasets.state(self.uri(location))

    def check_declared_only(self, place: Place) -> None:
        where = self.uri(place.location)
        if _foreign(place.location):
            raise CatalogError(Code.INVALID_TABLE_STATE, f"there is no Lance dataset at {where}")
        check_declared_only(place, where, self.storage, self.inventory)

    def only_claimed(self, place: Place) -> bool:
        """The folder of a declare of ours that was cut short: the table is not there yet."""
        try:
            self.check_declared_only(place)
        except OnlyClaimed:
            return True
        except CatalogError:
            pass
        return False

    def lost(
        self, ident: Ident, scope: Scope, left: str | None = None, records: frozenset[str] | None = None
    ) -> Absent | Detached | Unreadable | Unsettled:
        """A table that is not in the catalog: is its data?"""
        if ident not in scope.detail and ident not in scope.locations:
            return Absent()
        try:
            for location in self._traces(ident, scope, left, records):
                try:
                    return Detached(self.shown(ident, location, scope), self._state(location))
                except CatalogError as error:
                    if error.code is not Code.TABLE_NOT_FOUND:
                        raise
                self.check_declared_only(Place(ident, location))
        except CatalogError as error:
            return _unreadable(error)
        return Absent()

    def _traces(self, ident: Ident, scope: Scope, left: str | None, records: frozenset[str] | None) -> Iterable[str]:
        if ident in scope.locations:
            folder = self.storage.relative(scope.locations[ident])
            if folder is not None:
                yield folder
            return
        if left is not None:
            yield left
        if not self.capabilities.listed(ident):
            key = object_id(ident)
            record = self.inventory.detached(key) if records is None or detached_file(key) in records else None
            if record is not None:
                yield record.location

    # names

    def shown(self, ident: Ident, location: str, scope: Scope) -> str:
        """The location as the manifest writes it, when both mean one folder: the texts can then be compared."""
        declared = scope.locations.get(ident)
        if declared is not None and self.storage.relative(declared) == location:
            return declared
        return location if _foreign(location) else self.storage.shown(location)

    def uri(self, location: str) -> str:
        return location if _foreign(location) else self.storage.uri(location)

    def need_inside(self, location: str) -> None:
        """Data that a link leads to elsewhere is not this catalog's to read or to change."""
        if not _foreign(location) and self.storage.resolved(location) is None:
            raise CatalogError(
                Code.INVALID_INPUT,
                f"{self.storage.uri(location)} leads out of the catalog's root folder {self.storage.root}: move the "
                "data there, or mount its disk there instead of the link",
            )

    def children(self, ident: Ident) -> list[str]:
        """Rows below a missing parent count too: the parent cannot be called empty."""
        self.storage.check()
        depth = len(ident)
        folders = self.storage.list().folders if ident == ROOT and self.capabilities.listing else None
        rows = self.rows()
        names = {r.ident[depth] for r in rows.values() if len(r.ident) > depth and r.ident[:depth] == ident}
        if folders is not None:
            view = View(rows)
            self.roots.place_all(view, folders)
            names |= {i[0] for i in view.places}
        return sorted(names)


def _foreign(location: str) -> bool:
    """A row of `__manifest` that names a place of its own."""
    return "://" in location or location.startswith("/")


def _unreadable(error: CatalogError) -> Unreadable | Unsettled:
    found = Unreadable(error.code, error.message)
    return Unsettled(found) if isinstance(error, Unfinished) else found
