"""The program as it is started, with a Spark of its own, through Spark Connect and on a standalone master with two
workers. The executors of the latter two are other processes, which do not have this program."""

from __future__ import annotations

import contextlib
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
import pytest
from cli.cli_runs import REPO, Run, catalog, command, environment, process, reconciler, table, write
from pipeline import evolve_elsewhere, migrate_elsewhere, spark_lake
from pipeline.spark_lake import only_progress
from pipeline.test_checksum import of_dataset
from servers.spark import connect_server, need_java, standalone

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("read_elsewhere.py")


def read(where: dict[str, Any], paths: list[str]) -> list[dict[str, Any]]:
    """By fragments: every table is split."""
    path = os.pathsep.join([str(REPO), str(REPO / "tests")])
    script = [sys.executable, str(SCRIPT), json.dumps(where), "1", *paths]
    done = subprocess.run(script, env=environment(PYTHONPATH=path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[0])
    if "maintain" in where:
        maintained(Run(**json.loads(done.stdout.splitlines()[1])))
    return found


def lake(folder: Path) -> list[str]:
    need_java()
    (folder / "lake").mkdir()
    vector = '{name: vector, type: "fixed_size_list<float32>[2]"}'
    schema = f"[{{name: id, type: int64}}, {{name: text, type: string}}, {vector}]"
    names = ("good", "twice")
    spec = "checks: {unique: [id]}\n  maintenance: {compact: {targetRowsPerFragment: 20, minSmallFragments: 4}}"
    write(folder, catalog(), *(table(name, schema=schema, spec=spec) for name in names))
    paths = spark_lake.two_tables(folder / "lake")
    assert reconciler(folder, "apply", "m.yaml", "--yes", "--adopt").code == 0
    return paths


def maintained(run: Run) -> None:
    """Both tables had four fragments; there were two tasks for each."""
    assert run.code == 0, run.err
    assert only_progress(run.err)
    found = [part for row in run.json["tables"] for part in row["parts"] if part["outcome"]]
    assert [(p["part"], p["outcome"], p["after"]["fragments"]) for p in found] == [("compact", "done", 2)] * 2


def java_of(parent: int) -> int | None:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, name, _, its_parent = stat.read_text().split()[:4]
            if int(its_parent) == parent and name == "(java)":
                return int(pid)
    return None


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
    until(lambda: not Path(f"/proc/{java}").exists())


def taken(folder: Path, *where: str) -> None:
    """The catalogs are read there by classes that came with the run."""
    words = ("pipeline", "inventory", "m.yaml", "--history", "history.lance", "--diff")
    run = process(folder, *words, *where, "--format", "json")
    assert run.code == 0, run.err
    planned = reconciler(folder, "plan", "m.yaml", "--format", "json")
    assert run.json["diff"] == planned.json
    assert [o["object"]["id"] for o in planned.json["unowned"]] == [["good"], ["twice"]]
    rows = lance.dataset(folder / "history.lance").to_table().to_pylist()
    assert {r["id"]: (r["rows"], r["fragments"], r["error"]) for r in rows if r["kind"] == "Table"} == {
        "good": (spark_lake.LARGE, 4, None),
        "twice": (spark_lake.LARGE, 4, None),
    }


def test_spark_connect(tmp_path: Path) -> None:
    paths = lake(tmp_path)
    with connect_server(tmp_path) as remote:
        taken(tmp_path, "--remote", remote, "--report", "page.html")
        assert "lake:twice" in (tmp_path / "page.html").read_text()
        moved = migrate_elsewhere.prepare(tmp_path / "move")
        readings = read({"remote": remote, "evolve": str(tmp_path), "migrate": str(tmp_path / "move")}, paths)
        run = process(tmp_path, "pipeline", "verify", "m.yaml", "--remote", remote, "--format", "json")
        maintained(process(tmp_path, "pipeline", "maintain", "m.yaml", "--remote", remote, "--format", "json"))
    assert [of_dataset(Path(path)) for path in paths] == [r["checksum"] for r in readings]
    spark_lake.expected(readings)
    evolve_elsewhere.expected(tmp_path)
    moved()
    assert run.code == 2
    assert only_progress(run.err)
    good, twice = run.json["tables"]
    assert [good["checksum"], twice["checksum"]] == [r["checksum"] for r in readings]
    assert (good["ok"], twice["ok"]) == (True, False)


def test_standalone_workers(tmp_path: Path) -> None:
    paths = lake(tmp_path)
    with standalone(tmp_path) as cluster:
        conf = [word for key, value in cluster.conf.items() for word in ("--conf", f"{key}={value}")]
        taken(tmp_path, "--master", cluster.master, *conf)
        moved = migrate_elsewhere.prepare(tmp_path / "move")
        where = {
            "master": cluster.master, "conf": cluster.conf, "evolve": str(tmp_path), "maintain": str(tmp_path),
            "migrate": str(tmp_path / "move"),
        }  # fmt: skip
        readings = read(where, paths)
        evolve_elsewhere.expected(tmp_path)
        moved()
        assert [len(list(work.glob("app-*/*/stderr"))) for work in cluster.works] == [2, 2], "both workers took part"
    spark_lake.expected(readings)
    assert [of_dataset(Path(path)) for path in paths] == [r["checksum"] for r in readings]
