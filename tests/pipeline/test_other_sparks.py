"""The program as it is started, with a Spark of its own, through Spark Connect and on a standalone master with two
workers. The executors of the latter two are other processes, which do not have this program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.cli_runs import REPO, Run, catalog, command, environment, process, reconciler, table, write
from pipeline import evolve_elsewhere, in_process, migrate_lake, spark_lake
from pipeline.spark_lake import only_progress
from pipeline.test_checksum import of_dataset
from servers.process import is_there
from servers.spark import connect_server, java_of, need_java, standalone

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("read_elsewhere.py")


def read(where: dict[str, Any], paths: list[str]) -> tuple[list[dict[str, Any]], list[Run]]:
    """By fragments: every table is split. And how the `runs` went."""
    path = os.pathsep.join([str(REPO), str(REPO / "tests")])
    script = [sys.executable, str(SCRIPT), json.dumps(where), "1", *paths]
    done = subprocess.run(script, env=environment(PYTHONPATH=path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found, *runs = [json.loads(line) for line in done.stdout.splitlines()]
    return found, [Run(**run) for run in runs]


VECTOR = '{name: vector, type: "fixed_size_list<float32>[2]"}'
SCHEMA = f"[{{name: id, type: int64}}, {{name: text, type: string}}, {VECTOR}]"
VERBS = [
    ["pipeline", "inventory", "m.yaml", "--history", "history.lance", "--diff", "--format", "json"],
    ["pipeline", "inventory", "m.yaml", "--history", "history.lance"],
    ["plan", "m.yaml", "--format", "json"],
    ["pipeline", "maintain", "m.yaml", "--format", "json"],
    ["apply", "filled.yaml", "--yes"],
    ["plan", "filled.yaml", "--detailed-exitcode"],
    ["apply", "move/m.yaml", "--yes"],
]


def lake(folder: Path) -> list[str]:
    need_java()
    (folder / "lake").mkdir()
    names = ("good", "twice")
    spec = "checks: {unique: [id]}\n  maintenance: {compact: {targetRowsPerFragment: 20, minSmallFragments: 4}}"
    write(folder, catalog(), *(table(name, schema=SCHEMA, spec=spec) for name in names))
    paths = spark_lake.two_tables(folder / "lake")
    assert reconciler(folder, "apply", "m.yaml", "--yes", "--adopt").code == 0
    (folder / "raw").mkdir()
    for number in range(3):
        pq.write_table(spark_lake.rows(10 * (number + 1)), folder / "raw" / f"{number}.parquet")
    data = "data: {source: {format: parquet, path: raw}, mode: append"
    write(
        folder,
        catalog(path="./filled"),
        table("files", schema=SCHEMA, spec=data + "}"),
        table("sorted", schema=SCHEMA, spec=data + ", orderBy: [text], partitions: 2}"),
        name="filled.yaml",
    )
    migrate_lake.local(folder / "move", in_process.running()).write()
    return paths


def all_verbs(folder: Path, runs: list[Run]) -> None:
    """Of VERBS, with evolve and verify done before."""
    taken, undiffed, planned, kept, filled, again, moved = runs
    assert (taken.code, undiffed.code) == (0, 0), taken.err + undiffed.err
    assert taken.json["diff"] == planned.json
    rows = lance.dataset(folder / "history.lance").to_table().to_pylist()
    assert sorted((r["id"], r["rows"], r["fragments"], r["error"]) for r in rows if r["kind"] == "Table") == [
        (name, spark_lake.LARGE, 4, None) for name in ("good", "good", "twice", "twice")
    ]
    maintained(kept)
    assert (filled.code, again.code) == (0, 0), filled.err + filled.out
    whole = pa.concat_tables([spark_lake.rows(count) for count in (10, 20, 30)])
    expected = sorted(whole.to_pylist(), key=lambda row: str(row["text"]))
    for name in ("files", "sorted"):
        live = lance.dataset(folder / "filled" / f"{name}.lance").to_table().to_pylist()
        assert (live if name == "sorted" else sorted(live, key=lambda row: str(row["text"]))) == expected
    evolve_elsewhere.expected(folder)
    assert moved.code == 0, moved.err + moved.out
    migrate_lake.opened(folder / "move", in_process.running()).moved()


def maintained(run: Run) -> None:
    """Both tables had four fragments; there were two tasks for each."""
    assert run.code == 0, run.err
    assert only_progress(run.err)
    found = [part for row in run.json["tables"] for part in row["parts"] if part["outcome"]]
    assert [(p["part"], p["outcome"], p["after"]["fragments"]) for p in found] == [("compact", "done", 2)] * 2


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_spark_of_its_own_says_nothing(tmp_path: Path) -> None:
    lake(tmp_path)
    run = process(tmp_path, "pipeline", "verify", "m.yaml", "--format", "json", "--master", "local[2,4]")
    assert run.code == 2
    assert only_progress(run.err)
    assert [row["ok"] for row in run.json["tables"]] == [True, False]


def test_a_signal_ends_it_and_its_jvm(tmp_path: Path) -> None:
    lake(tmp_path)
    running = subprocess.Popen(
        command("pipeline", "verify", "m.yaml"), cwd=tmp_path, env=environment(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until(lambda: java_of(running.pid))
    java = java_of(running.pid)
    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "interrupted: nothing was written"
    assert java is not None
    until(lambda: not is_there(java))


def test_spark_connect(tmp_path: Path) -> None:
    paths = lake(tmp_path)
    with connect_server(tmp_path) as remote:
        run = process(tmp_path, "pipeline", "verify", "m.yaml", "--remote", remote, "--format", "json")
        where = {"remote": remote, "evolve": str(tmp_path), "folder": str(tmp_path), "runs": VERBS}
        readings, runs = read(where, paths)
    all_verbs(tmp_path, runs)
    assert [of_dataset(Path(path)) for path in paths] == [r["checksum"] for r in readings]
    spark_lake.expected(readings)
    assert run.code == 2
    assert only_progress(run.err)
    good, twice = run.json["tables"]
    assert [good["checksum"], twice["checksum"]] == [r["checksum"] for r in readings]
    assert (good["ok"], twice["ok"]) == (True, False)


def test_standalone_workers(tmp_path: Path) -> None:
    paths = lake(tmp_path)
    with standalone(tmp_path) as cluster:
        spark = {"master": cluster.master, "conf": cluster.conf}
        readings, runs = read({**spark, "evolve": str(tmp_path), "folder": str(tmp_path), "runs": VERBS}, paths)
        assert [len(list(work.glob("app-*/*/stderr"))) for work in cluster.works] == [1, 1], "both workers took part"
    all_verbs(tmp_path, runs)
    spark_lake.expected(readings)
    assert [of_dataset(Path(path)) for path in paths] == [r["checksum"] for r in readings]
