"""SQL that reads well and that pylance would refuse when it runs: refused by `validate`, which asks pylance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from reconciler.app import Reading, validate
from reconciler.catalog.lance_sql import sql_problems
from reconciler.model.arrow import Field

from . import test_backfill, test_checks
from .support import CATALOG, codes, load_text, places, table

SCHEMA = """\
schema:
  - {name: id, type: int64}
  - {name: text, type: string}
  - {name: vec, type: "fixed_size_list<float32>[4]"}
  - {name: picture, type: blob}
  - {name: new, type: int32, %s}
checks: {expressions: [{name: n, sql: %s}]}
"""
FILTERS = {
    "lenght(text) > 1": "Invalid function 'lenght'. Did you mean 'length'?",
    "text > 5": "Received literal Int64(5) and could not convert to literal of type 'Utf8'",
    "id": "The filter id does not return a boolean",
    "abs(text) > 1": "Function 'abs' expects Numeric but received String",
    "cast('x' as int) = id": "Cast error: Cannot cast string 'x' to value of Int32 type",
}


@pytest.mark.parametrize("sql", FILTERS)
def test_a_filter(tmp_path: Path, sql: str) -> None:
    found = load_text(tmp_path, CATALOG, table("t", SCHEMA % ("default: 1", f'"{sql}"')), sql_problems=sql_problems)
    assert codes(found) == ["M453"]
    assert found.diagnostics[0].message == f"pylance does not evaluate this in a filter: {FILTERS[sql]}"


def test_a_new_column(tmp_path: Path) -> None:
    text = SCHEMA % ("backfill: {sql: explode(vec)}", "id > 0")
    (tmp_path / "m.yaml").write_text(f"{CATALOG}---\n{table('t', text)}")
    assert places(validate([str(tmp_path)], Reading()), "M492") == [(15, 48)]


def test_what_runs_is_not_refused() -> None:
    """Also a date that is compared with its text, which a check does and a plain filter does not."""
    assert sql_problems(test_checks.FIELDS, [*test_checks.RUNS, "ts > '2020-01-01'"], []) == [None] * 19
    assert set(sql_problems(test_backfill.FIELDS, [], [*test_backfill.RUNS, "random()"])) == {None}


@pytest.mark.parametrize(
    ("column", "sql"),
    [
        ("default: -1", "nosuch > 1"),
        ("backfill: {sql: nosuch + 1}", "id >"),
        ("default: 1, tpye: 1", "max(id) > 1"),
    ],
)
def test_what_is_told_already_or_cannot_be_asked_is_not_asked(tmp_path: Path, column: str, sql: str) -> None:
    def never(fields: Sequence[Field], filters: Sequence[str], columns: Sequence[str]) -> list[str | None]:
        raise AssertionError((filters, columns))

    load_text(tmp_path, CATALOG, table("t", SCHEMA % (column, f'"{sql}"')), sql_problems=never)
    broken = SCHEMA.replace("int64", "int65") % ("default: 1", "nosuch(text)")
    load_text(tmp_path, CATALOG, table("t", broken), sql_problems=never)
