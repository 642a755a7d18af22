"""What gives the rows that exist already their values: `default` and `backfill` of a column."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any

from reconciler.manifest.check_sql import BACKFILL, columns, parse, sql_problem
from reconciler.manifest.constants import constant_problem
from reconciler.manifest.index_rules import broken
from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import Path, Problem
from reconciler.model.arrow import Field
from reconciler.model.data import FUNCTIONS

_LONGEST = 80


def check_backfills(fields: Sequence[Field], docs: Sequence[Any], problems: list[Problem]) -> None:
    filled = {f.name.lower(): f.name for f in fields if f.filled}
    for number, (field, doc) in enumerate(zip(fields, docs, strict=True)):
        place: Path = ("spec", "schema", number)
        if field.function is not None:
            _function(field.function, (*place, "backfill", "function"), problems)
        elif getattr(doc, "backfill", None) is not None:
            _sql(field, str(field.default), fields, filled, (*place, "backfill", "sql"), problems)
        elif field.default is not None and not broken(field.type):
            _constant(field, doc.default, (*place, "default"), problems)


def _sql(
    field: Field, sql: str, fields: Sequence[Field], filled: dict[str, str], place: Path, problems: list[Problem]
) -> None:
    problem = sql_problem(sql, fields, place, BACKFILL)
    if problem is not None:
        problems.append(problem)
    tree, _ = parse(sql)
    read = [path[0].lower() for path in columns(tree)] if tree is not None else []
    if field.name.lower() in read:
        message = f"the values of {field.name!r} come from {field.name!r} itself"
        problems.append(Problem("M493", place, message, "use the other columns"))
    other = next((filled[name] for name in read if name in filled and name != field.name.lower()), None)
    if other is not None:
        message = f"the values of {field.name!r} come from {other!r}, which is filled too"
        hint = f"write what gives the values of {other!r}; or add {field.name!r} once {other!r} is there, and take its "
        problems.append(Problem("M493", place, message, f"{hint}default or backfill out"))


def _constant(field: Field, value: Any, place: Path, problems: list[Problem]) -> None:
    wanted = constant_problem(value, field.type)
    if wanted is not None:
        shown = f"{value if abs(value) < 10**_LONGEST else '…'!r}" if isinstance(value, int) else repr(value)
        shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
        problems.append(Problem("M494", place, f"{shown} is no value of {field.name!r} ({field.type})", wanted))


def _function(name: str, place: Path, problems: list[Problem]) -> None:
    """A warning: the package may be where apply runs, and once the column is there nobody needs it."""
    found = function_problem(name)
    if found is not None:
        problems.append(Problem("M495", place, *found, severity="warning"))


def function_problem(name: str) -> tuple[str, str] | None:
    """Why this function cannot be run here, and a hint. Looked up, never loaded: that is done where it runs."""
    known = [point.name for point in entry_points(group=FUNCTIONS)]
    if known.count(name) == 1:
        return None
    if name in known:
        return f"two installed packages register a function {name!r}", "uninstall one of them"
    near = nearest(name, known)
    listed = "known functions: " + ", ".join(sorted(set(known))[:20])
    hint = f"did you mean {near}?" if near else listed if known else f"no installed package registers one ({FUNCTIONS})"
    return f"there is no function {name!r}", hint
