"""What differs in our own notes on an object, for a step that changes nothing else: a reader has to see that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from reconciler.core.applied import named
from reconciler.core.text import listing
from reconciler.model.state import Marks

RECORD = "our record of what we set differs"
MARKS = "our marks differ"


def record_reason(
    before: Iterable[str],
    after: Iterable[str],
    owners: tuple[str | None, str],
    beside: str = "",
) -> str:
    """`before` and `after`: the entries of the record of a dataset; `owners`: in its data, and ours. `beside`:
    what else the step does."""
    was, will = {*before}, {*after}
    parts = _changes(named(was - will), named(will - was))
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


def _changes(gone: Sequence[str], new: Sequence[str]) -> list[str]:
    parts = [f"{listing(new)} {_is(new)} declared now"] if new else []
    return [*parts, f"{listing(gone)} {_is(gone)} no longer ours"] if gone else parts


def _properties(keys: Sequence[str]) -> str:
    return f"{'property' if len(keys) == 1 else 'properties'} {listing(keys)} {_is(keys)}"


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
