"""Whether the columns of a source can become those of the table: asked before a byte is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from reconciler.pipeline.conform import Rules, ambiguous, converter, lacking, missing_fields, type_problem, uncounted
from reconciler.pipeline.file_reader import in_json


def fits(source: Any, target: Any, columns: Mapping[str, str], format_: str, rules: Rules) -> list[str]:
    """What keeps it from fitting. `source` is None where nothing is known before the rows are read. Types are judged by
    what reads the rows, on a null of the source's type; a value may still be wrong."""
    have = list(source.names) if source is not None else [columns.get(f.name, f.name) for f in target]
    present = [f for f in target if columns.get(f.name, f.name) in have]
    problems = [f"column {f.name!r} ({f.type}): {why}" for f in present if (why := _not_in(format_, f, rules))]
    if source is None or problems:
        return problems
    if double := ambiguous(have, target, columns, rules):
        return [double]
    if missing := missing_fields(have, target, columns, rules):
        problems.append(lacking(missing, have, columns))
    for field in present:
        if why := _not_cast(source.field(columns.get(field.name, field.name)).type, field, rules):
            problems.append(f"column {field.name!r}: {why}")
    return problems


def _not_cast(given: Any, field: Any, rules: Rules) -> str | None:
    if problem := type_problem(given, field, rules):
        return problem
    try:
        converter(given, field, rules)(pa.nulls(1, given), field.type)
    except (pa.ArrowException, ValueError) as error:
        return f"{given} cannot become {field.type}: {str(error).splitlines()[0]}"
    return None


def _not_in(format_: str, field: Any, rules: Rules) -> str | None:
    """What a file of texts cannot hold, or says nothing about: a duration there is a number."""
    type_ = field.type
    if format_ not in ("csv", "json"):
        return None
    if isinstance(type_, pa.BaseExtensionType) or pa.types.is_map(type_) or not in_json(type_):
        return f"{format_} holds no such values"
    if format_ == "csv" and pa.types.is_nested(type_):
        return "csv holds no lists and structs"
    return uncounted(field) if field.name not in rules.unit_of and _has_duration(type_) else None


def _has_duration(type_: Any) -> bool:
    if pa.types.is_dictionary(type_):
        return _has_duration(type_.value_type)
    inside = (type_.field(number).type for number in range(type_.num_fields))
    return bool(pa.types.is_duration(type_)) or any(map(_has_duration, inside))
