"""Which index fits which column. Every rule was measured with pylance 14, on an empty and on a filled table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.manifest.columns import BROKEN
from reconciler.manifest.nearest import nearest
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
    """A column whose type could not be read is there all the same; what its type allows is not known."""
    names: dict[str, int] = {}
    columns = {f.name: f for f in reversed(fields or ())}
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
        column = _column(columns, index.column)
        if _unknown(column, index.column, columns):
            continue
        if column is None:
            near = nearest(index.column, columns.keys())
            hint = f"did you mean {near}?" if near else "index a column of `schema`"
            problems.append(Problem("M425", (*place, "column"), f"the table has no column {index.column!r}", hint))
            continue
        wrong = unsuitable(index, column.type)
        if wrong:
            problems.append(
                Problem("M426", (*place, "type"), f"a {index.type} index on {index.column!r} ({column.type}): {wrong}")
            )


_MAINTAINED_WHEN_NESTED = VECTOR_INDEXES | {"inverted"}


def warn_of_nested(indexes: Sequence[Index], problems: list[Problem]) -> None:
    """One warning per table. pylance 14 makes these indexes on an empty table, and looks for their column among the
    outermost ones when rows come to be indexed. Queries stay right: they read what is not indexed. No way of making
    the index avoids it; an index that is made when there are rows is fine."""
    nested = [n for n, i in enumerate(indexes) if "." in i.column and i.type not in _MAINTAINED_WHEN_NESTED]
    if nested:
        index = indexes[nested[0]]
        problems.append(
            Problem(
                "M427",
                ("spec", "indexes", nested[0], "column"),
                f"a {index.type} index on the nested column {index.column!r} that is made while the table is empty "
                "makes optimize_indices() of pylance 14 fail once there are rows",
                "declare it when the table holds rows, or take it out then (allow: [drop_index]), apply, and put it "
                "back; until then, optimize the other indexes by name (index_names)",
                severity="warning",
            )
        )


def _column(columns: Mapping[str, Field], path: str) -> Field | None:
    """As `find_column`, without going through all columns of a wide table."""
    first = columns.get(path.partition(".")[0])
    return find_column((first,), path) if first is not None else None


def _unknown(column: Field | None, path: str, columns: Mapping[str, Field]) -> bool:
    """True when a problem that was told already keeps us from knowing: a broken type, a name with a dot in it."""
    if column is not None:
        return broken(column.type)
    above = columns.get(path.partition(".")[0])
    return path in columns or (above is not None and broken(above.type))


def broken(type_: ArrowType) -> bool:
    """A type, or a part of one, that could not be read."""
    match type_:
        case Struct(fields):
            return any(broken(f.type) for f in fields)
        case ListOf():
            return broken(type_.item)
        case MapOf():
            return broken(type_.key) or broken(type_.value)
        case _:
            return type_ is BROKEN


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
            fits = sortable(type_)
            return (
                None if fits else "it needs a column of plain values, not lists, structs, maps, dictionaries or blobs"
            )
        case "bloomfilter":
            fits = sortable(type_) and _hashable(type_)
            return None if fits else "it needs integers, float32, float64, strings, binary, dates, times or timestamps"
        case _:
            return None


_BINARY = ("ivf_flat", "ivf_hnsw_flat")


def _vector(index: Index, type_: ArrowType) -> str | None:
    if not isinstance(type_, ListOf) or type_.size is None:
        return "a vector index needs a fixed_size_list column"
    item = type_.item.name if isinstance(type_.item, Scalar) else str(type_.item)
    if item not in _FLOATS and item != "uint8":
        return "the vector's items must be float16, float32, float64 or uint8"
    if (index.params.get("metric") == "hamming") != (item == "uint8"):
        return "the metric hamming needs uint8 items, and uint8 items the metric hamming"
    if item == "uint8" and index.type not in _BINARY:
        return f"uint8 items can only have {' or '.join(_BINARY)}"
    parts = index.params.get("num_sub_vectors")
    if isinstance(parts, int) and type_.size % parts:
        return f"num_sub_vectors {parts} does not divide the size {type_.size}"
    return None


def _nested(type_: ArrowType) -> bool:
    return isinstance(type_, ListOf | Struct | MapOf) or type_ == Scalar("blob")


def _text(type_: ArrowType) -> bool:
    return isinstance(type_, Scalar) and type_.name in _TEXT


def sortable(type_: ArrowType) -> bool:
    """Plain values, which have an order."""
    if isinstance(type_, Scalar):
        return type_.name not in _UNSORTED
    return isinstance(type_, Temporal | Decimal | FixedBinary)


def _hashable(type_: ArrowType) -> bool:
    if isinstance(type_, Scalar):
        return type_.name not in _UNHASHED
    return isinstance(type_, Temporal) and type_.name != "duration"
