"""Whether the columns of a source can become those of the table: asked before a byte is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from reconciler.pipeline.conform import to_type


def fits(source: Any, target: Any, columns: Mapping[str, str], format_: str) -> list[str]:
    """What keeps it from fitting. `source` is None where nothing is known before the rows are read. Types are judged by
    what reads the rows, on a null of the source's type; a value may still be wrong."""
    problems = [f"column {f.name!r} ({f.type}): {why}" for f in target if (why := _not_in(format_, f.type))]
    if source is None or problems:
        return problems
    have = set(source.names)
    if not have & {columns.get(field.name, field.name) for field in target}:
        return [f"the source has none of the table's columns; it has {', '.join(source.names[:20]) or 'none'}"]
    for field in target:
        name = columns.get(field.name, field.name)
        if name not in have:
            if field.name in columns:
                problems.append(f"column {field.name!r}: the source has no column {name!r}")
            elif not field.nullable:
                problems.append(f"column {field.name!r} is NOT NULL and the source has no such column")
            continue
        given = source.field(name).type
        why = _not_cast(given, field.type)
        if why is not None:
            problems.append(f"column {field.name!r}: {given} cannot become {field.type}: {why}")
    return problems


def _not_cast(given: Any, type_: Any) -> str | None:
    try:
        to_type(pa.nulls(1, given), type_)
    except (pa.ArrowException, ValueError) as error:
        return str(error).splitlines()[0]
    return None


def _not_in(format_: str, type_: Any) -> str | None:
    """What a file of texts cannot hold."""
    if format_ not in ("csv", "json"):
        return None
    if isinstance(type_, pa.BaseExtensionType) or pa.types.is_map(type_):
        return f"{format_} holds no such values"
    if pa.types.is_nested(type_):
        if format_ == "csv":
            return "csv holds no lists and structs"
        inner = [type_.field(number).type for number in range(type_.num_fields)]
        return next((why for child in inner if (why := _not_in(format_, child))), None)
    return None
