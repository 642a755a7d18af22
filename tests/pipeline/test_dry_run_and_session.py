"""What needs no Spark: dry runs, and what is said when Spark is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.cli_runs import catalog, reconciler, table, write
from pipeline import spark_lake

from reconciler.model.verification import CheckResult, Verification, VerifiedTable
from reconciler.pipeline import session as sessions
from reconciler.pipeline.session import SparkError, SparkOptions, first_line, missing, session
from reconciler.pipeline.verify import Pace
from reconciler.render.verification import verification_text

SPEC = "checks: {rowCount: {min: 1}, unique: [[id, text]]}"
SCHEMA = "[{name: id, type: int64}, {name: text, type: string}]"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    spark_lake.write(tmp_path / "lake" / "t.lance", spark_lake.rows(4).select(["id", "text"]))
    write(tmp_path, catalog(), table("t", schema=SCHEMA, spec=SPEC), table("none", schema=SCHEMA))
    return tmp_path


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.mark.usefixtures("no_spark")
def test_a_dry_run_starts_nothing(lake: Path) -> None:
    run = reconciler(lake, "pipeline", "verify", "m.yaml", "--dry-run", "--format", "json", "--target", "t")
    assert (run.code, run.err) == (0, "")
    (row,) = run.json["tables"]
    assert [c["name"] for c in row["checks"]] == ["schema", "rowCount", "unique:id,text"]
    assert {c["ok"] for c in row["checks"]} == {row["ok"]} == {None}
    run = reconciler(lake, "pipeline", "verify", "m.yaml", "--dry-run")
    assert run.code == 2, "that a table is not there is known already"
    assert "none\n          read: the table is not in the catalog\n" in run.out
    run = reconciler(lake, "pipeline", "verify", "m.yaml", "--dry-run", "--format", "junit", "--target", "t")
    assert run.out.count("<skipped") == 3


@pytest.mark.usefixtures("no_spark")
def test_no_java_is_said_before_anything_is_read(lake: Path) -> None:
    run = reconciler(lake, "pipeline", "verify", "m.yaml")
    assert (run.code, run.out) == (1, "")
    assert "Spark needs Java 17" in run.err
    assert "JAVA_HOME" in run.err
    assert missing(SparkOptions(remote="sc://somewhere")) is None, "a Spark elsewhere needs no Java here"
    with pytest.raises(SparkError, match="Java 17"), session(SparkOptions()):
        pass


def test_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions.importlib.util, "find_spec", lambda name: None)
    problem = missing(SparkOptions(remote="sc://x"))
    assert problem is not None
    assert problem.startswith("not installed: pyspark, pandas, grpcio. Install the extra `spark`")


def test_nothing_to_do_needs_no_spark(tmp_path: Path, no_spark: None) -> None:
    write(tmp_path, catalog())
    run = reconciler(tmp_path, "pipeline", "verify", "m.yaml")
    assert (run.code, run.out) == (0, "0 tables, 0 checks: 0 ok, 0 failed\n")


def test_a_remote_that_is_not_there_fails_at_once(lake: Path) -> None:
    run = reconciler(lake, "pipeline", "verify", "m.yaml", "--remote", "sc://127.0.0.1:1")
    assert run.code == 1
    assert run.err.startswith("error: there is no Spark at sc://127.0.0.1:1: ")
    assert len(run.err.splitlines()) == 1


def test_wrong_command_lines(lake: Path) -> None:
    assert reconciler(lake, "pipeline", "verify", "m.yaml", "--master", "a", "--remote", "b").code == 1
    assert reconciler(lake, "pipeline", "verify", "m.yaml", "--conf", "x").code == 1
    assert reconciler(lake, "pipeline").code == 1
    run = reconciler(lake, "pipeline", "verify", "m.yaml", "-o", "nosuch/x.json")
    assert "create the folder nosuch first" in run.err
    run = reconciler(lake, "pipeline", "verify", "m.yaml", "--dry-run", "--against", "lake:t")
    assert "--against compares one table, and 2 are selected" in run.err


def test_one_is_no_plural() -> None:
    found = Verification((VerifiedTable("lake", ("t",), (CheckResult("schema", True),), 1, "abc"),))
    assert verification_text(found) == "ok      lake:t  1 row  abc\n1 table, 1 check: 1 ok, 0 failed\n"


def test_progress_and_errors_are_one_line() -> None:
    assert Pace(1, 2, 30, 4_000_000).line(2.0) == "1/2 tables, 30 rows, 2 MB/s, 2 s"
    assert Pace(1, 2, 30, 0, 3, 8).line(2.0) == "1/2 tables, 3/8 parts of large ones, 30 rows, 2 s"
    assert Pace(1, 2, 30, 1_000).line(2.0) == "1/2 tables, 30 rows, 2 s", "too little to say how fast"
    assert Pace(0, 2, 0, 0).line(0.1) == "0/2 tables, 0 rows, 0 s"
    assert first_line(ValueError("\n[CODE] what\n\tat java.lang")) == "[CODE] what"


def test_of_what_java_raised_the_cause_is_told() -> None:
    raised = ": java.sql.SQLException: No suitable driver\n\tat java.sql.X(Y.java:1)"
    text = f"An error occurred while calling o63.load.\n{raised}"
    assert first_line(Exception(text)) == "java.sql.SQLException: No suitable driver"
