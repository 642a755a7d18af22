"""What an executor does to fill a table: read its part of the source, write data files, answer with their metadata.

Nothing is committed here: files that no commit names are nobody's rows. What is wrong with the data is an answer, so
that Spark repeats nothing in vain; what may pass (a store that does not answer) is raised, and Spark tries again.

The module stands alone but for `file_reader` and `table_task`: Spark carries them to executors by value.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from reconciler.pipeline import file_reader, table_task
from reconciler.pipeline.file_reader import ReadError

Unit = dict[str, Any]
"""uri, options, version of the table; schema (what is written, in Arrow IPC); computed (column -> SQL for what the
source lacks); for files: files, format, format_options, source_options, mapping. `key` names it."""


def write(unit: Unit) -> Iterator[Any]:
    """Of some files of the source."""
    yield from _answered(unit, _from_files(unit, _schema(unit, with_computed=False)))


def read_job(tasks: Sequence[Unit]) -> Callable[[Any], Iterator[Any]]:
    """A function for mapInArrow over the numbers of the tasks: the rows of some files in types that Spark can carry.
    Raises: among rows there is no place for an answer."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                unit = tasks[number]
                carried = pa.ipc.read_schema(pa.py_buffer(unit["carried"]))
                for rows in _from_files(unit, _schema(unit, with_computed=False)):
                    columns = [c.cast(f.type) for c, f in zip(rows.columns, carried, strict=True)]
                    yield pa.RecordBatch.from_arrays(columns, schema=carried)

    return run


def frame_job(unit: Unit) -> Callable[[Any], Iterator[Any]]:
    """A function for mapInArrow over the rows of a DataFrame: one fragment or more for each partition that has rows."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        missing = table_task._missing()
        if missing:
            yield table_task._rows([json.dumps({"missing": missing})])
            return
        schema = _schema(unit, with_computed=False)
        fitted = (file_reader.fit(b, schema, unit["mapping"], unit["told"]) for b in batches if b.num_rows)
        yield from _answered(unit, fitted)

    return run


def _schema(unit: Unit, with_computed: bool) -> Any:
    schema = pa.ipc.read_schema(pa.py_buffer(unit["schema"]))
    if with_computed:
        return schema
    return pa.schema([f for f in schema if f.name not in unit["computed"]], schema.metadata)


def _from_files(unit: Unit, schema: Any) -> Iterator[Any]:
    for file in unit["files"]:
        yield from file_reader.read_batches(
            file["uri"],
            unit["format"],
            unit["format_options"],
            unit["source_options"],
            schema,
            unit["mapping"],
            file.get("row_groups"),
        )


def _answered(unit: Unit, batches: Iterator[Any]) -> Iterator[Any]:
    """One answer, as JSON."""
    watched = _Watched(unit, batches)
    try:
        fragments = _fragments(unit, watched)
    except Exception:
        if watched.error is None:
            raise
        yield table_task._rows([json.dumps({"key": unit["key"], "error": str(watched.error)})])
        return
    answer = {"key": unit["key"], "fragments": fragments, "rows": watched.count, "bytes": watched.size}
    yield table_task._rows([json.dumps(answer)])


def _fragments(unit: Unit, batches: Iterator[Any]) -> list[str]:
    import lance
    from lance.fragment import write_fragments

    first = next(batches, None)
    if first is None:
        return []
    options = unit["options"] or None
    target = lance.dataset(unit["uri"], version=unit["version"], storage_options=options)
    schema = _schema(unit, with_computed=True)
    reader = pa.RecordBatchReader.from_batches(schema, itertools.chain([first], batches))
    written = write_fragments(reader, target, schema=schema, mode="append", storage_options=options, **unit["layout"])
    return [json.dumps(f.to_json()) for f in written]


class _Watched:
    """Counts the rows, computes what the source lacks, checks for nulls, and keeps the error of the source: lance wraps
    what a reader raises in words of its own."""

    def __init__(self, unit: Unit, batches: Iterator[Any]) -> None:
        self._unit = unit
        self._batches = batches
        self._schema = _schema(unit, with_computed=True)
        self.error: ReadError | None = None
        self.count = self.size = 0

    def __iter__(self) -> _Watched:
        return self

    def __next__(self) -> Any:
        try:
            batch = next(self._batches)
            if self._unit["computed"]:
                batch = _computed(batch, self._unit["computed"], self._schema)
            _need_values(batch)
        except ReadError as error:
            self.error = error
            raise
        self.count += batch.num_rows
        self.size += batch.nbytes
        return batch


def _need_values(batch: Any) -> None:
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if not field.nullable and column.null_count:
            raise ReadError(f"{column.null_count} rows have no value for column {field.name}, which is NOT NULL")


def _computed(batch: Any, expressions: dict[str, str], schema: Any) -> Any:
    """The columns that the source lacks, by their backfill expressions, evaluated by what evaluates a backfill."""
    import lance

    store = lance.write_dataset(pa.Table.from_batches([batch]), "memory://rows")
    try:
        made = store.scanner(columns=expressions, scan_in_order=True).to_table().combine_chunks()
    except Exception as error:
        raise ReadError(f"a backfill expression cannot be evaluated: {error}") from error
    columns = [_cast(made.column(f.name), f) if f.name in expressions else batch.column(f.name) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: Any, field: Any) -> Any:
    try:
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return whole.cast(field.type)
    except pa.ArrowInvalid as error:
        raise ReadError(
            f"the backfill of column {field.name} gives a value that is no {field.type}: {error}"
        ) from error
