"""Which fields differ, in words: for an object that is not what a write should have made it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from reconciler.core.world import World
from reconciler.model.change import Change, RenameNamespace, RenameTable
from reconciler.model.codec import canonical, finding_json
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident
from reconciler.model.observed import Detached, Finding, Present, Snapshot, Unreadable
from reconciler.model.plan import Json
from reconciler.model.state import NamespaceState

LONGEST = 80
CONTEXT = 20
"""Characters before the first difference."""
MOST = 4


def mismatch(before: Finding, change: Change, live: Finding) -> str:
    """One sentence: the fields that the catalog shows, instead of those that the change should have given."""
    expected = simulated(before, change)
    if expected is None:
        return "the catalog does not show the result of this step"
    found = list(_differences("", finding_json(expected), finding_json(live)))
    if not found:
        return "the catalog shows something else than the result of this step"
    more = f"; and {len(found) - MOST} more" if len(found) > MOST else ""
    return "; ".join(found[:MOST]) + more


def simulated(before: Finding, change: Change) -> Finding | None:
    """The object after the change, in a small world of its own; None when that cannot be told."""
    ident = change.ident
    here = change.source if isinstance(change, (RenameTable, RenameNamespace)) else ident
    namespaces: dict[Ident, Present | Unreadable] = {
        place[:n]: Present(NamespaceState()) for place in (here, ident) for n in range(1, len(place))
    }
    tables: dict[Ident, Present | Detached | Unreadable] = {}
    if change.kind == "Table" and isinstance(before, (Present, Detached)):
        tables[here] = before
    elif isinstance(before, Present):
        namespaces[here] = before
    try:
        return World(Snapshot(namespaces, tables)).apply(change)[-1]
    except (CatalogError, AssertionError):
        return None


def _differences(path: str, expected: Json, live: Json) -> Iterator[str]:
    if expected == live or expected == {"unknown": "server"}:
        return
    if isinstance(expected, dict) and isinstance(live, dict):
        for key in sorted({*expected, *live}):
            yield from _differences(f"{path}.{key}" if path else key, expected.get(key), live.get(key))
    else:
        shown, wanted = _short(_text(live), _text(expected))
        yield f"{path}: the catalog shows {shown} instead of {wanted}"


def _text(value: Json) -> str:
    return "nothing" if value is None else canonical(value)


def _short(one: str, other: str) -> tuple[str, str]:
    """Long texts are cut where they are still alike, so that what differs is seen."""
    if max(len(one), len(other)) <= LONGEST:
        return one, other
    alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    start = max(0, alike - CONTEXT)
    return _cut(one, start), _cut(other, start)


def short(value: Json) -> str:
    return _cut(_text(value), 0)


def _cut(text: str, start: int) -> str:
    text = ("…" if start else "") + text[start:]
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
