"""Reads of a directory catalog: one scan of `__manifest`, one listing of the root, one of our inventory, and the
datasets that were asked for, opened on threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from reconciler.catalog.directory_capabilities import DELIMITER, SUFFIX, DirectoryCapabilities, hidden
from reconciler.catalog.directory_inventory import Inventory, detached_file, table_file
from reconciler.catalog.directory_manifest import Manifest
from reconciler.catalog.directory_places import (
    DEREGISTERED,
    RESERVED,
    Place,
    View,
    namespace_finding,
    row_place,
    taken,
)
from reconciler.catalog.directory_rows import NAMESPACE, TABLE, BadRow, Row, Rows, load_properties, object_id, split
from reconciler.catalog.directory_strays import stray_folders, strays
from reconciler.catalog.lance_dataset import Datasets
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
_NO_RECORDS: frozenset[str] = frozenset()
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

    def rows(self) -> Rows:
        return self.manifest.rows() if self.capabilities.manifest else _NO_ROWS

    # scan

    def scan(self, scope: Scope) -> Iterator[Observation | Gap]:
        self.storage.check()
        rows = self.rows()
        view = View(rows, records=self.inventory.files())
        gap: Gap | None = None
        for row in rows.values():
            if row.object_type == TABLE and not self.capabilities.listed(row.ident):
                view.places[row.ident] = row_place(row)
        if self.capabilities.listing:
            try:
                self._list_root(view)
            except CatalogError as error:
                if not self.capabilities.manifest:
                    raise
                gap = Gap(ROOT, error.code, error.message)
        if gap is not None:
            yield gap
        yield from self._namespaces(rows)
        yield from self._tables(view, scope)

    def _list_root(self, view: View) -> None:
        self.datasets.stats.count("listings")
        used = taken(view.rows)
        claims: dict[str, list[str]] = {}
        for folder in self.storage.list().folders:
            name = self._root_name(folder, used)
            if name is None:
                continue
            if name in claims:
                claims[name].append(folder)
            else:
                claims[name] = [folder]
        marked = self.storage.having([f for folders in claims.values() for f in folders], DEREGISTERED)
        roots = {k: r for k, r in view.rows.items() if r.object_type == TABLE and DELIMITER not in k}
        for name, folders in claims.items():
            if len(folders) == 1 and name not in roots and folders[0] not in marked:
                view.places[(name,)] = Place((name,), folders[0], None, True)
            else:
                self._place_root(view, name, folders, marked, roots.get(name))
        for name, row in roots.items():
            if name not in claims and not hidden(name):
                self._place_root(view, name, [], marked, row)

    def _root_name(self, folder: str, used: set[str | None]) -> str | None:
        """The root table that this folder is, or None."""
        if folder in used or hidden(folder):
            return None
        if folder.endswith(SUFFIX):
            return folder[: -len(SUFFIX)] or None
        return folder if self.capabilities.plain_folders and not folder.startswith("_") and "$" not in folder else None

    def _place_root(
        self, view: View, name: str, folders: Sequence[str], marked: frozenset[str], row: Row | None
    ) -> None:
        ident = (name,)
        live = [f for f in folders if f not in marked]
        if row is not None and row.location is not None and row.location not in live:
            live.append(row.location)  # a row without a folder, or one whose removal was cut short
        if not live:
            if folders:
                view.deregistered[ident] = folders[0]
            return
        problem = None
        if len(live) > 1:
            problem = f"{' and '.join(sorted(live))} both claim the name {name!r}: remove or rename one of them"
        view.places[ident] = Place(ident, live[0], row, True, problem)

    def _namespaces(self, rows: Rows) -> Iterator[Observation]:
        for row in rows.values():
            if row.object_type == NAMESPACE and not hidden(row.object_id):
                yield Observation("Namespace", row.ident, namespace_finding(row))

    def _tables(self, view: View, scope: Scope) -> Iterator[Observation]:
        """Only what needs a file goes to the threads."""
        costly: list[Place] = []
        for place in view.places.values():
            if hidden(place.ident[0]):
                continue
            if place.ident in scope.detail or (place.listed and view.records):
                costly.append(place)
            elif place.row is None and place.problem is None:
                bare = TableState(self.uri(place.location), EMPTY, _NO_MARKS, UNKNOWN)
                yield Observation("Table", place.ident, Present(bare))
            else:
                yield Observation("Table", place.ident, self.observe(place, scope, view.records))
        missing = sorted(i for i in scope.detail if i not in view.places)
        strayed = self._strays(view, missing)
        with ThreadPoolExecutor(self.storage.threads) as pool:
            found = self._spread(pool, lambda p: self.observe(p, scope, view.records), costly)
            lost = self._spread(pool, lambda i: self._lost(i, scope, view, strayed), missing)
            for place, finding in zip(costly, found, strict=True):
                yield Observation("Table", place.ident, finding)
            for ident, absent in zip(missing, lost, strict=True):
                if not isinstance(absent, Absent):
                    yield Observation("Table", ident, absent)

    def _strays(self, view: View, missing: Sequence[Ident]) -> Mapping[str, list[str]]:
        """Only asked for when something is missing: a scan that finds everything lists nothing for it."""
        if all(self.capabilities.listed(i) for i in missing):
            return {}
        self.datasets.stats.count("listings")
        return strays(self.storage.list().folders, {row.location for row in view.rows.values()})

    def _lost(
        self, ident: Ident, scope: Scope, view: View, strayed: Mapping[str, list[str]]
    ) -> Absent | Detached | Unreadable:
        found = self.lost(ident, scope, view.deregistered.get(ident), view.records)
        if not isinstance(found, Absent) or ident in scope.locations or self.capabilities.listed(ident):
            return found
        ours: list[Detached] = []
        for folder in stray_folders(strayed, object_id(ident)):
            try:
                state = self.datasets.state(self.uri(folder))
            except CatalogError as error:
                if error.code is Code.TABLE_NOT_FOUND:
                    continue
                return Unreadable(error.code, error.message)
            if state.owner is not None:
                ours.append(Detached(self.uri(folder), state))
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
        rows = self.rows()
        if len(keys) == 1:
            findings: Iterable[Finding] = [self._find(keys[0], rows, scope)]
        else:
            with ThreadPoolExecutor(self.storage.threads) as pool:
                findings = list(self._spread(pool, lambda key: self._find(key, rows, scope), keys))
        for (kind, ident), finding in zip(keys, findings, strict=True):
            yield Observation(kind, ident, finding)

    def _find(self, key: tuple[Kind, Ident], rows: Rows, scope: Scope) -> Finding:
        kind, ident = key
        if kind == "Table":
            return self._table(ident, rows, scope)
        row = rows.get(object_id(ident))
        return namespace_finding(row) if row is not None and row.object_type == NAMESPACE else Absent()

    def _table(self, ident: Ident, rows: Rows, scope: Scope) -> Finding:
        try:
            place, left = self.locate(ident, rows)
            return self.observe(place, scope) if place else self.lost(ident, scope, left)
        except CatalogError as error:
            return Unreadable(error.code, error.message)

    def locate(self, ident: Ident, rows: Rows) -> tuple[Place | None, str | None]:
        """Where the table is; if it is not in the catalog, the folder it was deregistered from, if any."""
        row = rows.get(object_id(ident))
        if row is not None and row.object_type != TABLE:
            row = None
        if not self.capabilities.listed(ident):
            return (row_place(row), None) if row is not None else (None, None)
        used = taken(rows)
        names = self.capabilities.root_folders(ident[0])
        folders = [f for f in names if f not in used and self.storage.is_folder(f)]
        view = View(rows)
        self._place_root(view, ident[0], folders, self.storage.having(folders, DEREGISTERED), row)
        return view.places.get(ident), view.deregistered.get(ident)

    # one table

    def observe(self, place: Place, scope: Scope, records: frozenset[str] | None = None) -> Present | Unreadable:
        """`records` is the inventory's listing when there is one: a file that is not in it need not be read."""
        if place.problem:
            return Unreadable(Code.INVALID_TABLE_STATE, place.problem)
        try:
            properties, marks = split(load_properties(place.row)) if place.row else (EMPTY, _NO_MARKS)
            if place.listed:
                marks = self.record_marks(place, records) if records != _NO_RECORDS else _NO_MARKS
            dataset = self.dataset(place) if place.ident in scope.detail else UNKNOWN
            location = self.shown(place.ident, place.location, scope)
            return Present(TableState(location, properties, marks, dataset))
        except BadRow as error:
            return Unreadable(Code.INTERNAL, str(error))
        except CatalogError as error:
            return Unreadable(error.code, error.message)

    def record_marks(self, place: Place, records: frozenset[str] | None) -> Marks:
        name = place.ident[0]
        if records is not None and table_file(name) not in records:
            return _NO_MARKS
        record = self.inventory.table(name)
        if record is None:
            return _NO_MARKS
        if record.state == "claimed":
            token = self.storage.read(f"{place.location}/{RESERVED}")
            if token is None or token.decode("ascii", "replace") != record.claim:
                return _NO_MARKS
        return record.marks

    def dataset(self, place: Place) -> DatasetState | None:
        """None: declared only. Raises CatalogError when something is there that cannot be read."""
        try:
            return self.datasets.state(self.uri(place.location))
        except CatalogError as error:
            if error.code is not Code.TABLE_NOT_FOUND:
                raise
        self.check_declared_only(place)
        return None

    def check_declared_only(self, place: Place) -> None:
        """No dataset: fine if the folder holds markers or the remains of an interrupted create, an error if it holds
        anything else. A listed folder without a marker was not declared by anybody."""
        where = self.uri(place.location)
        if where == place.location and "://" in where:
            raise CatalogError(Code.INVALID_TABLE_STATE, f"there is no Lance dataset at {where}")
        listing = self.storage.list(place.location)
        if "_versions" in listing.folders:
            files = self.storage.list(f"{place.location}/_versions").files
            if any(f.endswith(".manifest") for f in files):
                raise CatalogError(Code.INTERNAL, f"the dataset {where} has versions but cannot be opened")
        strange = [n for n in listing.files if not n.startswith(".")]
        strange += [n for n in listing.folders if n not in ("_versions", "_transactions") and not n.startswith(".")]
        if strange:
            raise CatalogError(
                Code.INVALID_TABLE_STATE,
                f"{where} holds {strange[0]!r} but no Lance dataset: move the folder away if it is not a table",
            )
        if RESERVED in listing.files:
            return
        if place.row is not None:
            raise CatalogError(
                Code.INVALID_TABLE_STATE,
                f"the data of {dotted(place.ident)} is gone: {where} holds neither a dataset nor the mark of a "
                "declared table. Bring the folder back, or deregister the table",
            )
        if place.listed:
            raise CatalogError(
                Code.INVALID_TABLE_STATE,
                f"{where} is an empty folder, not a Lance dataset: remove it, or write a dataset there",
            )

    def lost(
        self, ident: Ident, scope: Scope, left: str | None = None, records: frozenset[str] | None = None
    ) -> Absent | Detached | Unreadable:
        """A table that is not in the catalog: is its data?"""
        if ident not in scope.detail and ident not in scope.locations:
            return Absent()
        try:
            for location in self._traces(ident, scope, left, records):
                try:
                    return Detached(self.shown(ident, location, scope), self.datasets.state(self.uri(location)))
                except CatalogError as error:
                    if error.code is not Code.TABLE_NOT_FOUND:
                        raise
                self.check_declared_only(Place(ident, location))
        except CatalogError as error:
            return Unreadable(error.code, error.message)
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
        return self.uri(location)

    def uri(self, location: str) -> str:
        return location if "://" in location or location.startswith("/") else self.storage.uri(location)

    def children(self, ident: Ident) -> list[str]:
        """Rows below a missing parent count too: the parent cannot be called empty."""
        self.storage.check()
        depth = len(ident)
        names = {r.ident[depth] for r in self.rows().values() if len(r.ident) > depth and r.ident[:depth] == ident}
        if ident == ROOT and self.capabilities.listing:
            view = View(self.rows())
            self._list_root(view)
            names |= {i[0] for i in view.places}
        return sorted(names)
