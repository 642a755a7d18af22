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


def planned(at: Path, source: str, *more: str) -> str:
    """What is shown and saved of a plan of the pull request, made in that folder."""
    spec = table("t", schema="[{name: id, type: int64}]", spec=f"data: {{source: {source}, mode: once}}")
    for folder in ("base", "pr"):
        (at / folder).mkdir(exist_ok=True)
        write(at / folder, catalog(owner="us"), spec)
    done = reconciler(at, "plan", "pr", *more, "-o", "plan.json")
    assert done.code == 0, done.err
    return " ".join((done.out + done.err).split()) + (at / "plan.json").read_text()


@pytest.mark.parametrize("place", ["beside the working directory", "by its whole path", "in a checkout below"])
def test_links_stay_in_the_checkout_wherever_the_program_is_started(tmp_path: Path, place: str) -> None:
    checkout = tmp_path / "space" / "checkout"
    for folder in (".git", "raw", "work"):
        (checkout / folder).mkdir(parents=True)
    at, path = {
        "beside the working directory": (checkout / "work", "../raw/*.csv"),
        "by its whole path": (tmp_path, f"{checkout}/raw"),
        "in a checkout below": (tmp_path / "space", "checkout/raw"),
    }[place]
    (checkout / "raw" / "a.csv").write_text("id\n1\n")
    (checkout / "more.csv").write_text("id\n1\n")
    (checkout / "raw" / "more.csv").symlink_to("../more.csv")
    source = f"{{format: csv, path: '{path}'}}"
    assert "a link leads out of" not in planned(at, source, "--catalogs-from", "base")
    (tmp_path / "space" / "private.csv").write_text(f"id,{CANARY}\n1,2\n")
    (checkout / "raw" / "l.csv").symlink_to(tmp_path / "space" / "private.csv")
    assert CANARY in planned(at, source), "the attack is a real one"
    shown = planned(at, source, "--catalogs-from", "base")
    assert CANARY not in shown
    assert "a link leads out of" in shown
    (checkout / "raw" / "l.csv").unlink()
    (checkout / "raw").rename(tmp_path / "space" / "raw")
    (checkout / "raw").symlink_to(tmp_path / "space" / "raw")
    assert "a link leads out of" in planned(at, source, "--catalogs-from", "base"), "the folder itself"


FILES = {
    "csv": f"{CANARY}\n1\n",
    "json": f'{{"{CANARY}": 1}}\n',
    "parquet": CANARY,
    "unused.csv": f"id,{CANARY}\n1,2\n",
    "twice.csv": f"id,id,{CANARY}\n1,2,3\n",
    "broken.json": f"{CANARY}\n",
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_in_a_file_is_not_shown(tmp_path: Path, name: str) -> None:
    (tmp_path / f"a.{name}").write_text(FILES[name])
    source = f"{{format: {name.rpartition('.')[2]}, path: a.{name}}}"
    assert (CANARY in planned(tmp_path, source)) == (name not in ("parquet", "twice.csv", "broken.json"))
    shown = planned(tmp_path, source, "--catalogs-from", "base")
    assert CANARY not in shown
    assert ("it is not shown what is in it" in shown) == (name != "unused.csv")
