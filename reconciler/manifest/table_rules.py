"""Rules inside one document: columns, indexes, property keys, paths of ignoreDifferences."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from reconciler.manifest.problem import Path, Problem
from reconciler.model.arrow import ArrowType, Decimal, Field, FixedBinary, ListOf, Scalar, Struct, Temporal
from reconciler.model.state import DESCRIPTION_KEY, RESERVED_PREFIX, VECTOR_INDEXES, Index


def check_properties(spec: Any, problems: list[Problem]) -> None:
    properties = spec.properties or {}
    for key in properties:
        if key.startswith(RESERVED_PREFIX):
            problems.append(
                Problem(
                    "M430",
                    ("spec", "properties", key),
                    f"property keys that begin with {RESERVED_PREFIX!r} are our own marks",
                    "choose another key",
                    at_key=True,
                )
            )
    if DESCRIPTION_KEY in properties and "description" in spec.model_fields_set:
        problems.append(
            Problem(
                "M431",
                ("spec", "properties", DESCRIPTION_KEY),
                "the description is given twice: `spec.description` is the property `description`",
                "remove one of them",
                at_key=True,
            )
        )


_TABLE_ROOTS = ("description", "properties", "config", "schemaMetadata", "schema", "indexes")
_NAMESPACE_ROOTS = ("description", "properties")
_ASPECTS = ("type", "nullable", "comment", "metadata")


def check_ignore_differences(paths: Sequence[str], kind: str, problems: list[Problem]) -> None:
    """`description`, `properties[.KEY]`, and for tables `config[.KEY]`, `schemaMetadata[.KEY]`,
    `schema[.COLUMN[.type|.nullable|.comment|.metadata]]`, `indexes[.NAME]`. Keys and columns may contain dots."""
    roots = _TABLE_ROOTS if kind == "Table" else _NAMESPACE_ROOTS
    for index, path in enumerate(paths):
        root, dot, rest = path.partition(".")
        if root in roots and bool(dot) == bool(rest) and not (root == "description" and dot):
            continue
        near = difflib.get_close_matches(root, roots, 1, 0.5)
        hint = f"did you mean {near[0]}?" if near and near[0] != root else "paths begin with " + ", ".join(roots)
        problems.append(Problem("M433", ("spec", "ignoreDifferences", index), f"unknown path {path!r}", hint))


def check_schema(fields: Sequence[Field], docs: Sequence[Any], problems: list[Problem]) -> None:
    _check_level(fields, docs, ("spec", "schema"), problems)


def _check_level(fields: Sequence[Field], docs: Sequence[Any], path: Path, problems: list[Problem]) -> None:
    names: dict[str, int] = {}
    renames = False
    for index, field in enumerate(fields):
        name = field.name
        if name in names:
            problems.append(
                Problem(
                    "M420",
                    (*path, index, "name"),
                    f"the column {name!r} is already declared as item {names[name] + 1} of this list",
                    "rename or remove one of them",
                )
            )
        else:
            names[name] = index
        if "." in name:
            problems.append(
                Problem(
                    "M421",
                    (*path, index, "name"),
                    f"the column name {name!r} contains a dot",
                    "Lance uses dots for nested fields: choose another name",
                )
            )
        renames = renames or field.renamed_from is not None
        if field.type.__class__ is not Scalar:
            children = getattr(docs[index], "fields", None)
            if children:
                inner = _struct_in(field.type)
                if inner is not None and len(inner.fields) == len(children):
                    _check_level(inner.fields, children, (*path, index, "fields"), problems)
    if renames:
        _check_renames(fields, names, path, problems)


def _struct_in(type_: ArrowType) -> Struct | None:
    """The struct whose fields are written out below the column."""
    match type_:
        case Struct():
            return type_
        case ListOf(item=item):
            return _struct_in(item)
        case _:
            return _struct_in(type_.value) if hasattr(type_, "value") else None


def _check_renames(fields: Sequence[Field], names: dict[str, int], path: Path, problems: list[Problem]) -> None:
    taken: dict[str, str] = {}
    for index, field in enumerate(fields):
        old = field.renamed_from
        if old is None:
            continue
        place = (*path, index, "renamedFrom")
        if old == field.name:
            problems.append(Problem("M422", place, f"the column {old!r} is renamed from itself", "remove renamedFrom"))
        elif old in names:
            problems.append(
                Problem(
                    "M422",
                    place,
                    f"the column {old!r} is declared too, as item {names[old] + 1}",
                    "a rename needs the old column to be gone from the manifest",
                )
            )
        elif old in taken:
            problems.append(
                Problem(
                    "M422",
                    place,
                    f"the column {taken[old]!r} is renamed from {old!r} too",
                    "one column can become one other only",
                )
            )
        taken.setdefault(old, field.name)


def find_column(fields: Sequence[Field], path: str) -> Field | None:
    """By dotted path through structs."""
    parts = path.split(".")
    for depth, part in enumerate(parts):
        field = next((f for f in fields if f.name == part), None)
        if field is None or depth == len(parts) - 1:
            return field
        if not isinstance(field.type, Struct):
            return None
        fields = field.type.fields
    return None


def check_indexes(indexes: Sequence[Index], fields: Sequence[Field] | None, problems: list[Problem]) -> None:
    names: dict[str, int] = {}
    for number, index in enumerate(indexes):
        place: Path = ("spec", "indexes", number)
        if index.name in names:
            problems.append(
                Problem(
                    "M424",
                    place,
                    f"the index name {index.name!r} is already used by item {names[index.name] + 1} of this list",
                    "give one of them another `name`",
                )
            )
        names.setdefault(index.name, number)
        if fields is None:
            continue
        column = find_column(fields, index.column)
        if column is None:
            near = difflib.get_close_matches(index.column, [f.name for f in fields], 1, 0.5)
            hint = f"did you mean {near[0]}?" if near else "index a column of `schema`"
            problems.append(Problem("M425", (*place, "column"), f"the table has no column {index.column!r}", hint))
            continue
        wrong = unsuitable(index, column.type)
        if wrong:
            problems.append(
                Problem("M426", (*place, "type"), f"a {index.type} index on {index.column!r} ({column.type}): {wrong}")
            )


_TEXT = frozenset({"string", "large_string"})
_FLOATS = frozenset({"float16", "float32", "float64"})
_UNSORTED = frozenset({"null", "blob"})


def unsuitable(index: Index, type_: ArrowType) -> str | None:
    """Why pylance would refuse this index on a column of this type (measured), or None."""
    name = type_.name if isinstance(type_, Scalar) else ""
    if index.type in VECTOR_INDEXES:
        if not isinstance(type_, ListOf) or type_.size is None:
            return "a vector index needs a fixed_size_list column"
        item = type_.item.name if isinstance(type_.item, Scalar) else str(type_.item)
        if item not in _FLOATS and item != "uint8":
            return "the vector's items must be float16, float32, float64 or uint8"
        if index.params.get("metric") == "hamming" and item != "uint8":
            return "the metric hamming needs uint8 items"
        parts = index.params.get("num_sub_vectors")
        if isinstance(parts, int) and type_.size % parts:
            return f"num_sub_vectors {parts} does not divide the size {type_.size}"
        return None
    if index.type == "label_list":
        fits = isinstance(type_, ListOf) and type_.size is None
        return None if fits else "a label_list index needs a list or large_list column"
    if index.type == "inverted":
        inner = type_.item if isinstance(type_, ListOf) and type_.size is None else type_
        return (
            None
            if isinstance(inner, Scalar) and inner.name in _TEXT
            else "it needs a string column or a list of strings"
        )
    if index.type == "ngram":
        return None if name in _TEXT else "it needs a string column"
    if index.type in ("btree", "bitmap", "bloomfilter"):
        plain = isinstance(type_, Temporal | Decimal | FixedBinary) or (name and name not in _UNSORTED)
        return None if plain else "it needs a column of plain values, not lists, structs or blobs"
    return None
