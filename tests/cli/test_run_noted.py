"""The run in the report, in the journal's first line and on what it wrote."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import lance
import pytest
from cli_runs import catalog, check_schema, namespace, reconciler, table, write

CI = {
    "GITHUB_ACTOR": "ada",
    "GITHUB_REPOSITORY": "o/r",
    "GITHUB_RUN_ID": "7",
    "GITHUB_SERVER_URL": "https://git.example",
}
URL = "https://git.example/o/r/actions/runs/7"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write(tmp_path, catalog(), namespace("a"), table("a", "t"))
    return tmp_path


def test_the_report_the_journal_and_the_objects_say_who(lake: Path) -> None:
    names = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    for words in (["init", "-q"], ["add", "m.yaml"], [*names, "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=lake, check=True)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=lake, check=True, capture_output=True, text=True
    ).stdout.strip()
    words = ("apply", "m.yaml", "--yes", "--report", "r.json", "--journal", "j.jsonl", "--format", "json")
    done = reconciler(lake, *words, env=CI)
    assert done.code == 0, done.err
    run = json.loads((lake / "r.json").read_text())["run"]
    check_schema("report", done.json)
    assert run == done.json["run"] == json.loads((lake / "j.jsonl").read_text().splitlines()[0])["run"]
    assert (run["by"], run["commit"], run["dirty"], run["url"]) == ("ada", head, False, URL)
    (dataset,) = [p for p in (lake / "lake").iterdir() if p.name.endswith("a$t")]
    noted = json.loads(lance.dataset(str(dataset)).metadata["reconciler.applied-by"])
    assert noted == {"at": run["at"], "by": "ada", "commit": head[:12], "run": URL}


def test_a_saved_plan_is_of_the_commit_of_its_manifests(lake: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=lake, check=True)
    names = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", "add", "m.yaml"], cwd=lake, check=True)
    subprocess.run(["git", *names, "commit", "-qm", "one"], cwd=lake, check=True)
    assert reconciler(lake, "plan", "m.yaml", "-o", "plan.json").code == 0
    assert "reconciler.applied-by" not in (lake / "plan.json").read_text()
    run = reconciler(lake, "apply", "--plan", "plan.json", "--yes", "--format", "json", env=CI).json["run"]
    assert len(run["commit"]) == 40
    assert run["dirty"] is False


def test_a_run_without_a_plan_says_who_too(lake: Path) -> None:
    write(lake, "kind: Nonsense\n")
    done = reconciler(lake, "apply", "m.yaml", "--yes", "--report", "r.json", env=CI)
    assert done.code == 1
    assert json.loads((lake / "r.json").read_text())["run"]["by"] == "ada"


def test_a_second_run_with_nothing_to_do_writes_nothing(lake: Path) -> None:
    assert reconciler(lake, "apply", "m.yaml", "--yes", env=CI).code == 0
    before = sorted((str(p), p.stat().st_mtime_ns) for p in (lake / "lake").rglob("*"))
    again = reconciler(lake, "apply", "m.yaml", "--yes", env={**CI, "GITHUB_ACTOR": "bob"})
    assert (again.code, sorted((str(p), p.stat().st_mtime_ns) for p in (lake / "lake").rglob("*"))) == (0, before)


def test_no_secret_gets_there(lake: Path) -> None:
    write(lake, catalog(storage__token="hunter2-hunter2"), namespace("a"), table("a", "t"))
    env = {"RECONCILER_RUN_URL": "https://u:hunter2-hunter2@ci.example/hunter2-hunter2?x=hunter2-hunter2"}
    done = reconciler(lake, "apply", "m.yaml", "--yes", "--report", "r.json", "--journal", "j.jsonl", env=env)
    assert done.code == 0, done.err
    written = [p.read_bytes() for p in lake.rglob("*") if p.is_file() and p.name != "m.yaml"]
    assert not any(b"hunter2" in text for text in written)
    assert b"https://ci.example/***" in (lake / "r.json").read_bytes()
