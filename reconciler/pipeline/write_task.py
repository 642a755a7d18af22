"""What an executor does to fill a table: read its part of the source, write data files, answer with their metadata.

Nothing is committed here: files that no commit names are nobody's rows. What is wrong with the data is an answer, so
that Spark repeats nothing in vain; what may pass (a store that does not answer) is raised, and Spark tries again.

The module stands alone but for `conform`, `file_reader` and `table_task`: Spark carries them to executors by value.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from reconciler.pipeline import file_reader, table_task
from reconciler.pipeline.conform import ValueProblem, conform
from reconciler.pipeline.file_reader import FileError

Unit = dict[str, Any]
"""uri, options, version of the table; schema (what is written, in Arrow IPC); what gives values that the source lacks:
computed (column -> SQL), functions (column -> a function and the names of what it is given); mapping (column of the
table -> column of the source); layout (of the fragments); for files: files, format, format_options, source_options.
`key` names it."""


_EVERY = "__every_row"
"""Beside expressions that are constants alone."""


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
    """A function for mapInArrow over the rows of a DataFrame: the fragments of a partition are one answer."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        missing = table_task._missing()
        if missing:
            yield table_task._rows([json.dumps({"missing": missing})])
            return
        schema = _schema(unit, with_computed=False)
        wanted = {field.name: unit["mapping"].get(field.name, field.name) for field in schema}
        fitted = (conform(batch, schema, wanted) for batch in batches if batch.num_rows)
        yield from _answered({**unit, "key": _partition()}, fitted)

    return run


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return int(context.partitionId()) if context is not None else 0


def _schema(unit: Unit, with_computed: bool) -> Any:
    schema = pa.ipc.read_schema(pa.py_buffer(unit["schema"]))
    if with_computed:
        return schema
    made = {*unit["computed"], *unit["functions"]}
    return pa.schema([f for f in schema if f.name not in made], schema.metadata)


def _from_files(unit: Unit, schema: Any) -> Iterator[Any]:
    for file in unit["files"]:
        if unit["format"] == "lance":
            yield from _from_lance(file, unit, schema)
            continue
        yield from file_reader.read_batches(
            file["uri"],
            unit["format"],
            unit["format_options"],
            unit["source_options"],
            schema,
            unit["mapping"],
            size=file["size"],
            stamp=file["stamp"],
            row_groups=file["part"],
        )


def _from_lance(file: dict[str, Any], unit: Unit, schema: Any) -> Iterator[Any]:
    """One fragment of a table, at the version that was pinned."""
    import lance

    dataset = lance.dataset(file["uri"], version=int(file["stamp"]), storage_options=unit["source_options"] or None)
    wanted = {field.name: unit["mapping"].get(field.name, field.name) for field in schema}
    have = [name for name in dict.fromkeys(wanted.values()) if name in dataset.schema.names]
    scanner = dataset.scanner(
        columns=have,
        fragments=[f for f in dataset.get_fragments() if f.fragment_id == file["part"]],
        blob_handling="all_binary",
        batch_size_bytes=file_reader.BATCH_BYTES,
    )
    for batch in scanner.to_batches():
        yield conform(batch, schema, wanted)


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
    made: Any = write_fragments(reader, target, schema=schema, mode="append", storage_options=options, **unit["layout"])
    return [json.dumps(f.to_json()) for f in made]


class _Watched:
    """Counts the rows, computes what the source lacks, and keeps the error of the source: lance wraps what a reader
    raises in words of its own."""

    def __init__(self, unit: Unit, batches: Iterator[Any]) -> None:
        self._unit = unit
        self._batches = batches
        self._schema = _schema(unit, with_computed=True)
        self.error: ValueError | None = None
        self.count = self.size = 0

    def __iter__(self) -> _Watched:
        return self

    def __next__(self) -> Any:
        try:
            batch = next(self._batches)
            if self._unit["computed"] or self._unit["functions"]:
                batch = _computed(batch, self._unit, self._schema)
        except (FileError, ValueProblem) as error:
            self.error = error
            raise
        self.count += batch.num_rows
        self.size += batch.nbytes
        return batch


def _computed(batch: Any, unit: Unit, schema: Any) -> Any:
    """With the columns that the source lacks: by their backfill expressions, run by what runs a backfill, and by
    registered functions."""
    made = _by_sql(batch, unit["computed"]) if unit["computed"] else {}
    for name, (function, given) in unit["functions"].items():
        values = function(batch.select(given))
        if not isinstance(values, pa.Array) or len(values) != batch.num_rows:
            raise ValueProblem(f"column {name}: its function must give a pyarrow.Array with one value for each row")
        made[name] = values
    arrays = [made[f.name] if f.name in made else batch.column(f.name) for f in schema]
    whole = pa.RecordBatch.from_arrays(arrays, names=schema.names)
    return conform(whole, schema, {name: name for name in schema.names})


def _by_sql(batch: Any, expressions: dict[str, str]) -> dict[str, Any]:
    import lance

    store = lance.write_dataset(pa.Table.from_batches([batch]), "memory://rows")
    try:
        found = store.scanner(columns={**expressions, _EVERY: "true"}, with_row_id=True, scan_in_order=True).to_table()
    except Exception as error:
        raise ValueProblem(f"a backfill expression cannot be evaluated: {error}") from error
    return {name: found.column(name).combine_chunks() for name in expressions}
