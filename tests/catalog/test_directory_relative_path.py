"""A saved plan for `path: ./lake` holds wherever the same lake is reached: another checkout, another machine."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from reconciler import app, app_files, app_saved
from reconciler.catalog.storage import open_storage, relative_to
from reconciler.model.plan_json import plan_to_json
from reconciler.model.report import Report

CATALOG = """
apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {name: lake}
spec: {type: dir, path: PATH, management: {owner: team}}
---
apiVersion: reconciler.lance/v1
kind: Namespace
metadata: {catalog: lake, id: [n]}
"""
TABLE = """---
apiVersion: reconciler.lance/v1
kind: Table
metadata: {catalog: lake, id: ID}
spec: {schema: [{name: id, type: int64}MORE]SPEC}
"""
NEW_COLUMN = ", {name: x, type: string}"


def manifests(folder: Path, path: str, *tables: str, more: str = "", spec: str = "") -> Path:
    file = folder / "m.yaml"
    documents = (TABLE.replace("ID", t).replace("MORE", more).replace("SPEC", spec) for t in tables)
    file.write_text(CATALOG.replace("PATH", path) + "".join(documents))
    return file


def saved(folder: Path, prune: bool = False) -> Path:
    """The plan for m.yaml, made in that folder."""
    with contextlib.chdir(folder):
        found, _ = app.plan(app.Request(("m.yaml",), options=app.PlanOptions(prune=prune)), app.Session())
    assert found.steps
    assert all(s.verdict == "allowed" for s in found.steps), [s.reason for s in found.steps]
    text = json.dumps(plan_to_json(found))
    assert str(folder) not in text
    file = folder / "plan.json"
    file.write_text(text)
    return file


def applied(folder: Path, plan: Path) -> Report:
    with contextlib.chdir(folder):
        session = app.Session()
        the_plan = app_files.saved_plan(plan)
        app_saved.connect_for(the_plan, plan, session)
        return app.apply(the_plan, app.RunOptions(journal=folder / "journal"), session)


def made(folder: Path, path: str, *tables: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    manifests(folder, path, *tables)
    assert applied(folder, saved(folder)).outcome == "applied"


@pytest.mark.parametrize("path", ["./lake", "lake", "data/../lake/", "../lakes/lake", "."])
@pytest.mark.parametrize("table", ["[n, t]", "[t]"])
def test_a_plan_holds_in_another_checkout(path: str, table: str, tmp_path: Path) -> None:
    one, two = tmp_path / "runner" / "x", tmp_path / "builds" / "y"
    (tmp_path / "runner" / "lakes").mkdir(parents=True)
    made(one, path, table)
    manifests(one, path, table, more=NEW_COLUMN)
    plan = saved(one)
    shutil.move(tmp_path / "runner", tmp_path / "builds")
    (tmp_path / "builds" / "x").rename(two)
    assert applied(two, two / plan.name).outcome == "applied"
    again = applied(two, two / plan.name)
    assert {s.status for s in again.steps} == {"skipped"}


@pytest.mark.parametrize("table", ["[n, t]", "[t]"])
def test_so_do_removal_and_reattachment(table: str, tmp_path: Path) -> None:
    """A reattached table names the place of its data."""
    homes = [tmp_path / name for name in "abc"]
    made(homes[0], "./lake", table)
    manifests(homes[0], "./lake")
    removal = saved(homes[0], prune=True)
    shutil.copytree(homes[0], homes[1])
    assert applied(homes[1], removal).outcome == "applied"
    manifests(homes[1], "./lake", table)
    back = saved(homes[1])
    assert '"./lake/' in back.read_text()
    homes[1].rename(homes[2])
    assert applied(homes[2], homes[2] / back.name).outcome == "applied"


def test_a_declared_location(tmp_path: Path) -> None:
    for home, location in (("a", "found"), ("b", "./lake/found")):
        folder = tmp_path / home
        made(folder, "./lake")
        lance.write_dataset(pa.table({"id": pa.array([1], pa.int64())}), str(folder / "lake" / "found"))
        manifests(folder, "./lake", "[n, t]", spec=f", location: {location}")
        with contextlib.chdir(folder):
            options = app.PlanOptions(adopt=True)
            found, _ = app.plan(app.Request(("m.yaml",), options=options), app.Session())
        (folder / "plan.json").write_text(json.dumps(plan_to_json(found)))
        folder.rename(tmp_path / f"{home}2")
        assert applied(tmp_path / f"{home}2", tmp_path / f"{home}2" / "plan.json").outcome == "applied"
        with contextlib.chdir(tmp_path / f"{home}2"):
            assert not app.plan(app.Request(("m.yaml",)), app.Session())[0].steps


def test_another_lake_makes_the_plan_stale(tmp_path: Path) -> None:
    for home in ("a", "b"):
        made(tmp_path / home, "./lake", "[n, t]")
    manifests(tmp_path / "a", "./lake", "[n, t]", more=NEW_COLUMN)
    report = applied(tmp_path / "b", saved(tmp_path / "a"))
    assert report.outcome == "stale"
    assert {s.status for s in report.steps} == {"not_run"}


def test_an_absolute_path_is_a_place(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path), {})
    assert storage.shown("t.lance") == f"{tmp_path}/t.lance"
    assert storage.relative("./t.lance") == "t.lance"


@pytest.mark.parametrize(
    ("root", "shown"),
    [("./lake", "./lake/t"), ("lake/", "./lake/t"), ("../x/lake", "../x/lake/t"), (".", "./t"), ("a/..", "./t")],
)
def test_what_is_shown_is_read_back(root: str, shown: str) -> None:
    storage = open_storage(root, {})
    assert storage.shown("t") == shown
    for read in (storage.relative, lambda location: relative_to(root, location)):
        assert read(shown) == "t"
        assert read("lake/t") == "lake/t"
        assert read(f"{storage.root}/t") == "t"
        assert read("../t") is None
