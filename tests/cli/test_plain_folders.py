"""The layout of the specification: a table is a folder of its name, without a suffix. Where such a dataset is, it is
the declared table, whatever `plain_folders` says; that decides what is listed, and how new tables are named."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli_runs import catalog, check_schema, namespace, reconciler, table, write
from contract.outsider_dir import LocalFiles

LAYOUTS: dict[str, dict[str, Any]] = {"default": {}, "v1": {"manifest_enabled": False}}
V2: dict[str, Any] = {"dir_listing_enabled": False}
"""A row is a table's existence: what lies at the root is listed by nobody, and is data without a table."""
WIDER = "[{name: id, type: int64}, {name: more, type: string}]"


@pytest.fixture(params=LAYOUTS)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    return LAYOUTS[request.param]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    lance.write_dataset(pa.table({"id": [1, 2]}), tmp_path / "lake" / "b")
    return tmp_path


def plan(home: Path, *arguments: str) -> Any:
    made = reconciler(home, "plan", "m.yaml", "--format", "json", *arguments).json
    check_schema("plan", made)
    return made


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("location", [False, True])
def test_the_dataset_of_a_declared_table_is_the_table(
    home: Path, options: dict[str, Any], plain: bool, location: bool
) -> None:
    where = "location: ./lake/b" if location else ""
    write(home, catalog("me", plain_folders=plain, **options), table("b", spec=where))
    same = plan(home)
    assert (same["steps"], [o["object"]["id"] for o in same["unowned"]]) == ([], [["b"]])
    write(home, catalog("me", plain_folders=plain, **options), table("b", schema=WIDER, spec=where))
    before = LocalFiles(home / "lake").all()
    assert [(s["action"], s["blocked_by"]) for s in plan(home)["steps"]] == [("add_columns", "adopt")]
    assert reconciler(home, "apply", "m.yaml", "--yes").code == 3
    assert LocalFiles(home / "lake").all() == before
    done = reconciler(home, "apply", "m.yaml", "--yes", "--adopt")
    assert done.code == 0, done.out
    assert lance.dataset(home / "lake" / "b").schema.names == ["id", "more"]
    assert lance.dataset(home / "lake" / "b").count_rows() == 2
    assert not (home / "lake" / "b.lance").exists()
    assert plan(home)["steps"] == []
    write(home, catalog("me", plain_folders=plain, **options), table("other"))
    assert [o["object"]["id"] for o in plan(home)["orphans"]] == [["b"]]  # Ours, so it is known without its manifest.


def test_a_namespace_of_its_name_waits(home: Path) -> None:
    """One name is one object; a namespace that is there before somebody writes such a folder stays what it is."""
    write(home, catalog("me"), namespace("b"), namespace("c"))
    (step,) = [s for s in plan(home)["steps"] if s["object"]["id"] == ["b"]]
    assert (step["verdict"], "a table of this name is there" in step["reason"]) == ("blocked", True)
    run = reconciler(home, "apply", "m.yaml", "--yes")
    assert run.code == 3, run
    lance.write_dataset(pa.table({"id": [1, 2]}), home / "lake" / "c")
    write(home, catalog("me"), namespace("c", spec="{properties: {k: v}}"))
    assert reconciler(home, "apply", "m.yaml", "--yes").code == 0
    assert plan(home)["steps"] == []


def test_a_table_of_ours_leaves_and_comes_back(home: Path, options: dict[str, Any]) -> None:
    head, absent = catalog("me", **options), table("b").replace("schema: [{name: id, type: int64}]", "state: absent")
    for documents in (table("b"), absent):
        write(home, head, documents)
        assert reconciler(home, "apply", "m.yaml", "--yes", "--adopt").code == 0
    assert (home / "lake" / "b" / ".lance-deregistered").exists()
    write(home, head, table("b"))
    done = reconciler(home, "apply", "m.yaml", "--yes")
    assert done.code == 0, done.out
    assert lance.dataset(home / "lake" / "b").count_rows() == 2
    assert not (home / "lake" / "b.lance").exists()


@pytest.mark.parametrize("folder", ["b", "b.lance"])
def test_without_listing_a_declared_table_is_attached_to_the_dataset_of_its_name(home: Path, folder: str) -> None:
    (home / "lake" / "b").rename(home / "lake" / folder)
    write(home, catalog("me", **V2), table("b"))
    before = LocalFiles(home / "lake").all()
    (step,) = plan(home)["steps"]
    assert (step["action"], step["blocked_by"]) == ("declare_table", "adopt")
    assert f"attached to its existing data at ./lake/{folder}" in step["reason"]
    assert reconciler(home, "apply", "m.yaml", "--yes").code == 3
    assert LocalFiles(home / "lake").all() == before
    done = reconciler(home, "apply", "m.yaml", "--yes", "--adopt")
    assert done.code == 0, done.out
    assert plan(home)["steps"] == []
    assert [p.name for p in (home / "lake").iterdir() if not p.name.startswith("__")] == [folder]
    assert lance.dataset(home / "lake" / folder).count_rows() == 2


def test_without_listing_a_dataset_that_appears_after_the_plan_is_not_shadowed(home: Path) -> None:
    (home / "lake" / "b").rename(home / "elsewhere")
    write(home, catalog("me", **V2), table("b"))
    assert reconciler(home, "plan", "m.yaml", "-o", "p.json").code == 0
    (home / "elsewhere").rename(home / "lake" / "b")
    done = reconciler(home, "apply", "p.json", "--yes")
    assert done.code != 0, done.out
    assert [p.name for p in (home / "lake").iterdir() if not p.name.startswith("__")] == ["b"]


def test_without_listing_what_another_table_has_or_is_no_dataset_is_free(tmp_path: Path) -> None:
    """The data of a renamed table keeps its folder."""
    lance.write_dataset(pa.table({"id": [1, 2]}), tmp_path / "lake" / "b")
    write(tmp_path, catalog("me", **V2), table("a", spec="location: ./lake/b"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes", "--adopt").code == 0
    (tmp_path / "lake" / "c").mkdir()
    (tmp_path / "lake" / "c" / "notes.txt").write_text("x")
    (tmp_path / "lake" / "d.lance").mkdir()
    write(tmp_path, catalog("me", **V2), table("a", spec="location: ./lake/b"), *map(table, "bcd"))
    assert [s["action"] for s in plan(tmp_path)["steps"]] == ["declare_table", "create_dataset"] * 3
    done = reconciler(tmp_path, "apply", "m.yaml", "--yes")
    assert done.code == 0, done.out
    assert plan(tmp_path)["steps"] == []


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("folder", ["b", "b.lance"])
def test_absent_speaks_of_the_folder_whatever_it_is_called(
    home: Path, options: dict[str, Any], plain: bool, folder: str
) -> None:
    (home / "lake" / "b").rename(home / "lake" / folder)
    absent = table("b").replace("schema: [{name: id, type: int64}]", "state: absent")
    write(home, catalog("me", plain_folders=plain, **options), absent)
    (step,) = plan(home)["steps"]
    assert step["action"] == "deregister_table"
    assert "nobody owns it" in step["reason"]
    assert reconciler(home, "drift", "m.yaml").code == 2


@pytest.mark.parametrize("options", [*LAYOUTS.values(), V2], ids=[*LAYOUTS, "v2"])
@pytest.mark.parametrize("left", ["_versions", "data"])
def test_a_damaged_dataset_is_not_shadowed_either(home: Path, options: dict[str, Any], left: str) -> None:
    folder = home / "lake" / "b"
    lance.write_dataset(pa.table({"id": [3]}), folder, mode="append")
    shutil.rmtree(folder / ("data" if left == "_versions" else "_versions"))
    if left == "_versions":
        for file in (folder / "_versions").iterdir():
            file.write_bytes(b"spoiled")
    write(home, catalog("me", **options), table("b"))
    before = LocalFiles(home / "lake").all()
    assert [s["blocked_by"] for s in plan(home)["steps"]] == ["unreadable"]
    reconciler(home, "apply", "m.yaml", "--yes")
    assert LocalFiles(home / "lake").all() == before


@pytest.mark.parametrize("options", [*LAYOUTS.values(), V2], ids=[*LAYOUTS, "v2"])
def test_two_folders_of_one_name_are_an_error(home: Path, options: dict[str, Any]) -> None:
    lance.write_dataset(pa.table({"id": [1]}), home / "lake" / "b.lance")
    write(home, catalog("me", **options), table("b"))
    (step,) = plan(home)["steps"]
    assert step["blocked_by"] == "unreadable"
    assert "b and b.lance both claim the name 'b'" in step["reason"]


def test_what_is_no_dataset_is_no_table(tmp_path: Path, options: dict[str, Any]) -> None:
    (tmp_path / "lake" / "b").mkdir(parents=True)
    (tmp_path / "lake" / "b" / "notes.txt").write_text("x")
    write(tmp_path, catalog("me", **options), table("b"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    assert lance.dataset(tmp_path / "lake" / "b.lance").schema.names == ["id"]


def test_new_tables_are_named_as_the_layout_says(tmp_path: Path, options: dict[str, Any]) -> None:
    """A name that is not listed without the suffix keeps it."""
    write(tmp_path, catalog("me", plain_folders=True, **options), table("b"), table("_c"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    for folder in ("b", "_c.lance"):
        assert lance.dataset(tmp_path / "lake" / folder).schema.names == ["id"]
    for plain in (True, False):
        write(tmp_path, catalog("me", plain_folders=plain, **options), table("b"), table("_c"))
        assert plan(tmp_path)["steps"] == []


def test_folders_that_are_no_tables_are_counted(home: Path, options: dict[str, Any]) -> None:
    for name in ("_x", ".x", "a$b"):
        lance.write_dataset(pa.table({"id": [1]}), home / "lake" / name)
    write(home, catalog("me", plain_folders=True, **options), table("b"))
    assert plan(home)["catalogs"]["lake"]["skipped_folders"] == 3
    write(home, catalog("me", **options), table("t"))
    assert plan(home)["catalogs"]["lake"]["skipped_folders"] == 4
    assert "(dir: 0 namespaces, 0 tables, 4 folders skipped)" in reconciler(home, "plan", "m.yaml").out
    assert "0 tables, 4 folders skipped" in reconciler(home, "plan", "m.yaml", "--format", "markdown").out


@pytest.mark.parametrize("layout", [{}, {"manifest_enabled": False}, {"dir_listing_enabled": False}])
def test_a_root_that_does_not_exist_yet_is_said(tmp_path: Path, layout: dict[str, Any]) -> None:
    write(tmp_path, catalog("me", path="./prdo", **layout), table("b"))
    assert plan(tmp_path)["catalogs"]["lake"]["new_at"] == "./prdo"
    for form in ("text", "markdown", "html"):
        out = reconciler(tmp_path, "plan", "m.yaml", "--format", form).out
        assert "new: nothing exists at " in out
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    assert "new_at" not in plan(tmp_path)["catalogs"]["lake"]
