"""(j) a table filled from parquet files on Spark, claim, commit and record included, against Spark's own write of the
same rows as parquet and against one pylance process; and how it grows with cores (`local[1]` against `local[2]`, one
standalone worker against two).

    python bench_materialize.py [ROWS]
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from timing import table

sys.path.insert(0, str(Path(__file__).parents[1]))

from servers.spark import standalone

from reconciler.catalog.arrow_convert import from_arrow_schema
from reconciler.catalog.base import DataPlace, WriteContext
from reconciler.model.change import MaterializeTable
from reconciler.model.data import DataSpec
from reconciler.pipeline.data_plane import Running
from reconciler.pipeline.materialize import materialize
from reconciler.pipeline.session import SparkOptions, session
from reconciler.pipeline.source_state import look

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000_000
FILES, ROUNDS = 8, 3
SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("vector", pa.list_(pa.float32(), 64))])


def write_source(folder: Path) -> float:
    """The size of the rows in MB, as Arrow has them."""
    folder.mkdir()
    size = 0
    each = ROWS // FILES
    for number in range(FILES):
        ids = np.arange(number * each, (number + 1) * each)
        vectors = pa.array(np.random.default_rng(number).random(each * 64, np.float32))
        texts = pa.array(np.char.add("row number ", ids.astype(str)))
        rows = pa.table([ids, texts, pa.FixedSizeListArray.from_arrays(vectors, 64)], schema=SCHEMA)
        size += rows.nbytes
        pq.write_table(rows, folder / f"{number}.parquet")
    return size / 1e6


class Bench:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = {"format": "parquet", "path": str(folder / "raw")}
        self.fields, _ = from_arrow_schema(SCHEMA)
        self.seen = look(self.source, DataSpec(self.source, "append"), self.fields, {})

    def ours(self, spark: Any, slots: int) -> None:
        path = self._fresh("ours.lance")
        lance.write_dataset([], path, schema=SCHEMA)
        change = MaterializeTable(("t",), self.source, False, self.seen.digest, self.seen.files, self.fields, {})
        materialize(
            Running(SparkOptions(), _spark=spark, _slots=slots), change, DataPlace(path), WriteContext("plan", "s1")
        )
        assert lance.dataset(path).count_rows() == ROWS

    def spark_parquet(self, spark: Any) -> None:
        spark.read.parquet(self.source["path"]).write.parquet(self._fresh("spark.parquet"))

    def alone(self) -> None:
        reader = pyarrow.dataset.dataset(self.source["path"]).scanner().to_reader()
        lance.write_dataset(reader, self._fresh("alone.lance"), schema=SCHEMA)

    def _fresh(self, name: str) -> str:
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        return str(path)


def timed(action: Callable[[], None]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def medians(*actions: Callable[[], None]) -> list[float]:
    """In turn, after one round to warm up."""
    rounds = [[timed(action) for action in actions] for _ in range(ROUNDS + 1)][1:]
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = write_source(folder / "raw")
        bench = Bench(folder)
        with session(SparkOptions("local[2,4]")) as spark:
            ours, parquet, alone = medians(
                lambda: bench.ours(spark, 2), lambda: bench.spark_parquet(spark), lambda: bench.alone()
            )
        print(f"{ROWS} rows, {size:.0f} MB, {FILES} parquet files; median of {ROUNDS} in turn, local[2]")
        rows = [("pipeline", ours), ("Spark's parquet write", parquet), ("one pylance process", alone)]
        table(
            ["what", "s", "MB/s", "ours is"], [[n, f"{s:.2f}", f"{size / s:.0f}", f"{s / ours:.2f}x"] for n, s in rows]
        )
        with session(SparkOptions("local[1,4]")) as spark:
            (one,) = medians(lambda: bench.ours(spark, 1))
        print(f"local[1]: {one:.2f} s, local[2]: {ours:.2f} s: {one / ours:.2f}x with twice the cores")
        workers: dict[int, float] = {}
        for count in (1, 2):
            (folder / f"cluster{count}").mkdir()
            with (
                standalone(folder / f"cluster{count}", count) as cluster,
                session(SparkOptions(cluster.master, conf=tuple(cluster.conf.items()))) as spark,
            ):
                (workers[count],) = medians(partial(bench.ours, spark, count))
        print(f"standalone workers: 1: {workers[1]:.2f} s, 2: {workers[2]:.2f} s: {workers[1] / workers[2]:.2f}x")


if __name__ == "__main__":
    main()
