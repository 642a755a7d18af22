"""--target and --catalog: the part of a graph that was asked for, with what that part needs."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence

from reconciler.core.globs import matches
from reconciler.core.targets import of_catalog
from reconciler.model.desired import Desired
from reconciler.model.ident import Ident, dotted
from reconciler.model.plan import Plan
from reconciler.render.graph import Graph, with_what_it_needs
from reconciler.render.manifest_graph import catalog_id, manifest_graph, object_id
from reconciler.render.plan_graph import plan_graph

Places = Mapping[str, tuple[str, Ident]]
"""Node -> catalog and identifier. A catalog's own is empty."""


class Nothing(ValueError):
    """A name that stands for nothing: a typing error must not look like an empty plan."""


def of_plan(plan: Plan, targets: Sequence[str], catalogs: Sequence[str]) -> Graph:
    where = {step.id: (step.catalog, step.change.ident) for step in plan.steps}
    return _part(plan_graph(plan), where, plan.catalogs, targets, catalogs)


def of_manifests(desired: Desired, targets: Sequence[str], catalogs: Sequence[str]) -> Graph:
    where: dict[str, tuple[str, Ident]] = {catalog_id(name): (name, ()) for name in desired.catalogs}
    for name, namespaces in desired.namespaces.items():
        where |= {object_id(name, "Namespace", ident): (name, ident) for ident in namespaces}
    for name, tables in desired.tables.items():
        where |= {object_id(name, "Table", ident): (name, ident) for ident in tables}
    return _part(manifest_graph(desired), where, desired.catalogs, targets, catalogs)


def _part(
    graph: Graph, where: Places, known: Collection[str], targets: Sequence[str], catalogs: Sequence[str]
) -> Graph:
    for name in catalogs:
        if name not in known:
            raise Nothing(f"--catalog {name}: there is no catalog of this name{_nearest(name, known)}")
    inside = {node: ident for node, (catalog, ident) in where.items() if not catalogs or catalog in catalogs}
    for target in targets:
        if not any(ident and matches(target, ident) for ident in inside.values()):
            near = of_catalog(target, known) or _nearest(target, {dotted(ident) for ident in inside.values()})
            raise Nothing(f"--target {target}: nothing here has such an identifier{near}")
    if not targets and not catalogs:
        return graph
    wanted = [n for n, ident in inside.items() if not targets or (ident and any(matches(t, ident) for t in targets))]
    return with_what_it_needs(graph, wanted)


def _nearest(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), 1)
    return f"; did you mean {near[0]}?" if near else ""
