"""--prune needs an owner that someone chose, whether or not there is anything to prune today."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runs import Run, catalog, check_schema, namespace, reconciler, write

WORDS = "--prune is refused: catalog lake has no owner; set management.owner first"


def prune(folder: Path, *more: str) -> list[Run]:
    return [reconciler(folder, *command, "m.yaml", "--prune", *more) for command in (("plan",), ("apply", "--yes"))]


@pytest.mark.parametrize("orphan", [False, True], ids=["nothing to prune", "something to prune"])
@pytest.mark.parametrize("owner", [None, "default"])
def test_refused_in_the_same_words_with_the_same_exit_code(tmp_path: Path, owner: str | None, orphan: bool) -> None:
    write(tmp_path, catalog(owner), namespace("a"), namespace("b"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog(owner), namespace("a"), "" if orphan else namespace("b"))
    for run in prune(tmp_path):
        assert (run.code, run.out) == (3, "")
        assert WORDS in run.err
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0, "without --prune all is well"
    assert reconciler(tmp_path, "drift", "m.yaml").code == (2 if orphan else 0)


def test_the_report_says_refused(tmp_path: Path) -> None:
    write(tmp_path, catalog(None), namespace("a"))
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--prune", "--format", "json")
    check_schema("report", run.json)
    assert (run.code, run.json["outcome"]) == (3, "refused")
    assert WORDS in run.json["message"]
    assert not (tmp_path / "lake").exists()


def test_a_catalog_that_is_not_asked_for_needs_none(tmp_path: Path) -> None:
    other = catalog(None, "./other").replace("name: lake", "name: other")
    write(tmp_path, catalog("team"), "---\n", other)
    assert [run.code for run in prune(tmp_path, "--catalog", "lake")] == [0, 0]
    for run in prune(tmp_path):
        assert run.code == 3
        assert "catalog other has no owner; set management.owner first (or leave it out with --catalog" in run.err


def test_two_catalogs_at_one_root_are_not_pruned(tmp_path: Path) -> None:
    """What only the other declares would be an orphan to each."""
    catalog = (
        "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {{name: {name}}}\n"
        "spec: {{type: dir, path: {path}, management: {{owner: us}}}}\n---\n"
        "apiVersion: reconciler.lance/v1\nkind: Namespace\nmetadata: {{catalog: {name}, id: [{name}]}}\n"
    )
    parts = [catalog.format(name="one", path="./lake"), catalog.format(name="two", path="lake/")]
    (tmp_path / "m.yaml").write_text("---\n".join(parts))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    for run in (*prune(tmp_path), *prune(tmp_path, "--catalog", "one")):
        assert run.code == 3
        assert "the catalogs one and two are one place" in run.err


@pytest.mark.parametrize("name", ["b.yaml.txt", "b.yml~", "b.yalm", "b.yml "])
def test_a_file_that_is_skipped_for_a_slip_in_its_name_is_not_pruned(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    write(folder, catalog("team"), namespace("a"), name="a.yaml")
    write(folder, namespace("b"), name="b.YAML")
    assert reconciler(tmp_path, "apply", "m", "--yes").code == 0
    assert reconciler(tmp_path, "plan", "m", "--prune", "--detailed-exitcode").code == 0
    (folder / "b.YAML").rename(folder / name)
    for command in (("plan",), ("apply", "--yes"), ("drift",), ("status",)):
        run = reconciler(tmp_path, *command, "m")
        assert f"m/{name} is not read: its name is almost" in run.err
    for command in (("plan",), ("apply", "--yes")):
        run = reconciler(tmp_path, *command, "m", "--prune")
        assert (run.code, run.out) == (3, "")
        assert "--prune is refused: " in run.err
        assert f"m/{name} is not read" in run.err
    assert f"m/{name}:1:1: warning[M119]" in (run := reconciler(tmp_path, "validate", "m")).out + run.err
    (folder / name).rename(folder / "b.yaml.bak")
    assert reconciler(tmp_path, "plan", "m", "--prune", "--detailed-exitcode").code == 2
