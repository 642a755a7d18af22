"""A saved plan that copies from a catalog which is not planned, through the program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.cli_runs import check_schema, reconciler
from pipeline import in_process
from pipeline.migrate_lake import Move, local

from reconciler.pipeline.data_plane import Running


@pytest.fixture
def move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Move:
    monkeypatch.setattr(Running, "spark", lambda self: (in_process.InProcess(), in_process.SLOTS))
    monkeypatch.setattr("reconciler.app_data.lacking", lambda spark: None)
    made = local(tmp_path, in_process.running())
    made.write()
    return made


def test_a_saved_plan_opens_the_source_too(move: Move) -> None:
    made = reconciler(move.folder, "plan", "m.yaml", "--catalog", "new", "-o", "plan.json", "--format", "json")
    assert made.code == 0, made.err
    check_schema("plan", made.json)
    assert sorted(made.json["catalogs"]) == ["new", "old"]
    run = reconciler(move.folder, "apply", "--plan", "plan.json", "--yes", "--format", "json")
    assert run.code == 0, run.out + run.err
    check_schema("report", run.json)
    assert [s["action"] for s in run.json["steps"]][:3] == ["create_namespace", "declare_table", "migrate_table"]
    move.moved()


def test_a_source_that_is_gone_when_a_saved_plan_is_applied(move: Move) -> None:
    reconciler(move.folder, "plan", "m.yaml", "--catalog", "new", "-o", "plan.json")
    plan = json.loads((move.folder / "plan.json").read_text())
    assert plan["catalogs"]["old"]["spec"]["path"] == str(move.folder / "old")
    (move.folder / "old").rename(move.folder / "gone")
    run = reconciler(move.folder, "apply", "--plan", "plan.json", "--yes", "--format", "json")
    assert run.code == 5, run.out
    assert "old n.events is not in the catalog" in run.out


def test_the_text_of_the_plan(move: Move) -> None:
    out = reconciler(move.folder, "plan", "m.yaml").out
    assert "+ rows and indexes of old n.events" in out
