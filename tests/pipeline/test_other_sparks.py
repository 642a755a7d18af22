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

import pytest
from cli.cli_runs import REPO, catalog, command, environment, process, table, write
from pipeline import in_process, migrate_lake, spark_lake
from pipeline.spark_lake import only_progress
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
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def moves(where: dict[str, Any], folder: Path) -> None:
    path = os.pathsep.join([str(REPO), str(REPO / "tests")])
    move = migrate_lake.local(folder, in_process.running())
    script = [sys.executable, str(SCRIPT.with_name("migrate_elsewhere.py")), json.dumps(where), str(folder)]
    done = subprocess.run(script, env=environment(PYTHONPATH=path), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    move.moved()


def lake(folder: Path) -> list[str]:
    need_java()
    (folder / "lake").mkdir()
    vector = '{name: vector, type: "fixed_size_list<float32>[2]"}'
    schema = f"[{{name: id, type: int64}}, {{name: text, type: string}}, {vector}]"
    names = ("good", "twice")
    write(folder, catalog(), *(table(name, schema=schema, spec="checks: {unique: [id]}") for name in names))
    return spark_lake.two_tables(folder / "lake")


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


def test_spark_connect(tmp_path: Path) -> None:
    paths = lake(tmp_path)
    with connect_server(tmp_path) as remote:
        readings = read({"remote": remote}, paths)
        run = process(tmp_path, "pipeline", "verify", "m.yaml", "--remote", remote, "--format", "json")
        moves({"remote": remote}, tmp_path / "move")
    spark_lake.expected(readings)
    assert run.code == 2
    assert only_progress(run.err)
    good, twice = run.json["tables"]
    assert [good["checksum"], twice["checksum"]] == [r["checksum"] for r in readings]
    assert (good["ok"], twice["ok"]) == (True, False)


def test_standalone_workers(tmp_path: Path) -> None:
    paths = lake(tmp_path)
    with standalone(tmp_path) as cluster:
        spark_lake.expected(read({"master": cluster.master, "conf": cluster.conf}, paths))
        assert [len(list(work.glob("app-*/*/stderr"))) for work in cluster.works] == [1, 1], "both workers took part"
        moves({"master": cluster.master, "conf": cluster.conf}, tmp_path / "move")
