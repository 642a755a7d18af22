"""`import` says which datasets it saw below the root of a directory catalog and left out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from cli_runs import Run, catalog, reconciler, write

from reconciler.catalog import directory_search
from reconciler.catalog.directory import DirectoryCatalog


def dataset(path: Path) -> None:
    lance.write_dataset(pa.table({"id": [1]}), str(path))


def imported(folder: Path, *flags: str, **spec: str) -> Run:
    write(folder, catalog(**spec).replace('"true"', "true").replace('"false"', "false"))
    run = reconciler(folder, "import", "m.yaml", "-o", "out", *flags)
    assert run.code in (0, 5), run.err
    return run


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """One table of the catalog, and datasets around it."""
    root = tmp_path / "lake"
    dataset(root / "table.lance")
    dataset(root / "plain")
    dataset(root / "raw" / "deep.lance")
    dataset(root / "raw" / "2024" / "bare")
    (root / "files").mkdir()
    (root / "files" / "a.parquet").write_bytes(b"no dataset")
    (root / ".hidden").mkdir()
    dataset(root / ".hidden" / "h.lance")
    return tmp_path


def paths(run: Run) -> set[str]:
    return {line.removeprefix("note:   ") for line in run.err.splitlines() if line.startswith("note:   ")}


def test_subfolders_and_folders_without_the_suffix(lake: Path) -> None:
    run = imported(lake)
    assert paths(run) == {"./lake/plain", "./lake/raw/deep.lance", "./lake/raw/2024/bare"}
    assert "2 datasets in subfolders were seen and left out: declare each as a Table with its `location`" in run.err
    assert "1 dataset in folders without the suffix .lance was seen and left out: set `plain_folders: true`" in run.err
    assert run.err.count("as a Table with its `location` in a namespace") == 2, "a root table has no other location"
    assert "stopped" not in run.err
    assert [p.name for p in (lake / "out").rglob("*.yaml") if "table" in p.read_text()]


@pytest.mark.parametrize(
    ("spec", "left"),
    [
        ({"plain_folders": "true"}, {"./lake/raw/deep.lance", "./lake/raw/2024/bare"}),
        ({"manifest_enabled": "false"}, {"./lake/plain", "./lake/raw/deep.lance", "./lake/raw/2024/bare"}),
        (
            {"dir_listing_enabled": "false"},
            {"./lake/plain", "./lake/raw/deep.lance", "./lake/raw/2024/bare", "./lake/table.lance"},
        ),
    ],
)
def test_every_layout(lake: Path, spec: dict[str, str], left: set[str]) -> None:
    assert left <= paths(imported(lake, **spec)) <= left | {"./lake/raw", "./lake/files"}


def test_links_are_named_for_what_they_are(lake: Path) -> None:
    """A dataset that a link makes a table of is not left out, and one to the root does not lead out of it."""
    (lake / "lake" / "linked.lance").symlink_to("raw/deep.lance")
    (lake / "lake" / "again.lance").symlink_to("plain")
    (lake / "lake" / "self.lance").symlink_to(".")
    run = imported(lake)
    assert paths(run) == {"./lake/raw/2024/bare"}
    assert "self.lance leads out of the catalog's root folder" in run.err
    assert "or to that folder itself" in run.err


def test_what_it_says_to_do_works(lake: Path) -> None:
    """A declared `location` registers the dataset, and the next import has nothing left to say of it."""
    document = (
        "---\napiVersion: reconciler.lance/v1\nkind: Table\nmetadata: {catalog: lake, id: [n, deep]}\n"
        "spec: {location: ./lake/raw/deep.lance, schema: [{name: id, type: int64}]}\n"
        "---\napiVersion: reconciler.lance/v1\nkind: Namespace\nmetadata: {catalog: lake, id: [n]}\n"
    )
    write(lake, catalog(), document)
    run = reconciler(lake, "apply", "m.yaml", "--yes", "--adopt")
    assert run.code == 0, run.out
    assert paths(imported(lake)) == {"./lake/plain", "./lake/raw/2024/bare"}


def test_nothing_is_said_where_nothing_is_left_out(tmp_path: Path) -> None:
    dataset(tmp_path / "lake" / "table.lance")
    run = imported(tmp_path)
    assert "left out" not in run.err
    assert "search" not in run.err


def test_a_log_for_programs_has_every_path(lake: Path) -> None:
    run = imported(lake, "--log-format", "json")
    messages = [json.loads(line)["message"] for line in run.err.splitlines()]
    assert any("./lake/raw/2024/bare" in message for message in messages)


def test_the_search_is_bounded_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "lake"
    for number in range(8):
        (root / f"f{number}").mkdir(parents=True)
    dataset(root / "z" / "late.lance")
    (root / "a/b/c/d/e/f/g").mkdir(parents=True)
    found = DirectoryCatalog({"path": str(root)}).unlisted()
    assert [Path(d.path).name for d in found.found] == ["late.lance"]
    assert [p.endswith("a/b/c/d/e is too deep and was not searched") for p in found.problems] == [True]
    monkeypatch.setattr(directory_search, "MOST_FOLDERS", 5)
    cut = DirectoryCatalog({"path": str(root)}).unlisted()
    assert cut.found == ()
    assert cut.problems == ("the search stopped after 5 folders: there may be more",)


def test_it_goes_into_no_table_and_along_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, outside = tmp_path / "lake", tmp_path / "outside"
    dataset(root / "table.lance")
    dataset(root / "raw" / "d.lance")
    dataset(root / "table.lance" / "data" / "inner.lance")
    dataset(root / "raw" / "d.lance" / "data" / "inner.lance")
    dataset(outside / "theirs.lance")
    os.symlink(outside, root / "link")
    os.symlink(root, root / "raw" / "loop")
    os.symlink(root / "table.lance", root / "alias")
    os.symlink(root / "raw" / "d.lance", root / "raw" / "again")
    found = DirectoryCatalog({"path": str(root)}).unlisted()
    assert [Path(d.path).name for d in found.found] == ["d.lance"]
    assert found.problems == ()


def test_a_name_with_a_line_end_stays_on_its_line(tmp_path: Path) -> None:
    dataset(tmp_path / "lake" / "raw" / "a.lance")
    (tmp_path / "lake" / "raw" / "a.lance").rename(tmp_path / "lake" / "raw" / "a\nerror: forged.lance")
    lines = imported(tmp_path).err.splitlines()
    assert not any(line.startswith("error") for line in lines)
    assert any("forged" in line for line in lines)
