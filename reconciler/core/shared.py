"""One dataset declared in several catalogs is made and altered once: through the first of them, in order of name.

The others follow: they manage their own entry and the columns that they show, and leave the data alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from reconciler.core.draft import Draft
from reconciler.core.plan_table import new_location
from reconciler.core.uris import canonical_location, canonical_of, store_endpoints
from reconciler.model import change as c
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import Desired, DesiredTable
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.ident import Ident, ObjectKey, dotted
from reconciler.model.observed import Detached, Present, Snapshot, Unreadable, what_is_left
from reconciler.model.state import UNKNOWN, DatasetState, TableState

Found = Present | Detached | Unreadable | None
Followers = Mapping[ObjectKey, ObjectKey]
"""Table -> the table of an earlier catalog that has the same dataset."""
Named = tuple[str, Draft]
_OF_THE_ENTRY = (c.DeclareTable, c.RenameTable, c.UpdateTable, c.SyncColumns, c.ReplaceTable)


def followers(
    desired: Desired,
    snapshots: Mapping[str, Snapshot],
    capabilities: Mapping[str, Capabilities],
    selected: Mapping[str, Callable[[Ident], bool]],
) -> dict[ObjectKey, ObjectKey]:
    out: dict[ObjectKey, ObjectKey] = {}
    first: dict[tuple[str, tuple[str, ...]], ObjectKey] = {}
    for name in sorted(snapshots) if len(snapshots) > 1 else ():
        live = snapshots[name].tables
        endpoints = store_endpoints(desired.catalogs[name].options)
        for ident, want in sorted(desired.tables.get(name, {}).items()):
            if want.absent or not selected[name](ident):
                continue
            found = live.get(ident) or (live.get(want.renamed_from) if want.renamed_from else None)
            where = _place(want, found, snapshots[name], capabilities[name])
            if where is not None:
                place = (where, endpoints if "://" in where else ())
                key = ObjectKey(name, ident, "Table")
                leader = first.setdefault(place, key)
                if leader.catalog != name:
                    out[key] = leader
    return out


def left_to_others(desired: Desired, snapshots: Mapping[str, Snapshot], follows: Followers) -> dict[str, Snapshot]:
    """The same snapshots, in which a table that follows looks as if its dataset had not been read; a table that is to
    be renamed, under its old name."""
    hidden: dict[str, dict[Ident, Present]] = {}
    for key in follows:
        for ident in (key.ident, desired.tables[key.catalog][key.ident].renamed_from or key.ident):
            found = snapshots[key.catalog].tables.get(ident)
            if isinstance(found, Present) and isinstance(found.state, TableState):
                dataset = found.state.dataset
                owner = dataset.owner if isinstance(dataset, DatasetState) else None
                left = replace(found.state, dataset=UNKNOWN, marked_by=owner)
                hidden.setdefault(key.catalog, {})[ident] = Present(left)
    out = dict(snapshots)
    for name, tables in hidden.items():
        out[name] = replace(out[name], tables={**out[name].tables, **tables})
    return out


def declared_twice(desired: Desired, follows: Followers) -> list[Diagnostic]:
    """One dataset may be declared in two catalogs, but only in one way."""
    out: list[Diagnostic] = []
    for key, leader in follows.items():
        want, first = desired.tables[key.catalog][key.ident], desired.tables[leader.catalog][leader.ident]
        if _data(first) != _data(want):
            message = (
                f"{dotted(key.ident)} is the same dataset as {leader} ({first.source}), which declares it with another "
                "schema, config or indexes"
            )
            out.append(Diagnostic(want.source, "P103", "error", message, "declare both alike, or only one of them"))
    return out


def in_turn(drafts: Sequence[Named], follows: Followers) -> list[Named]:
    """First every entry, then the data, then what the entries that follow show of it: an entry is declared on the data
    that was seen, and its columns are those that the data has in the end."""
    leaders = frozenset(follows.values())
    entries: list[Named] = []
    data: list[Named] = []
    shown: list[Named] = []
    begun: set[ObjectKey] = set()
    for name, draft in drafts:
        change = draft.change
        key = ObjectKey(name, change.ident, change.kind)
        late = isinstance(change, (c.SyncColumns, c.ReplaceTable, c.AdoptTable))
        if key in leaders and (key in begun or not isinstance(change, _OF_THE_ENTRY)):
            begun.add(key)
            data.append((name, draft))
        elif key in follows and (key in begun or late):
            begun.add(key)
            shown.append((name, draft))
        else:
            entries.append((name, draft))
    return entries + data + shown


def _place(want: DesiredTable, found: Found, snapshot: Snapshot, capabilities: Capabilities) -> str | None:
    left = None if found is None else what_is_left(found)
    if isinstance(left, Present) and isinstance(left.state, TableState):
        return canonical_of(left.state)
    if not isinstance(found, Detached | None):
        return None
    checked = snapshot.checked.get(want.ident)
    if checked is not None and checked.canonical:
        return checked.canonical
    location = found.location if found is not None else new_location(capabilities, want)
    return canonical_location(location) if location is not None else None


def _data(want: DesiredTable) -> tuple[object, ...]:
    fields = None if want.fields is None else {f.name: (str(f.type), f.nullable, f.comment) for f in want.fields}
    indexes = {i.name: i for i in want.indexes}
    return fields, dict(want.config), dict(want.schema_metadata), indexes, want.data, want.migration
