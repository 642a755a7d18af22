"""A stand-in for a Spark session that runs the tasks in this process: for what is decided on the driver, and for
processes that are killed, where a JVM would only cost time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from reconciler.pipeline.data_plane import Running
from reconciler.pipeline.session import SparkOptions

SLOTS = 2


class InProcess:
    """The few calls of `pipeline.jobs`."""

    def range(self, start: int, end: int, step: int = 1, parts: int = 1) -> _Numbers:
        return _Numbers(range(start, end, step))


class _Numbers:
    def __init__(self, numbers: range) -> None:
        self._numbers = numbers

    def selectExpr(self, *_: str) -> _Numbers:
        return _Numbers(range(SLOTS))

    def distinct(self) -> _Numbers:
        return self

    def count(self) -> int:
        return len(self._numbers)

    def mapInArrow(self, work: Callable[[Iterable[Any]], Iterator[Any]], schema: str) -> _Rows:
        batches = [pa.RecordBatch.from_pydict({"id": [number]}) for number in self._numbers]
        return _Rows(
            row
            for batch in batches
            for answer in work([batch])
            for row in zip(*answer.to_pydict().values(), strict=True)
        )


class _Rows:
    def __init__(self, rows: Iterator[Any]) -> None:
        self._rows = rows

    def collect(self) -> list[Any]:
        return list(self._rows)


def running() -> Running:
    started = Running(SparkOptions())
    started._spark, started._slots = InProcess(), SLOTS
    return started
