"""What runs data steps: this process for columns of small tables, Spark for everything else."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli.cli_runs import Run, catalog, command, environment, reconciler, table, write

from reconciler.catalog.lance_data import PLAN_PROPERTY
from reconciler.model.spark import InProcess
from reconciler.pipeline import data_plane, session

ROWS = 40
BEFORE = "[{name: id, type: int64}, {name: text, type: string}]"
AFTER = """
    - {name: id, type: int64}
    - {name: text, type: int64}
    - {name: length, type: int16, backfill: {sql: length(text)}}
    - {name: source, type: string, nullable: false, default: unknown}
"""


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(options: object) -> Any:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(session, "missing", lambda options: "there is no Java")
    monkeypatch.setattr(data_plane, "session", started)


def lake(folder: Path, rows: int = ROWS) -> str:
    """A table of ours with rows, whose columns are then declared anew."""
    write(folder, catalog(), table("t", schema=BEFORE))
    assert reconciler(folder, "apply", "m.yaml", "--yes").code == 0
    uri = str(folder / "lake/t.lance")
    if rows:
        values = pa.table({"id": pa.array(range(rows), pa.int64()), "text": [str(n) for n in range(rows)]})
        lance.write_dataset(values, uri, mode="append", max_rows_per_file=10)
    return uri


def declare(folder: Path, bound: str = "", schema: str = AFTER) -> None:
    ours = catalog().replace("owner: team", f"owner: team{bound}")
    write(folder, ours, table("t", schema=schema))


def steps(folder: Path, *flags: str) -> list[tuple[str, str, str | None]]:
    plan = reconciler(folder, "plan", "m.yaml", "--format", "json", *flags).json
    return [(s["action"], s["runner"], s["blocked_by"]) for s in plan["steps"] if s["plane"] == "data"]


LOCAL = [("rewrite_columns", "local", None), ("backfill_columns", "local", None)]
SPARK = [("rewrite_columns", "spark", "data_plane"), ("backfill_columns", "spark", "data_plane")]


@pytest.mark.usefixtures("no_spark")
def test_columns_of_a_small_table_are_written_in_process(tmp_path: Path) -> None:
    uri = lake(tmp_path)
    declare(tmp_path)
    shown = reconciler(tmp_path, "plan", "m.yaml")
    assert shown.out.count("it runs in process, without Spark") == 2
    on_spark = reconciler(tmp_path, "plan", "m.yaml", "--runner", "spark").out
    assert on_spark.count("it runs on Spark") == 2
    assert "in process" not in on_spark
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes")
    assert run.code == 0, run.out + run.err
    found = lance.dataset(uri).to_table().to_pylist()
    assert found == [{"id": n, "text": n, "length": len(str(n)), "source": "unknown"} for n in range(ROWS)]
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0
    merges = [t for t in lance.dataset(uri).get_transactions(20) if type(t.operation).__name__ == "Merge"]
    assert len(merges) == 2, "one commit for each step"
    assert all(PLAN_PROPERTY in (t.transaction_properties or {}) for t in merges)


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    ("bound", "found"),
    [
        ("", LOCAL),
        (f", inProcess: {{maxRows: {ROWS}}}", LOCAL),
        (f", inProcess: {{maxRows: {ROWS - 1}}}", SPARK),
        (", inProcess: {maxBytes: 100}", SPARK),
        (", inProcess: {maxRows: 0}", SPARK),
    ],
)
def test_the_bound_decides(tmp_path: Path, bound: str, found: list[Any]) -> None:
    lake(tmp_path)
    declare(tmp_path, bound)
    assert steps(tmp_path) == found


@pytest.mark.usefixtures("no_spark")
def test_a_table_without_rows_is_always_small(tmp_path: Path) -> None:
    lake(tmp_path, rows=0)
    more = BEFORE[:-1] + ", {name: x, type: int8, default: 1}]"
    declare(tmp_path, ", inProcess: {maxRows: 0, maxBytes: 0}", more)
    assert steps(tmp_path) == [("backfill_columns", "local", None)]
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0


@pytest.mark.usefixtures("no_spark")
def test_the_flag_decides_over_the_bound(tmp_path: Path) -> None:
    lake(tmp_path)
    declare(tmp_path, ", inProcess: {maxRows: 1}")
    assert steps(tmp_path, "--runner", "local") == LOCAL
    assert steps(tmp_path, "--runner", "auto") == SPARK
    declare(tmp_path)
    assert steps(tmp_path, "--runner", "spark") == SPARK


@pytest.mark.usefixtures("no_spark")
def test_a_saved_plan_keeps_its_runner(tmp_path: Path) -> None:
    uri = lake(tmp_path)
    declare(tmp_path)
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json").code == 0
    refused = reconciler(tmp_path, "apply", "--plan", "p.json", "--runner", "spark", "--yes")
    assert refused.code == 1
    assert "--runner" in refused.err
    run = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes")
    assert run.code == 0, run.out + run.err
    assert "length" in lance.dataset(uri).schema.names
    older = json.loads((tmp_path / "p.json").read_text())
    assert all("runner" not in s for s in older["steps"] if s["plane"] == "control")


@pytest.mark.usefixtures("no_spark")
def test_rows_from_a_source_are_for_spark(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n1,a\n")
    source = "source: {format: csv, path: ./a.csv}\n    mode: once"
    write(tmp_path, catalog(), table("t", schema=BEFORE) + f"\n  data:\n    {source}\n")
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 3
    shown = reconciler(tmp_path, "plan", "m.yaml", "--runner", "local").out
    assert "it moves table data, which takes Spark; `--runner local` starts none" in shown


def test_what_is_not_known_is_not_small() -> None:
    bound = InProcess(10, 100)
    assert bound.holds(10, 100)
    assert not bound.holds(11, 100)
    assert not bound.holds(10, 101)
    assert not bound.holds(10, None)
    assert not bound.holds(None, 5)
    assert bound.holds(0, None)


@pytest.mark.slow
def test_a_machine_without_java(tmp_path: Path) -> None:
    """The real program, on a path where there is no `java`, and nothing of pyspark is imported."""
    uri = lake(tmp_path)
    declare(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark/__init__.py").write_text("raise ImportError('pyspark is not to be imported')")
    env = environment(PATH=str(tmp_path / "bin"))
    env.pop("JAVA_HOME", None)
    env["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{env['PYTHONPATH']}"
    done = subprocess.run(
        command("apply", "m.yaml", "--yes"), cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
    )
    found = Run(done.returncode, done.stdout, done.stderr)
    assert found.code == 0, found.out + found.err
    assert lance.dataset(uri).to_table(["length"])["length"].to_pylist() == [len(str(n)) for n in range(ROWS)]
