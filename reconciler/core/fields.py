"""Columns by dotted path: finding, replacing, renaming and dropping, at any depth.

A path goes through structs by field name and through lists by the word `item`, as Lance writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from reconciler.model.arrow import (
    ArrowType,
    Dictionary,
    Field,
    ListOf,
    MapOf,
    Scalar,
    Struct,
    is_speakable,
    names_inside,
)

Fields = tuple[Field, ...]


def walk(fields: Fields, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Every field with its path, parents first. Map entries cannot be altered and are not visited."""
    for f in fields:
        path = f"{prefix}{f.name}"
        yield path, f
        yield from walk(*_children(f.type, path + "."))


def _children(type_: ArrowType, prefix: str) -> tuple[Fields, str]:
    match type_:
        case Struct(fields):
            return fields, prefix
        case ListOf():
            return _children(type_.item, prefix + "item.")
        case _:
            return (), prefix


def annotated(fields: Fields) -> Iterator[tuple[str, Field]]:
    """The fields that carry a comment or metadata, with their paths."""
    for f in fields:
        if f.comment is not None or f.metadata:
            yield f.name, f
        if isinstance(f.type, (Struct, ListOf)):
            inner, prefix = _children(f.type, f.name + ".")
            yield from ((prefix + path, child) for path, child in annotated(inner))


def unspeakable(f: Field) -> str | None:
    """A name in this column that no path can hold, or None. A manifest cannot have one, a live table can; nothing that
    a path would have to name is looked for or changed in such a column: the path may mean another field."""
    if isinstance(f.type, Scalar):
        return None if is_speakable(f.name) else f.name
    return next((name for name in (f.name, *names_inside(f.type)) if not is_speakable(name)), None)


def find(fields: Fields, path: str) -> Field | None:
    head, _, rest = path.partition(".")
    found = next((f for f in fields if f.name == head), None)
    if found is None or not rest:
        return found
    if unspeakable(found) is not None:
        return None
    inner, prefix = _children(found.type, head + ".")
    return find(inner, path[len(prefix) :]) if path.startswith(prefix) else None


def in_list(fields: Fields, path: str) -> bool:
    """Whether the field belongs to the items of a list."""
    parts = path.split(".")
    above = (find(fields, ".".join(parts[:end])) for end in range(1, len(parts)))
    return any(f is not None and isinstance(f.type, ListOf) for f in above)


def small_dictionary(type_: ArrowType) -> Dictionary | None:
    """One at any depth that does not hold any number of values."""
    match type_:
        case Dictionary():
            return type_ if type_.room is not None else None
        case Struct(fields):
            return next((d for f in fields if (d := small_dictionary(f.type)) is not None), None)
        case ListOf():
            return small_dictionary(type_.item)
        case MapOf():
            return small_dictionary(type_.key) or small_dictionary(type_.value)
        case _:
            return None


def edit(fields: Fields, path: str, change: Callable[[Field], Field | None]) -> Fields:
    """The fields with the one at `path` replaced, or left out when `change` gives None. A struct that loses its last
    field goes too, as in Lance. Raises KeyError when there is none."""
    head, _, rest = path.partition(".")
    out: list[Field] = []
    found = False
    for f in fields:
        if f.name != head:
            out.append(f)
            continue
        found = True
        new = change(f) if not rest else _edit_inside(f, rest, change)
        if new is not None:
            out.append(new)
    if not found:
        raise KeyError(path)
    return tuple(out)


def _edit_inside(f: Field, rest: str, change: Callable[[Field], Field | None]) -> Field | None:
    type_ = _edit_type(f.type, rest, change)
    return None if type_ is None else replace(f, type=type_)


def _edit_type(type_: ArrowType, rest: str, change: Callable[[Field], Field | None]) -> ArrowType | None:
    match type_:
        case Struct(fields):
            children = edit(fields, rest, change)
            return Struct(children) if children else None
        case ListOf():
            word, _, deeper = rest.partition(".")
            if word != "item" or not deeper:
                raise KeyError(rest)
            item = _edit_type(type_.item, deeper, change)
            return None if item is None else replace(type_, item=item)
        case _:
            raise KeyError(rest)


def pairs(want: ArrowType, live: ArrowType, prefix: str) -> Iterator[tuple[str, Field, Field]]:
    """The nested fields that both have, found by their names one level after the other and not by their paths."""
    inner, prefix = _children(want, prefix)
    there = {f.name: f for f in _children(live, "")[0]}
    for f in inner:
        if f.name in there:
            yield prefix + f.name, f, there[f.name]
            yield from pairs(f.type, there[f.name].type, f"{prefix}{f.name}.")


def with_others(fields: Fields, live: Fields) -> Fields:
    """The fields, and after them what `live` has besides, at any depth; their metadata too."""
    there = {f.name: f for f in live}
    known = [_with_other(f, there[f.name]) if f.name in there else f for f in fields]
    names = {f.name for f in fields}
    return (*known, *(f for f in live if f.name not in names))


def _with_other(f: Field, live: Field) -> Field:
    return replace(f, type=_with_others(f.type, live.type), metadata={**live.metadata, **f.metadata})


def _with_others(type_: ArrowType, live: ArrowType) -> ArrowType:
    match type_, live:
        case Struct(fields), Struct(others):
            return Struct(with_others(fields, others))
        case ListOf(), ListOf():
            return replace(type_, item=_with_others(type_.item, live.item))
        case _:
            return type_


def bare(type_: ArrowType) -> ArrowType:
    """The type without comments, metadata and hints on nested fields: what is compared as a type."""
    match type_:
        case Struct(fields):
            return Struct(tuple(Field(f.name, bare(f.type), f.nullable) for f in fields))
        case ListOf():
            return replace(type_, item=bare(type_.item))
        case MapOf():
            return replace(type_, key=bare(type_.key), value=bare(type_.value))
        case _:
            return type_


def plain(f: Field) -> Field:
    """The field without the hints on how to get there (rename, backfill), at any depth: what will be live."""
    if f.renamed_from is None and not f.filled and not isinstance(f.type, (Struct, ListOf, MapOf)):
        return f
    return replace(f, type=_plain_type(f.type), renamed_from=None, default=None, function=None)


def _plain_type(type_: ArrowType) -> ArrowType:
    match type_:
        case Struct(fields):
            return Struct(tuple(plain(f) for f in fields))
        case ListOf():
            return replace(type_, item=_plain_type(type_.item))
        case MapOf():
            return replace(type_, key=_plain_type(type_.key), value=_plain_type(type_.value))
        case _:
            return type_


def rename_path(path: str, renames: dict[str, str]) -> str:
    """A path after the renames, given as old path -> new name; also for everything below a renamed column. The old path
    of a nested column has the new names of what is above it: renames go from the outside in."""
    out: list[str] = []
    for part in path.split("."):
        out.append(renames.get(".".join((*out, part)), part))
    return ".".join(out)


def past_renames(want: Fields, live: Fields) -> dict[str, str]:
    """The declared column renames that hold already, as old path -> new name, whoever did them and when: a run may have
    been killed between the rename and the note of it."""
    renamed = [(path, f.name, f.renamed_from) for path, f in walk(want) if f.renamed_from is not None]
    there = {path for path, _ in walk(live)} if renamed else set()
    olds = {path[: len(path) - len(new)] + old: new for path, new, old in renamed if path in there}
    return {old: new for old, new in olds.items() if old not in there}
