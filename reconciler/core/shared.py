"""One dataset declared in two catalogs is altered once: by the first of them, in order of name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reconciler.model.desired import Desired, DesiredTable
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.ident import Ident, dotted
from reconciler.model.observed import Detached, Present, Snapshot, Unreadable
from reconciler.model.state import UNKNOWN, DatasetState, TableState

Tables = dict[Ident, Present | Detached | Unreadable]


def altered_once(desired: Desired, snapshots: Mapping[str, Snapshot]) -> Mapping[str, Snapshot]:
    """The same snapshots, in which a declared table whose dataset an earlier catalog declares too looks as if its
    dataset had not been read: its catalog entry is still managed, its data is left to the first."""
    seen: dict[str, str] = {}
    out = dict(snapshots)
    for name in sorted(snapshots):
        changed: Tables = {}
        for ident, want in sorted(desired.tables.get(name, {}).items()):
            state = _with_data(snapshots[name], ident)
            if want.absent or state is None:
                continue
            first = seen.setdefault(_place(str(state.location)), name)
            if first != name:
                changed[ident] = Present(replace(state, dataset=UNKNOWN))
        if changed:
            out[name] = replace(snapshots[name], tables={**snapshots[name].tables, **changed})
    return out


def declared_twice(desired: Desired, snapshots: Mapping[str, Snapshot]) -> list[Diagnostic]:
    """One dataset may be declared in two catalogs, but only in one way."""
    seen: dict[str, DesiredTable] = {}
    out: list[Diagnostic] = []
    for name in sorted(snapshots):
        for ident, want in sorted(desired.tables.get(name, {}).items()):
            state = _with_data(snapshots[name], ident)
            if want.absent or state is None:
                continue
            first = seen.setdefault(_place(str(state.location)), want)
            if first.catalog != name and _data(first) != _data(want):
                message = (
                    f"{dotted(ident)} is the dataset at {state.location}, which {first.catalog}:{dotted(first.ident)} "
                    f"({first.source}) declares with another schema, config or indexes"
                )
                out.append(Diagnostic(want.source, "P103", "error", message, "declare both alike, or only one of them"))
    return out


def _data(want: DesiredTable) -> tuple[object, ...]:
    fields = None if want.fields is None else {f.name: (str(f.type), f.nullable, f.comment) for f in want.fields}
    return fields, dict(want.config), dict(want.schema_metadata), {i.name: i for i in want.indexes}


def _with_data(snapshot: Snapshot, ident: Ident) -> TableState | None:
    found = snapshot.tables.get(ident)
    if isinstance(found, Present) and isinstance(found.state, TableState):
        state = found.state
        if isinstance(state.dataset, DatasetState) and isinstance(state.location, str):
            return state
    return None


def _place(location: str) -> str:
    return location.removeprefix("file://").rstrip("/")
