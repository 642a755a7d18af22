"""Helpers: a case becomes a catalog, a plan, a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from prop_cases import Case

from reconciler.catalog.base import WriteContext
from reconciler.catalog.memory import MemoryCatalog, listed, place
from reconciler.core.applied import live_entries
from reconciler.core.globs import matcher
from reconciler.core.planner import make_plan, scope_of
from reconciler.core.world import World
from reconciler.engine.observe import observe
from reconciler.model.change import DATA_PLANE
from reconciler.model.codec import canonical, finding_json
from reconciler.model.ident import Ident, Kind
from reconciler.model.observed import (
    Absent,
    Detached,
    Gap,
    LocationCheck,
    Observation,
    Present,
    Scope,
    Snapshot,
    Unsupported,
)
from reconciler.model.plan import Plan, Step
from reconciler.model.state import UNKNOWN, DatasetState, TableState

State = dict[tuple[str, Ident], str]
"""Of each object, as text."""


@dataclass
class ListingCatalog(MemoryCatalog):
    """Opens only the datasets it was asked for, as real backends do. A listing with a gap still shows its first page:
    the names before `u`."""

    def scan(self, scope: Scope) -> Iterator[Observation | Gap | Unsupported]:
        self.calls.scans += 1
        yield from self.unsupported
        yield from self.gaps
        yield from self._no_room(scope)
        for found in listed(self.world.snapshot(), scope):
            if found.ident[-1] < "u" or not any(found.ident[: len(g.ident)] == g.ident for g in self.gaps):
                yield _listed(found, scope)

    def _no_room(self, scope: Scope) -> Iterator[Observation]:
        """What storage says against a table that is to be made around data that no entry has any more."""
        for ident in sorted(scope.detail):
            place = scope.locations.get(ident) or self.capabilities.location_of(ident)
            inside = [d for d in self.world.detached.values() if place and d.location.startswith(f"{place}/")]
            if inside and isinstance(self.world.find("Table", ident), Absent):
                why = f"{place} holds {inside[0].location}, but no Lance dataset"
                yield Observation("Table", ident, Absent(LocationCheck(str(place), why)))

    def read(self, keys: Sequence[tuple[Kind, Ident]], scope: Scope) -> Iterator[Observation]:
        for found in super().read(keys, scope):
            yield _listed(found, scope)


def _listed(found: Observation, scope: Scope) -> Observation:
    if found.ident in scope.detail or not isinstance(found.finding, Present):
        return found
    state = found.finding.state
    return replace(found, finding=Present(replace(state, dataset=UNKNOWN))) if isinstance(state, TableState) else found


def catalog_of(case: Case) -> ListingCatalog:
    return ListingCatalog(World(case.live, place), case.capabilities, gaps=case.gaps, unsupported=case.live.unsupported)


def plan_on(case: Case, catalog: MemoryCatalog) -> Plan:
    scope = scope_of(case.desired, "lake")
    snapshot = observe(catalog, scope)
    return make_plan(case.desired, {"lake": snapshot}, {"lake": catalog.capabilities}, case.options)


def allowed(plan: Plan) -> list[Step]:
    return [s for s in plan.steps if s.verdict == "allowed"]


def apply_all(plan: Plan, catalog: MemoryCatalog) -> None:
    """Without the executor: every allowed step in order, data-plane steps too. The catalog refuses what it cannot."""
    if plan.refused is None:
        for step in allowed(plan):
            if isinstance(step.change, DATA_PLANE):
                catalog.world.apply(step.change)
            else:
                catalog.apply(step.change, WriteContext())


def dump(snapshot: Snapshot) -> dict[tuple[str, Ident], str]:
    """Every object's full state as text, by kind and identifier."""
    spaces = {("Namespace", i): canonical(finding_json(f)) for i, f in snapshot.namespaces.items()}
    return spaces | {("Table", i): canonical(finding_json(f)) for i, f in snapshot.tables.items()}


def state_of(catalog: MemoryCatalog) -> State:
    return dump(catalog.world.snapshot())


def assert_ends_alike(ended: State, meant: State, gone: set[str]) -> None:
    """What is only recorded along with another change (core/notes.py) may wait for the next one: keys that are ours by
    now, and keys that were and are `gone`."""
    found, wanted = _recorded(ended), _recorded(meant)
    assert {key: rest for key, (rest, _) in found.items()} == {key: rest for key, (rest, _) in wanted.items()}
    assert all(keys <= wanted[key][1] | gone for key, (_, keys) in found.items())


def recorded_and_gone(catalog: MemoryCatalog) -> set[str]:
    gone: set[str] = set()
    for found in (*catalog.world.namespaces.values(), *catalog.world.tables.values()):
        if isinstance(found, Present):
            gone |= {*found.state.marks.applied} - found.state.properties.keys()
            data = found.state.dataset if isinstance(found.state, TableState) else None
            gone |= {*data.applied} - live_entries(data) if isinstance(data, DatasetState) else set()
    return gone


def _recorded(state: State) -> dict[tuple[str, Ident], tuple[object, set[str]]]:
    """The state of each object without the keys that we recorded as ours, and those keys."""
    out: dict[tuple[str, Ident], tuple[object, set[str]]] = {}
    for key, text in state.items():
        value = json.loads(text)
        shown = next(iter(value.values()))
        parts = [p for p in (shown.get("marks"), shown.get("dataset")) if isinstance(p, dict)]
        out[key] = value, {entry for part in parts for entry in part.pop("applied", [])}
    return out


def held_back(plan: Plan) -> set[tuple[str, Ident]]:
    return {(s.action, s.change.ident) for s in plan.steps if s.verdict != "allowed"}


def may_change(case: Case, key: tuple[str, Ident]) -> bool:
    """May a plan touch this live object? Only ours, and what the options let us take; never the ignored."""
    kind, ident = key
    if matcher(case.management.ignore)(ident):
        return False
    found = case.live.namespaces.get(ident) if kind == "Namespace" else case.live.tables.get(ident)
    if isinstance(found, Present):
        owner = found.state.marks.owner
        data = found.state.dataset if isinstance(found.state, TableState) else None
        if owner is None and isinstance(data, DatasetState) and data.owner != case.management.owner:
            owner = data.owner  # An entry without a mark belongs to whoever marked its data.
    elif isinstance(found, Detached):
        owner = found.dataset.owner
    else:
        return False
    if owner == case.management.owner:
        return True
    return case.options.adopt or case.management.adopt if owner is None else owner in case.options.take_over
