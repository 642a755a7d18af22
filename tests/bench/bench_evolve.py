"""(i) backfill of two columns on Spark, claim and commit included, against pylance's own `add_columns` in one process;
and the rewrite of a column of numbers in text, which pylance refuses, against reading and casting it alone."""

from __future__ import annotations

import itertools
import sys
import tempfile

import lance
import numpy as np
import pyarrow as pa
from timing import best, table

from reconciler.catalog.base import DataPlace, WriteContext
from reconciler.model.arrow import Field, parse_type
from reconciler.model.change import BackfillColumns, RewriteColumns
from reconciler.pipeline.data_plane import Running
from reconciler.pipeline.evolve import evolve
from reconciler.pipeline.session import SparkOptions

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000_000
FRAGMENTS = 16
NEW = (("size", "int32", "length(text)"), ("double", "int64", "id * 2"))


def rows(count: int) -> pa.Table:
    return pa.table({"id": np.arange(count), "text": pa.array(np.arange(count).astype(str))})


def main() -> None:
    running = Running(SparkOptions("local[2,4]"))
    numbers = itertools.count()
    with tempfile.TemporaryDirectory() as folder:
        data = rows(ROWS)

        def fresh() -> str:
            uri = f"{folder}/{next(numbers)}.lance"
            lance.write_dataset(data, uri, max_rows_per_file=-(-ROWS // FRAGMENTS))
            return uri

        def on_spark(uri: str, change: BackfillColumns | RewriteColumns) -> None:
            evolve(running, change, DataPlace(uri), WriteContext("plan", "step"))

        backfill = BackfillColumns(("t",), tuple(Field(n, parse_type(t), default=sql) for n, t, sql in NEW))
        rewrite = RewriteColumns(("t",), (Field("text", parse_type("int64")),))
        try:
            on_spark(fresh(), backfill)  # The session, and the first job of it.
            one, two, three, four = (iter([fresh() for _ in range(3)]) for _ in range(4))
            ours = best(lambda: on_spark(next(one), backfill))
            columns = {name: f"arrow_cast({sql}, '{type_.title()}')" for name, type_, sql in NEW}
            theirs = best(lambda: lance.dataset(next(two)).add_columns(columns))
            anew = best(lambda: on_spark(next(three), rewrite))
            read = best(lambda: lance.dataset(next(four)).to_table(columns=["text"])["text"].cast(pa.int64()))
        finally:
            running.close()
    head = [f"{ROWS / 1e6:g}M rows, {FRAGMENTS} fragments", "s", "s of the peer", "ratio"]
    table(
        head,
        [
            ["backfill of 2 columns, beside add_columns", f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.2f}"],
            ["rewrite string -> int64, beside read and cast", f"{anew:.2f}", f"{read:.2f}", f"{read / anew:.2f}"],
        ],
    )


if __name__ == "__main__":
    main()
