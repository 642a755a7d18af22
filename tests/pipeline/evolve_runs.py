"""Tables to evolve, and the step on them: on Spark, or with the same tasks in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from reconciler.catalog.arrow_convert import from_arrow_schema
from reconciler.catalog.base import DataPlace, WriteContext, Written
from reconciler.model.arrow import Field, parse_type
from reconciler.model.change import BackfillColumns, RewriteColumns
from reconciler.pipeline import checksum
from reconciler.pipeline import evolve as evolve_module
from reconciler.pipeline.data_plane import Running
from reconciler.pipeline.session import SparkOptions

IDENT = ("t",)
ON_SPARK = WriteContext("sha256:" + "a" * 64, "s1", "reconciler-aaaa-s1", runner="spark")
CONTEXT = replace(ON_SPARK, runner="local")
DELETED = (0, 13, 39)


def rows(count: int = 40) -> pa.Table:
    """`text` is a number of one or two digits, null where it is divisible by 10; `n` is never null."""
    texts = [None if n % 10 == 0 else str(n) for n in range(count)]
    return pa.table({"id": pa.array(range(count), pa.int64()), "text": texts, "n": pa.array(range(count), pa.int32())})


def written(path: Path, table: pa.Table | None = None, **options: Any) -> str:
    """Four fragments, three of them with a deleted row."""
    dataset = lance.write_dataset(table if table is not None else rows(), str(path), max_rows_per_file=10, **options)
    dataset.delete(f"id in {DELETED}")
    return str(path)


def field(name: str, type_: str, sql: str | None = None, **more: Any) -> Field:
    return Field(name, parse_type(type_), default=sql, **more)


def backfill(*fields: Field) -> BackfillColumns:
    return BackfillColumns(IDENT, fields)


def rewrite(*fields: Field) -> RewriteColumns:
    return RewriteColumns(IDENT, fields)


class Local(Running):
    """The tasks run in this process. `units` are those that were asked for so far."""

    def __init__(self, **given: Any) -> None:
        super().__init__(SparkOptions(), **given)
        self.units: list[list[int]] = []

    def here(self, units: Sequence[Any], work: Any) -> Iterator[dict[str, Any]]:
        self.units.extend(unit["fragments"] for unit in units)
        return super().here(units, work)

    def spark(self) -> tuple[Any, int]:
        raise AssertionError("Spark is not to be started")


def evolve(uri: str, change: Any, running: Running | None = None, context: WriteContext = CONTEXT) -> Written:
    return evolve_module.evolve(running or Local(), change, DataPlace(uri), context)


def column(uri: str, name: str, version: Any = None, **options: Any) -> dict[int, Any]:
    """id -> value."""
    dataset = lance.dataset(uri, version=version, **options)
    found = dataset.scanner(columns=["id", name], blob_handling="all_binary").to_table()
    return dict(zip(found["id"].to_pylist(), found[name].to_pylist(), strict=True))


def fields_of(uri: str) -> dict[str, Field]:
    return {f.name: f for f in from_arrow_schema(lance.dataset(uri).schema)[0]}


def content(uri: str, columns: Sequence[str], version: Any = None) -> str:
    """The checksum of these columns."""
    total = (0, 0)
    for batch in lance.dataset(uri, version=version).scanner(columns=list(columns)).to_batches():
        total = checksum.add_rows(total, batch)
    return repr(total)


def register(folder: Path, name: str = "of_texts") -> str:
    """An installed package with functions for columns, to be put on the path."""
    folder.mkdir()
    (folder / f"{name}.py").write_text(FUNCTIONS)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    points = "".join(f"{function} = {name}:{function}\n" for function in ("vector", "size", "short", "missing"))
    (info / "entry_points.txt").write_text(f"[reconciler.functions]\n{points}")
    return str(folder)


FUNCTIONS = """
import pyarrow as pa
import pyarrow.compute as pc

ONE = 1


def vector(batch):
    assert batch.schema.names == ["n", "text"]
    return pa.array([_pair(n) for n in batch.column("n").to_pylist()], pa.list_(pa.int64()))


vector.columns = ["n", "text"]


def _pair(n):
    return [n, ONE]


def size(batch):
    assert batch.schema.names == ["id", "text", "n"]
    return pc.utf8_length(batch.column("text"))


def short(batch):
    return pa.array([1])
"""
