"""SQL of checks and backfills, compiled by what runs it: against a table without rows, in memory. `compiled` runs in a
process of its own (`sql_process`): pylance survives most expressions, and not all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from reconciler.catalog.lance_errors import clean
from reconciler.catalog.sql_process import SqlCompiler
from reconciler.model.arrow import Field

_ONE_COLUMN = "__reconciler_row"
_BEFORE = re.compile(
    r".*(?:Invalid user input|Error during planning|Error parsing function|Not supported|LanceError\(\w+\)): "
)
_AFTER = re.compile(r"[.]? (?:No function matches the given name|Candidate functions:).*")


def sql_problems(fields: Sequence[Field], filters: Sequence[str], columns: Sequence[str]) -> list[str | None]:
    """As `SqlCompiler`, for one table."""
    with SqlCompiler() as compiler:
        return compiler(fields, filters, columns)


def compiled(fields: Sequence[Field], asked: Sequence[tuple[str, str]]) -> Iterator[bool | str | None]:
    """Whether such a table can be had; if so, for each `filter` or `column`: what pylance has against it, or None."""
    table = _without_rows(fields)
    yield table is not None
    for use, sql in asked if table is not None else ():
        yield _filter_problem(table, sql) if use == "filter" else _problem(table, columns=_new(sql))


def _without_rows(fields: Sequence[Field]) -> Any:
    """None when it cannot be made or read, so that what fails on it later is the SQL's own fault."""
    import lance
    import pyarrow as pa

    from reconciler.catalog.arrow_convert import to_arrow_field
    from reconciler.catalog.lance_dataset import FILE_VERSION

    try:
        schema = pa.schema([*(to_arrow_field(f) for f in fields), pa.field(_ONE_COLUMN, pa.int8())])
        table = lance.write_dataset([], "memory://sql", schema=schema, data_storage_version=FILE_VERSION)
    except Exception:
        return None
    return table if _problem(table, filter="true") is None and _problem(table, columns=_new("true")) is None else None


def _filter_problem(table: Any, sql: str) -> str | None:
    """Negated, as verify runs it; the words about the expression itself are the better ones. A text compared with a
    number is cast then, which fails at the first text that is none: refused. A date and its text do compare."""
    negated, plain = _problem(table, filter=f"NOT (\n{sql}\n)"), _problem(table, filter=sql)
    misread = plain is not None and plain.endswith(("type 'Utf8'", "type 'LargeUtf8'"))
    return (plain or negated) if negated or misread else None


def _new(sql: str) -> dict[str, str]:
    """An expression without columns is evaluated beside one that has some, as everywhere."""
    return {"new": sql, _ONE_COLUMN: _ONE_COLUMN}


def _problem(table: Any, **scan: Any) -> str | None:
    try:
        table.scanner(**scan).to_table()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # A panic of the Rust core is none of Exception.
        return _words(str(error))
    return None


def _words(text: str) -> str:
    """The innermost reason, without the steps that found it and their places in the source of Lance."""
    text = _AFTER.sub("", _BEFORE.sub("", clean(text)))
    return text.removesuffix(")") if text.count(")") > text.count("(") else text
