"""`explain STEP --report FILE`: the call that it shows brings the lost column back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli.cli_runs import catalog, check_schema, namespace, reconciler, table, write

TWO = "[{name: id, type: int64}, {name: legacy, type: string}]"


@pytest.fixture
def dropped(tmp_path: Path) -> Path:
    """A table whose column `legacy` was dropped by a run with a report."""
    write(tmp_path, catalog(path=str(tmp_path / "lake")), namespace("n"), table("n", "t", schema=TWO))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    (folder,) = (p for p in (tmp_path / "lake").iterdir() if "$t" in p.name)
    lance.write_dataset(pa.table({"id": [1], "legacy": ["kept"]}), str(folder), mode="append")
    write(tmp_path, catalog(path=str(tmp_path / "lake")), namespace("n"), table("n", "t", spec="allow: [drop_column]"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes", "--report", "r.json").code == 0
    assert lance.dataset(str(folder)).schema.names == ["id"]
    return folder


def test_the_call_brings_it_back(tmp_path: Path, dropped: Path) -> None:
    check_schema("report", json.loads((tmp_path / "r.json").read_text()))
    shown = reconciler(tmp_path, "explain", "s1", "--report", "r.json").out
    lines = [line.strip() for line in shown.splitlines()]
    assert lines[0] == "s1 drop_columns of lake:n.t: done"
    (call,) = [line for line in lines if line.endswith(".restore()")]
    exec(f"import lance\n{call}")
    assert lance.dataset(str(dropped)).to_table().to_pydict() == {"id": [1], "legacy": ["kept"]}
    (end,) = [line for line in lines if ".tags.delete(" in line]
    exec(f"import lance\n{end}")
    assert lance.dataset(str(dropped)).tags.list() == {}


def test_formats_and_steps(tmp_path: Path, dropped: Path) -> None:
    (step,) = reconciler(tmp_path, "explain", "--report", "r.json", "--format", "json").json["steps"]
    assert (step["step"], step["restore"].endswith(".restore()")) == ("s1", True)
    page = reconciler(tmp_path, "explain", "--report", "r.json", "--format", "markdown").out
    assert "```python\nimport lance\n" in page
    missing = reconciler(tmp_path, "explain", "s9", "--report", "r.json")
    assert (missing.code, "has no step s9; its steps are s1" in missing.err) == (1, True)


def test_a_journal_does_too(tmp_path: Path, dropped: Path) -> None:
    """After a kill it is all there is. It does not say where the dataset is."""
    journal = max((tmp_path / ".reconciler/journal").iterdir(), key=lambda p: p.stat().st_mtime_ns)
    shown = reconciler(tmp_path, "explain", "s1", "--report", str(journal)).out
    assert shown.startswith("s1 drop_columns of lake:n.t: done\n")
    (tag,) = lance.dataset(str(dropped)).tags.list()
    assert f"lance.dataset(LOCATION, version='{tag}').restore()" in shown
    journal.write_text(journal.read_text().partition('{"event":"end"')[0])
    shown = reconciler(tmp_path, "explain", "s1", "--report", str(journal)).out
    assert shown.startswith("s1 drop_columns of lake:n.t: never ended\n")
    assert f"If the dataset has the tag {tag}, that is the version before it." in shown
    assert f"lance.dataset(LOCATION, version='{tag}').restore()" in shown
    assert reconciler(tmp_path, "explain", "--report", str(journal)).out == shown


def test_a_report_of_a_killed_run_leads_to_the_journal(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"outcome": "interrupted", "steps": []}))
    shown = reconciler(tmp_path, "explain", "--report", "r.json")
    assert (shown.code, "its journal has the steps" in shown.err) == (1, True)


def _result(**more: Any) -> dict[str, Any]:
    return {"id": "s1", "action": "update_table", "catalog": "lake", "object": {"kind": "Table", "id": ["n", "t"]},
            "status": "done", "tag": None, "version_before": 1, "version_after": 2, **more}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({}, "loses nothing"),
        ({"action": "deregister_table"}, "Its data was kept"),
        ({"status": "not_run"}, "did not do it"),
        ({"tag": "reconciler-x-s1"}, "does not say where the dataset is"),
    ],
)
def test_steps_without_a_way(tmp_path: Path, more: dict[str, Any], says: str) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"outcome": "applied", "steps": [_result(**more)]}))
    shown = reconciler(tmp_path, "explain", "s1", "--report", "r.json")
    assert (shown.code, says in shown.out) == (0, True)


@pytest.mark.parametrize("text", ["{}", '{"outcome": "applied"}', '{"outcome": "x", "steps": [{"id": 1}]}', "[]"])
def test_what_is_no_report(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    assert reconciler(tmp_path, "explain", "s1", "--report", "r.json").code == 1
