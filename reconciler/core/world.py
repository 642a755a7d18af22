"""An in-memory catalog that enforces RESTRICT: the simulation of a plan, and the reference for every backend.

Each change maps a state to the states after each of its writes; the last one is the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from reconciler.core.fields import edit, plain, rename_path
from reconciler.core.migrated import migrated
from reconciler.model import change as c
from reconciler.model.arrow import Field
from reconciler.model.data import DataRecord
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import ROOT, Ident, dotted, parent
from reconciler.model.observed import Absent, Detached, Finding, Present, Snapshot, Unreadable, what_is_left
from reconciler.model.state import UNKNOWN, BuildRecord, DatasetState, Index, NamespaceState, TableState, Unknown

T = TypeVar("T", str, str | None)


class World:
    """`locate` names the place of a new table; UNKNOWN while only a server could choose it. `unread`: tables whose data
    is looked after through another catalog, and not looked at here."""

    def __init__(
        self,
        snapshot: Snapshot | None = None,
        locate: Callable[[Ident], str | Unknown] | None = None,
        unread: Container[Ident] = (),
    ) -> None:
        self._unread = unread
        self.namespaces: dict[Ident, Present | Unreadable] = dict(snapshot.namespaces) if snapshot else {}
        self.tables: dict[Ident, Present | Unreadable] = {}
        self.detached: dict[Ident, Detached] = {}
        self.data_left: dict[Ident, str] = dict(snapshot.data_left) if snapshot else {}
        self._locate = locate or (lambda _: UNKNOWN)
        for ident, finding in snapshot.tables.items() if snapshot else ():
            if isinstance(finding, Detached):
                self.detached[ident] = finding
            else:
                self.tables[ident] = finding
        self._hidden = snapshot.hidden if snapshot else frozenset[Ident]()
        self._inside: dict[Ident, set[Ident]] = {}
        for ident in (*self.namespaces, *self.tables, *self._hidden):
            self._inside.setdefault(parent(ident), set()).add(ident)

    def snapshot(self) -> Snapshot:
        return Snapshot(dict(self.namespaces), {**self.detached, **self.tables})

    def children(self, ident: Ident) -> Sequence[str]:
        return sorted(child[-1] for child in self._inside.get(ident, ()))

    def below(self, ident: Ident) -> Iterator[Ident]:
        """Everything inside, at any depth, in order; ignored objects too."""
        for child in sorted(self._inside.get(ident, ())):
            yield child
            yield from self.below(child)

    def find(self, kind: str, ident: Ident) -> Finding:
        if kind == "Namespace":
            return self.namespaces.get(ident, Absent())
        return self.tables.get(ident) or self.detached.get(ident) or Absent()

    def has_parent(self, ident: Ident) -> bool:
        """An ignored namespace is not shown, but it is there."""
        above = parent(ident)
        return above == ROOT or isinstance(self.namespaces.get(above), Present) or above in self._hidden

    def apply(self, change: c.Change) -> tuple[Finding, ...]:
        """The findings of the object after each write. Raises CatalogError as a real catalog would."""
        if change.kind == "Namespace":
            return self._apply_namespace(change)
        if isinstance(change, (c.DeclareTable, c.RenameTable, c.DeregisterTable)):
            return (self._move_table(change),)
        state = self._table(change.ident)
        states = tuple(Present(s) for s in after_table_change(state, change))
        self.tables[change.ident] = states[-1]
        return states

    def _apply_namespace(self, change: c.Change) -> tuple[Finding, ...]:
        ident = change.ident
        match change:
            case c.CreateNamespace():
                self._need_room(ident)
                new = NamespaceState(change.properties, change.marks, level=change.level)
                self._put(self.namespaces, ident, Present(new))
            case c.DropNamespace():
                self._namespace(ident)
                if self._inside.get(ident):
                    raise CatalogError(
                        Code.NAMESPACE_NOT_EMPTY,
                        f"namespace {dotted(ident)} holds {', '.join(self.children(ident)[:5])}",
                    )
                self._remove(self.namespaces, ident)
                return (Absent(),)
            case c.UpdateNamespace():
                state = self._namespace(ident)
                properties = edited(state.properties, change.set, change.unset)
                self.namespaces[ident] = Present(replace(state, properties=properties, marks=change.marks))
            case c.RenameNamespace():
                self._namespace(change.source)
                self._need_room(ident)
                self._need_nothing_below(ident)
                self._move_subtree(change.source, ident)
            case c.AdoptNamespace():
                self.namespaces[ident] = Present(replace(self._namespace(ident), marks=change.marks))
            case _:
                raise AssertionError(change)
        return (self.namespaces[ident],)

    def _move_subtree(self, source: Ident, target: Ident) -> None:
        """Table locations do not change: only the catalog's names do."""
        for where in (self.namespaces, self.tables):
            for old in [i for i in where if i[: len(source)] == source]:
                finding = where[old]
                self._remove(where, old)
                self._put(where, target + old[len(source) :], finding)

    def _move_table(self, change: c.DeclareTable | c.RenameTable | c.DeregisterTable) -> Finding:
        ident = change.ident
        match change:
            case c.DeclareTable():
                self._need_room(ident)
                return self._declare(change)
            case c.RenameTable():
                self._table(change.source)
                self._need_room(ident)
                moved = self.tables[change.source]
                self._remove(self.tables, change.source)
                self._put(self.tables, ident, moved)
                self.detached.pop(ident, None)
                return moved
            case c.DeregisterTable():
                state = self._table(ident)
                self._remove(self.tables, ident)
                if isinstance(state.dataset, DatasetState) and isinstance(state.location, str):
                    self.detached[ident] = Detached(state.location, state.dataset)
                elif isinstance(state.location, str):
                    self.data_left[ident] = state.place or state.location
                return self.find("Table", ident)

    def _declare(self, change: c.DeclareTable) -> Finding:
        """On the data that is there; with a location where nothing is, that is the place for new data."""
        dataset: DatasetState | Unknown | None = None
        location: str | Unknown = self._locate(change.ident) if change.location is None else change.location
        found = self.detached.get(change.ident)
        self.data_left.pop(change.ident, None)
        if found is not None:
            if found.location != change.location:
                raise CatalogError(Code.TABLE_ALREADY_EXISTS, f"the data of {dotted(change.ident)} is still there")
            del self.detached[change.ident]
            dataset = found.dataset
        if change.ident in self._unread:
            dataset = UNKNOWN
        new = Present(TableState(location, change.properties, change.marks, dataset, change.columns))
        self._put(self.tables, change.ident, new)
        return new

    def _need_room(self, ident: Ident) -> None:
        """The parent exists and is a namespace, and the name is free."""
        if not self.has_parent(ident):
            raise CatalogError(Code.NAMESPACE_NOT_FOUND, f"namespace {dotted(parent(ident))} does not exist")
        if ident in self.namespaces:
            raise CatalogError(Code.NAMESPACE_ALREADY_EXISTS, f"namespace {dotted(ident)} exists already")
        if ident in self.tables:
            raise CatalogError(Code.TABLE_ALREADY_EXISTS, f"table {dotted(ident)} exists already")

    def _need_nothing_below(self, ident: Ident) -> None:
        """An object may be live without its namespace: what a rename moves there must not take its name."""
        if there := next(self.below(ident), None):
            raise CatalogError(Code.NAMESPACE_ALREADY_EXISTS, f"{dotted(there)} is live below the new name already")

    def _namespace(self, ident: Ident) -> NamespaceState:
        found = self.namespaces.get(ident)
        if isinstance(found, Present) and isinstance(found.state, NamespaceState):
            return found.state
        raise CatalogError(Code.NAMESPACE_NOT_FOUND, f"namespace {dotted(ident)} does not exist")

    def _table(self, ident: Ident) -> TableState:
        found = what_is_left(self.tables.get(ident) or Absent())
        if isinstance(found, Present) and isinstance(found.state, TableState):
            return found.state
        if isinstance(found, Unreadable):
            raise CatalogError(Code.INVALID_TABLE_STATE, f"table {dotted(ident)} cannot be read: {found.message}")
        raise CatalogError(Code.TABLE_NOT_FOUND, f"table {dotted(ident)} does not exist")

    def _put(self, where: dict[Ident, Present | Unreadable], ident: Ident, finding: Present | Unreadable) -> None:
        where[ident] = finding
        self._inside.setdefault(parent(ident), set()).add(ident)

    def _remove(self, where: dict[Ident, Present | Unreadable], ident: Ident) -> None:
        del where[ident]
        self._inside[parent(ident)].discard(ident)


def edited(old: Mapping[str, T], changes: Mapping[str, T], unset: Sequence[str]) -> dict[str, T]:
    return {k: v for k, v in {**old, **changes}.items() if k not in unset}


def after_table_change(state: TableState, change: c.Change) -> Sequence[TableState]:
    """A table's states after each write of a change that does not move the table."""
    match change:
        case c.UpdateTable():
            return (replace(state, properties=edited(state.properties, change.set, change.unset), marks=change.marks),)
        case c.SyncColumns():
            return (replace(state, columns=change.columns),)
        case c.ReplaceTable():
            properties = edited(state.properties, change.set, change.unset)
            columns = state.columns if change.columns is None else change.columns
            return (replace(state, properties=properties, marks=change.marks, columns=columns),)
        case c.AdoptTable():
            first = replace(state, marks=change.marks)
            if not isinstance(state.dataset, DatasetState):
                return (first,)
            owned = replace(state.dataset, owner=change.marks.owner, applied=change.applied)
            return first, replace(first, dataset=owned)
        case c.CreateDataset():
            if state.dataset is not None:
                raise CatalogError(Code.TABLE_ALREADY_EXISTS, f"{dotted(change.ident)} has a dataset already")
            fields, metadata = change.fields, change.schema_metadata
            written = DatasetState(fields, metadata, begun_by=change.owner)
            marked = DatasetState(fields, metadata, change.config, (), change.owner, change.applied)
            return _holding(state, written), _holding(state, marked)
        case c.MigrateTable():
            return tuple(_holding(state, dataset) for dataset in migrated(state.dataset, change))
    if not isinstance(state.dataset, DatasetState):
        raise CatalogError(Code.INVALID_TABLE_STATE, f"{dotted(change.ident)} has no dataset")
    if isinstance(change, c.ReplaceIndex):
        return tuple(_holding(state, dataset) for dataset in _replaced(state.dataset, change.index, change.again))
    if isinstance(change, c.RefreshIndex):
        again = _builds(state.dataset, change.index)
        return tuple(_holding(state, dataset) for dataset in _replaced(state.dataset, change.index, again))
    return (_holding(state, _after_dataset_change(state.dataset, change)),)


def _holding(state: TableState, dataset: DatasetState) -> TableState:
    """The columns that a catalog shows do not follow the data by themselves."""
    return TableState(state.location, state.properties, state.marks, dataset, state.columns, state.place)


def _after_dataset_change(dataset: DatasetState, change: c.Change) -> DatasetState:
    match change:
        case c.UpdateDataset():
            return _updated(dataset, change)
        case c.AddColumns() | c.BackfillColumns():
            taken = {f.name for f in dataset.fields}
            for f in change.fields:
                if f.name in taken:
                    raise CatalogError(Code.INVALID_INPUT, f"column {f.name} exists already")
            return replace(dataset, fields=(*dataset.fields, *(plain(f) for f in change.fields)))
        case c.RewriteColumns():
            new = {f.name: f for f in change.fields}
            fields = tuple(new.get(f.name, f) for f in dataset.fields)
            return replace(dataset, fields=fields, indexes=_without(dataset, new, change.loses))
        case c.MaterializeTable():
            uncounted = tuple(replace(i, rows=None, indexed_rows=None, untrained=None) for i in dataset.indexes)
            return replace(dataset, data=record_after(dataset.data, change), empty=False, indexes=uncounted)
        case c.AlterColumns():
            return _altered(dataset, change)
        case c.DropColumns():
            fields = dataset.fields
            for path in change.paths:
                fields = _edit(fields, path, lambda _: None)
            kept = tuple(i for i in dataset.indexes if not _touches(i.column, change.paths))
            return replace(dataset, fields=fields, indexes=kept)
        case c.CreateIndex():
            if any(i.name == change.index.name for i in dataset.indexes):
                raise CatalogError(Code.TABLE_INDEX_ALREADY_EXISTS, f"index {change.index.name} exists already")
            return replace(dataset, indexes=(*dataset.indexes, _built(change.index)))
        case c.DropIndex():
            kept = tuple(i for i in dataset.indexes if i.name != change.name)
            if len(kept) == len(dataset.indexes):
                raise CatalogError(Code.TABLE_INDEX_NOT_FOUND, f"there is no index {change.name}")
            return replace(dataset, indexes=kept)
        case _:
            raise AssertionError(change)


def record_after(record: DataRecord | None, change: c.MaterializeTable) -> DataRecord:
    """What is noted with the rows. Files stay known as long as the rows that came from them are there."""
    kept = {} if change.replace or record is None else record.files
    return DataRecord(change.digest, {**kept, **change.files, **change.known}, purged=change.purges)


def _altered(dataset: DatasetState, change: c.AlterColumns) -> DatasetState:
    """A cast is refused while an index is attached that it does not name, as in Lance."""
    if change.empty and not dataset.empty:
        raise CatalogError(Code.INVALID_TABLE_STATE, f"{dotted(change.ident)} has rows by now")
    casts = [a.path for a in change.columns if a.type is not None]
    if change.writes_anew:
        casts = [path.partition(".")[0] for path in casts]
    kept = _without(dataset, casts, change.loses)
    renames = {a.path: a.rename for a in change.columns if a.rename is not None}
    indexes = tuple(replace(i, column=rename_path(i.column, renames)) for i in kept)
    return replace(dataset, fields=altered_fields(dataset.fields, change), indexes=indexes)


def _without(dataset: DatasetState, paths: Collection[str], lost: Sequence[str]) -> tuple[Index, ...]:
    """The indexes that are left when these columns are written anew."""
    if held := [i.name for i in dataset.indexes if _touches(i.column, paths) and i.name not in lost]:
        raise CatalogError(Code.INVALID_INPUT, f"{', '.join(paths)}: there is the index {', '.join(held)} on it")
    return tuple(i for i in dataset.indexes if i.name not in lost)


def altered_fields(fields: tuple[Field, ...], change: c.AlterColumns) -> tuple[Field, ...]:
    """The columns after the change. pylance loses the metadata of a column that it casts; what is written anew keeps
    it. Raises CatalogError when there is no such column."""
    for a in change.columns:
        fields = _edit(fields, a.path, lambda f, a=a: _alter(f, a, change.writes_anew))  # type: ignore[misc]
    return fields


def _alter(f: Field, a: c.ColumnAlteration, keeps_notes: bool) -> Field:
    if a.type is not None:
        f = replace(f, type=a.type) if keeps_notes else Field(f.name, a.type, f.nullable)
    if a.nullable is not None:
        f = replace(f, nullable=a.nullable)
    return f if a.rename is None else replace(f, name=a.rename)


def _updated(dataset: DatasetState, change: c.UpdateDataset) -> DatasetState:
    fields = dataset.fields
    for path, changes in change.fields.items():
        fields = _edit(fields, path, lambda f, changes=changes: _with_metadata(f, changes))  # type: ignore[misc]
    return replace(
        dataset,
        fields=fields,
        config=_merged(dataset.config, change.config),
        schema_metadata=_merged(dataset.schema_metadata, change.schema_metadata),
        owner=change.owner,
        applied=change.applied,
    )


def _built(index: Index, again: int = 0) -> Index:
    """What Lance makes of it cannot be foretold in every part, so it counts as declared (see `fingerprint`)."""
    record = BuildRecord(index.params, current=True, again=again, kept=index.kept)
    return replace(index, params=index.built_with, kept={}, record=record)


def _builds(dataset: DatasetState, index: Index) -> int:
    """A refresh is no other build of the definition: it only covers more rows."""
    known = next((i.record for i in dataset.indexes if i.name == index.name and i.type == index.type), None)
    return known.again if known is not None and known.current and known.params == index.params else 0


def _announced(old: Index, index: Index) -> BuildRecord | None:
    """The record of a build that was not swapped in yet, as seen with the old index. Builds of one definition are
    recorded side by side; a record of another type says nothing about it."""
    if old.type != index.type:
        return None
    known = old.record
    return known if known is not None and known.params == index.params else BuildRecord(index.params)


def _replaced(dataset: DatasetState, index: Index, again: int) -> Sequence[DatasetState]:
    """First the record, then the index: in between the record is about an index that is not there yet."""
    old = next((i for i in dataset.indexes if i.name == index.name), None)
    if old is None:
        raise CatalogError(Code.TABLE_INDEX_NOT_FOUND, f"there is no index {index.name}")
    rest = tuple(i for i in dataset.indexes if i.name != index.name)
    announced = replace(old, record=_announced(old, index))
    return tuple(replace(dataset, indexes=(*rest, i)) for i in (announced, _built(index, again)))


def _with_metadata(f: Field, changes: Mapping[str, str | None]) -> Field:
    rest = {k: v for k, v in changes.items() if k != "comment"}
    f = replace(f, metadata=_merged(f.metadata, rest))
    return replace(f, comment=changes["comment"]) if "comment" in changes else f


def _merged(old: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    return {k: v for k, v in {**old, **changes}.items() if v is not None}


def _touches(column: str, paths: Collection[str]) -> bool:
    return any(column == p or column.startswith(p + ".") for p in paths)


def _edit(fields: tuple[Field, ...], path: str, edit_one: Callable[[Field], Field | None]) -> tuple[Field, ...]:
    try:
        return edit(fields, path, edit_one)
    except KeyError:
        raise CatalogError(Code.TABLE_COLUMN_NOT_FOUND, f"there is no column {path}") from None
