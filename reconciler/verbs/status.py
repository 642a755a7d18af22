"""`status`: one look at the catalogs, the plan that follows from it, whose everything is, and who applied last. Writes
nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NoReturn

from reconciler import app
from reconciler.catalog.deadline import answers
from reconciler.catalog.lance_tags import count_tags
from reconciler.core.globs import matcher
from reconciler.core.live_counts import live_counts
from reconciler.core.ownership import entry_owner
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import CatalogSpec
from reconciler.model.diagnostic import Diagnostic, has_errors
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident, Kind, ObjectKey
from reconciler.model.observed import Present, Snapshot
from reconciler.model.plan import Plan, Step
from reconciler.model.plan_rules import summarize
from reconciler.model.report import Difference
from reconciler.model.run_context import AppliedBy, load_applied_by
from reconciler.model.state import DatasetState, Index, NamespaceState, TableState
from reconciler.model.status import CatalogStatus, FleetStatus, Pending
from reconciler.session import Failure, Session, unanswered

Fields = Callable[[Step], Sequence[Difference]]


def status(request: app.Request, at: Session, fields: Fields = lambda _: ()) -> tuple[FleetStatus, list[Diagnostic]]:
    """And the warnings. `fields`: what differs, by step. Raises Failure when the manifests or a catalog cannot be
    read."""
    loaded = app.validate(request.paths, request.reading)
    if has_errors(loaded.diagnostics):
        raise Failure("the manifests have errors", loaded.diagnostics)
    desired = loaded.desired
    names = app.selected(desired, request.catalogs)
    capabilities = app.capabilities_of(desired, names)
    snapshots = at.observe(desired, names, app.needs_of(request))
    made = app.planned(desired, snapshots, capabilities, request, at)
    wanted = request.options.targets
    tags = {name: _tags(name, snapshots[name], desired.catalogs[name].management.owner, at) for name in names}
    found = tuple(
        _catalog(desired.catalogs[n], snapshots[n], made, wanted, capabilities[n], fields, tags[n]) for n in names
    )
    return FleetStatus(found), loaded.diagnostics


def _catalog(
    spec: CatalogSpec,
    snapshot: Snapshot,
    made: Plan,
    targets: tuple[str, ...],
    capabilities: Capabilities,
    fields: Fields,
    tags: Mapping[Ident, int | None],
) -> CatalogStatus:
    """Every figure is of what the targets select: figures of different things must not stand side by side."""
    selected = matcher(targets) if targets else lambda _: True
    summary = made.catalogs[spec.name]
    namespaces, tables, other_tables = live_counts(snapshot, capabilities, selected)
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
        _pending(steps, fields),
        tuple(k for k in made.orphans if k.catalog == spec.name),
        tuple(k for k in made.unowned if k.catalog == spec.name),
        tuple(sorted(applied)),
        tuple(sorted(others, key=lambda o: o[0])),
        tuple(k for k in made.left_out if k.catalog == spec.name),
        summary.namespaces - namespaces,
        summary.tables - tables,
        tuple((key, index) for key, s in sorted(seen, key=lambda one: one[0]) for index in _indexes(s)),
        tuple((ObjectKey(spec.name, i, "Table"), n) for i, n in sorted(tags.items()) if n and selected(i)),
        sum(1 for i, n in tags.items() if n is None and selected(i)),
        spec.management.tag_retention,
        other_tables,
        summary.other_tables - other_tables,
    )


def _indexes(state: NamespaceState | TableState) -> tuple[Index, ...]:
    dataset = state.dataset if isinstance(state, TableState) else None
    return tuple(sorted(dataset.indexes, key=lambda i: i.name)) if isinstance(dataset, DatasetState) else ()


def _tags(catalog: str, snapshot: Snapshot, owner: str, at: Session) -> dict[Ident, int | None]:
    """How many tags of apply the tables of ours have that were opened; None when that cannot be read."""
    tables = {
        ident: state
        for kind, ident, state in _states(snapshot)
        if kind == "Table" and isinstance(state, TableState) and isinstance(state.dataset, DatasetState)
        if entry_owner(owner, state) == owner
    }

    def count(ident: Ident) -> int | None:
        try:
            place = at.catalogs[catalog].data_place(ident, tables[ident])
            at.redactor.add(place.storage_options.values())
            return count_tags(place)
        except CatalogError:
            return None

    def late(ident: Ident) -> NoReturn:
        raise unanswered(f"the tags of table {ObjectKey(catalog, ident, 'Table')}")

    found = answers(count, tables, at.catalogs[catalog].capabilities.max_parallelism, late, "tags")
    return dict(zip(tables, found, strict=True))


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


def _pending(steps: list[Step], fields: Fields) -> tuple[Pending, ...]:
    objects: dict[ObjectKey, list[Step]] = {}
    for step in steps:
        objects.setdefault(step.key, []).append(step)
    return tuple(
        Pending(
            key,
            tuple(dict.fromkeys(s.action for s in its)),
            next((s.verdict for s in its if s.verdict != "allowed"), "allowed"),
            tuple(dict.fromkeys(difference for s in its for difference in fields(s))),
        )
        for key, its in sorted(objects.items())
    )
