"""A saved plan that copies from a catalog which is not planned, through the program."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import lance
import pyarrow as pa
import pytest
import yaml
from cli.cli_runs import REPO, check_schema, reconciler, write
from pipeline import in_process
from pipeline.migrate_lake import Move, local

from reconciler.pipeline.data_plane import Running


@pytest.fixture
def move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Move:
    monkeypatch.setattr(Running, "spark", lambda self: (in_process.InProcess(), in_process.SLOTS))
    monkeypatch.setattr("reconciler.app_data.lacking", lambda spark, runner: None)
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


@pytest.mark.parametrize("known", ["not", "elsewhere"])
def test_a_source_that_is_not_among_the_catalogs_to_trust(move: Move, known: str) -> None:
    """Credentials go there, and rows come from there: the catalog that is read counts like the one that is written."""
    made = reconciler(move.folder, "plan", "m.yaml", "--catalog", "new", "-o", "plan.json")
    assert made.code == 0, made.err
    documents = [d for d in yaml.safe_load_all((move.folder / "m.yaml").read_text()) if d["kind"] == "Catalog"]
    old, new = documents
    old["spec"]["path"] = str(move.folder / "elsewhere")
    (move.folder / "base").mkdir()
    (move.folder / "base" / "c.yaml").write_text(yaml.safe_dump_all([new] if known == "not" else [old, new]))
    run = reconciler(move.folder, "apply", "--plan", "plan.json", "--catalogs-from", "base", "--yes")
    assert run.code == 3, run.out + run.err
    assert ("catalog old is not declared there" if known == "not" else "catalog old is another one") in run.err
    assert not (move.folder / "new").exists()


def test_the_plan_in_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`UPDATE_README=1` writes it."""
    monkeypatch.setattr("reconciler.app_data.lacking", lambda spark, runner: None)
    readme = REPO / "docs" / "data.md"
    (example,) = [e for e in re.findall(r"```yaml\n(.*?)```", readme.read_text(), re.DOTALL) if "name: old}" in e]
    write(tmp_path, example, name="lake.yaml")
    rows = pa.table({"id": [1, 2], "text": ["a", "b"]})
    lance.write_dataset(rows, tmp_path / "old" / "events.lance")
    run = reconciler(tmp_path, "plan", "lake.yaml")
    assert run.code == 0, run.err
    text = f"```console\n$ reconciler plan lake.yaml\n{run.out}```\n"
    block = re.compile("(<!-- migrate:begin -->\n)(.*?)(<!-- migrate:end -->)", re.DOTALL)
    if os.environ.get("UPDATE_README"):
        readme.write_text(block.sub(lambda m: m.group(1) + text + m.group(3), readme.read_text()))
    shown = block.search(readme.read_text())
    assert shown is not None
    assert shown.group(2) == text


def test_the_verb_runs_what_an_apply_without_spark_has_left(move: Move, monkeypatch: pytest.MonkeyPatch) -> None:
    first = reconciler(move.folder, "pipeline", "migrate", "m.yaml")
    assert first.code == 3, first.out
    assert "needs declare_table of new:m.moved first" in first.out
    with monkeypatch.context() as patch:
        patch.setattr("reconciler.app_data.lacking", lambda spark, runner: "there is no Java")
        assert reconciler(move.folder, "apply", "m.yaml", "--yes").code == 3
    run = reconciler(move.folder, "pipeline", "migrate", "m.yaml")
    assert run.code == 0, run.out + run.err
    move.moved()
