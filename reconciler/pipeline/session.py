"""The Spark session of a command: one, started only when there is work, stopped at the end.

Only DataFrame calls are made on it, so that Spark Connect (`--remote sc://…`) does as well as a master. A JVM that we
start writes to a file in a temporary folder, not to our stdout and stderr; its last lines are in the error if it does
not come up. Signals stay ours.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from reconciler.catalog.known_secrets import without_secrets
from reconciler.model.spark import ZONE, SparkOptions

__all__ = ["DEFAULT_MASTER", "GaveUp", "SparkError", "SparkOptions", "first_line", "missing", "session"]

DEFAULT_MASTER = "local[*,4]"
"""All cores, and as on a cluster a task may fail three times before the job does."""
_SQL = {
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": ZONE,
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.ansi.enabled": "true",
}
"""Of a session, wherever it runs: a time without a zone counts as UTC, a query reads no files by their paths and no
variables of the environment (`${env:NAME}`), and a number that is too large for its type is an error."""
_ALWAYS = {
    "spark.app.name": "reconciler",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.speculation": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    **_SQL,
}
# The JVM passes tasks on and Python does the work: what makes a JVM start fast is worth more than what makes it fast.
_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
_JAVA_ZONE = f"-Duser.timezone={ZONE}"
"""JDBC drivers read dates and times in the zone of their JVM, which is that of the machine when nothing is said."""
_LOG_LINES, _LOG_LENGTH = 3, 300
_NOT_TOLD = re.compile(
    r"\s+at |\tat |\d+/\d+ |starting Spark|.*\bWARN\b|.*\bINFO\b|Using Spark's|Setting default log|To adjust"
)
_RAISED = re.compile(r"(?!org\.|java\.|scala\.|Caused by)[A-Za-z_][\w.]*(Error|Exception|Problem)\b: ")
CONNECT_PORT = 15002
CONNECT_SECONDS = 10


class SparkError(Exception):
    """There is no session, or a job failed: what, and what to do."""


class GaveUp(SparkError):
    """The run is to stop, and does not wait for its jobs."""


def missing(options: SparkOptions) -> str | None:
    """What keeps this machine from having a session, and how to get it. Starts nothing."""
    needed = ["pyspark", "pandas", *(["grpc"] if options.remote else [])]
    lacking = [name for name in needed if importlib.util.find_spec(name) is None]
    if lacking:
        names = ", ".join("grpcio" if name == "grpc" else name for name in lacking)
        return f"not installed: {names}. Install the extra `spark` (pip install 'lance-reconciler[spark]')"
    if options.remote is None and _java() is None:
        return (
            "Spark needs Java 17 or newer, and there is none: install one and set JAVA_HOME or put `java` on the PATH, "
            "or use a Spark that runs elsewhere with --remote sc://HOST"
        )
    return None


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")


@contextmanager
def session(options: SparkOptions) -> Iterator[Any]:
    """Raises SparkError when there is none."""
    problem = missing(options)
    if problem is not None:
        raise SparkError(problem)
    _quiet()
    with tempfile.TemporaryDirectory(prefix="reconciler-spark-", ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "spark.log"
        spark: Any = None
        try:
            with _signals_later():
                spark = _started(options, log)
            yield spark
        finally:
            if spark is not None:
                with contextlib.suppress(Exception):
                    spark.stop()


def _quiet() -> None:
    """pyspark's own loggers repeat, with a stack, what it raises; pandas 3 works for what we use of it; the fork that
    Lance warns of becomes the JVM at once."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j", "pyspark"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")


def _started(options: SparkOptions, log: Path) -> Any:
    conf = ({"spark.sql.runSQLOnFiles": "true"} if options.sql_code else {}) | dict(options.conf)
    try:
        with _output_in(log):
            from pyspark.sql import SparkSession

            if options.remote is not None:
                _need_listener(options.remote)
                builder: Any = SparkSession.builder.remote(options.remote)
                conf = {**_SQL, **conf}
            else:
                master = options.master or DEFAULT_MASTER
                python = os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
                local = _LOCAL if master.startswith("local") else {}
                conf = {**_ALWAYS, **local, "spark.pyspark.python": python, **conf}
                conf |= {key: _with_zone(conf.get(key, "")) for key in _JAVA_OPTIONS}
                builder = SparkSession.builder.master(master)
            for key, value in conf.items():
                builder = builder.config(key, value)
            return builder.getOrCreate()
    except Exception as error:
        where = options.remote or options.master or DEFAULT_MASTER
        raise SparkError(f"there is no Spark at {where}: {first_line(error)}{_last_lines(log)}") from error


def _with_zone(java_options: str) -> str:
    """What comes later counts."""
    return f"{_JAVA_ZONE} {java_options}".rstrip()


@contextmanager
def _signals_later() -> Iterator[None]:
    """The first SIGINT or SIGTERM counts when the session is there: a JVM whose start is broken off never ends. pyspark
    puts a handler of its own in the place of ours, which is put back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[int] = []

    def note(number: int, _frame: object) -> None:
        if seen:
            raise KeyboardInterrupt
        seen.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if seen:
        raise KeyboardInterrupt


def _need_listener(remote: str) -> None:
    """pyspark tries for ten minutes to reach a server that is not there."""
    address = urlsplit(remote)
    with socket.create_connection((address.hostname or "", address.port or CONNECT_PORT), CONNECT_SECONDS):
        pass


@contextmanager
def _output_in(log: Path) -> Iterator[None]:
    """The JVM inherits our stdout and stderr when it is started, and keeps them for life: for that moment both are a
    file."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    file = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        for number in kept:
            os.dup2(file, number)
        yield
    finally:
        for number, old in kept.items():
            os.dup2(old, number)
            os.close(old)
        os.close(file)


def _last_lines(log: Path) -> str:
    """In one line, without stacks, and without what we ourselves said meanwhile."""
    lines = without_secrets(log.read_text("utf-8", "replace")).splitlines() if log.exists() else []
    told = [line.strip() for line in lines if line.strip() and not _NOT_TOLD.match(line)]
    return "".join(f"; {line[:_LOG_LENGTH]}" for line in told[-_LOG_LINES:])


def first_line(error: BaseException) -> str:
    """Of a Spark error: the rest is the stack of another machine. Of what a Python worker raised, the last line of its
    traceback: that is what went wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
    if starts:
        raised = [line for line in lines[starts[-1] :] if _RAISED.match(line)]
        if raised:
            return raised[-1]
    if len(lines) > 1 and lines[1].startswith(": "):
        return lines[1][2:]  # What Java raised; the line before says which call it was.
    return lines[0] if lines else type(error).__name__
