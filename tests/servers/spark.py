"""Spark servers from the pip package, on the loopback interface: Spark Connect, and a standalone master with workers.

Their executors have a package `reconciler` that cannot be imported, as if they did not have ours: what runs there came
with the task.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from servers.process import READY_SECONDS, free_port, processes, tail

_SHORT_LIVED = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For queries over a handful of rows: to compile them takes longer than to run them."""
LOOPBACK = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": _SHORT_LIVED,
    "spark.ui.enabled": "false",
    **SMALL,
}


def need_java() -> None:
    from reconciler.pipeline.session import SparkOptions, missing

    problem = missing(SparkOptions())
    if problem is not None:
        pytest.skip(problem)


def java_of(parent: int) -> int | None:
    """The JVM that a process started."""
    return next((pid for pid, its_parent, name in processes() if its_parent == parent and name == b"java"), None)


def without_ours(folder: Path) -> dict[str, str]:
    """The environment of an executor."""
    poison = folder / "poison" / "reconciler"
    poison.mkdir(parents=True, exist_ok=True)
    (poison / "__init__.py").write_text("raise ImportError('executors do not have it')\n")
    return {**os.environ, "PYTHONPATH": str(poison.parent), "PYSPARK_PYTHON": sys.executable}


def _home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


@contextmanager
def _running(command: Sequence[str], log: Path, env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """In a group of its own: the scripts have the JVM as a child."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, start_new_session=True
        )
    try:
        yield process
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
                if number == signal.SIGTERM:
                    time.sleep(0.1)


def _wait_for(ready: object, process: subprocess.Popen[bytes], log: Path) -> None:
    assert callable(ready)
    deadline = time.monotonic() + READY_SECONDS
    while not ready():
        assert process.poll() is None, f"the server ended at once: {tail(log)}"
        assert time.monotonic() < deadline, f"not ready after {READY_SECONDS} s: {tail(log)}"
        time.sleep(0.1)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Its address for --remote."""
    port, log = free_port(), folder / "connect.log"
    conf = {
        **LOOPBACK,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.pyspark.python": sys.executable,
    }
    command = [str(_home() / "sbin" / "start-connect-server.sh"), "--master", "local[2,4]"]
    command += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    env = {**without_ours(folder), "SPARK_NO_DAEMONIZE": "1", "SPARK_HOME": str(_home())}
    env |= {"SPARK_LOG_DIR": str(folder), "SPARK_PID_DIR": str(folder), "SPARK_LOCAL_IP": "127.0.0.1"}
    with _running(command, log, env) as process:
        _wait_for(lambda: _answers(port), process, log)
        yield f"sc://127.0.0.1:{port}"


@dataclass(frozen=True)
class Standalone:
    master: str
    works: tuple[Path, ...]
    """The folders of the workers: one in which an executor ran holds a folder of the application."""

    @property
    def conf(self) -> dict[str, str]:
        """For a driver."""
        return {**LOOPBACK, "spark.executor.memory": "512m", "spark.executor.extraJavaOptions": _SHORT_LIVED}


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Standalone]:
    port = free_port()
    tool = str(_home() / "bin" / "spark-class")
    env = {**without_ours(folder), "SPARK_HOME": str(_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
    env |= {"SPARK_DAEMON_JAVA_OPTS": _SHORT_LIVED, "SPARK_DAEMON_MEMORY": "256m"}
    where = ["--host", "127.0.0.1", "--webui-port", "0"]
    with ExitStack() as stack:
        log = folder / "master.log"
        command = [tool, "org.apache.spark.deploy.master.Master", "--port", str(port), *where]
        master = stack.enter_context(_running(command, log, env))
        works = []
        for number in range(workers):
            works.append(folder / f"work-{number}")
            command = [tool, "org.apache.spark.deploy.worker.Worker", f"spark://127.0.0.1:{port}", *where]
            command += ["--cores", "1", "--memory", "600m", "--work-dir", str(works[-1])]
            stack.enter_context(_running(command, folder / f"worker-{number}.log", env))
        _wait_for(lambda: log.read_text().count("Registering worker") == workers, master, log)
        yield Standalone(f"spark://127.0.0.1:{port}", tuple(works))
        for work in works:
            shutil.rmtree(work, ignore_errors=True)
