"""What each rule of a policy has against one declared object: what is broken, the fix, where in the document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.core.diff_properties import ignored_paths, left_to_others
from reconciler.core.patterns import matches, shown_literally
from reconciler.core.policy_places import Place, Whereabouts
from reconciler.core.text import listing, plural
from reconciler.core.uris import inside
from reconciler.model.arrow import ArrowType, Dictionary, Field, ListOf, MapOf, Struct
from reconciler.model.desired import DEFAULT_OWNER, CatalogSpec, DesiredObject, DesiredTable
from reconciler.model.ident import Kind
from reconciler.model.policy import (
    Check,
    ColumnLimits,
    LocationPrefix,
    Naming,
    NoDestructiveChange,
    Patterns,
    RequiredOwner,
    RequiredProperties,
    TaggedColumns,
)
from reconciler.model.state import DESCRIPTION_KEY

Path = tuple[str | int, ...]
_SHORT = 80


@dataclass(frozen=True, slots=True)
class Broken:
    message: str
    hint: str
    path: Path
    certain: bool = True
    """False: whether it is broken cannot be told."""
    left_to_others: bool = False
    """It is about something that `ignoreDifferences` names."""


def check_catalog(check: Check, spec: CatalogSpec) -> Iterator[Broken]:
    if isinstance(check, RequiredOwner) and check.property is None and spec.management.owner == DEFAULT_OWNER:
        message = f"the catalog {spec.name} has no owner: `management.owner` is not set"
        yield Broken(message, "set spec.management.owner to the team that looks after it", ("spec", "management"))


def check_object(
    check: Check, want: DesiredObject, whereabouts: Whereabouts, is_known: bool = True
) -> Iterator[Broken]:
    """`want` as it will be. `is_known`: with what is live; otherwise nothing is known about what is left to others."""
    for broken in _check(check, want, whereabouts):
        left = broken.left_to_others
        yield replace(broken, certain=False) if left and not is_known else broken


def _check(check: Check, want: DesiredObject, whereabouts: Whereabouts) -> Iterator[Broken]:
    left = left_to_others(ignored_paths(want))
    kind: Kind = "Table" if isinstance(want, DesiredTable) else "Namespace"
    match check:
        case Naming():
            yield from _naming(check, want, kind)
        case RequiredProperties() if kind in check.kinds:
            yield from _properties(check.properties, want.properties, "", left)
        case RequiredOwner() if check.property is not None and kind in check.kinds:
            yield from _properties({check.property: check.pattern}, want.properties, " says who owns it and", left)
        case LocationPrefix() if isinstance(want, DesiredTable):
            yield from _location(check, whereabouts.of(want))
        case ColumnLimits() if isinstance(want, DesiredTable) and want.fields is not None:
            yield from _columns(check, want.fields)
        case TaggedColumns() if isinstance(want, DesiredTable) and want.fields is not None:
            yield from _tagged(check, want, want.fields, left)
        case NoDestructiveChange():
            return  # About steps.


def _naming(check: Naming, want: DesiredObject, kind: Kind) -> Iterator[Broken]:
    pattern = check.table if kind == "Table" else check.namespace
    name = want.ident[-1]
    if pattern is not None and not matches(pattern, name, one_line=True):
        message = f"the name {_shown(name)} of this {kind.lower()} does not match {pattern}"
        hint = "give it a name that does; `renamedFrom` keeps what a live one holds"
        yield Broken(message, hint, ("metadata", "id", len(want.ident) - 1))


def _properties(needed: Patterns, have: Mapping[str, str], why: str, left: Callable[[str], bool]) -> Iterator[Broken]:
    for key, pattern in needed.items():
        place: Path = ("spec", key) if key == DESCRIPTION_KEY else ("spec", "properties", key)
        what = "spec.description" if key == DESCRIPTION_KEY else f"the property {_shown(key)}"
        if left(key) and not (key in have and matches(pattern, have[key])):
            yield _left(what, key, have)
        elif key not in have:
            yield Broken(f"{what}{why} is missing", f"add {_as_yaml(key, pattern)}", place)
        elif not matches(pattern, have[key]):
            hint = f"write {_as_yaml(key, pattern)}" if shown_literally(pattern) else "give it a value that does"
            yield Broken(f"{what}{why} is {_shown(have[key])}, which does not match {pattern}", hint, place)


def _left(what: str, key: str, have: Mapping[str, str]) -> Broken:
    live = f"is {_shown(have[key])}" if key in have else "is missing"
    message = f"{what} {live}: `ignoreDifferences` leaves it to others, so that the manifest does not set it"
    return Broken(message, "take it out of ignoreDifferences", ("spec", "ignoreDifferences"), left_to_others=True)


def _as_yaml(key: str, pattern: str) -> str:
    if key == DESCRIPTION_KEY:
        return "spec.description"
    value = f'"{pattern}"' if shown_literally(pattern) else "…"
    more = "" if shown_literally(pattern) or pattern in (".+", ".*") else f" (matching {pattern})"
    return f"properties: {{{key}: {value}}}{more}"


def _location(check: LocationPrefix, place: Place) -> Iterator[Broken]:
    """What cannot be told is told: a rule that keeps silent looks like one that is kept."""
    at: Path = ("spec", "location")
    prefixes = (*check.prefixes, *check.led_to)
    found = [inside(prefix, place.whole) if place.whole is not None else None for prefix in prefixes]
    if True in found:
        return
    if None in found:
        unresolved = "${" in place.shown
        where = f"{_shown(place.shown)} is not resolved here" if unresolved else "the service chooses its place"
        message = f"whether the location is under {listing(check.prefixes)} cannot be told yet: {where}"
        hint = "a plan tells it, once the table is there; or give it spec.location, if the catalog allows that"
        yield Broken(message, hint, at, certain=False)
    else:
        message = f"its location {_shown(place.shown)} is not under {listing(check.prefixes)}"
        yield Broken(message, "choose a location under one of them, or another catalog", at)


def _columns(check: ColumnLimits, fields: tuple[Field, ...]) -> Iterator[Broken]:
    schema: Path = ("spec", "schema")
    if check.max_columns is not None and len(fields) > check.max_columns:
        message = f"it has {plural(len(fields), 'column')}; at most {check.max_columns} are allowed"
        yield Broken(message, "split the table, or put columns that belong together into a struct", schema)
    deep = [(n, f) for n, f in enumerate(fields) if check.max_depth is not None and _depth(f.type) > check.max_depth]
    if deep:
        names = listing([_shown(f.name) for _, f in deep])
        message = f"nested more than {check.max_depth} deep: {names}"
        yield Broken(message, "make columns of the inner fields", (*schema, deep[0][0]))
    if check.name is not None:
        odd = [p for p, f in _each(fields) if not matches(check.name, f.name, one_line=True)]
        if odd:
            top = next(n for n, f in enumerate(fields) if odd[0] == f.name or odd[0].startswith(f"{f.name}."))
            message = f"column names that do not match {check.name}: {listing([_shown(p) for p in odd])}"
            yield Broken(message, "rename them; `renamedFrom: old` on the column keeps its values", (*schema, top))


def _each(fields: tuple[Field, ...], prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Every field with its path, also in the keys and values of maps, which no step alters: they too hold values."""
    for f in fields:
        yield f"{prefix}{f.name}", f
        yield from _inside(f.type, f"{prefix}{f.name}.")


def _inside(type_: ArrowType, prefix: str) -> Iterator[tuple[str, Field]]:
    match type_:
        case Struct(fields):
            yield from _each(fields, prefix)
        case ListOf(item=inner):
            yield from _inside(inner, f"{prefix}item.")
        case MapOf(key=key, value=value):
            yield from _inside(key, f"{prefix}key.")
            yield from _inside(value, f"{prefix}value.")


def _depth(type_: ArrowType) -> int:
    """Of a column: 1 without nesting; a list, a struct and a map add one each."""
    match type_:
        case Struct(fields):
            return 1 + max((_depth(f.type) for f in fields), default=0)
        case ListOf(item=inner):
            return 1 + _depth(inner)
        case MapOf(key=key, value=value):
            return 1 + max(_depth(key), _depth(value))
        case Dictionary(value=inner):
            return _depth(inner)
        case _:
            return 1


def _tagged(
    check: TaggedColumns, want: DesiredTable, fields: tuple[Field, ...], left: Callable[[str], bool]
) -> Iterator[Broken]:
    chosen = [(path, f) for path, f in _each(fields) if _chosen(check, f)]
    for path, f in chosen:
        top = next((n for n, c in enumerate(fields) if path == c.name or path.startswith(f"{c.name}.")), 0)
        place: Path = ("spec", "schema", top)
        for key, pattern in check.metadata.items():
            if not _has(f.metadata, key, pattern):
                hint = f"add metadata: {{{key}: {_value(pattern)}}} to the column"
                yield Broken(f"the column {_shown(path)} needs the metadata {_needed(key, pattern)}", hint, place)
        if check.comment is not None and not (f.comment and matches(check.comment, f.comment)):
            what = "" if check.comment == ".+" else f" that matches {check.comment}"
            yield Broken(f"the column {_shown(path)} needs a comment{what}", "add comment: … to the column", place)
    for key, pattern in check.properties.items() if chosen else ():
        if _has(want.properties, key, pattern):
            continue
        if left(key):
            yield _left(f"the property {_shown(key)}", key, want.properties)
        else:
            message = f"a table with the column {_shown(chosen[0][0])} needs the property {_needed(key, pattern)}"
            yield Broken(message, f"add properties: {{{key}: {_value(pattern)}}}", ("spec", "properties", key))


def _chosen(check: TaggedColumns, f: Field) -> bool:
    if check.columns is not None and matches(check.columns, f.name):
        return True
    return bool(check.tagged) and all(_has(f.metadata, key, pattern) for key, pattern in check.tagged.items())


def _has(mapping: Mapping[str, str], key: str, pattern: str) -> bool:
    return key in mapping and matches(pattern, mapping[key])


def _needed(key: str, pattern: str) -> str:
    return f'{key}: "{pattern}"' if shown_literally(pattern) else f"{key} (matching {pattern})"


def _value(pattern: str) -> str:
    return f'"{pattern}"' if shown_literally(pattern) else "…"


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHORT else text[: _SHORT - 1] + "…")
