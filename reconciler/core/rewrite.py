"""The column that a rewrite writes: as declared where Lance cannot change it in place, as it is everywhere else.

Casts that work in place, nullability, metadata and drops have their own steps with their own rules; a rewrite must not
do them by the way, least of all leave a field out that nobody allowed to drop.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.casts import classify
from reconciler.core.diff_schema import Ignored
from reconciler.core.fields import Fields, plain
from reconciler.model.arrow import ArrowType, Field, ListOf, Struct


def rewritten(want: Field, live: Field, ignored: Ignored, path: str) -> Field:
    if ignored(path, None) or ignored(path, "type"):
        return live
    return replace(live, type=_type(want, live, ignored, path))


def _type(want: Field, live: Field, ignored: Ignored, path: str) -> ArrowType:
    declared, found = want.type, live.type
    match declared, found:
        case Struct(), Struct():
            return Struct(_merged(declared.fields, found.fields, ignored, path + "."))
        case ListOf(item=Struct() as new), ListOf(item=Struct() as old):
            return replace(declared, item=Struct(_merged(new.fields, old.fields, ignored, path + ".item.")))
        case _:
            return plain(want).type if classify(found, declared) in ("rewrite", "never") else found


def _merged(want: Fields, live: Fields, ignored: Ignored, prefix: str) -> Fields:
    """A field that is still there under its old name is renamed later, not added."""
    there = {f.name: f for f in live}
    new: list[Field] = []
    for w in want:
        if w.name in there:
            new.append(rewritten(w, there[w.name], ignored, prefix + w.name))
        elif w.renamed_from not in there and not ignored(prefix + w.name, None):
            new.append(plain(w))
    names = {f.name for f in new}
    return (*new, *(f for f in live if f.name not in names))
