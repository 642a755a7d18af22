"""SQL that reads well and that pylance refuses all the same: unknown functions, types that do not fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from reconciler.manifest.check_sql import BACKFILL, CHECK, Use, columns, parse, sql_problem
from reconciler.manifest.index_rules import broken
from reconciler.manifest.problem import Path
from reconciler.manifest.registry import Entry, Registry
from reconciler.model.arrow import Field
from reconciler.model.desired import DesiredTable

SqlProblems = Callable[[Sequence[Field], Sequence[str], Sequence[str]], Sequence[str | None]]
"""Of the filters, then of the new columns: what is wrong, or None. Given from outside, because it loads pylance; so it
is asked about tables that have SQL only."""
_LITERAL = re.compile(r"true|false|-?[0-9][0-9.e+-]*|'(?:[^']|'')*'")
"""What a `default` has become; it was judged with its column."""
_Found = tuple[Use, Path, str]


def check_sql_at_run(registry: Registry, sql_problems: SqlProblems) -> None:
    for tables in registry.tables.values():
        for entry in tables.values():
            declared = entry.declared
            if isinstance(declared, DesiredTable) and not declared.absent:
                _check_table(entry, declared, sql_problems)


def _check_table(entry: Entry, declared: DesiredTable, sql_problems: SqlProblems) -> None:
    """Of a table that declares no columns, SQL that names none is judged here; the rest where live ones are known."""
    fields = declared.fields or ()
    found = [*_filters(declared), *_new_columns(fields)]
    found = [f for f in found if sql_problem(f[2], declared.fields, f[1], f[0]) is None]
    if declared.fields is None:
        found = [f for f in found if not any(columns(parse(f[2])[0]))]
    if not found or any(broken(f.type) for f in fields):
        return
    filters = [sql for use, _, sql in found if use is CHECK]
    new = [sql for use, _, sql in found if use is BACKFILL]
    for (use, place, _), told in zip(found, sql_problems(fields, filters, new), strict=True):
        if told is not None:
            entry.error(use.not_evaluated, place, f"pylance does not evaluate this in a {use.where}: {told}")


def _filters(declared: DesiredTable) -> Iterator[_Found]:
    for number, expression in enumerate(declared.checks.expressions):
        yield CHECK, ("spec", "checks", "expressions", number, "sql"), expression.sql


def _new_columns(fields: Sequence[Field]) -> Iterator[_Found]:
    for number, field in enumerate(fields):
        if field.default is not None and not _LITERAL.fullmatch(field.default):
            yield BACKFILL, ("spec", "schema", number, "backfill", "sql"), field.default
