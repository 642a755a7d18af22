"""Indexes that do not cover all rows: what `status`, `plan` and `drift` show, in every format and the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import lance
import pyarrow as pa
import pytest
from cli_runs import Run, catalog, reconciler, table, write

TABLE = table("t", schema="[{name: id, type: int64}]") + "  indexes: [{column: id, type: btree}]\n"


def append(folder: Path, count: int) -> None:
    rows = pa.table({"id": pa.array(range(count), pa.int64())})
    lance.write_dataset(rows, str(folder / "lake" / "t.lance"), mode="append")


def declare(folder: Path, refresh: str = "") -> None:
    write(folder, catalog().replace("owner: team", f"owner: team{refresh}"), TABLE)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """40 rows, and an index from before they came."""
    declare(tmp_path)
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    append(tmp_path, 40)
    return tmp_path


@pytest.fixture
def large(lake: Path) -> Path:
    declare(lake, ", indexRefresh: {maxRows: 39}")
    return lake


def drift(folder: Path, *flags: str) -> Run:
    return reconciler(folder, "drift", "m.yaml", *flags)


def test_status_as_text_and_json(lake: Path) -> None:
    run = reconciler(lake, "status", "m.yaml")
    assert "  Indexes:      1, 1 without all rows\n" in run.out
    title = "  Indexes that do not cover all rows of their tables:\n"
    assert f"{title}    table t: index id_idx covers 0 of 40 rows\n" in run.out
    found = reconciler(lake, "status", "m.yaml", "--format", "json").json["catalogs"]["lake"]["indexes"]
    where = {"object": {"kind": "Table", "id": ["t"]}, "index": "id_idx", "column": "id", "type": "btree"}
    assert found == [{**where, "rows": 40, "indexed_rows": 0}]
    assert "index `id_idx` covers 0 of 40 rows" in reconciler(lake, "status", "m.yaml", "--format", "markdown").out


def test_status_of_a_covered_index(lake: Path) -> None:
    assert reconciler(lake, "apply", "m.yaml", "--yes").code == 0
    run = reconciler(lake, "status", "m.yaml")
    assert "  Indexes:      1, none without all rows\n" in run.out
    assert "do not cover" not in run.out
    found = reconciler(lake, "status", "m.yaml", "--format", "json").json["catalogs"]["lake"]["indexes"]
    assert (found[0]["rows"], found[0]["indexed_rows"]) == (40, 40)


def test_a_plan_refreshes_a_small_table(lake: Path) -> None:
    run = reconciler(lake, "plan", "m.yaml", "--detailed-exitcode")
    assert run.code == 2
    assert "~ index id_idx: covers 0 of 40 rows -> all of them" in run.out
    assert drift(lake).code == 2
    assert reconciler(lake, "apply", "m.yaml", "--yes").code == 0
    again = reconciler(lake, "plan", "m.yaml", "--detailed-exitcode")
    assert (again.code, again.out) == (0, "No changes. The live catalogs match the manifests.\n")


def test_a_saved_plan_refreshes(lake: Path) -> None:
    assert reconciler(lake, "plan", "m.yaml", "-o", "plan.json").code == 0
    step = json.loads((lake / "plan.json").read_text())["steps"][0]
    assert (step["action"], step["plane"], step["risk"]) == ("refresh_index", "control", "safe")
    assert step["before"] == {"rows": 40, "indexed_rows": 0}
    append(lake, 5)
    assert reconciler(lake, "apply", "--plan", "plan.json", "--yes").code == 0
    assert reconciler(lake, "apply", "--plan", "plan.json", "--yes").code == 0
    assert lance.dataset(str(lake / "lake" / "t.lance")).stats.index_stats("id_idx")["num_unindexed_rows"] == 0


def test_a_plan_names_the_command_for_a_large_table(large: Path) -> None:
    run = reconciler(large, "plan", "m.yaml", "--detailed-exitcode")
    assert run.code == 0
    assert "table t: index id_idx covers 0 of 40 rows: run `reconciler pipeline maintain PATH`\n" in run.out
    assert "No changes. There is nothing to apply, but 1 index does not cover all rows." in run.out
    assert drift(large).code == 0


@pytest.mark.parametrize(("limit", "code"), [("39", 2), ("40", 0), ("99.5%", 2), ("100%", 0), ("0", 2)])
def test_drift_has_a_limit(large: Path, limit: str, code: int) -> None:
    run = drift(large, "--max-unindexed", limit)
    assert run.code == code
    told = f"index id_idx covers 0 of 40 rows: more than {limit} unindexed"
    assert (told in run.out) == (code == 2)
    assert run.out.splitlines()[-1].startswith("Drift." if code else "No changes.")
    found = drift(large, "--max-unindexed", limit, "--format", "json").json["catalogs"]["lake"]["coverage"]
    assert found[0].get("max_unindexed") == (limit if code else None)


def test_a_limit_counts_what_no_plan_refreshes_yet(lake: Path) -> None:
    assert reconciler(lake, "apply", "m.yaml", "--yes").code == 0
    append(lake, 3)
    assert drift(lake).code == 0
    assert drift(lake, "--max-unindexed", "3").code == 0
    assert drift(lake, "--max-unindexed", "2").code == 2


@pytest.mark.parametrize("limit", ["x", "-1", "1.5", "101%", "%", ""])
def test_a_limit_that_is_none(lake: Path, limit: str) -> None:
    run = drift(lake, f"--max-unindexed={limit}")
    assert run.code == 1
    assert "--max-unindexed" in run.err


def test_documents_of_a_limit(large: Path) -> None:
    suites = ElementTree.fromstring(drift(large, "--max-unindexed", "1", "--format", "junit").out)
    failed = [case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None]
    assert failed == ["table t index id_idx"]
    fine = ElementTree.fromstring(drift(large, "--format", "junit").out)
    assert not [case for case in fine.iter("testcase") if case.find("failure") is not None]
    for format_ in ("markdown", "html", "sarif"):
        assert "covers 0 of 40 rows" in drift(large, "--max-unindexed", "1", "--format", format_).out.replace("`", "")


def test_a_hostile_name_starts_no_line(large: Path) -> None:
    place = str(large / "lake" / "t.lance")
    evil = "x\nError: \x1b[31mall is lost"
    lance.dataset(place).create_scalar_index("id", "BTREE", name=evil, train=False)
    run = reconciler(large, "status", "m.yaml")
    assert "\x1b" not in run.out
    assert not [line for line in run.out.splitlines() if line.startswith("Error")]


@pytest.mark.parametrize("off", ["false", "0", "{maxRows: 0}"])
def test_switched_off(lake: Path, off: str) -> None:
    declare(lake, f", indexRefresh: {off}")
    run = reconciler(lake, "plan", "m.yaml", "--detailed-exitcode")
    assert (run.code, "pipeline maintain" in run.out) == (0, True)


@pytest.mark.parametrize(
    "value", ["{maxRows: -1}", "{maxUnindexed: 120%}", "{minRows: 3}", "1", "{maxUnindexed: some}"]
)
def test_a_wrong_value_is_named(lake: Path, value: str) -> None:
    declare(lake, f", indexRefresh: {value}")
    run = reconciler(lake, "validate", "m.yaml")
    assert run.code == 1
    assert "m.yaml:" in run.out
    assert "indexRefresh" in run.out
