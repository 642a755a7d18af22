"""A catalog in memory: the reference backend of the tests, with faults on demand.

It is a real Catalog over the same World that the planner simulates on, and its capabilities can be set to those of any
catalog service: what they say cannot be done is refused here too. A `Fault` hook sees every call and may raise before
the write, raise after it landed, or hide part of a listing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from reconciler.catalog.base import DataPlace, Leased, LeaseRecords, WriteContext, Written
from reconciler.catalog.marks import signed
from reconciler.core.fields import bare
from reconciler.core.world import World
from reconciler.model.arrow import Field
from reconciler.model.capabilities import Capabilities
from reconciler.model.change import (
    DATA_PLANE,
    Change,
    DeclareTable,
    ReplaceTable,
    SyncColumns,
    UpdateNamespace,
    UpdateTable,
)
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind, dotted
from reconciler.model.observed import Absent, Detached, Finding, Gap, Observation, Scope, Snapshot, Unsupported
from reconciler.model.state import Column, TableState

Fault = Callable[[str, object], None]
"""Called as (point, subject) with point one of scan, read, before, after; subject is None, the ident or the change."""


@dataclass(frozen=True)
class MemoryCapabilities(Capabilities):
    """By default it can do everything, chooses locations and shows no columns."""

    type: str = "memory"
    max_parallelism: int = 8
    replaces_tables: bool = False
    drop_needs_allow: bool = False
    chooses_location: bool = False
    root: str | None = None
    """Where tables without a location go, when one may choose it."""
    shows_columns: bool = False
    folds_names: bool = False
    """Column names that differ only in case are the same to this catalog."""
    changes_properties: bool = True
    """False: properties are set at creation, and only our marks change later."""
    container_depth: int = 0
    """So many levels are always there and cannot be declared."""

    def ident_problem(self, kind: Kind, ident: Ident) -> str | None:
        if len(ident) > self.container_depth:
            return None
        return f"the first {self.container_depth} of an id are always there and cannot be declared"

    def location_of(self, ident: Ident) -> str | None:
        return f"{self.root}/{'/'.join(ident)}" if self.chooses_location and self.root is not None else None

    def schema_problem(self, fields: Sequence[Field]) -> str | None:
        names = {f.name.lower() for f in fields}
        return "two columns differ only in case" if self.folds_names and len(names) < len(fields) else None

    def columns_of(self, fields: Sequence[Field]) -> tuple[Column, ...] | None:
        if not self.shows_columns:
            return None
        return tuple(Column(f.name, str(bare(f.type)), f.nullable, f.comment) for f in fields)

    def refuses(self, change: Change) -> str | None:
        if isinstance(change, (UpdateTable, UpdateNamespace)) and (change.set or change.unset):
            if not self.changes_properties:
                return "this catalog cannot change properties after creation"
            if self.replaces_tables and change.kind == "Table":
                return "this catalog cannot update a table"
        if isinstance(change, SyncColumns) and (self.replaces_tables or not self.shows_columns):
            return "this catalog cannot change the columns that it shows"
        if isinstance(change, ReplaceTable) and not self.replaces_tables:
            return "this catalog replaces no tables"
        return None


@dataclass
class Calls:
    scans: int = 0
    reads: int = 0
    writes: int = 0


@dataclass
class MemoryLease:
    place: str = "memory"
    records: dict[int, list[str]] = field(default_factory=dict)

    def numbers(self) -> Sequence[int]:
        return list(self.records)

    def read(self, number: int) -> str | None:
        found = self.records.get(number)
        return found[0] if found is not None else None

    def create(self, number: int, text: str) -> bool:
        mine = [text]
        return self.records.setdefault(number, mine) is mine

    def drop(self, number: int) -> None:
        self.records.pop(number, None)


@dataclass
class MemoryCatalog(Leased):
    world: World = field(default_factory=lambda: World(locate=place))
    capabilities: Capabilities = field(default_factory=MemoryCapabilities)
    fault: Fault | None = None
    gaps: tuple[Gap, ...] = ()
    unsupported: tuple[Unsupported, ...] = ()
    calls: Calls = field(default_factory=Calls)
    lease: MemoryLease = field(default_factory=MemoryLease)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def scan(self, scope: Scope) -> Iterator[Observation | Gap | Unsupported]:
        self.calls.scans += 1
        self._meet("scan", None)
        with self._lock:
            snapshot = self.world.snapshot()
        hidden = [g.ident for g in self.gaps]
        yield from self.unsupported
        yield from self.gaps
        yield from (o for o in listed(snapshot, scope) if not any(o.ident[: len(h)] == h for h in hidden))

    def read(self, keys: Sequence[tuple[Kind, Ident]], scope: Scope) -> Iterator[Observation]:
        for kind, ident in keys:
            self.calls.reads += 1
            self._meet("read", ident)
            with self._lock:
                found: Finding = self.world.find(kind, ident)
            if isinstance(found, Detached) and not sought(found, ident, scope):
                found = Absent()
            yield Observation(kind, ident, found)

    def children(self, ident: Ident) -> Sequence[str]:
        with self._lock:
            return self.world.children(ident)

    def data_place(self, ident: Ident, state: TableState) -> DataPlace:
        raise CatalogError(Code.UNSUPPORTED, "a catalog in memory holds no data")

    def apply(self, change: Change, context: WriteContext) -> Written:
        self._meet("before", change)
        with self._lock:
            self.calls.writes += 1
            if isinstance(change, DATA_PLANE):
                raise AssertionError("data-plane steps never reach a catalog")
            self._refuse(change)
            self._forget(change)
            self.world.apply(signed(change, context.applied_by))
        self._meet("after", change)
        return Written()

    def _forget(self, change: Change) -> None:
        """A table that gets its place elsewhere: where its data was is no longer known."""
        if isinstance(change, DeclareTable) and change.location is not None:
            found = self.world.detached.get(change.ident)
            if found is not None and found.location != change.location:
                del self.world.detached[change.ident]

    def _refuse(self, change: Change) -> None:
        """A plan that asks for what cannot be done here is a bug, and must not pass unnoticed in memory."""
        refused = self.capabilities.refuses(change) or Snapshot({}, {}, unsupported=self.unsupported).refuses(change)
        if refused is not None:
            raise CatalogError(Code.UNSUPPORTED, refused)
        if isinstance(change, DeclareTable) and change.location is not None and not self.capabilities.chooses_location:
            if change.ident in self.world.detached:
                return
            raise CatalogError(Code.TABLE_NOT_FOUND, f"there is no dataset at {change.location}")

    def lease_records(self, idents: Sequence[Ident]) -> Sequence[LeaseRecords] | None:
        return [self.lease]

    def close(self) -> None:
        pass

    def _meet(self, point: str, subject: object) -> None:
        if self.fault is not None:
            self.fault(point, subject)


def place(ident: Ident) -> str:
    return f"memory/{dotted(ident)}"


def listed(snapshot: Snapshot, scope: Scope) -> Iterator[Observation]:
    for ident, namespace in snapshot.namespaces.items():
        yield Observation("Namespace", ident, namespace)
    for ident, table in snapshot.tables.items():
        if not isinstance(table, Detached) or sought(table, ident, scope):
            yield Observation("Table", ident, table)


def sought(found: Detached, ident: Ident, scope: Scope) -> bool:
    """Data without an entry is looked for where the manifest says, otherwise where it was last."""
    return ident in scope.detail and scope.locations.get(ident, found.location) == found.location
