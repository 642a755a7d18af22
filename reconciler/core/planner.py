"""From desired and observed state to a plan. Pure: same inputs, same bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping
from dataclasses import replace

from reconciler import __version__
from reconciler.core.errors import InternalError, PlanError
from reconciler.core.goal import unmet, unshown
from reconciler.core.live_counts import live_counts
from reconciler.core.options import PlanOptions
from reconciler.core.order import number
from reconciler.core.plan_catalog import CatalogPlan, plan_catalog
from reconciler.core.plan_locations import Locations
from reconciler.core.plan_renames import earlier_names, later_names, namespace_renames
from reconciler.core.plan_table import Shared
from reconciler.core.policy import judge_plan
from reconciler.core.selection import left_out, selected_in
from reconciler.core.shared import declared_twice, followers, in_turn, left_to_others
from reconciler.core.simulate import check
from reconciler.core.storage_keys import storage_properties
from reconciler.core.world import World
from reconciler.model.capabilities import Capabilities
from reconciler.model.change import catalogs_read
from reconciler.model.codec import canonical
from reconciler.model.collector import collection_paused
from reconciler.model.desired import CatalogSpec, Desired, DesiredObject
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.errors import ReadError
from reconciler.model.ident import Ident, ObjectKey, dotted, parent
from reconciler.model.observed import Present, Scope, Snapshot, Unreadable
from reconciler.model.plan import CatalogSummary, Json, Plan, Step
from reconciler.model.plan_json import plan_to_json
from reconciler.model.plan_rules import summarize
from reconciler.model.state import DatasetState, TableState

__all__ = ["InternalError", "PlanError", "PlanOptions", "make_plan", "scope_of"]


def scope_of(desired: Desired, catalog: str, prune: bool = False) -> Scope:
    """What a scan must read: everything's names, and the datasets of the declared tables and of those to prune."""
    tables = [t for t in desired.tables.get(catalog, {}).values() if not t.absent]
    detail = {t.ident for t in tables} | {t.renamed_from for t in tables if t.renamed_from is not None}
    if renames := namespace_renames(desired.namespaces.get(catalog, {})):
        detail |= {j for i in detail for j in later_names(i, renames)}
        detail |= {j for i in detail for j in earlier_names(i, renames)}
    locations = {t.ident: t.location for t in tables if t.location is not None and t.held_back is None}
    namespaces = desired.namespaces.get(catalog, {})
    names = frozenset(namespaces) | {parent(i) for i in desired.tables.get(catalog, {})}
    upper = frozenset(i for i, n in namespaces.items() if n.level == "catalog")
    storage = {t.ident: found for t in tables if (found := storage_properties(t.properties))}
    management = desired.catalogs[catalog].management
    pruned_by = management.owner if prune else None
    absent = frozenset(t.ident for t in desired.tables.get(catalog, {}).values() if t.absent)
    return Scope(frozenset(detail), locations, management.ignore, names, storage, upper, pruned_by, absent)


def make_plan(
    desired: Desired,
    snapshots: Mapping[str, Snapshot],
    capabilities: Mapping[str, Capabilities],
    options: PlanOptions,
) -> Plan:
    """Plans the catalogs in `snapshots`. Raises PlanError, or InternalError when the plan would not converge."""
    with collection_paused():
        return _make_plan(desired, snapshots, capabilities, options)


def _make_plan(
    desired: Desired,
    snapshots: Mapping[str, Snapshot],
    capabilities: Mapping[str, Capabilities],
    options: PlanOptions,
) -> Plan:
    selected = {name: selected_in(options, name) for name in snapshots}
    follows = followers(desired, snapshots, capabilities, selected)
    twice = declared_twice(desired, follows)
    snapshots = left_to_others(desired, snapshots, follows)
    plans: dict[str, CatalogPlan] = {}
    several = snapshots.items() if len(snapshots) > 1 else ()
    locations = {name: _locations(desired, name, snapshot) for name, snapshot in several}
    shared: dict[str, dict[Ident, Shared]] = {name: {} for name in snapshots}

    def one(name: str, snapshot: Snapshot) -> CatalogPlan:
        namespaces, tables = desired.namespaces.get(name, {}), desired.tables.get(name, {})
        return plan_catalog(
            desired.catalogs[name],
            namespaces,
            tables,
            snapshot,
            capabilities[name],
            options,
            shared[name],
            [where for other, where in locations.items() if other != name],
        )

    def missing(name: str, end: Snapshot, held: frozenset[Ident]) -> str | None:
        declared: list[DesiredObject] = [
            *desired.namespaces.get(name, {}).values(),
            *desired.tables.get(name, {}).values(),
        ]
        kept = held | frozenset(plans[name].stale)
        owner = desired.catalogs[name].management.owner
        asked = selected[name]
        return unmet(declared, end, held, asked) or unshown(declared, end, kept, asked, capabilities[name], owner)

    for name in sorted(snapshots):
        shared[name] |= {k.ident: _shared(plans[of.catalog], of) for k, of in follows.items() if k.catalog == name}
        plans[name] = one(name, snapshots[name])
        locations[name] = plans[name].locations
    diagnostics: list[Diagnostic] = [*twice, *(d for p in plans.values() for d in p.diagnostics)]
    if diagnostics:
        raise PlanError(diagnostics)
    drafts = [(name, d) for name, p in plans.items() for d in p.drafts]
    deletes = [(name, d) for name, p in plans.items() for d in p.deletes]
    check([*drafts, *deletes], snapshots, one, missing, shared)
    steps = number(in_turn(drafts, follows) if follows else drafts, deletes, follows, options.clean)
    judged = judge_plan(
        desired, snapshots, capabilities, steps, selected, options.environment, options.today, options.opened,
        {name: p.world for name, p in plans.items()},
    )  # fmt: skip
    plan = Plan(
        "",
        __version__,
        desired.digest,
        {name: _catalog(desired.catalogs[name], snapshots[name], plans[name], capabilities[name]) for name in plans}
        | _read_only(desired, steps, plans),
        steps,
        tuple(sorted(k for p in plans.values() for k in p.orphans)),
        tuple(sorted(k for p in plans.values() for k in p.unowned)),
        summarize(steps),
        judged.findings,
        judged_on=judged.on,
        left_out=left_out(desired, plans, options, steps),
        owners={k: owner for p in plans.values() for k, owner in p.owners.items()},
        notes=tuple(note for p in plans.values() for note in p.notes),
    )
    return with_id(plan)


def _locations(desired: Desired, name: str, snapshot: Snapshot) -> Locations:
    present = frozenset(i for i, t in desired.tables.get(name, {}).items() if not t.absent)
    return Locations(World(snapshot), snapshot, desired.catalogs[name], present)


def _shared(first: CatalogPlan, key: ObjectKey) -> Shared:
    """The dataset as the first catalog's steps leave it."""
    found = first.world.find("Table", key.ident)
    dataset = found.state.dataset if isinstance(found, Present) and isinstance(found.state, TableState) else None
    return Shared(dataset.fields if isinstance(dataset, DatasetState) else None)


def with_id(plan: Plan) -> Plan:
    """`plan_id` is the hash of everything else in the plan."""
    value = plan_to_json(plan)
    del value["plan_id"]
    return replace(plan, plan_id="sha256:" + hashlib.sha256(canonical(value).encode()).hexdigest())


def _catalog(spec: CatalogSpec, snapshot: Snapshot, plan: CatalogPlan, capabilities: Capabilities) -> CatalogSummary:
    problems = [g.error for g in snapshot.gaps]
    told: set[Ident] = set()
    for d in plan.drafts + plan.deletes:
        if isinstance(d.expect, Unreadable):
            told.add(d.change.ident)
            problems.append(ReadError(d.expect.code, f"{dotted(d.change.ident)}: {d.reason}"))
        elif isinstance(d.expect, Present) and isinstance(d.expect.state, TableState) and d.expect.state.gone:
            told.add(d.change.ident)
    for where in (snapshot.namespaces, snapshot.tables):
        unread = {i: f for i, f in where.items() if isinstance(f, Unreadable) and not f.foreign and i not in told}
        problems += [ReadError(f.code, f"{dotted(i)} cannot be read: {f.message}") for i, f in unread.items()]
    namespaces, tables, others = live_counts(snapshot, capabilities)
    tables += snapshot.left_out.tables
    said = tuple(sorted(set(problems), key=lambda p: (p.message, p.code)))
    counted = spec.type, not problems, namespaces, tables
    kept = tuple(plan.stale), tuple(plan.coverage), others
    return CatalogSummary(*counted, _written(spec), said, *kept, snapshot.root.new, snapshot.root.skipped)


def _read_only(desired: Desired, steps: tuple[Step, ...], planned: Container[str]) -> dict[str, CatalogSummary]:
    """Catalogs that were not planned, but whose tables are copied: who applies the plan has to open them too. Nothing
    in them was counted."""
    names = {name for s in steps for name in catalogs_read(s.change)}
    specs = [desired.catalogs[n] for n in sorted(names) if n not in planned and n in desired.catalogs]
    return {spec.name: CatalogSummary(spec.type, True, 0, 0, _written(spec)) for spec in specs}


def _written(spec: CatalogSpec) -> dict[str, Json]:
    written: dict[str, Json] = {"type": spec.type}
    written |= dict(spec.options)  # type: ignore[arg-type]
    if spec.management_written:
        written["management"] = dict(spec.management_written)  # type: ignore[arg-type]
    return written
