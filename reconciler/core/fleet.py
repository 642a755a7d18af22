"""Which tables of a fleet a plan need not look at, and why that is safe.

A live table may be left out when its fingerprint is the one that its manifest leads to, or when nobody declares it and
it is not ours. In every doubt it is not left out: then the planner itself compares it, field by field.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from reconciler.core.coverage import lacks_rows
from reconciler.core.draft import Context
from reconciler.core.fingerprint import fingerprint
from reconciler.core.options import PlanOptions
from reconciler.core.plan_renames import earlier_names, later_names, namespace_renames
from reconciler.core.plan_table import new_location, plan_table
from reconciler.core.uris import canonical_location
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import CatalogSpec, Desired, DesiredTable
from reconciler.model.ident import Ident
from reconciler.model.observed import Absent, Present, Snapshot
from reconciler.model.state import UNKNOWN, DatasetState, TableState

_EMPTY = Snapshot({}, {})


def settled_print(spec: CatalogSpec, want: DesiredTable, capabilities: Capabilities) -> str | None:
    """The fingerprint of the table right after it was made as declared, if a plan finds nothing to do then: a live
    table with this fingerprint needs no step. None when no such state is known. The location counts only when the
    manifest gives one, as in a plan."""
    if want.absent or want.renamed_from is not None or want.data is not None or want.migration is not None:
        return None  # Where rows come from is looked at by the planner's caller.
    management = spec.management
    context = Context(spec.name, capabilities, PlanOptions(), management.owner, management.adopt, _EMPTY)
    made = plan_table(context, want, Absent(), None)
    end = made.drafter.now
    if any(d.verdict != "allowed" for d in made.drafter.drafts) or not isinstance(end, Present):
        return None
    again = plan_table(context, want, end, None)
    if again.drafter.drafts or again.stale or made.stale:
        return None
    assert isinstance(end.state, TableState)
    return fingerprint(end if want.location is not None else without_location(end.state))


def in_doubt(settled: str | None, prints: Collection[str | None], declared: bool, ours: bool) -> bool:
    """Has the planner to compare this table? `settled`: see above. `prints`: of the live one, none if it is not there
    or cannot be read."""
    return (settled is None or settled not in prints) if declared else ours


def as_declared(state: TableState) -> bool:
    """False when an index that we built has another parameter than was declared, or one that cannot be read, or when
    an index lacks rows. Its fingerprint does not show that: the planner has to judge."""
    indexes = state.dataset.indexes if isinstance(state.dataset, DatasetState) else ()
    if any(lacks_rows(index) for index in indexes):
        return False
    return all(
        index.params.get(key) == value
        for index in indexes
        if index.record is not None and index.record.current
        for key, value in index.record.params.items()
    )


def without_location(state: TableState) -> Present:
    return Present(replace(state, location=UNKNOWN))


@dataclass(frozen=True)
class Watch:
    """Identifiers of one catalog that a plan looks at whatever they are."""

    idents: frozenset[Ident]
    """Declared namespaces (a table may have their name), old names, and the names in between."""
    below: frozenset[Ident]
    """Namespaces that are to go or to be renamed: what is inside matters."""

    def holds(self, ident: Ident) -> bool:
        return ident in self.idents or any(ident[:n] in self.below for n in range(1, len(ident) + 1))


def watch(desired: Desired, catalog: str) -> Watch:
    namespaces, tables = desired.namespaces.get(catalog, {}), desired.tables.get(catalog, {})
    renames = namespace_renames(namespaces)
    moved = {t.ident for t in tables.values() if t.renamed_from is not None}
    old = {t.renamed_from for t in tables.values() if t.renamed_from is not None}
    old |= {j for i in old for j in (*later_names(i, renames), *earlier_names(i, renames))} if renames else set()
    below = {n.ident for n in namespaces.values() if n.absent} | {*renames} | {*renames.values()}
    return Watch(frozenset({*namespaces, *moved, *old}), frozenset(below))


def only(desired: Desired, kept: Mapping[str, Callable[[Ident], bool]]) -> Desired:
    """The same manifests with these tables only. Every namespace stays: what lives in one may need it. Policies do not:
    what they say is about all tables, and no matter of what is live."""
    tables = {name: {i: t for i, t in desired.tables.get(name, {}).items() if keep(i)} for name, keep in kept.items()}
    return replace(desired, tables=tables, policies=())


def places_wanted(desired: Desired, capabilities: Mapping[str, Capabilities]) -> set[str]:
    """Where the declared tables would be made: a table that is live there already matters to a plan."""
    tables = ((capabilities[name], t) for name in capabilities for t in desired.tables.get(name, {}).values())
    found = [new_location(rules, t) or t.location for rules, t in tables]
    return {canonical_location(location) for location in found if location is not None}
