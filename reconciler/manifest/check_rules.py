"""Which checks fit which columns. Without a declared schema only the SQL itself can be looked at."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.manifest.check_sql import sql_problem
from reconciler.manifest.index_rules import broken, find_column
from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import Path, Problem
from reconciler.model.arrow import ArrowType, Dictionary, Field, Scalar, Temporal
from reconciler.model.checks import Checks, Value

PLACE: Path = ("spec", "checks")
Fields = Sequence[Field] | None


def check_checks(checks: Checks, fields: Fields, problems: list[Problem]) -> None:
    if checks.min_rows is not None and checks.max_rows is not None and checks.min_rows > checks.max_rows:
        message = f"no table has at least {checks.min_rows} and at most {checks.max_rows} rows"
        problems.append(Problem("M455", (*PLACE, "rowCount"), message))
    for number, column in enumerate(checks.not_null):
        _column(fields, column, (*PLACE, "notNull", number), problems)
    for number, key in enumerate(checks.unique):
        for column in key:
            _unique(fields, column, (*PLACE, "unique", number), problems)
    for column, values in checks.accepted.items():
        _accepted(fields, column, values, problems)
    _expressions(checks, fields, problems)
    if checks.freshness is not None:
        place = (*PLACE, "freshness", "column")
        found = _column(fields, checks.freshness.column, place, problems)
        if found is not None and not _is_time(found.type):
            message = f"the column {checks.freshness.column!r} ({found.type}) says no time"
            problems.append(Problem("M451", place, message, "freshness needs a timestamp, date32 or date64"))


def _column(fields: Fields, path: str, place: Path, problems: list[Problem], at_key: bool = False) -> Field | None:
    """None when it is not known, or not there; the latter is told."""
    if fields is None:
        return None
    found = find_column(fields, path)
    if found is not None:
        return None if broken(found.type) else found
    names = [f.name for f in fields]
    above = next((f for f in fields if f.name == path.partition(".")[0]), None)
    if path in names or (above is not None and broken(above.type)):
        return None  # A problem that was told already keeps us from knowing.
    near = nearest(path, names)
    hint = f"did you mean {near}?" if near else "check a column of `schema`"
    problems.append(Problem("M450", place, f"the table has no column {path!r}", hint, at_key=at_key))
    return None


def _unique(fields: Fields, column: str, place: Path, problems: list[Problem]) -> None:
    found = _column(fields, column, place, problems)
    if found is not None and found.type == Scalar("null"):
        problems.append(Problem("M451", place, f"the column {column!r} holds nothing but nulls"))


def _accepted(fields: Fields, column: str, values: Sequence[Value], problems: list[Problem]) -> None:
    place = (*PLACE, "accepted", column)
    found = _column(fields, column, place, problems, at_key=True)
    if found is None:
        return
    wanted = _kind(found.type)
    if wanted is None:
        message = f"accepted values of {column!r} ({found.type})"
        hint = "they can be listed for strings, integers and booleans; write an expression for anything else"
        problems.append(Problem("M451", place, message, hint, at_key=True))
        return
    for number, value in enumerate(values):
        if type(value) is not wanted or (wanted is int and not _in_range(found.type, value)):
            message = f"{value!r} is no value of {column!r} ({found.type})"
            problems.append(Problem("M451", (*place, number), message))


_KINDS: dict[str, type] = {"string": str, "large_string": str, "bool": bool}


def _kind(type_: ArrowType) -> type | None:
    if isinstance(type_, Dictionary):
        return _kind(type_.value)
    if not isinstance(type_, Scalar):
        return None
    return int if type_.name.startswith(("int", "uint")) else _KINDS.get(type_.name)


def _in_range(type_: ArrowType, value: Value) -> bool:
    name = str(type_.value if isinstance(type_, Dictionary) else type_)
    bits = int(name.removeprefix("u").removeprefix("int"))
    low, high = (0, 2**bits) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return bool(low <= int(value) < high)


def _is_time(type_: ArrowType) -> bool:
    return (isinstance(type_, Temporal) and type_.name == "timestamp") or type_ in (Scalar("date32"), Scalar("date64"))


def _expressions(checks: Checks, fields: Fields, problems: list[Problem]) -> None:
    names: dict[str, int] = {}
    for number, expression in enumerate(checks.expressions):
        place: Path = (*PLACE, "expressions", number)
        if expression.name in names:
            message = f"the name {expression.name!r} is already used by item {names[expression.name] + 1} of this list"
            problems.append(Problem("M454", (*place, "name"), message, "give one of them another name"))
        names.setdefault(expression.name, number)
        problem = sql_problem(expression.sql, fields, (*place, "sql"))
        if problem is not None:
            problems.append(problem)
