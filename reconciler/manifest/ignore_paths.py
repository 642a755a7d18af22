"""The paths of `ignoreDifferences`. A path that can name nothing is an error: it would silently ignore nothing."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence

from reconciler.core.diff_schema import ASPECTS
from reconciler.manifest.problem import Problem
from reconciler.model.arrow import Field, ListOf, Struct

_TABLE_ROOTS = ("description", "properties", "config", "schemaMetadata", "schema", "indexes")
_NAMESPACE_ROOTS = ("description", "properties")
_AFTER_COLUMN = f"after a column comes nothing, or one of {', '.join(ASPECTS)}, metadata.KEY"


def check_ignore_differences(
    paths: Sequence[str],
    kind: str,
    fields: Sequence[Field] | None,
    problems: list[Problem],
    indexes: Collection[str] = (),
) -> None:
    """`description`, `properties[.KEY]`, and for tables `config[.KEY]`, `schemaMetadata[.KEY]`, `indexes[.NAME]`,
    `schema[.COLUMN[.type|.nullable|.comment|.metadata[.KEY]]]`. Keys may contain dots; a nested column has a dotted
    path, through lists by the word `item`. Names that are not declared are allowed: they may be live. `indexes`: the
    names of the declared ones."""
    roots = _TABLE_ROOTS if kind == "Table" else _NAMESPACE_ROOTS
    columns = {f.name: f for f in reversed(fields or ())}
    for index, path in enumerate(paths):
        root, dot, rest = path.partition(".")
        if root not in roots or bool(dot) != bool(rest) or (root == "description" and dot):
            near = difflib.get_close_matches(root, roots, 1, 0.5)
            hint = f"did you mean {near[0]}?" if near and near[0] != root else "paths begin with " + ", ".join(roots)
            found: tuple[str, str] | None = (f"unknown path {path!r}", hint)
        elif root == "indexes":
            found = _index_problem(path, rest, indexes)
        else:
            found = _column_problem(path, rest.split("."), columns) if root == "schema" and rest else None
        if found is not None:
            problems.append(Problem("M433", ("spec", "ignoreDifferences", index), *found))


def _index_problem(path: str, rest: str, indexes: Collection[str]) -> tuple[str, str] | None:
    """An index is built as a whole, so it is left to others as a whole."""
    name = next((n for n in sorted(indexes) if rest.startswith(f"{n}.")), None)
    if name is None or rest in indexes:
        return None
    return f"the path {path!r} goes on after the index {name!r}", f"an index is ignored as a whole: indexes.{name}"


def _column_problem(path: str, parts: list[str], columns: Mapping[str, Field]) -> tuple[str, str] | None:
    if not all(parts):
        return f"the path {path!r} has an empty part", "write schema.COLUMN or schema.COLUMN.ASPECT"
    level: Sequence[Field] = [columns[parts[0]]] if parts[0] in columns else ()
    at = 0
    while at < len(parts):
        found = next((f for f in level if f.name == parts[at]), None)
        if found is None:
            return _undeclared(path, parts, at)
        at += 1
        inner = found.type
        while isinstance(inner, ListOf) and parts[at : at + 1] == ["item"]:
            inner, at = inner.item, at + 1
        rest = parts[at:]
        if not rest or (len(rest) == 1 and rest[0] in ASPECTS):
            return None
        inside = {f.name for f in inner.fields} if isinstance(inner, Struct) else ()
        if rest[0] == "metadata" and rest[0] not in inside:
            return None
        if not isinstance(inner, Struct):
            shown = ".".join(parts[:at])
            hint = "the fields of a list are below `item`" if isinstance(inner, ListOf) else _AFTER_COLUMN
            return f"the path {path!r} goes on after {shown!r}, which has the type {inner}", hint
        level = inner.fields
    return None


def _undeclared(path: str, parts: list[str], at: int) -> tuple[str, str] | None:
    """A column that only the live table has. An aspect but metadata is the last word, or it is no aspect."""
    word = next((p for p in parts[max(at, 1) : -1] if p in ASPECTS), None)
    return None if word in (None, "metadata") else (f"the path {path!r} goes on after {word!r}", _AFTER_COLUMN)
