"""A table that is moved by a session of another process, of any kind of Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from contract.backends import dir_site
from contract.outsider_dir import LocalFiles
from pipeline import in_process
from pipeline.migrate_lake import Move, errors, local

from reconciler.pipeline.data_plane import Running
from reconciler.pipeline.jobs import cores
from reconciler.pipeline.session import SparkOptions


def prepare(folder: Path) -> Callable[[], None]:
    """The source, and what has to hold when it is moved."""
    return local(folder, in_process.running()).moved


def move(spark: Any, folder: Path) -> None:
    running = Running(SparkOptions())
    running._spark, running._slots = spark, cores(spark)
    sites = [dir_site(LocalFiles(folder / name), {}) for name in ("old", "new")]
    problems = errors(Move(folder, sites[0], sites[1], running).apply())
    assert problems == [], problems
