"""Real processes, killed at the worst moments of a data step: afterwards, and in between, the rows are exact."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.cli_runs import REPO, catalog, command, environment, reconciler, table, write
from pipeline.data_run import AFTER, BEFORE, WORKER
from pipeline.in_process import InProcess
from servers.process import is_there, processes
from servers.spark import SMALL, connect_server, java_of, need_java, standalone

from reconciler.catalog.lance_data import CLAIM_KEY
from reconciler.pipeline import data_plane

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("data_run.py")
ROWS = 40
LOCAL = ["--master", "local[2,4]", *(word for key, value in SMALL.items() for word in ("--conf", f"{key}={value}"))]
SECONDS = 120


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    need_java()
    (tmp_path / "raw").mkdir()
    for start in range(0, ROWS, 10):
        pq.write_table(pa.table({"id": list(range(start, start + 10))}), tmp_path / "raw" / f"{start}.parquet")
    data = "data: {source: {format: parquet, path: raw}, mode: append}"
    write(tmp_path, catalog("us"), table("t", schema="[{name: id, type: int64}]", spec=data))
    return tmp_path


def start(lake: Path, place: str, *more: str, spark: Sequence[str] = LOCAL) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(REPO), str(REPO / "tests")])
    mark = str(lake / "mark")  # Executors may have another working directory.
    arguments = [sys.executable, str(SCRIPT), place, mark, "apply", "m.yaml", "--yes", *spark]
    return subprocess.Popen(
        [*arguments, *more],
        cwd=lake,
        env=environment(PYTHONPATH=path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(holds: Callable[[], Any], running: subprocess.Popen[str]) -> Any:
    deadline = time.monotonic() + SECONDS
    while not (found := holds()):
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def marked(lake: Path) -> int | None:
    mark = lake / "mark"
    return int(mark.read_text()) if mark.exists() else None


def killed(running: subprocess.Popen[str]) -> None:
    java = java_of(running.pid)
    running.kill()
    running.communicate(timeout=SECONDS)
    need_gone(java)


def need_gone(java: int | None) -> None:
    deadline = time.monotonic() + SECONDS
    while java is not None and is_there(java):
        assert time.monotonic() < deadline, "the JVM outlives its driver"
        time.sleep(0.05)


def ids(lake: Path) -> list[int]:
    return sorted(lance.dataset(lake / "lake" / "t.lance").to_table().column("id").to_pylist())


def again(lake: Path) -> None:
    """Another run, without a JVM: what it finds is what counts."""
    with patch.object(data_plane, "session", lambda options: nullcontext(InProcess())):
        done = reconciler(lake, "apply", "m.yaml", "--yes")
    assert done.code == 0, done.out + done.err
    assert ids(lake) == list(range(ROWS))
    live = lance.dataset(lake / "lake" / "t.lance")
    assert CLAIM_KEY not in live.metadata
    assert reconciler(lake, "plan", "m.yaml", "--detailed-exitcode").code == 0


@pytest.mark.parametrize(("place", "between"), [(BEFORE, 0), (AFTER, ROWS)])
def test_the_driver_is_killed_around_its_commit(lake: Path, place: str, between: int) -> None:
    running = start(lake, place)
    until(lambda: marked(lake), running)
    killed(running)
    assert len(ids(lake)) == between, "readable, and all or nothing"
    assert CLAIM_KEY in lance.dataset(lake / "lake" / "t.lance").metadata
    again(lake)


def test_a_worker_is_killed_while_it_writes(lake: Path) -> None:
    """Spark runs its task again."""
    running = start(lake, WORKER)
    worker = until(lambda: marked(lake), running)
    assert worker != running.pid
    os.kill(worker, signal.SIGKILL)
    out, err = running.communicate(timeout=SECONDS)
    assert running.returncode == 0, out + err
    again(lake)


def test_the_jvm_is_killed_while_a_worker_writes(lake: Path) -> None:
    running = start(lake, WORKER)
    worker = until(lambda: marked(lake), running)
    java = java_of(running.pid)
    assert java is not None
    os.kill(java, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)
    out, err = running.communicate(timeout=SECONDS)
    assert running.returncode == 5, out + err
    assert "materialize_table" in out
    assert ids(lake) == []
    assert CLAIM_KEY not in lance.dataset(lake / "lake" / "t.lance").metadata, (
        "a run that can still speak gives it back"
    )
    again(lake)


def test_a_signal_ends_a_step_that_has_not_committed(lake: Path) -> None:
    """It does not wait for tasks that take long; the report says so."""
    running = start(lake, WORKER, "--report", "r.json")
    until(lambda: marked(lake), running)
    java = java_of(running.pid)
    running.terminate()
    out, err = running.communicate(timeout=SECONDS)
    assert running.returncode == 130, out + err
    report = json.loads((lake / "r.json").read_text())
    assert (report["outcome"], report["steps"][-1]["status"]) == ("interrupted", "failed")
    assert "nothing of this step was committed" in report["steps"][-1]["error"]["message"]
    assert ids(lake) == []
    need_gone(java)
    again(lake)


@contextmanager
def elsewhere(lake: Path, kind: str) -> Iterator[list[str]]:
    """The words that lead to executors which are no children of the driver."""
    folder = lake / "spark"
    folder.mkdir()
    if kind == "connect":
        with connect_server(folder) as remote:
            yield ["--remote", remote]
        return
    with standalone(folder) as cluster:
        yield ["--master", cluster.master, *(w for k, v in cluster.conf.items() for w in ("--conf", f"{k}={v}"))]


def executor_of(worker: int) -> int:
    """The JVM above a Python worker."""
    above = {pid: (parent, name) for pid, parent, name in processes()}
    pid = worker
    while above[pid][1] != b"java":
        pid = above[pid][0]
    return pid


@pytest.mark.parametrize("kind", ["connect", "standalone"])
def test_kills_on_another_spark(lake: Path, kind: str) -> None:
    """Through Spark Connect the driver is killed while a worker writes, which goes on writing files that no commit
    names; the next run loses a worker. On a cluster a run loses a whole executor with its JVM. Spark runs what was lost
    again."""
    with elsewhere(lake, kind) as spark:
        if kind == "connect":
            running = start(lake, WORKER, spark=spark)
            until(lambda: marked(lake), running)
            running.kill()
            running.communicate(timeout=SECONDS)
            assert ids(lake) == []
            (lake / "mark").unlink()
        running = start(lake, WORKER, spark=spark)
        try:
            worker = until(lambda: marked(lake), running)
            os.kill(worker if kind == "connect" else executor_of(worker), signal.SIGKILL)
            out, err = running.communicate(timeout=SECONDS)
        finally:
            running.kill()
        assert running.returncode == 0, out + err
    again(lake)


def test_two_at_once(lake: Path) -> None:
    """The second finds the first's claim, waits, and has nothing left to do."""
    arguments = command("apply", "m.yaml", "--yes", "--master", "local[1,4]")
    both = [
        subprocess.Popen(
            arguments, cwd=lake, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    ends = [(one.communicate(timeout=SECONDS), one.returncode) for one in both]
    assert [code for _, code in ends] == [0, 0], ends
    again(lake)
