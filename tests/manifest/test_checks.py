"""`spec.checks`: what fits which column, and SQL that is read without being run."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from reconciler.manifest.check_sql import sql_problem
from reconciler.manifest.load import Loaded
from reconciler.model.arrow import Field, parse_type
from reconciler.model.checks import NO_CHECKS, Checks, Expression, Freshness

from .support import CATALOG, codes, load_text, places, table

SCHEMA = """\
schema:
  - {name: id, type: int64}
  - {name: small, type: uint8}
  - {name: status, type: "dictionary<int8, string>"}
  - {name: at, type: "timestamp[us]"}
  - {name: place, type: "struct<x: float32, y: float32>"}
  - {name: "the note", type: string}
"""


def loaded(tmp_path: Path, checks: str, schema: str = SCHEMA) -> Loaded:
    return load_text(tmp_path, CATALOG, table("t", f"{schema}checks: {checks}\n"))


def test_all_of_it(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        "{rowCount: {min: 1, max: 9}, notNull: [id, place.x], unique: [id, [id, at]], accepted: {status: [a, b],"
        ' small: [0, 255]}, expressions: [{name: n, sql: "id > 0"}], freshness: {column: at, maxAge: 2h}}',
    )
    assert found.diagnostics == []
    assert found.desired.tables["lake"][("t",)].checks == Checks(
        1,
        9,
        ("id", "place.x"),
        (("id",), ("id", "at")),
        {"status": ("a", "b"), "small": (0, 255)},
        (Expression("n", "id > 0"),),
        Freshness("at", 7200),
    )


def test_none(tmp_path: Path) -> None:
    found = load_text(tmp_path, CATALOG, table("t", SCHEMA))
    assert found.desired.tables["lake"][("t",)].checks is NO_CHECKS


WRONG = {
    "{rowCount: {min: 2, max: 1}}": ("M455", "{min: 2"),
    "{notNull: [id, nosuch]}": ("M450", "nosuch]"),
    "{notNull: [place.z]}": ("M450", "place.z"),
    "{unique: [[id, nosuch]]}": ("M450", "[id, nosuch]"),
    "{accepted: {nosuch: [1]}}": ("M450", "nosuch"),
    "{accepted: {place: [1]}}": ("M451", "place"),
    "{accepted: {at: [1]}}": ("M451", "at:"),
    "{accepted: {id: [x]}}": ("M451", "x]"),
    "{accepted: {id: [1.5]}}": ("M451", "1.5]"),
    "{accepted: {id: [true]}}": ("M451", "true]"),
    "{accepted: {small: [255, 256]}}": ("M451", "256]"),
    "{accepted: {status: [1]}}": ("M451", "1]"),
    "{freshness: {column: id, maxAge: 1d}}": ("M451", "id,"),
    "{freshness: {column: att, maxAge: 1d}}": ("M450", "att,"),
    "{freshness: {column: at, maxAge: 0d}}": ("M207", "0d"),
    "{expressions: [{name: a, sql: id > 1}, {name: a, sql: id > 2}]}": ("M454", "a, sql: id > 2"),
    "{expressions: [{name: a, sql: id >}]}": ("M452", "id >"),
    "{expressions: [{name: a, sql: ids > 1}]}": ("M450", "ids > 1"),
    "{rowCounts: {min: 1}}": ("M203", "rowCounts"),
}


@pytest.mark.parametrize("checks", WRONG)
def test_what_is_wrong_is_told_at_its_place(tmp_path: Path, checks: str) -> None:
    code, text = WRONG[checks]
    found = loaded(tmp_path, checks)
    assert codes(found) == [code]
    ((line, column),) = places(found, code)
    assert (tmp_path / "m.yaml").read_text().splitlines()[line - 1][column - 1 :].startswith(text)


def test_an_age_without_a_unit_is_told_how_to_write_it(tmp_path: Path) -> None:
    (found,) = loaded(tmp_path, "{freshness: {column: at, maxAge: 7}}").diagnostics
    assert (found.code, found.hint[:9]) == ("M206", "write 7d,")


def test_a_number_that_is_too_large_is_told_so(tmp_path: Path) -> None:
    (found,) = loaded(tmp_path, "{accepted: {id: [9999999999999999999]}}").diagnostics
    assert found.message.endswith("9999999999999999999 is a number that is too large")
    assert found.hint == 'write "9999999999999999999" if it is a text; a number is at most 9007199254740992'


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("id > 'open", "a ' is not closed"),
        ("id > 1 /* open", "a text, a name or a comment is not closed"),
        ("id = x'zz'", "a number has wrong digits"),
        ("(" * 5000 + "id" + ")" * 5000, "it is nested too deeply"),
    ],
)
def test_sql_that_does_not_parse_is_told_in_words_about_it(sql: str, told: str) -> None:
    problem = sql_problem(sql, FIELDS, ())
    assert problem is not None
    assert problem.message == f"the SQL does not parse: {told}"


def test_what_cannot_be_known_is_not_told(tmp_path: Path) -> None:
    """Without a schema there are no columns to compare with; a column whose type is broken is there all the same."""
    checks = (
        '{notNull: [a], accepted: {b: [1]}, freshness: {column: c, maxAge: 1d}, expressions: [{name: n, sql: "d = 1"}]}'
    )
    assert codes(loaded(tmp_path, checks, schema="")) == []
    assert codes(loaded(tmp_path, "{accepted: {a: [1]}}", schema='schema: [{name: a, type: "int65"}]\n')) == ["M211"]


FIELDS = tuple(
    Field(name, parse_type(type_))
    for name, type_ in {
        "id": "int64",
        "s": "string",
        "ts": "timestamp[us, tz=UTC]",
        "l": "list<int64>",
        "st": "struct<x: int64>",
        "w x": "int64",
    }.items()
)
RUNS = [
    "id > 1",
    "ID > 1",
    "`w x` = 1",
    's = "a"',
    "s = 'a' -- why",
    "st.x > 1",
    "s LIKE 'a%'",
    "id IN (1, 2)",
    "id BETWEEN 1 AND 2",
    "id IS DISTINCT FROM 2",
    "cast(id as double) > 1",
    "ts > timestamp '2020-01-01 00:00:00'",
    "ts < now()",
    "length(s) = 1",
    "regexp_like(s, '^a')",
    "array_length(l) > 1",
    "coalesce(s, '') = ''",
    "id % 2 = 0 OR NOT (id > 3)",
]
REFUSED = {
    "id >": "M452",
    "(id": "M452",
    "id > 1; id > 2": "M452",
    "id > 1) OR (id > 2": "M452",
    "id > 1 GROUP BY id": "M452",
    "id > 1 AS x": "M452",
    "id, s": "M452",
    "'open": "M452",
    "CASE WHEN id > 1 THEN true ELSE false END": "M453",
    "id = (SELECT max(id) FROM t)": "M453",
    "EXISTS (SELECT 1)": "M453",
    "count(id) > 1": "M453",
    "interval '1 day' > interval '1 hour'": "M453",
    "(id, s) IN ((1, 'a'))": "M453",
    "nosuch > 1": "M450",
    "st.y > 1": "M450",
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    times = pa.array([1, 2, 3], pa.timestamp("us", tz="UTC"))
    columns = {"id": [1, 2, 3], "s": ["a", "b", None], "ts": times, "l": [[1], [2, 3], None]}
    rows = pa.table({**columns, "st": [{"x": 1}, {"x": 2}, None], "w x": [1, 2, 3]})
    return lance.write_dataset(rows, str(tmp_path_factory.mktemp("sql") / "t.lance"))


@pytest.mark.parametrize("sql", RUNS)
def test_what_validate_lets_pass_runs(dataset: lance.LanceDataset, sql: str) -> None:
    assert sql_problem(sql, FIELDS, ()) is None
    assert dataset.count_rows(filter=f"NOT (\n{sql}\n)") + dataset.count_rows(filter=sql) <= 3


@pytest.mark.parametrize("sql", REFUSED)
def test_what_would_not_run_is_refused(dataset: lance.LanceDataset, sql: str) -> None:
    problem = sql_problem(sql, FIELDS, ())
    assert problem is not None
    assert problem.code == REFUSED[sql]
    if REFUSED[sql] != "M452":
        with pytest.raises((ValueError, OSError)):
            dataset.count_rows(filter=sql)
