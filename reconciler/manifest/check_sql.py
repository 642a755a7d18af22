"""SQL expressions of checks, read without running them.

What runs them is DataFusion as pylance evaluates filters: names in backticks, texts in single or double quotes, columns
found whatever their case. Of the dialects that sqlglot reads, Spark's is the nearest. pylance takes less than that:
what it refuses was measured with pylance 14 and is refused here, before anything runs. It also reads `a; b` as `a`,
without a word, so that more than one statement is an error here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reconciler.manifest.index_rules import broken
from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import Path, Problem
from reconciler.model.arrow import Field, Struct

DIALECT = "spark"


def sql_problem(sql: str, fields: Sequence[Field] | None, place: Path) -> Problem | None:
    """The first thing that is wrong with an expression, or None."""
    import sqlglot
    from sqlglot import errors

    try:
        parsed = sqlglot.parse(f"SELECT 1 WHERE (\n{sql}\n)", dialect=DIALECT)
    except (errors.ParseError, errors.TokenError, RecursionError) as error:
        return Problem("M452", place, f"the SQL does not parse: {_first(error)}", "one expression, as in a WHERE")
    tree = parsed[0] if len(parsed) == 1 else None
    if tree is None or not _alone(tree):
        return Problem("M452", place, "the SQL is more than one expression", "write what could stand in a WHERE")
    where = tree.args["where"]
    refused = _refused(where)
    if refused is not None:
        return Problem("M453", place, f"pylance evaluates no {refused} in a filter", "write it without")
    return _unknown_column(where, fields, place) if fields is not None else None


def _alone(tree: Any) -> bool:
    """Our own brackets are around all of it, and nothing is beside them: `a) OR (b` does not get through."""
    from sqlglot import exp

    given = {key for key, value in tree.args.items() if value}
    bracket = tree.args["where"].this if given == {"expressions", "where"} else None
    return isinstance(bracket, exp.Paren) and not isinstance(bracket.this, exp.Alias)


def _first(error: Exception) -> str:
    described = getattr(error, "errors", None)
    text = str(described[0].get("description")) if described else str(error)
    return text.partition(" for <class")[0].splitlines()[0][:200]


def _refused(tree: Any) -> str | None:
    from sqlglot import exp

    words: list[tuple[Any, str]] = [
        (exp.Query, "subquery"),
        (exp.Exists, "subquery"),
        (exp.Case, "CASE"),
        (exp.Window, "window function"),
        (exp.AggFunc, "aggregate"),
        (exp.Interval, "INTERVAL"),
        (exp.Tuple, "row value"),
        (exp.Star, "*"),
    ]
    return next((word for node in tree.walk() for kind, word in words if isinstance(node, kind)), None)


def _unknown_column(tree: Any, fields: Sequence[Field], place: Path) -> Problem | None:
    for path in _columns(tree):
        level: Sequence[Field] | None = fields
        for name in path:
            if level is None:
                break
            found = next((f for f in level if f.name.lower() == name.lower()), None)
            if found is None:
                near = nearest(name, [f.name for f in level])
                hint = f"did you mean {near}?" if near else "use a column of `schema`"
                return Problem("M450", place, f"the table has no column {'.'.join(path)!r}", hint)
            level = found.type.fields if isinstance(found.type, Struct) and not broken(found.type) else None
    return None


def _columns(tree: Any) -> Iterator[tuple[str, ...]]:
    from sqlglot import exp

    for column in tree.find_all(exp.Column):
        yield tuple(part.name for part in column.parts)
