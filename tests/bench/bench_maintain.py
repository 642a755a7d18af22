"""(i) compaction of a table of many small fragments on Spark against one pylance process (`ds.optimize.compact_files`);
and what it costs to decide about many tables."""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
from timing import best, table

from reconciler.catalog.base import DataPlace
from reconciler.model.maintenance import Cleanup, Compact, Indexes, Maintenance
from reconciler.pipeline.maintain import Assessed, Run, Subject, assess
from reconciler.pipeline.session import SparkOptions, session

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000_000
FRAGMENTS, TASKS, TABLES = 600, 8, 1000


def rows(count: int) -> pa.Table:
    vectors = pa.array(np.random.default_rng(1).random(count * 64, np.float32))
    texts = pa.array(np.char.add("row number ", np.arange(count).astype(str)))
    return pa.table({"id": np.arange(count), "text": texts, "vector": pa.FixedSizeListArray.from_arrays(vectors, 64)})


def assessed(subjects: list[Subject]) -> list[Assessed]:
    return [found for found in assess(subjects) if not isinstance(found, str)]


def main() -> None:
    target = ROWS // TASKS
    with tempfile.TemporaryDirectory() as folder, session(SparkOptions("local[2,4]")) as spark:
        source = f"{folder}/source.lance"
        data = rows(ROWS)
        size = data.nbytes / 1e6
        lance.write_dataset(data, source, max_rows_per_file=-(-ROWS // FRAGMENTS))
        del data
        want = Maintenance(Compact(target, 8))

        def on_spark(path: str) -> None:
            subjects = [Subject(DataPlace(path), want, time.time())]
            run = Run(spark, subjects, assessed(subjects))
            run.run()
            assert run.results[0]["compact"].outcome == "done", run.results

        def alone(path: str) -> None:
            lance.dataset(path).optimize.compact_files(target_rows_per_fragment=target)

        def timed(action: Callable[[str], None]) -> float:
            """On a fresh copy."""
            copy = f"{folder}/copy.lance"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(source, copy)
            start = time.perf_counter()
            action(copy)
            seconds = time.perf_counter() - start
            assert len(lance.dataset(copy).get_fragments()) <= TASKS + 1
            return seconds

        timed(on_spark)
        pairs = [(timed(on_spark), timed(alone)) for _ in range(5)]
        ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
        head = [f"compact {size:.0f} MB in {FRAGMENTS} fragments", "s", "MB/s", "of one process"]
        shown = [[name, f"{t:.2f}", f"{size / t:.0f}", f"{theirs / t:.2f}"]
                 for name, t in (("one pylance process", theirs), ("Spark local[2]", ours))]  # fmt: skip
        table(head, shown)
        small = rows(20)
        for number in range(TABLES):
            lance.write_dataset(small, f"{folder}/s{number}.lance", max_rows_per_file=4)
        everything = Maintenance(Compact(), Indexes(), Cleanup())
        fleet = [Subject(DataPlace(str(Path(folder) / f"s{n}.lance")), everything, time.time()) for n in range(TABLES)]
        table(["", "tables/s"], [[f"decide about {TABLES} tables", f"{TABLES / best(lambda: assessed(fleet)):.0f}"]])


if __name__ == "__main__":
    main()
