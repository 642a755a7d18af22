"""A Catalog on an `EntryStore`: what all catalog services have in common.

The entry is the table's existence, its properties hold our marks, and the dataset at its location is the schema of
record. Before an entry is created a marker file is put at its location, so that a table that is declared only can be
told from one whose data has gone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler.catalog.base import DataPlace, Leased, LeaseRecords, NotRead, Placed, Recorded, WriteContext, Written
from reconciler.catalog.entries import (
    BrokenEntry,
    EntryStore,
    LastLocation,
    Levelled,
    Listed,
    NamespaceEntry,
    OtherEntry,
    TableEntry,
)
from reconciler.catalog.lance_dataset import Datasets
from reconciler.catalog.lance_errors import translated
from reconciler.catalog.lance_remains import DataGone
from reconciler.catalog.locations import (
    Kept,
    OccupiedLocation,
    Places,
    Surroundings,
    canonical,
    lance_uri,
    same_location,
)
from reconciler.catalog.marks import is_marked, join, says_more, signed, split, updated
from reconciler.catalog.paging import bounded
from reconciler.catalog.stats import Stats
from reconciler.core.storage_keys import credentials_in, options_in
from reconciler.model import change as c
from reconciler.model.capabilities import Capabilities
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind, dotted, parent
from reconciler.model.observed import (
    Absent,
    Detached,
    Finding,
    Former,
    Gap,
    LocationCheck,
    Observation,
    Occupied,
    Present,
    Scope,
    Seen,
    Unreadable,
    Unsupported,
)
from reconciler.model.state import UNKNOWN, DatasetState, Marks, NamespaceState, TableState, Unknown

if TYPE_CHECKING:
    from reconciler.catalog.lance_write import DatasetChange

_WAITING = 256
"""Tables whose datasets are being opened while the listing goes on: bounds the memory of a large scan."""


class EntryCatalog(Leased, Placed, Recorded):
    """`storage_options` are the `storage.*` keys without their prefix. `kept`: what the service itself writes to the
    location of a table; it does not count as somebody's data. `told`: what the service says of where it is."""

    def __init__(
        self,
        store: EntryStore,
        storage_options: Mapping[str, str],
        stats: Stats | None = None,
        kept: Kept | None = None,
        told: Mapping[str, Callable[[], str]] | None = None,
    ) -> None:
        self.stats = stats or Stats()
        self._told = told or {}
        self.store = store
        self._options = storage_options
        self._datasets = Datasets(storage_options, self.stats)
        self._kept = kept
        self._places = Places(storage_options, kept)

    @property
    def capabilities(self) -> Capabilities:
        return self.store.capabilities

    def told(self, what: str) -> str:
        return self._told[what]()

    def lease_records(self, idents: Sequence[Ident]) -> Sequence[LeaseRecords] | None:
        """A store need not have them."""
        return self.store.lease_records(idents) if isinstance(self.store, Leased) else None

    def settle_records(self) -> None:
        if isinstance(self.store, Recorded):
            with translated(f"settle the records of {self.store.where}"):
                self.store.settle_records()

    def close(self) -> None:
        self.store.close()

    # reads

    def scan(self, scope: Scope) -> Iterator[Seen]:
        """Streams: entries that need no dataset come as they are listed, the others as their datasets are read."""
        self._look_for(scope)
        missing = set(scope.detail)
        around = Surroundings(self._options)
        waiting: list[tuple[Ident, Future[Finding]]] = []
        with translated(f"list {self.store.where}"), ThreadPoolExecutor(self._threads) as pool:
            for listed in bounded(self.store.walk(scope)):
                if isinstance(listed, TableEntry) and _costs(listed, scope):
                    missing.discard(listed.ident)
                    waiting.append((listed.ident, pool.submit(self._table_finding, listed, scope)))
                    if len(waiting) >= _WAITING:
                        yield from _settled(waiting)
                        waiting = []
                else:
                    if isinstance(listed, BrokenEntry) and listed.kind == "Table":
                        missing.discard(listed.ident)
                    yield self._seen(listed)
            for ident in sorted(missing):
                waiting.append((ident, pool.submit(self._lost, ident, scope, around)))
            yield from _settled(waiting)

    def _look_for(self, scope: Scope) -> None:
        if scope.catalogs and isinstance(self.store, Levelled):
            self.store.look_for(scope.catalogs)

    def _seen(self, listed: Listed) -> Observation | Gap | Occupied | Unsupported:
        match listed:
            case NamespaceEntry():
                return Observation("Namespace", listed.ident, _namespace_finding(listed))
            case TableEntry():
                return Observation("Table", listed.ident, Present(self._state(listed, UNKNOWN, None)))
            case BrokenEntry():
                return Observation(listed.kind, listed.ident, Unreadable(listed.code, listed.message, listed.foreign))
            case OtherEntry():
                return Occupied(listed.ident)
            case Gap() | Unsupported():
                return listed

    def read(self, keys: Sequence[tuple[Kind, Ident]], scope: Scope) -> Iterator[Observation]:
        self._look_for(scope)
        with translated(f"read {self.store.where}"):
            if len(keys) == 1:
                yield Observation(*keys[0], self._find(keys[0], scope))
                return
            failed: dict[tuple[Kind, Ident], CatalogError] = {}
            gone: list[CatalogError] = []
            with ThreadPoolExecutor(self._threads) as pool:
                for key, found in zip(keys, pool.map(lambda key: self._tried(key, scope, gone), keys), strict=True):
                    if isinstance(found, CatalogError):
                        failed[key] = found
                    else:
                        yield Observation(*key, found)
            if failed:
                raise NotRead(failed)

    def _tried(self, key: tuple[Kind, Ident], scope: Scope, gone: list[CatalogError]) -> Finding | CatalogError:
        """`gone`: how the service was found not to answer any more; then nothing else is asked for."""
        if gone:
            return gone[0]
        try:
            return self._find(key, scope)
        except CatalogError as error:
            if error.unreachable:
                gone.append(error)
            return error

    def _find(self, key: tuple[Kind, Ident], scope: Scope) -> Finding:
        """An object that cannot be read is Unreadable; an answer that may pass (busy, cut off) is raised, so that it
        is asked for again."""
        kind, ident = key
        entry = self.store.namespace(ident) if kind == "Namespace" else self.store.table(ident)
        if isinstance(entry, BrokenEntry):
            return Unreadable(entry.code, entry.message, entry.foreign)
        if isinstance(entry, NamespaceEntry):
            return _namespace_finding(entry)
        if entry is None:
            return self._lost(ident, scope, Surroundings(self._options)) if kind == "Table" else Absent()
        return self._table_finding(entry, scope)

    def children(self, ident: Ident) -> Sequence[str]:
        with translated(f"list {self.store.where}"):
            return sorted(set(self.store.inside(ident)))

    def data_place(self, ident: Ident, state: TableState) -> DataPlace:
        with translated(f"read {self.store.where}"):
            entry = self._table(ident)
        if canonical(entry.location) != state.place:
            raise CatalogError(Code.CONCURRENT_MODIFICATION, f"table {dotted(ident)} has moved while it was read")
        return DataPlace(lance_uri(entry.location), dict(self._options_of(entry)))

    @property
    def _threads(self) -> int:
        return self.capabilities.max_parallelism

    def _table_finding(self, entry: TableEntry, scope: Scope) -> Finding:
        owner = _owner(entry)
        try:
            dataset = self._dataset(entry) if scope.opens(entry.ident, owner) else UNKNOWN
            shown = dataset if entry.ident in scope.detail else UNKNOWN
            entry = self._confirmed(entry, dataset)
            if shown is not dataset and not self._is_made_by(owner, entry, dataset):
                entry = replace(entry, marks=Marks())
            return Present(self._state(entry, shown, scope), self._checked(entry, dataset))
        except CatalogError as error:
            unused = ", ".join(credentials_in(entry.properties))
            hint = f"; {unused} of its properties is not used: give credentials as storage.* of the catalog"
            lost = isinstance(error, DataGone) and entry.ident in scope.detail
            left = replace(self._state(entry, None, scope), gone=True) if lost else None
            return Unreadable(error.code, error.message + (hint if unused else ""), owner=owner, gone=left)

    def _checked(self, entry: TableEntry, data: DatasetState | Unknown | None) -> LocationCheck | None:
        """Of a table without data. Raises CatalogError."""
        if data is not None:
            return None
        return self._storage_of(entry)[1].check(entry.location, Surroundings(self._options_of(entry)))

    def _confirmed(self, entry: TableEntry, data: DatasetState | Unknown | None) -> TableEntry:
        """A record of ours counts only together with our mark in the data or in the marker: others may have dropped the
        table and made it again at the same name and place. Raises CatalogError when that cannot be read."""
        owner = split(entry.properties)[1].owner
        if entry.unrecorded is None or owner is None:
            return entry
        datasets, places = self._storage_of(entry)
        try:
            if isinstance(data, DatasetState) and is_marked(data, owner):
                return entry
            if places.is_marked(entry.location, owner):
                return entry
            if data is UNKNOWN and is_marked(datasets.state(places.uri(entry.location)), owner):
                return entry
        except CatalogError as error:
            if data is not UNKNOWN or error.code is not Code.TABLE_NOT_FOUND:
                raise
        return replace(entry, properties=entry.unrecorded, unrecorded=None, raw=None)

    def _is_made_by(self, owner: str | None, entry: TableEntry, data: DatasetState | Unknown | None) -> bool:
        """Of a table that --prune may take: is the data at its location what its owner put there? Anything else was put
        there instead, and is nobody's to remove, whatever the entry says."""
        if owner is None or not isinstance(data, DatasetState) or is_marked(data, owner):
            return True
        return self._storage_of(entry)[1].is_marked(entry.location, owner)

    def _state(self, entry: TableEntry, dataset: DatasetState | object | None, scope: Scope | None) -> TableState:
        properties, marks = split(entry.properties)
        location = entry.location
        declared = scope.locations.get(entry.ident) if scope is not None else None
        if declared is not None and same_location(declared, location):
            location = declared  # as the manifest writes it: the texts can then be compared
        return TableState(
            location,
            properties,
            entry.marks if entry.marks is not None else marks,
            dataset,  # type: ignore[arg-type]
            entry.columns,
            canonical(entry.location),
        )

    def _dataset(self, entry: TableEntry) -> DatasetState | None:
        """None: declared only. Raises CatalogError when something is there that cannot be read."""
        return _opened(*self._storage_of(entry), entry.location, dotted(entry.ident), ours=_owner(entry) is not None)

    def _options_of(self, entry: TableEntry) -> Mapping[str, str]:
        """What the table's own properties add, the catalog's options, and above both what the service handed out."""
        own = {**self._options, **entry.storage} if entry.storage else self._options
        more = options_in(entry.properties, own, entry.location)
        return {**more, **own} if more else own

    def _storage_of(self, entry: TableEntry) -> tuple[Datasets, Places]:
        return self._stores(self._options_of(entry))

    def _stores(self, options: Mapping[str, str]) -> tuple[Datasets, Places]:
        if options is self._options:
            return self._datasets, self._places
        return Datasets(options, self.stats), Places(options, self._kept)

    def _lost(self, ident: Ident, scope: Scope, around: Surroundings) -> Finding:
        """A table that is not in the catalog: is its data? And is there room for it?"""
        if ident not in scope.detail and ident not in scope.locations:
            return Absent()
        try:
            last = None if ident in scope.locations else self.store.last_location(ident)
            location = last.location if last is not None else scope.locations.get(ident)
            if location is None:
                return Absent()
            declared = TableEntry(ident, location, scope.storage.get(ident) or {})
            datasets, places = self._storage_of(declared)
            if datasets is not self._datasets:
                around = Surroundings(self._options_of(declared))
            checked = places.check(location, around)
            try:
                dataset = _opened(datasets, places, location, dotted(ident), ours=False)
            except OccupiedLocation as error:
                return Absent(replace(checked, conflict=checked.conflict or error.message))
            if dataset is None:
                self._need_never_made(ident, location)
                former = _former(last or self.store.last_location(ident), places)
                return Absent(replace(checked, former=former))
            return Detached(location, dataset, self._cut(ident, location, dataset, scope), checked)
        except CatalogError as error:
            return Unreadable(error.code, error.message)

    def _need_never_made(self, ident: Ident, location: str) -> None:
        """Unless the record of a cut replacement proves that the table was there. Raises CatalogError."""
        entry = self.store.interrupted(ident)
        if entry is not None and same_location(entry.location, location):
            self._places.is_declared_only(location, dotted(ident), ours=True)

    def _cut(self, ident: Ident, location: str, dataset: DatasetState, scope: Scope) -> TableState | None:
        entry = self.store.interrupted(ident)
        if entry is None or not same_location(entry.location, location):
            return None
        return self._state(entry, dataset, scope)

    # writes

    def apply(self, change: c.Change, context: WriteContext) -> Written:
        with translated(f"{change.action.replace('_', ' ')} {dotted(change.ident)}", write=True):
            refused = self.capabilities.refuses(change)
            if refused is not None or isinstance(change, c.DATA_PLANE):
                raise CatalogError(Code.UNSUPPORTED, refused or f"{change.action} moves data: the pipeline runs it")
            return self._apply(signed(change, context.applied_by), context)

    def _apply(self, change: c.Change, context: WriteContext) -> Written:
        store = self.store
        match change:
            case c.CreateNamespace():
                self._create_namespace(change)
            case c.UpdateNamespace():
                self._update_namespace(self._same_level(change), change.set, change.unset, change.marks)
            case c.AdoptNamespace():
                self._update_namespace(self._same_level(change), {}, (), change.marks)
            case c.RenameNamespace():
                store.rename_namespace(self._namespace(change.source), change.ident)
            case c.DropNamespace():
                store.drop_namespace(self._same_level(change))
            case c.DeclareTable():
                self._declare(change)
            case c.UpdateTable():
                self._update_table(change.ident, change.set, change.unset, change.marks)
            case c.SyncColumns():
                store.update_table(self._table(change.ident), None, change.columns)
            case c.ReplaceTable():
                self._replace(change)
            case c.AdoptTable():
                return self._adopt(change, context)
            case c.RenameTable():
                store.rename_table(self._table(change.source), change.ident)
            case c.DeregisterTable():
                store.drop_table(self._table(change.ident))
            case c.CreateDataset():
                return self._create_dataset(change, context)
            case (
                c.UpdateDataset() | c.AddColumns() | c.AlterColumns() | c.DropColumns() | c.CreateIndex()
                | c.ReplaceIndex() | c.RefreshIndex() | c.DropIndex()
            ):  # fmt: skip
                return self._change_dataset(change, context)
        return Written()

    def _create_namespace(self, change: c.CreateNamespace) -> None:
        properties = join(change.properties, change.marks, self.store.property_limit)
        if change.level is None:
            self.store.create_namespace(change.ident, properties)
        elif isinstance(self.store, Levelled):
            self.store.create_upper(change.ident, properties)
        else:
            raise CatalogError(Code.UNSUPPORTED, f"a catalog of type {self.capabilities.type} has no {change.level}")

    def _same_level(self, change: c.UpdateNamespace | c.AdoptNamespace | c.DropNamespace) -> NamespaceEntry:
        """The entry, if it is of the kind that the plan was made for: two kinds may share a name."""
        entry = self._namespace(change.ident)
        upper = entry.level is not None and entry.level == next(iter(self.capabilities.levels), None)
        if not entry.container and upper != (change.level is not None):
            wanted, live = change.level or "no catalog", entry.level or "something else"
            message = f"{dotted(change.ident)} was {wanted} when the plan was made, and is {live} now"
            raise CatalogError(Code.CONCURRENT_MODIFICATION, message)
        return entry

    def _update_namespace(
        self, entry: NamespaceEntry, set_: Mapping[str, str], unset: tuple[str, ...], marks: Marks
    ) -> None:
        properties = join(updated(entry.properties, set_, unset), marks, self.store.property_limit)
        if says_more(properties, entry.properties):
            self.store.update_namespace(entry, properties)

    def _declare(self, change: c.DeclareTable) -> None:
        location = change.location or self.capabilities.location_of(change.ident)
        properties = join(change.properties, change.marks, self.store.property_limit)
        if location is None:
            self._declare_anywhere(change, properties)
            return
        _, places = self._storage_of(TableEntry(change.ident, location, properties))
        marked = places.reserve(location, change.marks.owner)
        try:
            self.store.create_table(change.ident, location, properties, change.columns)
        except CatalogError as error:
            if marked and not error.unknown_outcome and error.code is not Code.TABLE_ALREADY_EXISTS:
                places.release(location)  # Not where another run was quicker: the marker is its table's now.
            raise

    def _declare_anywhere(self, change: c.DeclareTable, properties: Mapping[str, str]) -> None:
        """The service chooses the place, so the marker can only follow: at once, also when the answer was lost."""
        try:
            location = self.store.create_table(change.ident, None, properties, change.columns)
        except CatalogError as error:
            if error.unknown_outcome:
                with contextlib.suppress(CatalogError):
                    entry = self._table(change.ident)
                    if split(entry.properties)[1] == change.marks:  # Not where a record of ours alone says so.
                        self._storage_of(entry)[1].take(entry.location, change.marks.owner)
            raise
        try:
            entry = TableEntry(change.ident, location, properties) if location else self._table(change.ident)
            self._storage_of(entry)[1].take(entry.location, change.marks.owner)
        except CatalogError as error:
            error.unknown_outcome = True  # The entry is there: whether it can be used, a re-read tells.
            raise

    def _update_table(self, ident: Ident, set_: Mapping[str, str], unset: tuple[str, ...], marks: Marks) -> None:
        entry = self._table(ident)
        if not set_ and not unset and self.store.save_marks(entry, marks):
            return
        properties = join(updated(entry.properties, set_, unset), marks, self.store.property_limit)
        if says_more(properties, entry.properties):
            self.store.update_table(entry, properties, None)

    def _replace(self, change: c.ReplaceTable) -> None:
        cut = self.store.interrupted(change.ident)
        entry = cut or self._table(change.ident)
        properties = join(updated(entry.properties, change.set, change.unset), change.marks, self.store.property_limit)
        if cut is None:
            self.store.replace_table(entry, properties, change.columns)
        else:
            self.store.create_table(change.ident, cut.location, properties, change.columns)

    def _adopt(self, change: c.AdoptTable, context: WriteContext) -> Written:
        """The catalog first: a dataset mark alone would make the table look detached from us."""
        from reconciler.catalog.lance_write import adopt_dataset

        entry = self._unmoved(change.ident, context)
        datasets, places = self._storage_of(entry)
        dataset = self._dataset(entry)
        if dataset is None:
            places.take(entry.location, change.marks.owner)  # A table of ours without data has the marker.
        self._update_table(change.ident, {}, (), change.marks)
        if dataset is None:
            return Written()
        return adopt_dataset(datasets, places.uri(entry.location), change, context)

    def _create_dataset(self, change: c.CreateDataset, context: WriteContext) -> Written:
        from reconciler.catalog.lance_write import create_dataset

        entry = self._unmoved(change.ident, context)
        datasets, places = self._storage_of(entry)
        if not places.has_versions(entry.location):
            places.is_declared_only(entry.location, dotted(change.ident), ours=False)
        return create_dataset(datasets, places.uri(entry.location), change, context)

    def _change_dataset(self, change: DatasetChange, context: WriteContext) -> Written:
        from reconciler.catalog.lance_write import apply_to_dataset

        entry = self._unmoved(change.ident, context)
        datasets, places = self._storage_of(entry)
        if not places.has_versions(entry.location):
            raise CatalogError(
                Code.INVALID_TABLE_STATE, f"table {dotted(change.ident)} is declared but has no dataset yet"
            )
        return apply_to_dataset(datasets, places.uri(entry.location), change, context)

    def _unmoved(self, ident: Ident, context: WriteContext) -> TableEntry:
        """The entry, if it still leads to the data that was read."""
        entry = self._table(ident)
        context.need_unmoved(ident, canonical(entry.location))
        return entry

    def _namespace(self, ident: Ident) -> NamespaceEntry:
        entry = self.store.namespace(ident)
        if entry is None:
            raise CatalogError(Code.NAMESPACE_NOT_FOUND, f"namespace {dotted(ident)} does not exist")
        if isinstance(entry, BrokenEntry):
            raise CatalogError(entry.code, entry.message)
        return entry

    def _table(self, ident: Ident) -> TableEntry:
        entry = self.store.table(ident)
        if entry is None:
            raise CatalogError(Code.TABLE_NOT_FOUND, f"table {dotted(ident)} is not in {dotted(parent(ident))}")
        if isinstance(entry, BrokenEntry):
            raise CatalogError(entry.code, entry.message)
        return self._confirmed(entry, UNKNOWN)


def _owner(entry: TableEntry) -> str | None:
    return (entry.marks if entry.marks is not None else split(entry.properties)[1]).owner


def _costs(entry: TableEntry, scope: Scope) -> bool:
    """Whether its finding takes more than the entry."""
    return entry.unrecorded is not None or scope.opens(entry.ident, _owner(entry))


def _opened(datasets: Datasets, places: Places, location: str, name: str, *, ours: bool) -> DatasetState | None:
    """None: there is none yet. Looked at twice, because another run may write it between our two questions."""
    for _ in range(2):
        try:
            return datasets.state(places.uri(location))
        except CatalogError as error:
            if error.code is not Code.TABLE_NOT_FOUND:
                raise
        if places.is_declared_only(location, name, ours=ours):
            return None
    raise CatalogError(Code.INTERNAL, f"the dataset {location} has versions but cannot be opened")


def _former(last: LastLocation | None, places: Places) -> Former | None:
    """What our record says of a table that is not in the catalog and has no dataset. One that was declared and never
    filled still has the marker of that at its location."""
    if last is None or last.record is None or places.has_marker(last.location) or places.has_versions(last.location):
        return None
    return Former(last.location, last.record, last.owner)


def _namespace_finding(entry: NamespaceEntry) -> Finding:
    properties, marks = split(entry.properties)
    return Present(NamespaceState(properties, marks, entry.container, entry.lasting, entry.level))


def _settled(waiting: Sequence[tuple[Ident, Future[Finding]]]) -> Iterator[Observation]:
    for ident, future in waiting:
        finding = future.result()
        if not isinstance(finding, Absent) or finding.checked is not None:
            yield Observation("Table", ident, finding)
