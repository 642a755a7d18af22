"""What differs in our own notes on an object, for a step that changes nothing else: a reader has to see that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from reconciler.core.applied import live_entries, parse_applied
from reconciler.core.text import listing
from reconciler.model.state import DatasetState, Marks, NamespaceState, TableState

RECORD = "our record of what we set differs"
MARKS = "our marks differ"


def record_reason(
    before: Iterable[str],
    after: Iterable[str],
    owners: tuple[str | None, str],
    indexes: Sequence[str],
    beside: str = "",
) -> str:
    """`before` and `after`: the entries of the record of a dataset; `owners`: in its data, and ours; `indexes`: those
    whose definition is to be noted. `beside`: what else the step does."""
    was, will = {*before}, {*after}
    parts = _changes(_named(was - will), _named(will - was))
    if indexes:
        parts.append(f"the definition of {listing([f'index {name}' for name in sorted(indexes)])} is not noted")
    if owners[0] != owners[1]:
        parts.append(f"the owner in its data is {owners[0]}" if owners[0] else "its data has no owner yet")
    return _told(RECORD, parts, beside)


def marks_reason(before: Marks, after: Marks, said: Collection[str] = (), beside: str = "") -> str:
    """Of an entry in the catalog. `said`: keys that the step sets or removes, which are told as such."""
    was, will = {*before.applied} - {*said}, {*after.applied} - {*said}
    gone, new = sorted(was - will), sorted(will - was)
    parts = [f"{_properties(new)} declared now"] if new else []
    parts += [f"{_properties(gone)} no longer ours"] if gone else []
    if before.protect != after.protect:
        parts.append("protect is to be set" if after.protect else "protect is to be taken off")
    return _told(MARKS, parts, beside)


def _told(title: str, parts: Sequence[str], beside: str) -> str:
    """A step that does something else too is about that, and this is said with it."""
    if beside:
        return "; ".join(parts)
    return f"{title}: {'; '.join(parts)}" if parts else title


def gone_behind_our_back(us: str, live: NamespaceState | TableState) -> str | None:
    """What of our own notes on an object of ours the next plan puts right, whatever its manifest says, or None."""
    if live.marks.owner != us:
        return None
    lost = [f"property {key}" for key in live.marks.applied if key not in live.properties]
    data = live.dataset if isinstance(live, TableState) else None
    if not isinstance(data, DatasetState):
        return f"others removed {listing(lost)}" if lost else None
    lost += _named({*data.applied} - live_entries(data))
    parts = [f"others removed {listing(lost)}"] if lost else []
    parts += ["its data has no owner any more"] if data.owner is None else []
    return "; ".join(parts) or None


def _changes(gone: Sequence[str], new: Sequence[str]) -> list[str]:
    parts = [f"{listing(new)} {_is(new)} declared now"] if new else []
    return [*parts, f"{listing(gone)} {_is(gone)} no longer ours"] if gone else parts


def _properties(keys: Sequence[str]) -> str:
    return f"{'property' if len(keys) == 1 else 'properties'} {listing(keys)} {_is(keys)}"


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _named(entries: Iterable[str]) -> list[str]:
    """`config:KEY` as `config KEY`. Entries of a later version are not understood, and not shown."""
    known = parse_applied(sorted(entries))
    return [
        *(f"config {key}" for key in known.config),
        *(f"schema metadata {key}" for key in known.schema),
        *(f"column {path} {key}" for path, keys in known.fields.items() for key in keys),
        *(f"index {name}" for name in known.indexes),
    ]
