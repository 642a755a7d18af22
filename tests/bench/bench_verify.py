"""(h) verify 1000 small tables on Spark against a thread pool with the same task; the checksum of a large table against
a plain pylance scan of it, in process and on Spark."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
from timing import best, table

from reconciler.catalog.arrow_convert import from_arrow_schema
from reconciler.catalog.base import DataPlace
from reconciler.pipeline import table_task
from reconciler.pipeline.session import SparkOptions, session
from reconciler.pipeline.verify import Source, _unit, read_tables

SMALL, LARGE_ROWS = 1000, int(sys.argv[1]) if len(sys.argv) > 1 else 3_000_000


def rows(count: int) -> pa.Table:
    vectors = pa.array(np.random.default_rng(1).random(count * 64, np.float32))
    texts = pa.array(np.char.add("row number ", np.arange(count).astype(str)))
    return pa.table({"id": np.arange(count), "text": texts, "vector": pa.FixedSizeListArray.from_arrays(vectors, 64)})


def source(path: Path) -> Source:
    dataset = lance.dataset(str(path))
    return Source(DataPlace(str(path)), dataset.version, from_arrow_schema(dataset.schema)[0])


def in_threads(sources: list[Source]) -> Callable[[], object]:
    units = [_unit(number, one, 1 << 60) for number, one in enumerate(sources)]

    def run() -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda unit: list(table_task.verify(unit)), units))

    return run


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, session(SparkOptions()) as spark:
        small = rows(200)
        for number in range(SMALL):
            lance.write_dataset(small, f"{folder}/s{number}.lance")
        fleet = [source(Path(folder) / f"s{number}.lance") for number in range(SMALL)]
        read_tables(spark, fleet[:8])
        ours, pool = best(lambda: read_tables(spark, fleet)), best(in_threads(fleet))
        head = ["", "tables/s on Spark", "tables/s in a thread pool", "ratio"]
        table(head, [[f"{SMALL} small tables", f"{SMALL / ours:.0f}", f"{SMALL / pool:.0f}", f"{pool / ours:.2f}"]])
        path = f"{folder}/large.lance"
        data = rows(LARGE_ROWS)
        size = data.nbytes / 1e6
        lance.write_dataset(data, path, max_rows_per_file=-(-LARGE_ROWS // 8))
        one = [source(Path(path))]
        plain = best(lambda: [batch.num_rows for batch in lance.dataset(path).to_batches()])
        alone, spread = best(in_threads(one)), best(lambda: read_tables(spark, one))
        shown = [[name, f"{size / t:.0f}", f"{plain / t:.2f}"]
                 for name, t in (("plain scan", plain), ("one process", alone), ("Spark", spread))]  # fmt: skip
        table([f"checksum of {size:.0f} MB", "MB/s", "of a plain scan"], shown)


if __name__ == "__main__":
    main()
