"""Where a live schema differs from the declared one. Column order is never compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from reconciler.core.casts import Cast, classify
from reconciler.core.fields import Fields, bare
from reconciler.model.arrow import ArrowType, Field, ListOf, Struct

ASPECTS = ("type", "nullable", "comment", "metadata")
Ignored = Callable[[str, str | None], bool]
"""(path, aspect): is this left to others? Aspect None asks about the column as a whole, `aspect_of` about a key."""


def aspect_of(key: str) -> str:
    """Where a key of a column's metadata is in `ignoreDifferences`. The comment is one of them."""
    return key if key == "comment" else f"metadata.{key}"


@dataclass(frozen=True, slots=True)
class Difference:
    """`path` is the live path, except for `missing`, where it is the wanted one."""

    kind: Literal["rename", "conflict", "missing", "extra", "type", "nullable"]
    path: str
    want: Field | None = None
    live: Field | None = None
    cast: Cast = "same"

    @property
    def column(self) -> str:
        """The top-level column it belongs to."""
        return self.path.partition(".")[0]


def compare(want: Fields, live: Fields, at_least: bool, ignored: Ignored, prefix: str = "") -> Iterator[Difference]:
    """A renamed column gives one `rename` and nothing else: compare again once it has its new name."""
    if want == live:
        return
    there = {f.name: f for f in live}
    claimed: set[str] = set()
    for w in want:
        path = prefix + w.name
        found = there.get(w.name)
        old = there.get(w.renamed_from) if w.renamed_from else None
        if old is not None and not ignored(path, None):
            claimed.add(old.name)
            kind: Literal["rename", "conflict"] = "rename" if found is None else "conflict"
            yield Difference(kind, prefix + old.name, w, old)
            if found is None:
                continue
        if ignored(path, None):
            continue
        if found is None:
            yield Difference("missing", path, w)
        elif found is not w:
            yield from _field(w, found, at_least, ignored, path)
    names = {w.name for w in want} | claimed
    if not at_least:
        for f in live:
            if f.name not in names and not ignored(prefix + f.name, None):
                yield Difference("extra", prefix + f.name, None, f)


def _field(want: Field, live: Field, at_least: bool, ignored: Ignored, path: str) -> Iterator[Difference]:
    if want.type is not live.type and not ignored(path, "type"):
        yield from _type(want, live, at_least, ignored, path)
    if want.nullable != live.nullable and not ignored(path, "nullable"):
        yield Difference("nullable", path, want, live)


def _type(want: Field, live: Field, at_least: bool, ignored: Ignored, path: str) -> Iterator[Difference]:
    """Goes down where both sides are structs, or lists of structs of the same kind; everything else is one cast."""
    wanted, found = want.type, live.type
    if isinstance(wanted, Struct) and isinstance(found, Struct):
        yield from compare(wanted.fields, found.fields, at_least, ignored, path + ".")
        return
    if isinstance(wanted, ListOf) and isinstance(found, ListOf):
        alike = (wanted.name, wanted.size, wanted.item_nullable) == (found.name, found.size, found.item_nullable)
        if alike and isinstance(wanted.item, Struct) and isinstance(found.item, Struct):
            yield from compare(wanted.item.fields, found.item.fields, at_least, ignored, path + ".item.")
            return
    if bare(wanted) != bare(found):
        yield Difference("type", path, want, live, classify(found, wanted))


def _nothing(_path: str, _aspect: str | None) -> bool:
    return False


def ignore_rule(paths: tuple[str, ...]) -> Ignored:
    """From `ignoreDifferences`: `schema`, `schema.COLUMN`, `schema.COLUMN.ASPECT`, `schema.COLUMN.metadata.KEY`."""
    if not paths:
        return _nothing
    whole: set[str] = set()
    parts: set[tuple[str, str]] = set()
    for p in paths:
        if p == "schema":
            return lambda _path, _aspect: True
        if p.startswith("schema."):
            column, _, last = p[len("schema.") :].rpartition(".")
            if column and last in ASPECTS:
                parts.add((column, last))
            else:
                whole.add(p[len("schema.") :])
            parts.update(_keys(p[len("schema.") :].split(".")))

    def ignored(path: str, aspect: str | None) -> bool:
        if not whole and not parts:
            return False
        head = path.split(".")
        if any(".".join(head[: i + 1]) in whole for i in range(len(head))):
            return True
        if aspect is None:
            return False
        return (path, aspect) in parts or (aspect.startswith("metadata.") and (path, "metadata") in parts)

    return ignored


def unignored(f: Field, path: str, rule: Ignored) -> Field:
    """A new column without what is left to others: that is not set at the start either."""
    if f.comment is not None and rule(path, "comment"):
        f = replace(f, comment=None)
    kept = {k: v for k, v in f.metadata.items() if not rule(path, aspect_of(k))}
    if len(kept) < len(f.metadata):
        f = replace(f, metadata=kept)
    return replace(f, type=_unignored_inside(f.type, path, rule)) if isinstance(f.type, Struct | ListOf) else f


def _unignored_inside(type_: ArrowType, path: str, rule: Ignored) -> ArrowType:
    match type_:
        case Struct(fields):
            return Struct(tuple(unignored(f, f"{path}.{f.name}", rule) for f in fields))
        case ListOf():
            return replace(type_, item=_unignored_inside(type_.item, f"{path}.item", rule))
        case _:
            return type_


def _keys(words: list[str]) -> Iterator[tuple[str, str]]:
    """`COLUMN.metadata.KEY`, however it is meant: keys have dots, and so have the paths of nested columns."""
    for at in range(1, len(words) - 1):
        if words[at] == "metadata":
            yield ".".join(words[:at]), ".".join(words[at:])
