"""A pull request puts a link where a reviewed source reads its files: with --catalogs-from it is not followed."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runs import catalog, reconciler, table, write

CANARY = "canary_column"
SOURCES = [
    "{format: csv, path: raw}",
    "{format: csv, path: 'raw/*.csv'}",
    "{format: csv, path: [raw/a.csv, raw/l.csv]}",
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("to", ["private.csv", "work/.git/config"])
def test_files_of_the_runner_are_not_read(tmp_path: Path, source: str, to: str) -> None:
    work = tmp_path / "work"
    for folder in ("base", "pr", "raw", ".git"):
        (work / folder).mkdir(parents=True)
    (tmp_path / to).write_text(f"id,{CANARY}\n1,2\n")
    (work / "raw" / "a.csv").write_text("id\n1\n")
    spec = table("t", schema="[{name: id, type: int64}]", spec=f"data: {{source: {source}, mode: once}}")
    for folder in ("base", "pr"):
        write(work / folder, catalog(owner="us"), spec)
    good = reconciler(work, "plan", "pr", "--catalogs-from", "base", "--format", "json")
    assert "a link leads out of" not in good.out
    (work / "raw" / "l.csv").symlink_to(tmp_path / to)
    control = reconciler(work, "plan", "pr")
    assert CANARY in control.out, "the attack is a real one"
    done = reconciler(work, "plan", "pr", "--catalogs-from", "base", "-o", "plan.json")
    assert done.code == 0, done.err
    assert CANARY not in done.out + done.err + (work / "plan.json").read_text()
    assert "a link leads out of" in " ".join(done.out.split())
