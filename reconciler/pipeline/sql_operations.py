"""The arithmetic in an expression of a backfill, read without running it.

pylance's integers wrap: `a + b` of two int32 is a negative number when the sum is too large. So the operands of each
operation are computed beside the expression, and whoever runs it calculates once more with a check (`sql_overflow`).
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

from reconciler.pipeline.sql_overflow import Operation


def operations(sql: str) -> list[Operation]:
    """Innermost first. Empty for what does not parse: pylance says what is wrong with it."""
    import sqlglot
    from sqlglot import errors, exp

    try:
        tree = sqlglot.parse_one(f"SELECT (\n{sql}\n)", dialect=_dialect())
    except (errors.ParseError, errors.TokenError, RecursionError):
        return []
    signs: dict[Any, str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Neg: "neg"}
    found: list[Operation] = []
    for node in tree.walk():
        sign = signs.get(type(node))
        if sign is None or (sign == "neg" and isinstance(node.this, exp.Literal)):
            continue
        parts = [node.this] if sign == "neg" else [node.this, node.expression]
        found.append({"sign": sign, "sql": _text(node), "parts": [_text(part) for part in parts]})
    return found[::-1]


def _text(node: Any) -> str:
    return str(node.sql(dialect=_dialect(), comments=False, normalize_functions=False))


@cache
def _dialect() -> Any:
    """As manifests are read, with the functions as they are written: pylance knows other names than Spark."""
    from sqlglot.dialects.spark import Spark

    spark: Any = Spark

    class AsWritten(spark):  # type: ignore[misc]
        class Parser(spark.Parser):  # type: ignore[misc]
            FUNCTIONS: ClassVar[dict[str, Any]] = {}
            NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}

    return AsWritten
