"""The verbs that write take the lease as `apply` does: while another run has it nothing is written, and it is given
back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lance
import pyarrow.parquet as pq
import pytest
from cli.cli_runs import catalog, check_schema, reconciler, table, write
from pipeline.maintain_lake import (
    ALL,
    INDEX,
    SCHEMA,
    lake,
    left_behind,
    maintain,
    outcomes,
    parts,
    path,
    rows,
    state,
    without_spark,
)

from reconciler.catalog.lance_data import CLAIM_KEY
from reconciler.catalog.lease_files import LeaseFiles
from reconciler.catalog.storage import open_storage
from reconciler.engine.lease import LeaseLog, Me, Times
from reconciler.engine.lease_holder import this_process
from reconciler.engine.lease_keeper import Guarded, Keeper

SOURCE = "data: {source: {format: parquet, path: ./source.parquet}, mode: once}"


def records(folder: Path) -> LeaseFiles:
    return LeaseFiles(open_storage(str(folder / "lake"), {}), "__reconciler/lease")


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """By a run of somebody else, which is this process."""
    keeper = Keeper(Me("somebody", this_process(command="a long night")), Times())
    keeper.take_all([Guarded("lake", records(folder))], 0)
    try:
        yield
    finally:
        keeper.release()


def test_maintain_waits_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_spark(monkeypatch)
    lake(tmp_path, "t")
    before = state(path(tmp_path))
    with held(tmp_path):
        refused = maintain(tmp_path, "--lock-timeout", "0")
        assert (refused.code, refused.out) == (6, "")
        assert "`a long night`" in refused.err
        assert maintain(tmp_path, "--dry-run").code == 0
    assert state(path(tmp_path)) == before
    assert maintain(tmp_path, "--lock-timeout", "0").code == 0
    assert state(path(tmp_path)) != before
    assert LeaseLog(records(tmp_path)).read().held is None


@pytest.mark.parametrize("more", [ALL, "maintenance: {cleanup: {olderThan: 900d}}"], ids=["with work", "with none"])
def test_what_was_left_behind_is_ended_in_turn_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str) -> None:
    without_spark(monkeypatch)
    lake(tmp_path, "t", spec=more)
    place, _ = left_behind(tmp_path)
    version = lance.dataset(place.uri).version
    with held(tmp_path):
        assert maintain(tmp_path, "--lock-timeout", "0").code == 6
        assert lance.dataset(place.uri).version == version
    with monkeypatch.context() as losing:
        losing.setattr(Keeper, "problem", lambda self: "the lease was lost")
        run = maintain(tmp_path)
        assert run.code == 1
        assert "the lease was lost" in run.out
        assert lance.dataset(place.uri).version == version
    assert maintain(tmp_path).code == 0
    assert CLAIM_KEY not in lance.dataset(place.uri).metadata


def test_no_table_is_begun_once_the_lease_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors refresh indexes and remove versions by themselves: jobs that were not begun are not."""
    without_spark(monkeypatch)
    lake(tmp_path, "a", "b", spec=INDEX + "maintenance: {indexes: {maxUnindexedRows: 10}}")
    answers = iter([None] * 4)  # tags, compact, indexes, the first table
    monkeypatch.setattr(Keeper, "problem", lambda self: next(answers, "the lease was lost"))
    before = lance.dataset(str(path(tmp_path, "b"))).version
    run = maintain(tmp_path, "--format", "json")
    assert run.code == 5
    assert (outcomes(run, "a")[1], outcomes(run, "b")[1]) == ("done", "unknown")
    assert parts(run, "b")["indexes"]["detail"] == "the lease was lost"
    assert lance.dataset(str(path(tmp_path, "b"))).version == before


@pytest.mark.slow
def test_maintain_that_lost_its_lease_changes_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_spark(monkeypatch)
    lake(tmp_path, "t")
    before = state(path(tmp_path))
    answers = iter([None, None])  # tags, compact
    monkeypatch.setattr(Keeper, "problem", lambda self: next(answers, "the lease was lost"))
    run = maintain(tmp_path, "--format", "json")
    assert run.code == 1
    assert outcomes(run) == ["failed", "not_run", None]
    assert "the lease was lost" in run.out
    assert state(path(tmp_path)) == before


def test_materialize_is_refused_before_spark_is_asked(tmp_path: Path) -> None:
    pq.write_table(rows(0), tmp_path / "source.parquet")
    write(tmp_path, catalog(), table("t", schema=SCHEMA))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog(), table("t", schema=SCHEMA, spec=SOURCE))
    nowhere = ("--remote", "sc://127.0.0.1:1", "--lock-timeout", "0")
    with held(tmp_path):
        refused = reconciler(tmp_path, "pipeline", "materialize", "m.yaml", *nowhere, "--report", tmp_path / "r.json")
        assert refused.code == 6, refused
        assert '"refused"' in (tmp_path / "r.json").read_text()


def test_a_lease_that_cannot_be_had_is_told_with_the_code(tmp_path: Path) -> None:
    """By every verb, as data: in the report of `apply`, elsewhere in the document that stands for the result."""
    write(tmp_path, catalog(), table("t", schema=SCHEMA))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    spoiled = tmp_path / "lake" / "__reconciler" / "lease"
    shutil.rmtree(spoiled)
    spoiled.write_text("no folder")
    write(tmp_path, catalog(), table("t", schema=SCHEMA), table("u"))
    for words, schema in ((("apply", "m.yaml", "--yes"), "report"), (("unlock", "m.yaml"), "failure")):
        run = reconciler(tmp_path, *words, "--format", "json")
        assert run.code == 1, run
        check_schema(schema, run.json)
        error = run.json["error"]
        assert (error["code"], error["name"]) == (13, "InvalidInput")
        assert "cannot list " in error["message"]
    assert "the lease of catalog lake cannot be read: InvalidInput (13): " in run.err


def test_a_time_to_live_that_is_none(tmp_path: Path) -> None:
    write(tmp_path, catalog(), table("t", schema=SCHEMA))
    for text in ("0", "soon", "4000"):
        run = reconciler(tmp_path, "apply", "m.yaml", "--yes", env={"RECONCILER_LEASE_TTL": text})
        assert run.code == 1
        assert "RECONCILER_LEASE_TTL" in run.err
    assert not (tmp_path / "lake").exists()
