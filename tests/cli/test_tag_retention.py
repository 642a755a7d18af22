"""Tags that apply sets as rollback points do not pile up: `management.tagRetention`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli_runs import check_schema, reconciler, table, write

from reconciler.catalog import lance_tags, store_clock
from reconciler.catalog.base import DataPlace
from reconciler.catalog.lance_tags import expire_tags
from reconciler.model.maintenance import tag_retention

OLD = "reconciler-0123456789ab-s1"
YOUNG = "reconciler-ba9876543210-s2"
THEIRS = ("prod", "reconciler-theirs", "reconciler-0123456789ab-s1-copy", "my-reconciler-0123456789ab-s1")


def catalog(retention: str | None = None) -> str:
    kept = f", tagRetention: {retention}" if retention else ""
    return (
        "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\n"
        f"spec: {{type: dir, path: ./lake, management: {{owner: team{kept}}}}}\n"
    )


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write(tmp_path, catalog(), table("t"), table("untouched"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    for name in ("t", "untouched"):
        dataset = at(tmp_path, name)
        for tag in (OLD, YOUNG, *THEIRS):
            dataset.tags.create(tag, 1)
        for tag in (OLD, *THEIRS):
            age(tmp_path, name, tag, days=31)
        age(tmp_path, name, YOUNG, days=29)
    return tmp_path


def at(folder: Path, name: str = "t") -> Any:
    return lance.dataset(str(folder / "lake" / f"{name}.lance"))


def age(folder: Path, name: str, tag: str, days: int) -> None:
    """As if it had been set so long ago."""
    file = folder / "lake" / f"{name}.lance" / "_refs" / "tags" / f"{tag}.json"
    then = (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
    file.write_text(json.dumps({**json.loads(file.read_text()), "createdAt": then, "updatedAt": then}))


def tags(folder: Path, name: str = "t") -> set[str]:
    return set(at(folder, name).tags.list())


def changed(folder: Path, retention: str | None = None, spec: str = "description: other") -> None:
    write(folder, catalog(retention), table("t", spec=spec), table("untouched"))


@pytest.mark.parametrize("change", ["config", "columns"])
def test_the_next_apply_that_changes_the_table_deletes_the_old_ones(lake: Path, change: str) -> None:
    changed(lake, spec="config: {a: b}")
    if change == "columns":
        columns = "[{name: id, type: int64}, {name: more, type: string}]"
        write(lake, catalog(), table("t", schema=columns), table("untouched"))
    run = reconciler(lake, "apply", "m.yaml", "--yes", "--report", "r.json")
    assert run.code == 0, run.err
    assert tags(lake) == {YOUNG, *THEIRS}
    assert tags(lake, "untouched") == {OLD, YOUNG, *THEIRS}
    report = json.loads((lake / "r.json").read_text())
    check_schema("report", report)
    assert [(e["object"]["id"], e["tags"], e["problem"]) for e in report["expired_tags"]] == [(["t"], [OLD], None)]
    assert "tags     lake:t: 1 tag of earlier runs, older than tagRetention, deleted" in run.out


def test_a_run_without_changes_deletes_none(lake: Path) -> None:
    assert reconciler(lake, "apply", "m.yaml", "--yes").code == 0
    assert tags(lake) == {OLD, YOUNG, *THEIRS}


@pytest.mark.parametrize(
    ("retention", "left"), [("forever", {OLD, YOUNG}), ("28d", set()), ("5w", {OLD, YOUNG}), (None, {YOUNG})]
)
@pytest.mark.parametrize("saved", [False, True])
def test_how_long_is_said_by_the_manifest_or_by_the_saved_plan(
    lake: Path, retention: str | None, left: set[str], saved: bool
) -> None:
    changed(lake, retention, "config: {a: b}")
    if saved:
        assert reconciler(lake, "plan", "m.yaml", "-o", "p.json").code == 0
    source = ("--plan", "p.json") if saved else ("m.yaml",)
    assert reconciler(lake, "apply", *source, "--yes").code == 0
    assert tags(lake) == {*left, *THEIRS}


@pytest.mark.parametrize("wrong", ["30", "0d", "never", "30 d", "-1d", "true"])
def test_what_is_no_retention_is_an_error(tmp_path: Path, wrong: str) -> None:
    write(tmp_path, catalog(wrong), table("t"))
    run = reconciler(tmp_path, "validate", "m.yaml")
    assert run.code == 1
    assert "tagRetention" in run.out + run.err


@pytest.mark.parametrize("written", ["\u00b2d", "9" * 5000 + "d", "d", "", "1.5d", "-1d", 30, True, ["1d"], {}])
def test_what_a_saved_plan_says_unreadably_keeps_all(written: object) -> None:
    assert tag_retention(written) is None


def test_the_tags_of_the_run_itself_stay(lake: Path) -> None:
    """Also those of an earlier time that the same plan was applied, however long ago: the report leads back to them."""
    write(lake, catalog("1s"), table("t", schema="[{name: id, type: int64}, {name: gone, type: string}]"))
    assert reconciler(lake, "apply", "m.yaml", "--yes").code == 0
    write(lake, catalog("1s"), table("t", spec="allow: [drop_column]"))
    made = reconciler(lake, "plan", "m.yaml", "-o", "p.json", "--format", "json").json
    own = f"reconciler-{made['plan_id'].removeprefix('sha256:')[:12]}-{made['steps'][0]['id']}"
    at(lake).tags.create(own, 1)
    age(lake, "t", own, days=400)
    assert reconciler(lake, "apply", "--plan", "p.json", "--yes").code == 0
    assert tags(lake) == {own, f"{own}-v1", *THEIRS}


def test_a_table_that_a_data_step_holds_keeps_all(lake: Path) -> None:
    at(lake).update_metadata({"reconciler.data.claim": "{}"})
    assert expire_tags(DataPlace(str(lake / "lake" / "t.lance")), 1, "") == []
    assert tags(lake) == {OLD, YOUNG, *THEIRS}


def test_a_clock_that_is_ahead_deletes_no_young_tag(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be two days too early: the disk stamps what is written now with another time. The run goes on."""
    ahead = SimpleNamespace(time=lambda: time.time() + 2 * 86400)
    monkeypatch.setattr(lance_tags, "time", ahead)
    monkeypatch.setattr(store_clock, "time", ahead)
    changed(lake)
    done = reconciler(lake, "apply", "m.yaml", "--yes")
    assert done.code == 0
    assert tags(lake) == {OLD, YOUNG, *THEIRS}
    assert "the clock of this machine is 2d ahead" in done.out + done.err or "1d 23h ahead" in done.out + done.err


def test_automatic_cleanup_works_again(lake: Path) -> None:
    """Lance gives up its own cleanup while a version that is due has a tag."""
    for tag in THEIRS:
        at(lake).tags.delete(tag)
    at(lake).tags.delete(YOUNG)

    def written() -> int:
        for _ in range(3):
            lance.write_dataset(pa.table({"id": [1]}), at(lake).uri, mode="append")
        return len(at(lake).versions())

    at(lake).update_config({"lance.auto_cleanup.interval": "1", "lance.auto_cleanup.older_than": "0s"})
    stuck = written()
    assert stuck > 3
    assert written() == stuck + 3
    own = '{"lance.auto_cleanup.interval": "1", "lance.auto_cleanup.older_than": "0s", a: b}'
    changed(lake, spec=f"config: {own}")
    assert reconciler(lake, "apply", "m.yaml", "--yes", "--adopt").code == 0
    assert tags(lake) == set()
    assert written() <= 3


def test_status_counts_them(lake: Path) -> None:
    run = reconciler(lake, "status", "m.yaml")
    assert "  Tags:         4 rollback tags of apply on 2 tables, kept 30d\n" in run.out
    found = reconciler(lake, "status", "m.yaml", "--format", "json").json["catalogs"]["lake"]["tags"]
    counts: Mapping[str, Any] = found
    assert (counts["count"], counts["unread"], counts["retention_seconds"]) == (4, 0, 30 * 86_400)
    assert [(t["object"]["id"], t["count"]) for t in counts["tables"]] == [(["t"], 2), (["untouched"], 2)]
    write(lake, catalog("forever"), table("t"), table("untouched"))
    assert "2 tables, kept for ever" in reconciler(lake, "status", "m.yaml").out
