"""Reads of a directory catalog: one scan of `__manifest`, one listing of the root, one of our inventory, and the
datasets that were asked for, opened on threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from reconciler.catalog.directory_capabilities import SUFFIX, DirectoryCapabilities, hidden
from reconciler.catalog.directory_inventory import Inventory, detached_file, table_file
from reconciler.catalog.directory_manifest import Manifest
from reconciler.catalog.directory_places import (
    Place,
    View,
    both_claim,
    escaped,
    namespace_finding,
    row_place,
)
from reconciler.catalog.directory_roots import Roots
from reconciler.catalog.directory_rows import NAMESPACE, TABLE, BadRow, Rows, load_properties, object_id
from reconciler.catalog.directory_strays import stray_folders, strays
from reconciler.catalog.directory_unfinished import PAUSES, OnlyClaimed, Unfinished, Unsettled, check_declared_only
from reconciler.catalog.lance_dataset import Datasets
from reconciler.catalog.lance_remains import DataGone
from reconciler.catalog.locations import Surroundings
from reconciler.catalog.marks import is_marked, split
from reconciler.catalog.storage import RESERVED, Storage, marker
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import ROOT, Ident, Kind, dotted
from reconciler.model.observed import (
    Absent,
    Detached,
    Finding,
    Former,
    Gap,
    LocationCheck,
    Observation,
    Present,
    RootSeen,
    Scope,
    Seen,
    Unreadable,
)
from reconciler.model.state import EMPTY, UNKNOWN, DatasetState, Marks, TableState, Unknown

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

    def scan(self, scope: Scope) -> Iterator[Seen]:
        self.storage.check_root(len(scope.detail) + len(scope.namespaces - {ROOT}))
        folders, gap = self._root_listing()
        rows = self.rows()
        view = View(rows)
        for row in rows.values():
            if row.object_type == TABLE and not self.capabilities.listed(row.ident):
                view.places[row.ident] = row_place(row)
        view = replace(view, records=self.inventory.files())
        skipped = 0
        if folders is not None:
            try:
                skipped = self.roots.place_all(view, folders, self._named(folders, scope, view))
            except CatalogError as error:
                gap = self._gap(error)
        yield RootSeen(self._new_root(view, folders or ()), skipped) if gap is None else gap
        yield from self._namespaces(rows)
        yield from self._tables(view, scope)
        self.storage.check_root()  # Nothing that was missing meanwhile is absent if the disk itself was.

    def _named(self, folders: Sequence[str], scope: Scope, view: View) -> list[str]:
        """The folders that are a table because it is declared, because our record says that it is ours, or because a
        namespace is to have its name."""
        new = {ident for ident in scope.namespaces if object_id(ident) not in view.rows}
        asked = {ident[0] for ident in scope.detail | scope.absent | new if self.capabilities.listed(ident)}
        return [f for f in folders if f in asked or table_file(escaped(f)) in view.records]

    def _new_root(self, view: View, folders: Sequence[str]) -> str | None:
        if view.rows or view.records or folders:
            return None
        listing = self.storage.list()
        return None if listing.folders or listing.files else self.storage.shown("").rstrip("/")

    def table_folders(self) -> frozenset[str]:
        """Of all tables, live or deregistered by their marker, as paths below the root. A folder without the suffix is
        a table only if it is a dataset: with `plain_folders` any folder may be listed."""
        view = View(self.rows())
        folders = self.storage.list().folders if self.capabilities.listing else ()
        self.roots.place_all(view, folders)
        rows = {row.location for row in view.rows.values() if row.location}
        roots = {place.location for place in view.places.values()} | {*view.deregistered.values()}
        plain = {f for f in roots - rows if not f.endswith(SUFFIX) and not self.storage.is_dataset(f)}
        return frozenset((roots | rows) - plain)

    def _root_listing(self) -> tuple[Sequence[str] | None, Gap | None]:
        """The folders of the root, before rows and records are read: both are older than the folder they are about,
        so that a table that is just being made is seen with its properties and its owner, or not at all."""
        if not self.capabilities.listing:
            return None, None
        self.datasets.stats.count("listings")
        try:
            return self.storage.list().folders, None
        except CatalogError as error:
            return None, self._gap(error, root=True)

    def _gap(self, error: CatalogError, root: bool = False) -> Gap:
        if not self.capabilities.manifest:
            raise error
        return Gap(ROOT, error.code, error.message, root)

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
            if scope.pruned_by or place.ident in scope.detail or (place.listed and view.records):
                costly.append(place)
            elif place.row is None and place.problem is None:
                shown, where = self.storage.shown(place.location), self.storage.canonical(place.location)
                bare = TableState(shown, EMPTY, _NO_MARKS, UNKNOWN, place=where)
                yield Observation("Table", place.ident, Present(bare))
            elif not isinstance(found := self.observe(place, scope, view.records), (Absent, Unsettled)):
                yield Observation("Table", place.ident, found)
            else:
                costly.append(place)
        missing = sorted(i for i in scope.detail if i not in view.places)
        strayed = self._strays(view, missing)
        around = self._surroundings()
        with ThreadPoolExecutor(self.storage.threads) as pool:
            seen = self._spread(pool, lambda p: self.observe(p, scope, view.records), costly)
            lost = self._spread(pool, lambda i: self._lost(i, scope, view, strayed, around), missing)
            unsettled: dict[tuple[Kind, Ident], Finding | Unsettled] = {}
            for ident, finding in zip([*(p.ident for p in costly), *missing], chain(seen, lost), strict=True):
                if isinstance(finding, Unsettled):
                    unsettled["Table", ident] = finding
                elif not isinstance(finding, Absent) or finding.checked is not None:
                    yield Observation("Table", ident, finding)
        for (kind, ident), settled in self._settled(unsettled, scope).items():
            if not isinstance(settled, Absent) or settled.checked is not None:
                yield Observation(kind, ident, settled)

    def _strays(self, view: View, missing: Sequence[Ident]) -> Mapping[str, list[str]]:
        """Only asked for when something is missing: a scan that finds everything lists nothing for it."""
        if all(self.capabilities.listed(i) for i in missing):
            return {}
        self.datasets.stats.count("listings")
        return strays(self.storage.list().folders, {row.location for row in view.rows.values()})

    def _lost(
        self, ident: Ident, scope: Scope, view: View, strayed: Mapping[str, list[str]], around: Surroundings
    ) -> Absent | Detached | Unreadable | Unsettled:
        folders = self.roots.folders(("Table", ident))
        if isinstance(folders, CatalogError):
            return Unreadable(folders.code, folders.message)
        found = self.lost(ident, scope, around, view.rows, view.deregistered.get(ident), view.records)
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
                shown = self.storage.shown(folder)
                ours.append(Detached(shown, state, checked=self._checked(folder, shown, around, ident)))
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
        self.storage.check_root(len(keys))
        found = self._settled(self._find_all(keys, scope), scope)
        self.storage.check_root()
        for kind, ident in keys:
            yield Observation(kind, ident, found[kind, ident])

    def _find_all(
        self, keys: Sequence[tuple[Kind, Ident]], scope: Scope
    ) -> dict[tuple[Kind, Ident], Finding | Unsettled]:
        """Folders, then rows, then records: the order of `_root_listing`."""
        around = self._surroundings()
        if len(keys) == 1:
            folders = self.roots.folders(keys[0])
            return {keys[0]: self._find(keys[0], self.rows(), scope, folders, around)}
        with ThreadPoolExecutor(self.storage.threads) as pool:
            seen = list(self._spread(pool, self.roots.folders, keys))
            rows = self.rows()
            found = self._spread(pool, lambda i: self._find(keys[i], rows, scope, seen[i], around), range(len(keys)))
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
        self,
        key: tuple[Kind, Ident],
        rows: Rows,
        scope: Scope,
        folders: Sequence[str] | CatalogError,
        around: Surroundings,
    ) -> Finding | Unsettled:
        kind, ident = key
        if isinstance(folders, CatalogError):
            return Unreadable(folders.code, folders.message)
        if kind == "Table":
            return self._table(ident, rows, scope, folders, around)
        row = rows.get(object_id(ident))
        return namespace_finding(row) if row is not None and row.object_type == NAMESPACE else Absent()

    def _table(
        self, ident: Ident, rows: Rows, scope: Scope, folders: Sequence[str], around: Surroundings
    ) -> Finding | Unsettled:
        try:
            place, left = self.roots.locate(ident, rows, folders)
            return self.observe(place, scope) if place else self.lost(ident, scope, around, rows, left)
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
        properties, marks, confirmed = EMPTY, _NO_MARKS, True
        try:
            if place.row:
                properties, marks = split(load_properties(place.row))
            if place.listed:
                marks, confirmed = self.record_marks(place, records)
            if marks.owner is not None and place.ident not in scope.detail:  # It may be asked to go.
                self.need_inside(place.location)
            dataset = self.dataset(place) if scope.opens(place.ident, marks.owner) else UNKNOWN
            if marks.owner is not None and self._is_asked(place, scope, marks.owner):
                marks = marks if self.is_made_by(marks.owner, place, dataset) else _NO_MARKS
            location = self.shown(place.ident, place.location, scope)
            checked = self._checked(place.location, location, self._surroundings()) if dataset is None else None
            dataset = dataset if place.ident in scope.detail else UNKNOWN
            state = TableState(location, properties, marks, dataset, place=self.canonical(place.location))
            found = Present(state, checked)
            return found if confirmed else Unsettled(found)
        except BadRow as error:
            return Unreadable(Code.INTERNAL, str(error))
        except OnlyClaimed:
            return Absent()
        except CatalogError as error:
            lost = isinstance(error, DataGone) and marks.owner is not None and confirmed and place.ident in scope.detail
            left = self._entry(place, properties, marks, scope) if lost else None
            return _unreadable(error, marks.owner, left)

    def _entry(self, place: Place, properties: Mapping[str, str], marks: Marks, scope: Scope) -> TableState:
        """Of a table whose data is gone."""
        location = self.shown(place.ident, place.location, scope)
        return TableState(location, properties, marks, None, place=self.canonical(place.location), gone=True)

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

    def _is_asked(self, place: Place, scope: Scope, owner: str) -> bool:
        """Whether it matters whose data it is. Of a table in a namespace that no step can touch, its row is believed:
        looking into every folder would make a listing as costly as reading all tables."""
        return place.listed or scope.opens(place.ident, owner) or place.ident in scope.absent

    def is_made_by(self, owner: str, place: Place, data: DatasetState | Unknown | None = UNKNOWN) -> bool:
        """Is the data in the folder that of the table that our record, or its row, speaks of? It has the owner's mark,
        or the folder has our token; anything else was put there instead. Raises CatalogError when that cannot be
        read."""
        if isinstance(data, DatasetState) and is_marked(data, owner):
            return True
        token = self.storage.read(f"{place.location}/{RESERVED}")
        if token is not None and token == self._token(owner, place):
            return True
        try:
            found = self.dataset(place) if data is UNKNOWN else data
        except Unfinished:
            if place.row is None:
                raise
            return True  # The data of the row is gone, and nobody's is there instead.
        if isinstance(found, DatasetState):
            return is_marked(found, owner)
        return not place.listed and token == b""  # Declared only, as earlier versions did it.

    def _token(self, owner: str, place: Place) -> bytes | None:
        """What our marker file says: of a root table the token of its record, else the owner, as the row does."""
        if not place.listed:
            return marker(owner)
        record = self.inventory.table(place.ident[0])
        return record.claim.encode() if record is not None and record.claim else None

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
        self.storage.check_open(location)
        return self.datasets.state(self.uri(location))

    def check_declared_only(self, place: Place) -> None:
        check_declared_only(place, self.uri(place.location), self.storage, self.inventory)

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
        self,
        ident: Ident,
        scope: Scope,
        around: Surroundings,
        rows: Rows,
        marked: str | None = None,
        records: frozenset[str] | None = None,
    ) -> Absent | Detached | Unreadable | Unsettled:
        """A table that is not in the catalog: is its data? And is there room for it?"""
        if ident not in scope.detail and ident not in scope.locations:
            return Absent()
        try:
            for location in self._traces(ident, scope, rows, marked, records):
                try:
                    shown = self.shown(ident, location, scope)
                    checked = self._checked(location, shown, around, ident)
                    return Detached(shown, self._state(location), checked=checked)
                except CatalogError as error:
                    if error.code is not Code.TABLE_NOT_FOUND:
                        raise
                self.check_declared_only(Place(ident, location))
            former = self._former(ident, records)
            absent = Absent(self._room(ident, around, former))
            # The record may be of a table that is being made: it is younger than the look for its folder.
            return absent if former is None else Unsettled(absent)
        except CatalogError as error:
            return _unreadable(error)

    def _surroundings(self) -> Surroundings:
        return Surroundings(self.storage.lance_options or {})

    def _checked(self, location: str, shown: str, around: Surroundings, attached: Ident | None = None) -> LocationCheck:
        """`attached`: the table that is to get this data."""
        place = self.canonical(location)
        link = self.link_problem(attached, location, shown) if attached is not None else None
        return LocationCheck(place, around.problem(shown, place) or link)

    def link_problem(self, ident: Ident, folder: str, shown: str) -> str | None:
        """A row names the folder itself: what others put in the place of a link would be the table."""
        real = self.storage.resolved(folder)
        if real in (None, folder) or self.capabilities.listed(ident):
            return None
        return f"the location {shown!r} is a link to {real!r}: name that folder instead"

    def _room(self, ident: Ident, around: Surroundings, former: Former | None) -> LocationCheck | None:
        """Of a new table, which gets a folder of its own in the root: the root itself may be inside a dataset."""
        problem = around.problem(self.storage.root, f"{self.storage.canonical('')}/{object_id(ident)}")
        return LocationCheck("", problem, former) if problem is not None or former is not None else None

    def _former(self, ident: Ident, records: frozenset[str] | None) -> Former | None:
        """What our record says of a table without an entry and without data. One that was declared and never filled
        still has the marker of that in its folder."""
        listed = self.capabilities.listed(ident)
        file = table_file(ident[0]) if listed else detached_file(object_id(ident))
        if records is not None and file not in records:
            return None
        where = self.inventory.uri(file)
        if listed:
            record = self.inventory.table(ident[0])
            if record is None or record.state == "claimed":
                return None
            home = self.capabilities.root_folders(ident[0])[0]
            return Former(self.shown(ident, home, Scope()), where, record.marks.owner)
        left = self.inventory.detached(object_id(ident))
        if left is None or self.storage.read(f"{left.location}/{RESERVED}") is not None:
            return None
        return Former(self.shown(ident, left.location, Scope()), where)

    def _traces(
        self, ident: Ident, scope: Scope, rows: Rows, marked: str | None, records: frozenset[str] | None
    ) -> Iterable[str]:
        if ident in scope.locations:
            folder = self.storage.relative(scope.locations[ident])
            if folder is not None:
                yield folder
            return
        if not self.capabilities.listed(ident):
            key = object_id(ident)
            record = self.inventory.detached(key) if records is None or detached_file(key) in records else None
            if record is not None:
                yield record.location
        left = self.roots.left(ident, rows, marked)
        if len(left) > 1:
            raise CatalogError(Code.INVALID_TABLE_STATE, both_claim(left, ident[0]))
        yield from left

    # names

    def shown(self, ident: Ident, location: str, scope: Scope) -> str:
        """The location as the manifest writes it, when both mean one folder: the texts can then be compared."""
        declared = scope.locations.get(ident)
        if declared is not None and self.storage.relative(declared) == location:
            return declared
        return self.storage.shown(location)

    def uri(self, location: str) -> str:
        return self.storage.uri(location)

    def canonical(self, location: str) -> str:
        """The one text of a table's location, with links resolved."""
        return self.storage.canonical(location)

    def need_inside(self, location: str) -> None:
        """Data that a link leads to elsewhere is not this catalog's to read or to change."""
        if self.storage.resolved(location) is None:
            raise CatalogError(
                Code.INVALID_INPUT,
                f"{self.storage.uri(location)} leads out of the catalog's root folder {self.storage.root}, or to that "
                "folder itself: move the data there, or mount its disk there instead of the link",
            )

    def children(self, ident: Ident) -> list[str]:
        """Rows below a missing parent count too: the parent cannot be called empty."""
        self.storage.check_root()
        depth = len(ident)
        folders = self.storage.list().folders if ident == ROOT and self.capabilities.listing else None
        rows = self.rows()
        names = {r.ident[depth] for r in rows.values() if len(r.ident) > depth and r.ident[:depth] == ident}
        if folders is not None:
            view = View(rows)
            self.roots.place_all(view, folders)
            names |= {i[0] for i in view.places}
        return sorted(names)


def _unreadable(
    error: CatalogError, owner: str | None = None, left: TableState | None = None
) -> Unreadable | Unsettled:
    found = Unreadable(error.code, error.message, owner=owner, gone=left)
    return Unsettled(found) if isinstance(error, Unfinished) else found
