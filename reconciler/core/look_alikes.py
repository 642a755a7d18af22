"""Names that read alike and differ: an accented letter is one character in one, letter and accent in the other.

Among manifests that is a warning when they are checked. A live object or column is known to the plan only, and there it
matters most: what looks like the same name twice is a create and, with the permission for it, a delete.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator

from reconciler.model.arrow import ArrowType, Field, ListOf, Struct
from reconciler.model.ident import Ident, dotted


def composed(name: str) -> str:
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def live_look_alikes(
    declared: Iterable[Ident], live: Collection[Ident], expected: Collection[Ident]
) -> Iterator[tuple[Ident, str]]:
    """The declared objects that a live one in the same place looks like, or one that they are in, and how to say so.
    `expected`: live ones that the manifests mention, as an object of their own or as an old name."""
    wanted = list(declared)
    if all(name.isascii() for idents in (wanted, live) for ident in idents for name in ident):
        return
    alike: dict[tuple[Ident, str], list[Ident]] = {}
    for other in sorted(live):
        alike.setdefault((other[:-1], composed(other[-1])), []).append(other)
    told: set[Ident] = set()
    for ident in wanted:
        for name in (ident[:length] for length in range(1, len(ident) + 1)):
            others = [o for o in alike.get((name[:-1], composed(name[-1])), ()) if o != name and o not in expected]
            if others and name not in told:
                told.add(name)
                yield ident, _said(dotted(name), dotted(others[0]), "the live object")


def reads_like(name: Ident, live: Iterable[Ident]) -> Ident | None:
    """The live object that this one, which is not there, may be meant to be."""
    return next((o for o in live if o[:-1] == name[:-1] and composed(o[-1]) == composed(name[-1])), None)


def column_look_alikes(declared: Iterable[Field], live: Iterable[Field], path: str = "") -> Iterator[str]:
    """The same for the columns of a table, and for those inside them."""
    wanted, there = {f.name: f for f in declared}, {f.name: f for f in live}
    if not all(map(str.isascii, (*wanted, *there))):
        alike = {composed(name): name for name in there if name not in wanted}
        for name, column in wanted.items():
            other = alike.get(composed(name))
            if other is not None and column.renamed_from != other:
                yield f"column {_said(path + name, path + other, 'the live column')}"
    for name in wanted.keys() & there.keys():
        inner = _children(wanted[name].type), _children(there[name].type)
        if all(inner):
            yield from column_look_alikes(*inner, f"{path}{name}.")


def _children(type_: ArrowType) -> tuple[Field, ...]:
    while isinstance(type_, ListOf):
        type_ = type_.item
    return type_.fields if isinstance(type_, Struct) else ()


def _said(name: str, other: str, what: str) -> str:
    return f"{name} ({name!a}) looks like {what} {other!a} and is another name: Unicode spells such letters in two ways"
