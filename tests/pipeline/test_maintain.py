"""`pipeline maintain` without a JVM: what it decides, changes and leaves alone. The tasks run in this process; on Spark
they run in test_maintain_on_spark.py."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli.cli_runs import catalog, namespace, reconciler, table, write
from pipeline.maintain_lake import (
    ALL,
    INDEX,
    SCHEMA,
    append,
    decided,
    in_process,
    lake,
    later,
    left_behind,
    maintain,
    outcomes,
    parts,
    path,
    rows,
    state,
    without_spark,
)
from pipeline.test_checksum import _everything, of_dataset

from reconciler.catalog.base import DataPlace
from reconciler.catalog.lance_data import record_of
from reconciler.model.desired import CatalogSpec, Desired, DesiredTable, Management
from reconciler.model.diagnostic import Source
from reconciler.model.maintenance import Maintenance
from reconciler.model.state import DatasetState, Marks, TableState
from reconciler.pipeline import maintain as driver
from reconciler.pipeline import maintain_task
from reconciler.pipeline.maintain import Pace
from reconciler.pipeline.session import SparkError
from reconciler.verbs.maintain import _table as maintained_table
from reconciler.verbs.tables import Declared, Found


@pytest.fixture(autouse=True)
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    without_spark(monkeypatch)


def test_a_table_past_all_thresholds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(tmp_path, "t")
    before = of_dataset(path(tmp_path))
    later(monkeypatch, 20)
    foreseen = maintain(tmp_path, "--dry-run", "--format", "json")
    assert foreseen.code == 0
    assert outcomes(foreseen) == [None, None, None]
    assert len(lance.dataset(str(path(tmp_path))).get_fragments()) == 6, "a dry run changes nothing"
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, run.err) == (0, "")
    assert outcomes(run) == ["done", "done", "done"]
    assert decided(run) == decided(foreseen)
    found = parts(run)
    dataset = lance.dataset(str(path(tmp_path)))
    assert found["compact"]["before"]["fragments"] == 6
    assert found["compact"]["after"]["fragments"] == len(dataset.get_fragments()) == 1
    assert found["indexes"]["before"] == {"unindexed_rows": {"id_idx": 60}}
    assert found["indexes"]["after"]["unindexed_rows"] == {"id_idx": 0}
    assert found["cleanup"]["after"]["removed"] == found["cleanup"]["before"]["removed"] > 5
    assert found["cleanup"]["after"]["versions"] == len(dataset.versions())
    assert of_dataset(path(tmp_path)) == before
    again = maintain(tmp_path, "--format", "json")
    assert [p["decision"] for p in parts(again).values()][:2] == ["skip", "skip"]
    assert again.json["summary"]["failed"] == 0


def test_the_version_that_was_current_stays_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was written long ago, and replaced by the compaction of this very run."""
    lake(tmp_path, "t")
    reader = lance.dataset(str(path(tmp_path)))
    later(monkeypatch, 20)
    assert outcomes(maintain(tmp_path, "--format", "json")) == ["done", "done", "done"]
    assert reader.to_table().num_rows == 60
    assert reader.version in [v["version"] for v in lance.dataset(str(path(tmp_path))).versions()]


def test_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(tmp_path, "a", "b", fragments=5)
    write(
        tmp_path, catalog(), table("a", schema=SCHEMA, spec=INDEX + ALL), table("b", schema=SCHEMA, spec=INDEX + ALL),
        table("none", schema=SCHEMA, spec=ALL),
    )  # fmt: skip
    run = maintain(tmp_path, "--dry-run", "--target", "a")
    assert run.out == (
        "lake:a  50 rows, " + run.out.split("rows, ")[1].split("\n")[0] + "\n"
        "  compact  to do    5 of 5 fragments can be joined, 4 are enough\n"
        "  indexes  to do    id_idx lacks 50 rows, up to 10 are left\n"
        "  cleanup  skip     none of 9 versions has been replaced for over 14d\n"
        "1 table: 2 to do, 1 skipped\n"
    )
    run = maintain(tmp_path)
    assert run.code == 5, "a table that is not there is a failure, and others were changed"
    assert "lake:none  FAILED\n  cannot be read: the table is not in the catalog\n" in run.out
    assert "  compact  done     5 of 5 fragments can be joined, 4 are enough\n" in run.out
    assert "                    1 fragment now, version 11\n" in run.out
    assert "                    rows that they lack now: id_idx 0\n" in run.out
    assert run.out.endswith("3 tables: 4 done, 2 skipped, 1 could not be read\n")


def test_only_tables_of_ours(tmp_path: Path) -> None:
    lake(tmp_path, "t", owner="others")
    append(path(tmp_path, "wild"), 6)
    write(tmp_path, catalog(), table("t", schema=SCHEMA, spec=ALL), table("wild", schema=SCHEMA, spec=ALL))
    before = state(path(tmp_path)), state(path(tmp_path, "wild"))
    run = maintain(tmp_path, "--format", "json")
    assert run.code == 0
    assert {p["reason"] for p in parts(run).values()} == {"it belongs to others; only tables of team are changed"}
    assert {p["reason"] for p in parts(run, "wild").values()} == {
        "nobody owns it: `apply --adopt` takes it; only tables of team are changed"
    }
    assert (state(path(tmp_path)), state(path(tmp_path, "wild"))) == before
    assert run.json["summary"] == {
        "tables": 2, "to_run": 0, "skipped": 6, "done": 0, "failed": 0, "unknown": 0, "not_run": 0, "unreadable": 0,
    }  # fmt: skip


def test_a_dataset_inside_is_not_cleaned_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old files that Lance does not know are deleted by a clean-up; a branch of the table is its own."""
    lake(tmp_path, "t")
    inner = path(tmp_path) / "data" / "theirs"
    append(inner, 2)
    for file in inner.rglob("*"):
        os.utime(file, (1, 1))
    before = state(inner)
    later(monkeypatch, 20)
    run = maintain(tmp_path, "--format", "json")
    assert outcomes(run) == ["done", "done", None]
    assert "another dataset inside its folder" in parts(run)["cleanup"]["reason"]
    assert state(inner) == before
    shutil.rmtree(inner)
    lance.dataset(str(path(tmp_path))).create_branch("b")
    assert parts(maintain(tmp_path, "--format", "json"))["cleanup"]["outcome"] == "done"


def test_a_table_elsewhere_than_its_manifest_says() -> None:
    want = DesiredTable("lake", ("n", "t"), Source("m.yaml"), location="/declared/t", maintenance=Maintenance())
    spec = CatalogSpec("lake", "iceberg", {}, Management("us"), Source("m.yaml"))
    data = DatasetState((), owner="us", version=3)
    for location, held in (("/live/t", True), ("file:///declared//t/", False)):
        found = Found(DataPlace(location), data, TableState(location, marks=Marks("us"), dataset=data))
        made = maintained_table(Declared(want, found), Desired({"lake": spec}, {}, {}), 0.0, {})
        assert (made.subject is None) == held
        assert not held or all("it is at /live/t" in d.reason for d in made.held)


def test_a_data_step_holds_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(tmp_path, "t")
    dataset = lance.dataset(str(path(tmp_path)))
    dataset.update_metadata({maintain_task.CLAIM_KEY: "{}"})
    later(monkeypatch, 20)
    version = lance.dataset(str(path(tmp_path))).version
    run = maintain(tmp_path, "--format", "json")
    assert {p["reason"] for p in parts(run).values()} == {"a data step holds it: apply first"}
    dataset = lance.dataset(str(path(tmp_path)))
    assert (dataset.version, len(dataset.versions())) == (version, version)


def test_what_a_data_step_left_behind_is_noted_before_its_history_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake(tmp_path, "t")
    place, loaded = left_behind(tmp_path)
    dataset = lance.dataset(place.uri)
    later(monkeypatch, 20)
    foreseen = maintain(tmp_path, "--dry-run", "--format", "json")
    assert foreseen.json["tables"][0]["parts"][2]["decision"] == "run"
    assert lance.dataset(place.uri).version == dataset.latest_version, "a dry run writes nothing"
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, outcomes(run)) == (0, ["done"] * 3)
    after = lance.dataset(place.uri)
    assert maintain_task.CLAIM_KEY not in after.metadata
    assert record_of(after, after.metadata) == loaded


def test_a_data_step_that_comes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(tmp_path, "t")
    later(monkeypatch, 20)

    def claimed(*arguments: Any, **more: Any) -> Iterator[dict[str, Any]]:
        yield from (
            in_process(*arguments, **more) if arguments[3] is not maintain_task.rewrite else _with_claim(arguments)
        )

    def _with_claim(arguments: Any) -> Iterator[dict[str, Any]]:
        found = list(in_process(*arguments))
        lance.dataset(str(path(tmp_path))).update_metadata({maintain_task.CLAIM_KEY: "{}"})
        yield from found

    monkeypatch.setattr(driver, "answers", claimed)
    before = state(path(tmp_path))
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, outcomes(run)) == (1, ["failed", "not_run", "not_run"]), "nothing was changed"
    assert parts(run)["compact"]["detail"] == "a data step has taken it meanwhile"
    assert state(path(tmp_path)) == before
    for work, more in (
        (maintain_task.refresh, {"indexes": ["id_idx"]}),
        (maintain_task.clean, {"versions": [1], "tags": []}),
    ):
        (answer,) = in_process(None, [{"key": 0, "uri": str(path(tmp_path)), "options": {}, **more}], 1, work)
        assert "a data step has taken it meanwhile" in answer["error"]


class Between:
    """Does something to the table after the tasks and before the commit, the first `times` times."""

    def __init__(self, dataset_path: Path, action: str, times: int) -> None:
        self.path, self.action, self.times, self.rounds = str(dataset_path), action, times, 0

    def __call__(self, *arguments: Any, **more: Any) -> Iterator[dict[str, Any]]:
        found = list(in_process(*arguments, **more))
        if arguments[3] is maintain_task.rewrite:
            self.rounds += 1
            if self.rounds <= self.times:
                dataset = lance.dataset(self.path)
                if self.action == "delete":
                    dataset.delete(f"id = {self.rounds}")
                elif self.action == "append":
                    append(self.path, 1, 1000)
                elif self.action == "compact":
                    dataset.optimize.compact_files()
                else:
                    lance.write_dataset(rows(0), self.path, mode="overwrite")
        yield from found


def test_an_append_during_a_compaction_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(tmp_path, "t")
    between = Between(path(tmp_path), "append", 1)
    monkeypatch.setattr(driver, "answers", between)
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, between.rounds) == (0, 1), "it does not conflict"
    dataset = lance.dataset(str(path(tmp_path)))
    assert (dataset.count_rows(), len(dataset.get_fragments())) == (70, 2)


def test_a_conflict_is_planned_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(tmp_path, "t")
    between = Between(path(tmp_path), "delete", 2)
    monkeypatch.setattr(driver, "answers", between)
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, between.rounds, outcomes(run)) == (0, 3, ["done", "done", None])
    dataset = lance.dataset(str(path(tmp_path)))
    assert (sorted(dataset.to_table()["id"].to_pylist()), len(dataset.get_fragments())) == ([0, *range(3, 60)], 1)


def test_conflicts_without_end_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(tmp_path, "t")
    between = Between(path(tmp_path), "delete", 9)
    monkeypatch.setattr(driver, "answers", between)
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, between.rounds, outcomes(run)) == (1, 3, ["failed", "not_run", None])
    assert "conflicts with other writers, 3 times" in parts(run)["compact"]["detail"]
    assert sorted(lance.dataset(str(path(tmp_path))).to_table()["id"].to_pylist()) == [0, *range(4, 60)]


@pytest.mark.parametrize("action", ["compact", "overwrite"])
def test_another_writer_may_leave_nothing_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str) -> None:
    lake(tmp_path, "t")
    monkeypatch.setattr(driver, "answers", Between(path(tmp_path), action, 1))
    run = maintain(tmp_path, "--format", "json")
    assert parts(run)["compact"]["detail"] == "another writer left nothing to do"
    assert lance.dataset(str(path(tmp_path))).count_rows() == (60 if action == "compact" else 10)


def test_an_answer_that_was_lost_is_found_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lance import optimize

    class Deaf:
        plan = optimize.Compaction.plan

        @staticmethod
        def commit(*arguments: Any) -> None:
            real.commit(*arguments)
            raise OSError("connection reset")

    lake(tmp_path, "t")
    real = optimize.Compaction
    monkeypatch.setattr(optimize, "Compaction", Deaf)
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, outcomes(run)) == (0, ["done", "done", None])
    assert lance.dataset(str(path(tmp_path))).count_rows() == 60


def test_a_task_that_fails_leaves_the_table_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(tmp_path, "good", "t")
    before = state(path(tmp_path))

    def broken(unit: dict[str, Any]) -> Iterator[Any]:
        if unit["uri"].endswith("t.lance") and "good" not in unit["uri"]:
            unit = {**unit, "task": "{}"}
        yield from real(unit)

    real = maintain_task.rewrite
    monkeypatch.setattr(maintain_task, "rewrite", broken)
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, outcomes(run), outcomes(run, "good")) == (5, ["failed", "not_run", None], ["done", "done", None])
    assert parts(run)["indexes"]["detail"] == "an earlier part was not done"
    assert state(path(tmp_path)) == before


def test_a_spark_that_fails_halfway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(tmp_path, "a", "t")

    def failing(*arguments: Any, **more: Any) -> Iterator[dict[str, Any]]:
        found = in_process(*arguments, **more)
        yield next(found)
        raise SparkError("a Spark job failed: executors are gone")

    monkeypatch.setattr(driver, "answers", failing)
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, outcomes(run, "a"), outcomes(run)) == (5, ["done", "not_run", None], ["unknown", "not_run", None])
    assert parts(run)["compact"]["detail"] == "a Spark job failed: executors are gone"


def test_an_interrupt_says_how_far_it_got(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(tmp_path, "t")

    def stopped(*arguments: Any, **more: Any) -> Iterator[dict[str, Any]]:
        if arguments[3] is maintain_task.refresh:
            raise KeyboardInterrupt
        yield from in_process(*arguments, **more)

    monkeypatch.setattr(driver, "answers", stopped)
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, outcomes(run)) == (130, ["done", "unknown", None])


def test_tags_of_others_always_hold_their_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = "reconciler-0123456789ab-s1"
    lake(tmp_path, "t", spec="maintenance: {cleanup: {olderThan: 1d, keepTagged: false, retainVersions: 2}}")
    dataset = lance.dataset(str(path(tmp_path)))
    newest = dataset.version
    dataset.tags.create("prod", 2)
    dataset.tags.create(mine, 3)
    dataset.create_branch("dev", 4)
    later(monkeypatch, 2)
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, outcomes(run)) == (0, [None, None, "done"])
    dataset = lance.dataset(str(path(tmp_path)))
    assert [v["version"] for v in dataset.versions()] == [2, 4, newest - 1, newest]
    assert list(dataset.tags.list()) == ["prod"]
    assert lance.dataset(str(path(tmp_path)), version="prod").count_rows() == 0
    assert decided(maintain(tmp_path, "--format", "json"))[0][3][2][1] == "skip", "what is kept is not tried again"


@pytest.mark.parametrize("cleanup", [True, False])
def test_tags_of_apply_past_their_retention_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cleanup: bool
) -> None:
    """So that the versions that they held can be cleaned up in the same run; also where no cleanup is declared."""
    keeping = "maintenance: {cleanup: {olderThan: 14d}}"
    lake(tmp_path, "t", spec=keeping if cleanup else "maintenance: {indexes: {maxUnindexedRows: 10}}")
    dataset = lance.dataset(str(path(tmp_path)))
    dataset.tags.create("reconciler-0123456789ab-s1", 3)
    dataset.tags.create("reconciler-theirs", 4)
    later(monkeypatch, 20)
    assert "tags" not in parts(maintain(tmp_path, "--format", "json"))
    assert set(dataset.tags.list()) == {"reconciler-0123456789ab-s1", "reconciler-theirs"}
    later(monkeypatch, 31)
    foreseen = maintain(tmp_path, "--dry-run", "--format", "json")
    assert parts(foreseen)["tags"]["reason"] == "1 tag of apply is older than management.tagRetention"
    assert len(dataset.tags.list()) == 2
    run = maintain(tmp_path, "--format", "json")
    assert decided(run) == decided(foreseen)
    assert parts(run)["tags"]["outcome"] == "done"
    assert parts(run)["tags"]["after"] == {"removed": 1}
    assert set(dataset.tags.list()) == {"reconciler-theirs"}
    left = {v["version"] for v in lance.dataset(str(path(tmp_path))).versions()}
    assert (3 in left, 4 in left) == (not cleanup, True)
    assert "tags" not in parts(maintain(tmp_path, "--format", "json"))


def test_tags_that_are_kept_for_ever_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(tmp_path, "t", spec="maintenance: {cleanup: {olderThan: 14d}}")
    lance.dataset(str(path(tmp_path))).tags.create("reconciler-0123456789ab-s1", 3)
    manifest = tmp_path / "m.yaml"
    manifest.write_text(manifest.read_text().replace("{owner: team}", "{owner: team, tagRetention: forever}"))
    later(monkeypatch, 4000)
    run = maintain(tmp_path, "--format", "json")
    assert "tags" not in parts(run)
    assert set(lance.dataset(str(path(tmp_path))).tags.list()) == {"reconciler-0123456789ab-s1"}


def test_a_tag_that_comes_meanwhile_holds_its_version(tmp_path: Path) -> None:
    lake(tmp_path, "t")
    dataset = lance.dataset(str(path(tmp_path)))
    dataset.tags.create("now", 2)
    unit = {"key": 0, "uri": str(path(tmp_path)), "options": {}, "versions": [1, 2, 3], "tags": ["now", "gone"]}
    dataset.tags.update("now", 4)
    dataset.tags.create("other", 2)
    (answer,) = in_process(None, [unit], 1, maintain_task.clean)
    assert answer["after"]["removed"] == 2
    assert sorted(dataset.tags.list()) == ["now", "other"], "now holds another version by now"


def test_files_of_unfinished_work_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """delete_unverified is for those who know that nobody writes."""
    lake(tmp_path, "t", spec="maintenance: {cleanup: {olderThan: 1h}}")
    fresh = path(tmp_path) / "data" / f"{'0' * 24}deadbeefdeadbeefdeadbeef.lance"
    fresh.write_bytes(b"unfinished")
    later(monkeypatch, 1)
    assert outcomes(maintain(tmp_path, "--format", "json")) == [None, None, "done"]
    assert fresh.exists()


def test_an_index_that_stays_as_it_was_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(tmp_path, "t")

    def idle(unit: dict[str, Any]) -> Iterator[Any]:
        yield from real({**unit, "indexes": []})

    real = maintain_task.refresh
    monkeypatch.setattr(maintain_task, "refresh", idle)
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, outcomes(run)) == (5, ["done", "failed", None])
    assert parts(run)["indexes"]["detail"] == "Lance took no row into id_idx"


def test_an_index_that_went_meanwhile_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake(tmp_path, "t")

    def dropped(unit: dict[str, Any]) -> Iterator[Any]:
        lance.dataset(unit["uri"]).drop_index("id_idx")
        yield from real(unit)

    real = maintain_task.refresh
    monkeypatch.setattr(maintain_task, "refresh", dropped)
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, outcomes(run)) == (5, ["done", "failed", None])
    assert parts(run)["indexes"]["detail"] == "id_idx: it is not there any more"


@pytest.mark.parametrize("stable", [False, True])
def test_rows_and_indexes_are_the_same_after_a_compaction(tmp_path: Path, stable: bool) -> None:
    """Every type; deleted rows; a column that came later; with row ids that stay and without. A compaction neither adds
    to the rows that an index lacks nor takes from them, which is why the decision about indexes can come first."""
    uri = str(tmp_path / "t")
    data = _everything()
    dataset = lance.write_dataset(
        data, uri, data_storage_version="2.2", max_rows_per_file=4, enable_stable_row_ids=stable
    )
    dataset.create_scalar_index("id", "BTREE", name="id_idx")
    lance.write_dataset(data.slice(0, 9), uri, mode="append", max_rows_per_file=3)
    dataset = lance.dataset(uri)
    dataset.add_columns({"twice": "id * 2"})
    dataset.delete("id = 5")
    unit = {"key": 0, "uri": uri, "options": {}, "compaction": {}, "parts": ["compact", "indexes"]}
    before, content = maintain_task.measure(unit), of_dataset(tmp_path / "t")
    assert before["unindexed"] == {"id_idx": 8}
    assert len(before["groups"]) == 2, "what is in the index is not joined with what is not"
    plan = maintain_task.compaction_plan(lance.dataset(uri), {})
    units = [{**unit, "version": before["version"], "task": task.json()} for task in plan.tasks]
    rewritten = [answer["result"] for answer in in_process(None, units, 1, maintain_task.rewrite)]
    assert lance.dataset(uri).version == before["version"], "a task commits nothing"
    place = driver.DataPlace(uri)
    done = driver._committed(driver.Subject(place, None, 0), before["version"], rewritten)  # type: ignore[arg-type]
    assert getattr(done, "outcome", done) == "done"
    after = maintain_task.measure(unit)
    assert (after["unindexed"], after["groups"], len(after["fragments"])) == (before["unindexed"], [], 2)
    assert of_dataset(tmp_path / "t") == content
    scanner = lance.dataset(uri).scanner(filter="id = 7", columns=["id"])
    assert "ScalarIndexQuery" in scanner.explain_plan()
    assert scanner.to_table()["id"].to_pylist() == [7, 7]


def test_one_dataset_in_two_catalogs_is_maintained_once(tmp_path: Path) -> None:
    lake(tmp_path, "t")
    second = (catalog(), table("t", schema=SCHEMA, spec=INDEX + ALL))
    write(
        tmp_path,
        *(text.replace("lake}", "pond}").replace("catalog: lake", "catalog: pond") for text in second),
        name="n.yaml",
    )
    run = reconciler(tmp_path, "pipeline", "maintain", "m.yaml", "n.yaml", "--format", "json")
    assert run.code == 0, run.err
    ours, same = run.json["tables"]
    assert [p["outcome"] for p in ours["parts"]] == ["done", "done", None]
    assert {p["reason"] for p in same["parts"]} == {"lake:t is the same data: done there"}


@pytest.mark.parametrize("chosen", [(), ("--target", "t")])
def test_two_tables_of_a_catalog_with_one_dataset_are_left_alone(tmp_path: Path, chosen: tuple[str, ...]) -> None:
    """The folder of `t` is a link to that of `u` now, which asks for no maintenance."""
    lake(tmp_path, "t", "u")
    write(tmp_path, catalog("team"), table("t", schema=SCHEMA, spec=INDEX + ALL), table("u", schema=SCHEMA))
    shutil.rmtree(path(tmp_path))
    path(tmp_path).symlink_to(path(tmp_path, "u"))
    before = state(path(tmp_path, "u")), lance.dataset(str(path(tmp_path, "u"))).version
    run = maintain(tmp_path, "--format", "json", *chosen)
    assert run.code == 0, run.err
    assert {p["decision"] for p in parts(run).values()} == {"skip"}
    assert all("is table u too: one dataset is one table" in p["reason"] for p in parts(run).values())
    assert (state(path(tmp_path, "u")), lance.dataset(str(path(tmp_path, "u"))).version) == before


def test_a_table_that_is_not_where_its_manifest_says_is_neither_maintained_nor_verified(tmp_path: Path) -> None:
    """The row of `n.t` was pointed at `n.u`, whose data carries our mark too."""
    write(tmp_path, catalog("team"), namespace("n"), *(table("n", name, schema=SCHEMA) for name in "tu"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    root = tmp_path / "lake"
    found = {r["object_id"]: r for r in lance.dataset(str(root / "__manifest")).to_table().to_pylist()}
    was, now = found["n$t"]["location"], found["n$u"]["location"]
    append(root / now, 6)
    manifest = lance.dataset(str(root / "__manifest"))
    moved = pa.Table.from_pylist([{**found["n$t"], "location": now}], schema=manifest.schema)
    manifest.merge_insert("object_id").when_matched_update_all().execute(moved)
    write(tmp_path, catalog("team"), namespace("n"), table("n", "t", schema=SCHEMA, spec=f"location: {was}\n  " + ALL))
    before = state(root / now)
    run = maintain(tmp_path, "--format", "json")
    assert run.code == 0, run.err
    assert all("it is at" in p["reason"] for p in parts(run).values())
    assert state(root / now) == before
    checked = reconciler(tmp_path, "pipeline", "verify", "m.yaml", "--dry-run")
    assert checked.code == 1
    assert "it is at" in checked.out


def test_maintenance_is_no_part_of_a_plan(tmp_path: Path) -> None:
    write(tmp_path, catalog(), table("t", schema=SCHEMA))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog(), table("t", schema=SCHEMA, spec=ALL))
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0
    assert reconciler(tmp_path, "drift", "m.yaml").code == 0
    write(tmp_path, catalog(), name="c.yaml")
    assert reconciler(tmp_path, "import", "c.yaml", "-o", "out").code == 0
    assert "maintenance" not in (tmp_path / "out" / "lake" / "root-tables.yaml").read_text()


@pytest.mark.parametrize("maintenance", ["", "maintenance: {cleanup: {}}"])
def test_an_index_that_a_plan_leaves_to_maintain_is_refreshed(tmp_path: Path, maintenance: str) -> None:
    """Whether the table has `maintenance` or not; a plan names this command for it."""
    lake(tmp_path, "t", spec=INDEX + maintenance)
    large = catalog().replace("owner: team", "owner: team, indexRefresh: {maxRows: 9}")
    write(tmp_path, large, table("t", schema=SCHEMA, spec=INDEX + maintenance))
    told = reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode")
    assert told.code == 0
    assert "index id_idx covers 0 of 60 rows: run `reconciler pipeline maintain PATH`" in told.out
    run = maintain(tmp_path, "--format", "json")
    assert parts(run)["indexes"]["reason"] == "id_idx lacks 60 rows, up to 20% are left"
    assert (run.code, outcomes(run)) == (0, [None, "done", None])
    after = reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode")
    assert (after.code, "covers" in after.out) == (0, False)
    assert maintain(tmp_path, "--format", "json").json["summary"]["to_run"] == 0


def test_a_table_of_somebody_else_is_not_chosen_for_its_index(tmp_path: Path) -> None:
    lake(tmp_path, "t", spec=INDEX)
    write(tmp_path, catalog("another"), table("t", schema=SCHEMA, spec=INDEX))
    before = state(path(tmp_path))
    assert maintain(tmp_path, "--format", "json").json["tables"] == []
    assert state(path(tmp_path)) == before


@pytest.mark.parametrize("kind", ["zonemap", "bloomfilter"])
def test_an_index_that_a_compaction_empties_is_refreshed_with_it(tmp_path: Path, kind: str) -> None:
    spec = INDEX.replace("btree", kind) + ALL
    lake(tmp_path, "t", spec=spec)
    lance.dataset(path(tmp_path)).optimize.optimize_indices()
    run = maintain(tmp_path, "--format", "json")
    assert parts(run)["indexes"]["reason"] == "id_idx loses rows by the compaction"
    assert outcomes(run)[:2] == ["done", "done"]
    assert lance.dataset(path(tmp_path)).stats.index_stats("id_idx")["num_unindexed_rows"] == 0


def test_what_is_not_asked_for_is_not_listed(tmp_path: Path) -> None:
    lake(tmp_path, "t", spec="")
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, run.json["tables"]) == (0, [])
    assert maintain(tmp_path).out == "0 tables: 0 to do, 0 skipped\n"


def test_exit_codes_and_output(tmp_path: Path) -> None:
    lake(tmp_path, "t")
    assert maintain(tmp_path, "--target", "nosuch").code == 1
    assert "create the folder nosuch first" in maintain(tmp_path, "-o", "nosuch/x").err
    assert (
        maintain(tmp_path, "--dry-run", "-o", "x.json", "--format", "json").out,
        (tmp_path / "x.json").exists(),
    ) == ("", True)
    (tmp_path / "busy").mkdir()
    run = maintain(tmp_path, "-o", "busy")
    assert (run.code, run.out.splitlines()[-1]) == (5, "1 table: 2 done, 1 skipped")
    assert "the result goes to stdout" in run.err
    for file in (path(tmp_path) / "_versions").iterdir():
        file.write_bytes(b"?")
    run = maintain(tmp_path)
    assert run.code == 1, "nothing could be read, nothing was written"
    assert "cannot be read: " in run.out


def test_times_are_those_of_the_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    append(tmp_path / "t", 1)
    now = time.time()
    try:
        for zone in ("America/New_York", "Asia/Tokyo"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            ((_, seen),) = maintain_task.versions(lance.dataset(str(tmp_path / "t")))
            assert abs(now - seen) < timedelta(minutes=10).total_seconds()
    finally:
        monkeypatch.undo()
        time.tzset()


def test_progress_is_one_line() -> None:
    assert (
        Pace("compact", 1, 2, 3, 8, 30, 4_000_000).line(2.0) == "compact: 1/2 tables, 3/8 tasks, 30 rows, 2 MB/s, 2 s"
    )
    assert Pace("cleanup", 1, 2).line(0.1) == "cleanup: 1/2 tables, 0 s"


def test_an_empty_table(tmp_path: Path) -> None:
    lake(tmp_path, "t", fragments=0)
    run = maintain(tmp_path, "--format", "json")
    assert (run.code, outcomes(run)) == (0, [None, None, None])
    assert pa.table(lance.dataset(str(path(tmp_path))).to_table()).num_rows == 0
