"""What differs in our own notes on an object, for a step that changes nothing else: a reader has to see that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.core.applied import parse_applied
from reconciler.core.text import listing
from reconciler.model.state import Marks

RECORD = "our record of what we set differs"
MARKS = "our marks differ"


def record_reason(
    before: Sequence[str], after: Sequence[str], owners: tuple[str | None, str], indexes: Sequence[str]
) -> str:
    """`before` and `after`: the entries of the record of a dataset; `owners`: in its data, and ours; `indexes`: those
    whose definition is to be noted."""
    parts = _changes(_named(set(before) - set(after)), _named(set(after) - set(before)))
    if indexes:
        parts.append(f"the definition of {listing([f'index {name}' for name in sorted(indexes)])} is not noted")
    if owners[0] != owners[1]:
        parts.append(f"the owner in its data is {owners[0]}" if owners[0] else "its data has no owner yet")
    return f"{RECORD}: {'; '.join(parts)}" if parts else RECORD


def marks_reason(before: Marks, after: Marks) -> str:
    """Of an entry in the catalog."""
    gone, new = sorted({*before.applied} - {*after.applied}), sorted({*after.applied} - {*before.applied})
    parts = [f"{_properties(new)} declared now"] if new else []
    parts += [f"{_properties(gone)} no longer ours"] if gone else []
    if before.protect != after.protect:
        parts.append("protect is to be set" if after.protect else "protect is to be taken off")
    return f"{MARKS}: {'; '.join(parts)}" if parts else MARKS


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
