"""`status`: one look at the catalogs, the plan that follows from it, whose everything is, and who applied last. Writes
nothing."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler import app
from reconciler.core.globs import matcher
from reconciler.core.live_counts import live_counts
from reconciler.core.ownership import entry_owner
from reconciler.core.planner import summarize
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import CatalogSpec
from reconciler.model.diagnostic import Diagnostic, has_errors
from reconciler.model.ident import Ident, Kind, ObjectKey
from reconciler.model.observed import Present, Snapshot
from reconciler.model.plan import Plan, Step
from reconciler.model.run_context import AppliedBy, load_applied_by
from reconciler.model.state import DatasetState, NamespaceState, TableState
from reconciler.model.status import CatalogStatus, FleetStatus, Pending
from reconciler.session import Failure, Session


def status(request: app.Request, at: Session) -> tuple[FleetStatus, list[Diagnostic]]:
    """And the warnings. Raises Failure when the manifests or a catalog cannot be read."""
    loaded = app.validate(request.paths, request.reading)
    if has_errors(loaded.diagnostics):
        raise Failure("the manifests have errors", loaded.diagnostics)
    desired = loaded.desired
    names = app.selected(desired, request.catalogs)
    capabilities = app.capabilities_of(desired, names)
    snapshots = at.observe(desired, names)
    made = app.planned(desired, snapshots, capabilities, request, at)
    wanted = request.options.targets
    found = tuple(_catalog(desired.catalogs[n], snapshots[n], made, wanted, capabilities[n]) for n in names)
    return FleetStatus(found), loaded.diagnostics


def _catalog(
    spec: CatalogSpec, snapshot: Snapshot, made: Plan, targets: tuple[str, ...], capabilities: Capabilities
) -> CatalogStatus:
    """Every figure is of what the targets select: figures of different things must not stand side by side."""
    selected = matcher(targets) if targets else lambda _: True
    summary = made.catalogs[spec.name]
    namespaces, tables = live_counts(snapshot, capabilities, selected)
    steps = [s for s in made.steps if s.catalog == spec.name]
    us = spec.management.owner
    seen = [(ObjectKey(spec.name, i, k), s) for k, i, s in _states(snapshot) if selected(i)]
    owners = {key: made.owners.get(key, entry_owner(us, s)) for key, s in seen}
    ours = [(key, s) for key, s in seen if owners[key] == us]
    others = [(key, owner) for key, owner in owners.items() if owner != us]
    applied = [(key, by) for key, s in ours if (by := _applied_by(s)) is not None]
    return CatalogStatus(
        spec.name,
        spec.type,
        spec.management.owner,
        summary.complete,
        summary.problems,
        namespaces,
        tables,
        sum(1 for key, _ in ours if key.kind == "Namespace"),
        sum(1 for key, _ in ours if key.kind == "Table"),
        summarize(tuple(steps)),
        _pending(steps),
        tuple(k for k in made.orphans if k.catalog == spec.name),
        tuple(k for k in made.unowned if k.catalog == spec.name),
        tuple(sorted(applied)),
        tuple(sorted(others, key=lambda o: o[0])),
        tuple(k for k in made.left_out if k.catalog == spec.name),
        summary.namespaces - namespaces,
        summary.tables - tables,
    )


def _states(snapshot: Snapshot) -> Iterator[tuple[Kind, Ident, NamespaceState | TableState]]:
    for ident, namespace in snapshot.namespaces.items():
        if isinstance(namespace, Present):
            yield "Namespace", ident, namespace.state
    for ident, table in snapshot.tables.items():
        if isinstance(table, Present):
            yield "Table", ident, table.state


def _applied_by(state: NamespaceState | TableState) -> AppliedBy | None:
    """The entry and the dataset are written by different steps: the later one counts, and of one second the dataset,
    which comes after its entry."""
    notes = [load_applied_by(state.marks.applied_by)]
    if isinstance(state, TableState) and isinstance(state.dataset, DatasetState):
        notes.insert(0, load_applied_by(state.dataset.applied_by))
    return max((n for n in notes if n is not None), key=lambda n: n.at, default=None)


def _pending(steps: list[Step]) -> tuple[Pending, ...]:
    objects: dict[ObjectKey, list[Step]] = {}
    for step in steps:
        objects.setdefault(step.key, []).append(step)
    return tuple(
        Pending(
            key,
            tuple(dict.fromkeys(s.action for s in its)),
            next((s.verdict for s in its if s.verdict != "allowed"), "allowed"),
        )
        for key, its in sorted(objects.items())
    )
