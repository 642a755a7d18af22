"""A name that a plan fills must be free of objects of the other kind too: no table beside a namespace of its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reconciler.core.plan_renames import Renames
from reconciler.engine.chain import RENAMES, Link
from reconciler.engine.reader import Key
from reconciler.model.change import CreateNamespace, DeclareTable
from reconciler.model.ident import Ident, Kind, ObjectKey
from reconciler.model.observed import Absent, Finding, Present, Unreadable

FILLS = (CreateNamespace, DeclareTable, *RENAMES)


def pending(renames: Renames, found: Mapping[Key, Finding]) -> dict[Ident, Ident]:
    """The namespaces that still have to be moved, in the order of the plan."""
    return {new: old for new, old in renames.items() if isinstance(found["Namespace", new], Absent)}


def rivals(
    key: ObjectKey, earlier: Iterable[Ident], moves: Renames, chains: Mapping[ObjectKey, Sequence[Link]]
) -> list[Key]:
    """Where an object of the other kind would be now that has this name when its step comes. Those that the plan itself
    changes are judged on their own."""
    if not any(link.key == link.step.key and isinstance(link.step.change, FILLS) for link in chains[key]):
        return []
    other: Kind = "Table" if key.kind == "Namespace" else "Namespace"
    names = dict.fromkeys((key.ident, *earlier))
    return [
        (other, name)
        for name in names
        if _moved(name, moves) == key.ident and ObjectKey(key.catalog, name, other) not in chains
    ]


def _moved(name: Ident, moves: Renames) -> Ident:
    """The name after these renames of namespaces."""
    for new, old in moves.items():
        if name[: len(old)] == old:
            name = new + name[len(old) :]
    return name


def taken(places: Iterable[Key], found: Mapping[Key, Finding]) -> Present | Unreadable | None:
    findings = (found[place] for place in places)
    return next((f for f in findings if isinstance(f, (Present, Unreadable))), None)
