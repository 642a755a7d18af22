"""Which index fits which column. Every rule was measured with pylance 14, on an empty and on a filled table."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from reconciler.manifest.problem import Path, Problem
from reconciler.model.arrow import ArrowType, Decimal, Field, FixedBinary, ListOf, MapOf, Scalar, Struct, Temporal
from reconciler.model.state import VECTOR_INDEXES, Index


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
_UNHASHED = frozenset({"bool", "float16"})


def unsuitable(index: Index, type_: ArrowType) -> str | None:
    """Why pylance would refuse this index on a column of this type, or None. It takes a zonemap on any type."""
    if index.type in VECTOR_INDEXES:
        return _vector(index, type_)
    match index.type:
        case "label_list":
            fits = isinstance(type_, ListOf) and type_.size is None and not _nested(type_.item)
            return None if fits else "it needs a list or large_list of plain values"
        case "inverted":
            inner = type_.item if isinstance(type_, ListOf) and type_.size is None else type_
            return None if _text(inner) else "it needs a string column or a list of strings"
        case "ngram":
            return None if _text(type_) else "it needs a string column"
        case "btree" | "bitmap":
            fits = _sortable(type_)
            return (
                None if fits else "it needs a column of plain values, not lists, structs, maps, dictionaries or blobs"
            )
        case "bloomfilter":
            fits = _sortable(type_) and _hashable(type_)
            return None if fits else "it needs integers, float32, float64, strings, binary, dates, times or timestamps"
        case _:
            return None


def _vector(index: Index, type_: ArrowType) -> str | None:
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


def _nested(type_: ArrowType) -> bool:
    return isinstance(type_, ListOf | Struct | MapOf) or type_ == Scalar("blob")


def _text(type_: ArrowType) -> bool:
    return isinstance(type_, Scalar) and type_.name in _TEXT


def _sortable(type_: ArrowType) -> bool:
    if isinstance(type_, Scalar):
        return type_.name not in _UNSORTED
    return isinstance(type_, Temporal | Decimal | FixedBinary)


def _hashable(type_: ArrowType) -> bool:
    if isinstance(type_, Scalar):
        return type_.name not in _UNHASHED
    return isinstance(type_, Temporal) and type_.name != "duration"
