"""Errors and warnings of the declared indexes of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.core.index_fit import not_taken, unsuitable
from reconciler.manifest.columns import BROKEN
from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import Path, Problem
from reconciler.model.arrow import ArrowType, Field, ListOf, MapOf, Struct
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
        for key, why in not_taken(index.params, index.type):
            message = f"{key} of index {index.name!r} ({index.type}): {why}"
            problems.append(Problem("M429", (*place, "params", key), message))
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
                "`apply` builds it again once there are rows (management.indexRefresh); until then, optimize the other "
                "indexes by name (index_names)",
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
