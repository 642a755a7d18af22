"""New columns by SQL and by a function that the executors do not have, on whatever Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pipeline.evolve_runs import DELETED, ON_SPARK, backfill, column, field, register, written

from reconciler.catalog.base import DataPlace
from reconciler.pipeline.data_plane import Running
from reconciler.pipeline.evolve import evolve
from reconciler.pipeline.session import SparkOptions

CHANGE = backfill(
    field("length", "int16", "length(text)"),
    field("v", "fixed_size_list<float32>[2]", function="vector", nullable=False),
)


def fill(spark: Any, folder: Path) -> None:
    """In the process that has the session."""
    sys.path.insert(0, register(folder / "package"))
    uri = written(folder / "evolve.lance")
    evolve(Running(SparkOptions(), _spark=spark, _slots=2), CHANGE, DataPlace(uri), ON_SPARK)


def expected(folder: Path) -> None:
    uri = str(folder / "evolve.lance")
    left = [n for n in range(40) if n not in DELETED]
    assert column(uri, "length") == {n: None if n % 10 == 0 else len(str(n)) for n in left}
    assert column(uri, "v") == {n: [n, 1.0] for n in left}
