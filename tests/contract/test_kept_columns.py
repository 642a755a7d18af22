"""A column that was dropped and is declared again, as after `git revert`: the plan says which tag still has its values,
and the ways to restore them that `explain kept_columns` gives work."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pytest
import yaml

from contract.lake import Doc, Lake, _document, table
from reconciler.explain.catalogue import find

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from cli_runs import check_schema, reconciler

WITH = {"id": "int64", "score": "float64"}
WITHOUT = {"id": "int64"}
ROWS = [{"id": 1, "score": 0.5}, {"id": 2, "score": None}, {"id": 3, "score": 2.5}]


@dataclass(frozen=True)
class Git:
    """The manifests of a table, and runs of the program on them."""

    lake: Lake

    def commit(self, columns: dict[str, str], **spec: Any) -> None:
        lake = self.lake
        docs: list[Doc] = [*lake.home(), table(lake.t("t"), columns, **spec)]
        catalog = _document("Catalog", {"name": "lake"}, {**lake.site.options, "management": lake.management})
        (lake.folder / "all.yaml").write_text(yaml.safe_dump_all([catalog, *docs]))

    def run(self, *arguments: str, code: int = 0) -> Any:
        words = [word for allowed in self.lake.words for word in ("--allow", allowed)]
        run = reconciler(self.lake.folder, arguments[0], "all.yaml", *words, *arguments[1:])
        assert run.code == code, run.out + run.err
        return run

    def plan(self) -> Any:
        run = self.run("plan", "--format", "json")
        check_schema("plan", run.json)
        return run.json

    def open(self, kept: Any, version: str | None = None) -> Any:
        return lance.dataset(kept["location"], version=version, storage_options=self.storage)

    @property
    def storage(self) -> dict[str, str]:
        """What a reader of the page has in the environment."""
        keys = self.lake.site.options
        return {k.removeprefix("storage."): v for k, v in keys.items() if k.startswith("storage.")}


def shown_columns(step: Any) -> bool:
    """The catalog's own copy of the columns follows those of the data."""
    return step["action"] in ("update_table", "replace_table") and "columns" in step["after"]


def kept_columns(plan: Any) -> list[Any]:
    return [kept for step in plan["steps"] for kept in step.get("kept_columns", ())]


@pytest.fixture
def reverted(stored: Lake) -> Git:
    git = Git(stored)
    git.commit(WITH)
    git.run("apply", "--yes")
    stored.outsider.append(stored.t("t"), ROWS)
    git.commit(WITHOUT, allow=["drop_column"])
    git.run("apply", "--yes")
    git.commit(WITH)
    return git


def test_the_plan_names_the_tag(reverted: Git) -> None:
    (kept,) = kept_columns(reverted.plan())
    assert kept["column"] == "score"
    assert re.fullmatch(r"reconciler-[0-9a-f]+-s\d+", kept["tag"])
    before = reverted.open(kept, kept["tag"])
    assert before.version == kept["version"]
    assert before.to_table(columns=["score"]).to_pylist() == [{"score": r["score"]} for r in ROWS]
    for form in ("text", "markdown", "html", "junit"):
        shown = reverted.run("plan", "--format", form).out
        assert kept["tag"] in shown, form
        assert "still has its values" in shown, form
        assert "explain kept_columns" in shown, form


def test_a_saved_plan_says_it_and_apply_creates_the_column_empty(reverted: Git) -> None:
    folder = reverted.lake.folder
    reverted.run("plan", "-o", "p.json")
    assert "still has its values" in reconciler(folder, "show", "p.json").out
    reverted.run("apply", "--yes")
    assert reverted.plan()["steps"] == []


def test_the_same_drop_again_keeps_both_versions(reverted: Git) -> None:
    """The same manifests on the same columns are the same plan, whose steps have the same tags."""
    lake = reverted.lake
    (first,) = kept_columns(reverted.plan())
    reverted.run("apply", "--yes")
    lake.outsider.append(lake.t("t"), [{"id": 4, "score": 4.5}])
    reverted.commit(WITHOUT, allow=["drop_column"])
    reverted.run("apply", "--yes", "--report", "r.json")
    report = json.loads((lake.folder / "r.json").read_text())
    (dropped,) = (s for s in report["steps"] if s["action"] == "drop_columns")
    reverted.commit(WITH)
    (second,) = kept_columns(reverted.plan())
    assert (second["tag"], second["version"]) == (dropped["tag"], dropped["version_before"]) != ("", first["version"])
    scores = [row["score"] for row in reverted.open(second, second["tag"]).to_table().to_pylist()]
    assert 4.5 in scores
    held = {t["version"] for t in reverted.open(second).tags.list().values()}
    assert {first["version"], second["version"]} <= held


def recipe(git: Git, number: int, kept: Any) -> None:
    """Runs what `explain` prints, with this table in the place of its own."""
    (entry,) = find("kept_columns")
    text = str(entry.good).split("\n\n")[number].replace("import lance\n", "")
    for word, value in (
        ("LOCATION", kept["location"]),
        ("TAG", kept["tag"]),
        ("KEY", "id"),
        ("COLUMN", kept["column"]),
    ):
        text = text.replace(word, repr(value))

    class Opener:
        @staticmethod
        def dataset(uri: str, **options: Any) -> Any:
            return lance.dataset(uri, storage_options=git.storage, **options)

    exec(text, {"lance": Opener})


@pytest.mark.parametrize("number", [0, 1])
def test_the_ways_to_restore_work(reverted: Git, number: int) -> None:
    (kept,) = kept_columns(reverted.plan())
    lake = reverted.lake
    if number == 1:
        lake.outsider.append(lake.t("t"), [{"id": 4}])
    recipe(reverted, number, kept)
    rows = reverted.open(kept).to_table().to_pylist()
    later = [{"id": 4, "score": None}] if number == 1 else []
    assert sorted(rows, key=lambda r: r["id"]) == ROWS + later
    assert all(shown_columns(step) for step in reverted.plan()["steps"])


def test_other_columns_have_no_such_note(reverted: Git) -> None:
    """New ones, and those that only have another name now."""
    reverted.commit({**WITHOUT, "fresh": "string"})
    assert kept_columns(reverted.plan()) == []
    lake = reverted.lake
    reverted.commit({**WITH, "kind": "string"})
    reverted.run("apply", "--yes")
    lake.outsider.append(lake.t("t"), [{"id": 4, "score": 1.0, "kind": "a"}])
    schema = [{"name": "id", "type": "int64"}, {"name": "score", "type": "float64"}]
    reverted.commit({}, schema=[*schema, {"name": "sort", "type": "string", "renamedFrom": "kind"}])
    reverted.run("apply", "--yes")
    reverted.commit(
        {}, schema=[{"name": "id", "type": "int64"}, {"name": "sort", "type": "string"}], allow=["drop_column"]
    )
    reverted.run("apply", "--yes")
    reverted.commit(
        {}, schema=[{"name": "id", "type": "int64"}, *({"name": n, "type": "string"} for n in ("sort", "kind"))]
    )
    assert kept_columns(reverted.plan()) == []


def test_no_rows_no_values(stored: Lake) -> None:
    git = Git(stored)
    for columns in (WITH, WITHOUT):
        git.commit(columns, allow=["drop_column"])
        git.run("apply", "--yes")
    git.commit(WITH)
    assert kept_columns(git.plan()) == []


def test_a_field_inside_a_column(stored: Lake) -> None:
    git = Git(stored)
    git.commit({"id": "int64", "s": "struct<a: int64, b: string>"})
    git.run("apply", "--yes")
    stored.outsider.append(stored.t("t"), [{"id": 1, "s": {"a": 1, "b": "x"}}])
    git.commit({"id": "int64", "s": "struct<a: int64>"}, allow=["drop_column"])
    git.run("apply", "--yes")
    git.commit({"id": "int64", "s": "struct<a: int64, b: string>"})
    assert [kept["column"] for kept in kept_columns(git.plan())] == ["s.b"]
