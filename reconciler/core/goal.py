"""Is everything as declared? Asked of the simulated end of a plan, in other words than the diff uses, so that a step
which the planner forgets every time is noticed too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from reconciler.core.diff_properties import ignored_paths
from reconciler.core.fields import Fields, bare
from reconciler.core.projection import projection
from reconciler.model.arrow import ListOf, Struct
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import DesiredObject, DesiredTable
from reconciler.model.ident import Ident, dotted
from reconciler.model.observed import Absent, Finding, Present, Snapshot
from reconciler.model.state import DatasetState, TableState


def unmet(
    declared: Iterable[DesiredObject], end: Snapshot, held: frozenset[Ident], selected: Callable[[Ident], bool]
) -> str | None:
    """The first object that is not as declared. `held`: what is held back, with all below it, is not expected to be."""
    for want in declared:
        ident = want.ident
        if held and any(ident[:n] in held for n in range(1, len(ident) + 1)):
            continue
        if not selected(ident):
            continue
        problem = _table(want, end) if isinstance(want, DesiredTable) else _object(want, _find(end.namespaces, ident))
        if problem is not None:
            return f"{dotted(ident)} {problem}"
    return None


def _find(where: Mapping[Ident, Finding], ident: Ident) -> Finding:
    return where.get(ident, Absent())


def _object(want: DesiredObject, found: Finding) -> str | None:
    if want.absent or not isinstance(found, Present):
        there = isinstance(found, Present)
        return None if there != want.absent else "would still be there" if there else "would not be there"
    live = found.state.properties
    differ = [k for k, v in want.properties.items() if live.get(k) != v]
    if differ:
        ignored = ignored_paths(want)
        differ = [k for k in differ if "properties" not in ignored and f"properties.{k}" not in ignored]
    return f"would have another value of property {differ[0]}" if differ else None


def _table(want: DesiredTable, end: Snapshot) -> str | None:
    found = _find(end.tables, want.ident)
    problem = _object(want, found)
    if problem is not None or want.fields is None or not isinstance(found, Present):
        return problem
    assert isinstance(found.state, TableState)
    dataset = found.state.dataset
    if dataset is None:
        return "would have no data"
    if not isinstance(dataset, DatasetState) or dataset.fields == want.fields:
        return None
    if any(path == "schema" or path.startswith("schema.") for path in want.ignore_differences):
        return None
    return _columns(want.fields, dataset.fields, want.at_least)


def _columns(want: Fields, live: Fields, at_least: bool) -> str | None:
    there = {f.name: f for f in live}
    for f in want:
        found = there.get(f.name)
        if found is None:
            return f"would have no column {f.name}"
        if found.nullable != f.nullable:
            return f"would have column {f.name} with another nullability"
        if not at_least and _shape(bare(found.type)) != _shape(bare(f.type)):
            return f"would have column {f.name} as {found.type}"
    extra = [name for name in there if name not in {f.name for f in want}]
    return f"would still have column {extra[0]}" if extra and not at_least else None


def unshown(
    declared: Iterable[DesiredObject],
    end: Snapshot,
    held: frozenset[Ident],
    selected: Callable[[Ident], bool],
    capabilities: Capabilities,
    owner: str,
) -> str | None:
    """The first table of ours for which the catalog would show other columns than its data has."""
    for want in declared:
        found = end.tables.get(want.ident)
        if want.ident in held or want.absent or not selected(want.ident) or not isinstance(found, Present):
            continue
        state = found.state
        if not isinstance(state, TableState) or state.columns is None or state.marks.owner != owner:
            continue
        if isinstance(state.dataset, DatasetState):
            columns = projection(capabilities, state.dataset.fields).columns
            if columns is not None and columns != state.columns and {*columns} != {*state.columns}:
                return f"the catalog would show other columns of {dotted(want.ident)} than its data has"
    return None


def _shape(type_: object) -> object:
    """A struct's fields may stand in any order."""
    if isinstance(type_, Struct):
        return {f.name: (_shape(f.type), f.nullable) for f in type_.fields}
    return (type_.name, type_.size, type_.item_nullable, _shape(type_.item)) if isinstance(type_, ListOf) else type_
