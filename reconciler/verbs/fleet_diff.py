"""Manifests against a fleet: what differs by fingerprint is planned as `plan` does it, the rest has nothing to plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reconciler import app
from reconciler.core.fleet import Watch, only, places_wanted, settled_print, watch
from reconciler.core.globs import matches
from reconciler.core.planner import scope_of
from reconciler.core.uris import canonical_location, canonical_of
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import Desired
from reconciler.model.ident import Ident
from reconciler.model.observed import Detached, Present, Snapshot
from reconciler.model.plan import Plan
from reconciler.model.state import TableState

if TYPE_CHECKING:
    from reconciler.pipeline.fleet import Doubt
    from reconciler.pipeline.fleet_task import CatalogTask
    from reconciler.session import Session


def declared_rows(desired: Desired, tasks: Sequence[CatalogTask]) -> list[tuple[str, str, str | None, str | None]]:
    """Each declared table with the fingerprint that needs no step; without one what is always to be looked at."""
    from reconciler.pipeline.fleet_task import key_of

    out: list[tuple[str, str, str | None, str | None]] = []
    for name, rules in app.capabilities_of(desired, [t.name for t in tasks]).items():
        spec, tables, watched = desired.catalogs[name], desired.tables.get(name, {}), watch(desired, name)
        for ident, want in tables.items():
            settled = None if watched.holds(ident) else settled_print(spec, want, rules)
            out.append((name, key_of(ident), settled, want.location))
        out += [(name, key_of(i), None, None) for i in watched.idents if i not in tables]
    return out


def targets_of_strangers(desired: Desired, names: Sequence[str], targets: Sequence[str]) -> list[str]:
    """Targets that name nothing declared: something live has to have such an identifier."""
    idents = [i for n in names for i in (*desired.namespaces.get(n, ()), *desired.tables.get(n, ()))]
    return [t for t in targets if not any(matches(t, i) for i in idents)]


def compared(
    spark: Any, rows: Any, desired: Desired, tasks: Sequence[CatalogTask], what: app.Request, at: Session
) -> Plan:
    """What `plan` would say. Raises Failure as it does."""
    from reconciler.pipeline.fleet import doubts

    found = list(doubts(rows, len(tasks) > 1))
    doubtful = {t.name: {d.ident for d in found if d.catalog == t.name} for t in tasks}
    watched = {t.name: watch(desired, t.name) for t in tasks}
    smaller = only(desired, {n: _either(doubtful[n], watched[n]) for n in doubtful})
    return looked_at(spark, found, smaller, watched, tasks, what, at)


def looked_at(
    spark: Any,
    found: Sequence[Doubt],
    smaller: Desired,
    watched: Mapping[str, Watch],
    tasks: Sequence[CatalogTask],
    what: app.Request,
    at: Session,
) -> Plan:
    """The plan for `smaller`, the manifests of what is in doubt, on what a scan with those in detail shows."""
    capabilities = app.capabilities_of(smaller, [t.name for t in tasks])
    doubtful = {t.name: {d.ident for d in found if d.catalog == t.name} for t in tasks}
    lost = any(not d.live for d in found)
    places = {d.place for d in found if d.place is not None} | (places_wanted(smaller, capabilities) if lost else set())
    while True:
        snapshots = _observed(spark, smaller, tasks, capabilities, doubtful, watched, places, lost, what, at)
        more = _places(smaller, snapshots, len(tasks) > 1) - places
        if not more:
            return app.planned(smaller, snapshots, capabilities, what, at)
        places |= more


def _either(idents: set[Ident], watched: Watch) -> Any:
    return lambda ident: ident in idents or watched.holds(ident)


def _observed(
    spark: Any,
    smaller: Desired,
    tasks: Sequence[CatalogTask],
    capabilities: Mapping[str, Capabilities],
    doubtful: Mapping[str, set[Ident]],
    watched: Mapping[str, Watch],
    places: set[str],
    lost: bool,
    what: app.Request,
    at: Session,
) -> dict[str, Snapshot]:
    from reconciler.pipeline.fleet import FleetCatalog
    from reconciler.pipeline.fleet_task import Keep

    def look(name: str) -> Snapshot:
        keep = Keep(frozenset(doubtful[name]), watched[name], frozenset(places), lost)
        catalog = FleetCatalog(spark, by_name[name], capabilities[name], keep)
        seen = at.whole(at.seen_through(catalog, name, scope_of(smaller, name)), name, app.needs_of(what))
        return replace(seen, left_out=catalog.left_out)

    by_name = {t.name: t for t in tasks}
    return at.side_by_side(look, [*by_name])


def _places(smaller: Desired, snapshots: Mapping[str, Snapshot], several: bool) -> set[str]:
    """Where data was found whose other users, in this catalog or another, a plan has to know."""
    out: set[str] = set()
    for name, snapshot in snapshots.items():
        out |= {checked.canonical for checked in snapshot.checked.values() if checked.canonical}
        for ident, finding in snapshot.tables.items():
            if isinstance(finding, Detached):
                out.add(canonical_location(finding.location))
            elif several and ident in smaller.tables.get(name, {}) and isinstance(finding, Present):
                assert isinstance(finding.state, TableState)
                out |= {place for place in (canonical_of(finding.state),) if place is not None}
    return out
