"""SQL expressions of checks and backfills, read without running them.

What runs them is DataFusion as pylance evaluates filters and new columns, which it does alike: names in backticks,
texts in single or double quotes, columns found whatever their case. Of the dialects that sqlglot reads, Spark's is the
nearest. pylance takes less than that: what it refuses was measured with pylance 14 and is refused here, before anything
runs. It also reads `a; b` as `a`, and in a new column `a, b` as `a`, without a word, so that more than one expression
is an error here. Which functions there are, and what types they take, is asked in `sql_at_run`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from reconciler.manifest.index_rules import broken
from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import Path, Problem
from reconciler.model.arrow import Field, Struct
from reconciler.model.diagnostic import Severity

DIALECT = "spark"
_OPENED = re.compile(r"Missing (\S+) from ")


@dataclass(frozen=True, slots=True)
class Use:
    """What an expression is for: its codes, and the words."""

    no_expression: str
    not_evaluated: str
    unknown_column: str
    where: str
    severity: Severity = "error"
    """Of an unknown column."""


CHECK = Use("M452", "M453", "M450", "filter")
BACKFILL = Use("M491", "M492", "M490", "new column", "warning")
"""A column that is live and no longer declared can be read until it is dropped, so an unknown one is a warning."""


def sql_problem(sql: str, fields: Sequence[Field] | None, place: Path, use: Use = CHECK) -> Problem | None:
    """The first thing that is wrong with an expression, or None."""
    tree, wrong = parse(sql)
    if tree is None:
        return Problem(use.no_expression, place, wrong, "one expression, as in a WHERE or a SELECT")
    refused = _refused(tree, sql)
    if refused is not None:
        message = f"pylance evaluates no {refused} in a {use.where}"
        return Problem(use.not_evaluated, place, message, _INSTEAD.get(refused, "write it without"))
    return _unknown_column(tree, fields, place, use) if fields is not None else None


@lru_cache(maxsize=64)
def parse(sql: str) -> tuple[Any, str]:
    """The expression in its brackets; or None, and what is wrong."""
    import sqlglot
    from sqlglot import errors

    try:
        parsed = sqlglot.parse(f"SELECT 1 WHERE (\n{sql}\n)", dialect=DIALECT)
    except (errors.ParseError, errors.TokenError, RecursionError) as error:
        return None, f"the SQL does not parse: {wrong_with(error)}"
    tree = parsed[0] if len(parsed) == 1 else None
    if tree is None or not _alone(tree):
        return None, "the SQL is more than one expression"
    return tree.args["where"], ""


def _alone(tree: Any) -> bool:
    """Our own brackets are around all of it, and nothing is beside them: `a) OR (b` does not get through."""
    from sqlglot import exp

    given = {key for key, value in tree.args.items() if value}
    bracket = tree.args["where"].this if given == {"expressions", "where"} else None
    return isinstance(bracket, exp.Paren | exp.Subquery) and not isinstance(bracket.this, exp.Alias)


def wrong_with(error: Exception) -> str:
    """What sqlglot found, about the text as it was written: its own messages quote what we put around it."""
    from sqlglot import errors

    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, errors.TokenError):
        told = str(error.__cause__)
        opened = _OPENED.match(told)
        if opened is not None:
            return f"a {opened.group(1)} is not closed"
        return "a text, a name or a comment is not closed" if "invalid" not in told else "a number has wrong digits"
    described = getattr(error, "errors", None)
    text = str(described[0].get("description")) if described else str(error)
    return text.partition(" for <class")[0].splitlines()[0][:200]


_INSTEAD = {
    "CASE": "coalesce, nullif or a registered function may do",
    "TRIM": "write btrim",
    "EXTRACT": "write date_part('year', column)",
    "POSITION": "write strpos(text, part)",
    "SUBSTRING": "write left, right or split_part",
    "SUBSTR": "write left, right or split_part",
    "RLIKE": "write regexp_like(text, pattern)",
    "REGEXP": "write regexp_like(text, pattern)",
    "<=>": "write IS NOT DISTINCT FROM",
}
_SPECIAL_CALLS = frozenset({"TRIM", "SUBSTRING", "SUBSTR", "FLOOR", "CEIL", "EXTRACT", "POSITION", "OVERLAY"})
"""Functions with a syntax of their own, in any spelling; sqlglot has one node for them and for others that run."""
_SPECIAL_WORDS = frozenset({"RLIKE", "REGEXP", "<=>", "->", "->>"})


def _refused(tree: Any, sql: str) -> str | None:
    from sqlglot import exp

    words: list[tuple[Any, str]] = [
        (exp.Query, "subquery"),
        (exp.Exists, "subquery"),
        (exp.Any, "ANY"),
        (exp.Case, "CASE"),
        (exp.Window, "window function"),
        (exp.AggFunc, "aggregate"),
        (exp.Tuple, "row value"),
        (exp.Star, "*"),
        (exp.Placeholder, "placeholder"),
        (exp.Parameter, "placeholder"),
        (exp.AtTimeZone, "AT TIME ZONE"),
        (exp.SimilarTo, "SIMILAR TO"),
        (exp.Collate, "COLLATE"),
        (exp.BitwiseAnd, "&"),
        (exp.BitwiseOr, "|"),
        (exp.BitwiseXor, "^"),
        (exp.IntDiv, "DIV"),
        (exp.Slice, "slice"),
        (exp.Lambda, "lambda"),
    ]
    for node in tree.walk():
        if isinstance(node, exp.Interval) and not isinstance(node.parent, exp.Func):
            return "INTERVAL"  # As an argument, of date_bin for one, it is.
        found = next((word for kind, word in words if isinstance(node, kind)), None)
        if found is not None:
            return found
    return _special(sql)


def _special(sql: str) -> str | None:
    from sqlglot import tokenize

    tokens = [t for t in tokenize(sql, dialect=DIALECT) if t.token_type.name not in ("STRING", "IDENTIFIER")]
    for number, token in enumerate(tokens):
        word = token.text.upper()
        called = number + 1 < len(tokens) and tokens[number + 1].token_type.name == "L_PAREN"
        if word in _SPECIAL_WORDS or (called and word in _SPECIAL_CALLS):
            return word
    return None


def _unknown_column(tree: Any, fields: Sequence[Field], place: Path, use: Use) -> Problem | None:
    for path in columns(tree):
        level: Sequence[Field] | None = fields
        for name in path:
            if level is None:
                break
            found = next((f for f in level if f.name.lower() == name.lower()), None)
            if found is None:
                near = nearest(name, [f.name for f in level])
                hint = f"did you mean {near}?" if near else "use a column of `schema`"
                message = f"the table has no column {'.'.join(path)!r}"
                return Problem(use.unknown_column, place, message, hint, severity=use.severity)
            level = found.type.fields if isinstance(found.type, Struct) and not broken(found.type) else None
    return None


def columns(tree: Any) -> Iterator[tuple[str, ...]]:
    from sqlglot import exp

    for column in tree.find_all(exp.Column):
        yield tuple(part.name for part in column.parts)
