"""What changed on an object since a plan was made: field by field, old and new.

deepdiff compares. Where pandas is installed it takes a second or two to import, so it is imported only once something
is known to differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reconciler.core.compared import HIDDEN, compared, finding_of
from reconciler.engine.chain import RENAMES, Link, Live
from reconciler.engine.explain import short, simulated
from reconciler.model.observed import Absent, Detached, Finding, Present
from reconciler.model.plan import Expect, Json
from reconciler.model.report import Difference

_ONLY_WHEN_KNOWN = ("location", "dataset", "shown_columns", "children")
"""Not part of what was compared when the plan did not know it, as of a table that was only listed."""
_OF_THE_DATASET = ("schema", "indexes", "config", "schema_metadata")


def changes(chain: Sequence[Link], live: Live) -> tuple[Difference, ...]:
    """Against the state on the object's way through the plan that is nearest to it, the earliest of several: what the
    plan's own steps have done is no change. Empty when the plan does not hold what it compared."""
    word = _word(live.finding)
    states = [*_states(chain)]
    alike = [(finding, children) for finding, children in states if _word(finding) == word]
    if alike and alike[0] is not states[0] and not any(_owner(f) == _owner(live.finding) for f, _ in alike):
        alike = []  # Not made by the plan: somebody else's object of that name.
    if not alike:
        known = next((_word(finding) for finding, _ in states), None)
        return () if known is None or word is None else (Difference("state", known, word),)
    seen = compared(live.finding, live.children)
    found = min((differences(_compared(f, c), seen) for f, c in alike), key=len)
    return found or _masked(_compared(*alike[0]))


def _states(chain: Sequence[Link]) -> Iterator[tuple[Finding, bool]]:
    """Before the first link, and after each that can be simulated. With each: are its children part of it."""
    finding = _known(chain[0].expect, chain[0].key.kind) if chain else None
    if finding is None:
        return
    drops = isinstance(chain[0].expect.compared, dict) and "children" in chain[0].expect.compared
    yield finding, drops
    for link in chain:
        if isinstance(link.step.change, RENAMES):
            after = Absent() if link.leaves else _known(link.yields, link.key.kind)
        else:
            after = simulated(finding, link.step.change)
        if after is None:
            return
        finding = after
        yield finding, False


def _owner(finding: Finding) -> str | None:
    return finding.state.marks.owner if isinstance(finding, Present) else None


def _known(expect: Expect, kind: str) -> Finding | None:
    if expect.state == "absent":
        return Absent()
    return finding_of(expect.compared, expect.state, kind) if isinstance(expect.compared, dict) else None


def _compared(finding: Finding, children: bool) -> dict[str, Json] | None:
    """Nothing may be in a namespace that is to be dropped."""
    return compared(finding, () if children else None)


def _word(finding: Finding) -> str | None:
    match finding:
        case Absent():
            return "absent"
        case Detached():
            return "detached"
        case Present():
            return "present"
    return None


def differences(before: dict[str, Json] | None, after: dict[str, Json] | None) -> tuple[Difference, ...]:
    """In the order of the fields. What a plan keeps as a mask cannot be compared."""
    if before is None or after is None:
        return ()
    from deepdiff import DeepDiff

    after = {k: v for k, v in after.items() if k in before or k not in _ONLY_WHEN_KNOWN}
    found: dict[str, Difference] = {}
    found_by_kind = DeepDiff(_whole(before), _whole(after), view="tree", threshold_to_diff_deeper=0)
    for nodes in found_by_kind.values():
        for node in nodes:
            path = node.path(output_format="list")
            field, missing = _field(path), True if _nullable(path) else None
            old, new = _leaf(node.t1, missing), _leaf(node.t2, missing)
            if old != HIDDEN or new is None:
                found[field] = Difference(field, old, new)
    return tuple(found[field] for field in sorted(found))


def _masked(before: Json) -> tuple[Difference, ...]:
    """Nothing else differs, so a value that the plan keeps as a mask does. It is named when there is only one."""
    hidden = [*_hidden(before)]
    return (Difference(_field(hidden[0]), HIDDEN, HIDDEN),) if len(hidden) == 1 else ()


def _hidden(value: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if value == HIDDEN:
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _hidden(inner, (*path, key))


def _whole(value: dict[str, Json]) -> dict[str, Json]:
    """With the maps that are left out while they are empty, so that each of their keys is a field."""
    dataset = value.get("dataset")
    filled: dict[str, Json] = {"managed_keys": {}, **value}
    if isinstance(dataset, dict):
        filled["dataset"] = {**{key: {} for key in (*_OF_THE_DATASET, "managed_keys")}, "owner": None, **dataset}
    return filled


def said(difference: Difference) -> str:
    """`properties.pii "false" -> "true"`."""
    old, new = difference.before, difference.after
    if old is None:
        return f"{difference.field} added: {short(new)}"
    return f"{difference.field} removed" if new is None else f"{difference.field} {short(old)} -> {short(new)}"


def _leaf(value: Any, missing: Json) -> Json:
    return missing if type(value).__name__ == "NotPresent" else value


def _nullable(path: Sequence[object]) -> bool:
    """Of a column; it is written only when it is false."""
    return path[-1] == "nullable" and [*path[:-2]] in (["dataset", "schema"], ["shown_columns"])


def _field(path: Sequence[object]) -> str:
    parts = [str(part) for part in path]
    if len(parts) > 1 and parts[0] == "dataset" and parts[1] in _OF_THE_DATASET:
        parts = parts[1:]
    return ".".join(parts)
