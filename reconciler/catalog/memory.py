"""A catalog in memory: the reference backend of the tests, with faults on demand.

It is a real Catalog over the same World that the planner simulates on. A `Fault` hook sees every call and may raise
before the write, raise after it landed, or hide part of a listing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from reconciler.catalog.base import WriteContext, Written
from reconciler.core.world import World
from reconciler.model.arrow import ArrowType
from reconciler.model.capabilities import Capabilities
from reconciler.model.change import DATA_PLANE, Change
from reconciler.model.ident import Ident, Kind, dotted
from reconciler.model.observed import Absent, Detached, Finding, Gap, Observation, Scope, Snapshot

Fault = Callable[[str, object], None]
"""Called as (point, subject) with point one of scan, read, before, after; subject is None, the ident or the change."""


@dataclass(frozen=True)
class MemoryCapabilities:
    type: str = "memory"
    max_parallelism: int = 8

    def ident_problem(self, kind: Kind, ident: Ident) -> str | None:
        return None

    def type_problem(self, type_: ArrowType) -> str | None:
        return None

    def location_problem(self, ident: Ident, location: str) -> str | None:
        return None

    def holds_properties(self, kind: Kind, ident: Ident) -> bool:
        return True

    def refuses(self, change: Change) -> str | None:
        return None


@dataclass
class Calls:
    scans: int = 0
    reads: int = 0
    writes: int = 0


@dataclass
class MemoryCatalog:
    world: World = field(default_factory=lambda: World(locate=place))
    capabilities: Capabilities = field(default_factory=MemoryCapabilities)
    fault: Fault | None = None
    gaps: tuple[Gap, ...] = ()
    calls: Calls = field(default_factory=Calls)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def scan(self, scope: Scope) -> Iterator[Observation | Gap]:
        self.calls.scans += 1
        self._meet("scan", None)
        with self._lock:
            snapshot = self.world.snapshot()
        hidden = [g.ident for g in self.gaps]
        yield from self.gaps
        yield from (o for o in listed(snapshot, scope) if not any(o.ident[: len(h)] == h for h in hidden))

    def read(self, keys: Sequence[tuple[Kind, Ident]], scope: Scope) -> Iterator[Observation]:
        for kind, ident in keys:
            self.calls.reads += 1
            self._meet("read", ident)
            with self._lock:
                found: Finding = self.world.find(kind, ident)
            if isinstance(found, Detached) and ident not in scope.detail:
                found = Absent()
            yield Observation(kind, ident, found)

    def children(self, ident: Ident) -> Sequence[str]:
        with self._lock:
            return self.world.children(ident)

    def apply(self, change: Change, context: WriteContext) -> Written:
        self._meet("before", change)
        with self._lock:
            self.calls.writes += 1
            if isinstance(change, DATA_PLANE):
                raise AssertionError("data-plane steps never reach a catalog")
            self.world.apply(change)
        self._meet("after", change)
        return Written()

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
        if not isinstance(table, Detached) or ident in scope.detail:
            yield Observation("Table", ident, table)
