"""Values that are looked at while a plan is made: what is found, how much is read, and what is left to the step."""

from __future__ import annotations

import datetime as dt
import threading
import time
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli.cli_runs import catalog, reconciler, table, write

from reconciler.catalog.arrow_convert import to_arrow_type
from reconciler.catalog.base import DataPlace
from reconciler.model.arrow import parse_type
from reconciler.model.values import ValueCheck, ValueFinding
from reconciler.pipeline import value_check
from reconciler.pipeline.value_check import look_at_values


def found(path: Path, values: Any, type_: str | None, name: str = "c", asked: str | None = None) -> ValueFinding | None:
    """Of a column with these values in a table with another one."""
    rows = pa.table({"id": range(len(values)), name: values})
    uri = str(path / "t.lance")
    lance.write_dataset(rows, uri, mode="overwrite", max_rows_per_file=3, data_storage_version="2.2")
    check = ValueCheck(name, None if type_ is None else parse_type(type_))
    return look_at_values(DataPlace(uri), {check: asked or name}).get(check)


@pytest.mark.parametrize(
    ("values", "type_", "misfits", "examples"),
    [
        (["1", "red", None, "3", "x"], "int32", 2, ("'red' in row 1", "'x' in row 4")),
        (["1", "2", None], "int32", 0, ()),
        ([1, 300, -129, None, 5], "int8", 2, ("300 in row 1", "-129 in row 2")),
        ([1.0, 2.5, None], "int64", 1, ("2.5 in row 1",)),
        (["2024-01-01", "01/02/2024"], "date32", 1, ("'01/02/2024' in row 1",)),
        ([dt.datetime(2024, 3, 31, 2, 30)], "timestamp[us, tz=Europe/Berlin]", 1, None),
        ([[1, 2], [300], None, [None]], "list<int8>", 1, ("[300] in row 1",)),
        ([[1.0, 2.0], [1.0]], "fixed_size_list<float32>[2]", 1, ("[1.0] in row 1",)),
        ([{"a": 1}, {"a": 2**40}, None], "struct<a: int32>", 1, ("{'a': 1099511627776} in row 1",)),
        ([["1"], ["2", "3"], ["4", "x"], [], None], "list<int32>", 1, ("['4', 'x'] in row 2",)),
        ([[{"a": "1"}], [{"a": "2"}], [{"a": "x"}]], "list<struct<a: int32>>", 1, ("[{'a': 'x'}] in row 2",)),
        (
            pa.array([[("k", "1")], [("k", "2")], [("k", "x")]], pa.map_(pa.string(), pa.string())),
            "map<string, int32>",
            1,
            ("[('k', 'x')] in row 2",),
        ),
        ([1.0, 1e300, None, float("inf"), float("nan")], "float32", 1, ("1e+300 in row 1",)),
        ([1.0, -7e4, 65504.0], "float16", 1, ("-70000.0 in row 1",)),
        (pa.array([1.0, 7e4], pa.float32()), "float16", 1, ("70000.0 in row 1",)),
        ([[1.0], [1e39, None], None, [None]], "list<float32>", 1, ("[1e+39, None] in row 1",)),
        (
            pa.array([[1.0, 2.0], [1e6, 2.0], None], pa.list_(pa.float32(), 2)),
            "fixed_size_list<float16>[2]",
            1,
            ("[1000000.0, 2.0] in row 1",),
        ),
        (pa.array([1.0, 1e300]).dictionary_encode(), "dictionary<int32, float32>", 1, ("1e+300 in row 1",)),
        ([{"a": 1.0}, {"a": 1e300}, None], "struct<a: float32>", 1, ("{'a': 1e+300} in row 1",)),
        (["1.5", "1e39", "Infinity", "-inf", None], "float32", 1, ("'1e39' in row 1",)),
        ([1, 70000], "float16", 1, ("70000 in row 1",)),
        ([[1], [70000]], "list<float16>", 1, ("[70000] in row 1",)),
        (
            pa.array([[("k", 1.0)], None, [("k", 1e300)]], pa.map_(pa.string(), pa.float64())),
            "map<string, float32>",
            1,
            ("[('k', 1e+300)] in row 2",),
        ),
        ([1, None, 3, None], None, 2, ("row 1", "row 3")),
        ([[1], [None]], None, 0, ()),
    ],
    ids=str,
)
def test_what_does_not_fit(
    tmp_path: Path, values: Any, type_: str | None, misfits: int, examples: tuple[str, ...] | None
) -> None:
    finding = found(tmp_path, values, type_)
    assert finding is not None
    assert (finding.misfits, finding.rows, finding.complete) == (misfits, len(values), True)
    assert examples is None or finding.examples == examples


@pytest.mark.parametrize("encoded", [False, True])
def test_more_values_than_a_dictionary_counts(tmp_path: Path, encoded: bool) -> None:
    values = pa.array([str(n) for n in range(130)])
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"c": values.dictionary_encode() if encoded else values}), uri)
    check = ValueCheck("c", parse_type("dictionary<int8, string>"))
    finding = look_at_values(DataPlace(uri), {check: "c"})[check]
    assert finding == ValueFinding(130, True, 2, ("'128' in row 128", "'129' in row 129"))
    roomy = ValueCheck("c", parse_type("dictionary<uint8, string>"))
    assert look_at_values(DataPlace(uri), {roomy: "c"})[roomy].misfits == 0


@pytest.mark.parametrize(("different", "fits"), [(40, True), (100, False)])
def test_a_dictionary_that_lance_could_not_read_afterwards(tmp_path: Path, different: int, fits: bool) -> None:
    """It writes the 100 values of three batches as 300, which an int8 does not count, and commits that."""
    values = pa.array([str(n % different) for n in range(3000)])
    uri = str(tmp_path / "t.lance")
    live = lance.write_dataset(pa.table({"c": values}), uri)
    check = ValueCheck("c", parse_type("dictionary<int8, string>"))
    finding = look_at_values(DataPlace(uri), {check: "c"})[check]
    assert (finding.misfits == 0) is fits
    live.alter_columns({"path": "c", "data_type": pa.dictionary(pa.int8(), pa.string())})
    if fits:
        assert lance.dataset(uri).to_table()["c"].to_pylist() == values.to_pylist()


def test_the_plan_says_why_a_dictionary_is_too_small(tmp_path: Path) -> None:
    schema = "[{name: c, type: 'dictionary<int32, string>'}]"
    write(tmp_path, catalog(), table("t", schema=schema))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    rows = pa.table({"c": pa.array([str(n) for n in range(300)]).dictionary_encode()})
    lance.write_dataset(rows, str(tmp_path / "lake" / "t.lance"), mode="append")
    write(tmp_path, catalog(), table("t", schema=schema.replace("int32", "int8"), spec="allow: [narrow_type]"))
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes")
    assert run.code == 3, run.out + run.err
    assert "column c: 172 of 300 rows have a value that does not fit into dictionary<int8, string> " in run.out
    told = "(Lance counts the values of each batch anew, up to 128: use index int32), for instance '128' in row 128"
    assert told in run.out


def rows_in(folder: Path, schema: str, rows: pa.Table, **more: Any) -> str:
    """A table of ours with rows of another tool."""
    write(folder, catalog(), table("t", schema=schema))
    assert reconciler(folder, "apply", "m.yaml", "--yes").code == 0
    uri = str(folder / "lake" / "t.lance")
    lance.write_dataset(rows, uri, mode="append", **more)
    return uri


def test_the_dictionary_of_each_file_counts_by_itself(tmp_path: Path) -> None:
    rows = pa.table({"c": ["x"] * 200})
    uri = rows_in(tmp_path, "[{name: c, type: string}]", rows, max_rows_per_file=1)
    small = "[{name: c, type: 'dictionary<int8, string>'}]"
    write(tmp_path, catalog(), table("t", schema=small, spec="allow: [narrow_type]"))
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes")
    assert run.code == 0, run.out
    assert lance.dataset(uri).to_table()["c"].to_pylist() == ["x"] * 200


@pytest.mark.parametrize(
    ("live", "values", "declared"),
    [
        ("list<string>", [[str(n % 50 + n // 1024 * 50)] for n in range(3000)], "list<dictionary<int8, string>>"),
        ("list<struct<a: string>>", [[{"a": "x"}]], "list<struct<a: dictionary<uint8, string>>>"),
    ],
)
def test_small_dictionaries_inside_of_lists_are_not_made(tmp_path: Path, live: str, values: Any, declared: str) -> None:
    type_ = to_arrow_type(parse_type(live))
    uri = rows_in(tmp_path, f"[{{name: l, type: '{live}'}}]", pa.table({"l": pa.array(values, type_)}))
    write(tmp_path, catalog(), table("t", schema=f"[{{name: l, type: '{declared}'}}]", spec="allow: [narrow_type]"))
    plan = reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json
    assert [(s["action"], s["verdict"]) for s in plan["steps"]] == [("alter_columns", "unsupported")]
    assert "declare the index int32" in plan["steps"][0]["reason"]
    assert lance.dataset(uri).to_table()["l"].to_pylist() == values


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{name: s, type: int64}", "{name: s, type: 'dictionary<int8, string>'}"),
        (
            "{name: s, type: int64}",
            "{name: s, type: int64}, {name: n, type: 'dictionary<int8, string>', backfill: {sql: 'cast(s as string)'}}",
        ),
    ],
)
def test_a_column_that_lance_cannot_read_is_not_committed(tmp_path: Path, before: str, after: str) -> None:
    """Many values in many batches; the table stays as it was. With few of them it works."""
    for name, different in (("many", 100), ("few", 5)):
        folder = tmp_path / name
        folder.mkdir()
        rows = pa.table({"s": [n % different for n in range(24_000)]})
        uri = rows_in(folder, f"[{before}]", rows)
        version = lance.dataset(uri).version
        write(folder, catalog(), table("t", schema=f"[{after}]"))
        run = reconciler(folder, "apply", "m.yaml", "--yes")
        found = lance.dataset(uri).to_table().to_pylist()
        if name == "many":
            assert run.code == 1, run.out
            assert "__new_" not in run.out
            assert "Lance cannot read what it wrote of a dictionary with a small index" in run.out
            assert found == rows.to_pylist()
            assert reconciler(folder, "plan", "m.yaml", "--detailed-exitcode").code == 2
        else:
            assert run.code == 0, run.out
            assert {str(row.get("n", row["s"])) for row in found} == {str(n) for n in range(5)}
            assert lance.dataset(uri).version > version


def test_a_field_of_a_struct(tmp_path: Path) -> None:
    rows = [{"a": 1}, {"a": 300}, None]
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"s": rows}), uri, data_storage_version="2.2")
    narrow, present = ValueCheck("s.a", parse_type("int8")), ValueCheck("s.a")
    findings = look_at_values(DataPlace(uri), {narrow: "s.a", present: "s.a"})
    assert findings[narrow].examples == ("300 in row 1",)
    assert findings[present].examples == ("row 2",), "lance counts a struct that is null too"


@pytest.mark.parametrize(
    ("path", "values"),
    [("s.a", [{"a": 1.0}, {"a": 1e300}, None]), ("s.item.a", [[], None, [{"a": 1.0}, {"a": 1e300}]])],
)
def test_a_number_inside_that_is_too_large(tmp_path: Path, path: str, values: Any) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"s": values}), uri, data_storage_version="2.2")
    narrow = ValueCheck(path, parse_type("float32"))
    finding = look_at_values(DataPlace(uri), {narrow: path})[narrow]
    assert (finding.misfits, "1e+300" in finding.examples[0]) == (1, True)


def test_deleted_rows_are_not_looked_at(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"c": ["1", "red", "3"]}), uri).delete("c = 'red'")
    check = ValueCheck("c", parse_type("int32"))
    assert look_at_values(DataPlace(uri), {check: "c"}) == {check: ValueFinding(2, True)}


def test_no_more_is_read_than_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_check, "MOST_ROWS", 4)
    finding = found(tmp_path, ["1", "2", "3", "4", "5", "6", "red"], "int32")
    assert finding == ValueFinding(6, False)
    finding = found(tmp_path, ["red", "2", "3", "4", "5", "6", "red"], "int32")
    assert finding == ValueFinding(6, False, 1, ("'red' in row 0",))
    monkeypatch.setattr(value_check, "MOST_ROWS", 10**6)
    monkeypatch.setattr(value_check, "MOST_BYTES", 1)
    finding = found(tmp_path, ["1", "2", "3", "4"], "int32")
    assert finding == ValueFinding(3, False)


def test_not_every_misfit_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_check, "MOST_MISFITS", 4)
    finding = found(tmp_path, ["x"] * 100, "int32")
    assert finding is not None
    assert (finding.rows, finding.misfits, finding.complete) == (4, 4, False)


def test_what_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    check = ValueCheck("c", parse_type("int32"))
    assert look_at_values(DataPlace(str(tmp_path / "gone.lance")), {check: "c"}) == {}
    assert found(tmp_path, ["1"], "int32", asked="other") is None


def test_what_lance_would_wait_for_is_told(tmp_path: Path) -> None:
    uri, check = str(tmp_path / "t.lance"), ValueCheck("c", parse_type("int32"))
    lance.write_dataset(pa.table({"c": ["1"]}), uri)
    (file,) = (tmp_path / "t.lance" / "data").iterdir()
    file.unlink()
    file.symlink_to("/dev/null")
    unread = look_at_values(DataPlace(uri), {check: "c"})[check].unread
    assert unread == f"the rows of {uri} cannot be read: {file}: it is not a regular file"
    file.unlink()
    file.mkdir()
    assert look_at_values(DataPlace(uri), {check: "c"}) == {}, "lance says so itself"


SCHEMA = "[{name: id, type: int64}, {name: c, type: %s}]"


def lake(folder: Path, values: Any, type_: str) -> None:
    write(folder, catalog(), table("t", schema=SCHEMA % type_))
    assert reconciler(folder, "apply", "m.yaml", "--yes").code == 0
    rows = pa.table({"id": pa.array(range(len(values)), pa.int64()), "c": values})
    lance.write_dataset(rows, str(folder / "lake/t.lance"), mode="append", max_rows_per_file=4)


def test_a_plan_speaks_of_a_column_by_its_new_name(tmp_path: Path) -> None:
    lake(tmp_path, pa.array([1, 2**40, 3]), "int64")
    renamed = "[{name: id, type: int64}, {name: d, type: int32, renamedFrom: c}]"
    write(tmp_path, catalog(), table("t", schema=renamed, spec="\n  allow: [narrow_type]"))
    made = reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json
    stuck = [s for s in made["steps"] if s["verdict"] == "blocked"]
    assert [s["blocked_by"] for s in stuck] == ["values"]
    assert f"column d: 1 of 3 rows has a value that is no int32, for instance {2**40} in row 1" in stuck[0]["reason"]


def test_a_secret_in_a_value_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "very-secret-canary")
    lake(tmp_path, pa.array(["1", "very-secret-canary"]), "string")
    secret = catalog(storage__aws_secret_access_key="${env:KEY}")
    write(tmp_path, secret, table("t", schema=SCHEMA % "int32"))
    run = reconciler(tmp_path, "plan", "m.yaml", "--format", "json")
    assert [s["blocked_by"] for s in run.json["steps"]] == ["values"]
    assert "in row 1" in run.out
    assert "very-secret-canary" not in run.out


def test_a_plan_of_a_large_table_says_what_it_has_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(tmp_path, pa.array(range(10)), "int64")
    monkeypatch.setattr(value_check, "MOST_ROWS", 5)
    write(tmp_path, catalog(), table("t", schema=SCHEMA % "int32", spec="\n  allow: [narrow_type]"))
    (step,) = reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json["steps"]
    assert step["verdict"] == "allowed"
    assert "plan read 8 rows, and they fit: apply reads all of them before it commits" in step["reason"]


@pytest.mark.parametrize("schema", [SCHEMA % "string", SCHEMA % "large_string", SCHEMA % "list<string>"])
def test_a_plan_without_such_a_step_reads_no_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: str
) -> None:
    lake(tmp_path, pa.array(["a", "b"]), "string")
    monkeypatch.setattr(value_check, "look_at_values", lambda *_: pytest.fail("values were read"))
    write(tmp_path, catalog(), table("t", schema=schema))
    assert reconciler(tmp_path, "plan", "m.yaml").code == 0


def test_timeout_bounds_the_reading_of_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is silent by now: the catalog was read before."""
    lake(tmp_path, pa.array(["1"]), "string")
    over = threading.Event()
    monkeypatch.setattr(value_check, "look_at_values", lambda *_: over.wait(60) and {})
    write(tmp_path, catalog(), table("t", schema=SCHEMA % "int32"))
    began = time.monotonic()
    run = reconciler(tmp_path, "plan", "m.yaml", "--timeout", "1")
    over.set()
    assert (run.code, time.monotonic() - began < 30) == (1, True)
    assert "the values of table lake:t cannot be read" in run.err
    assert "has not answered, the --timeout of 1 s is over" in run.err
