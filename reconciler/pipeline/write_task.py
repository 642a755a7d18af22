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
import pyarrow.compute as pc

from reconciler.pipeline import column_casts, file_reader, sql_overflow, table_task
from reconciler.pipeline.conform import TEXT, Rules, ValueProblem, conform, to_type
from reconciler.pipeline.file_reader import FileChangedError, FileError

Unit = dict[str, Any]
"""uri, options, version of the table; schema (what is written, in Arrow IPC); fills (column -> what gives its values
where the source has none: SQL, or a function and the names of what it is given); operations (column -> the arithmetic
in its SQL); mapping (column of the table -> column
of the source); layout (of the fragments); of files: files, format, format_options, source_options; of a DataFrame:
lacks (columns that it does not have); rules (what the source may differ in). `key` names it."""


_EVERY = "__every_row"
"""Beside expressions that are constants alone."""


def write(unit: Unit) -> Iterator[Any]:
    """Of some files of the source."""
    yield from _answered(unit, _from_files(unit))


def read_job(tasks: Sequence[Unit]) -> Callable[[Any], Iterator[Any]]:
    """A function for mapInArrow over the numbers of the tasks: the rows of some files in types that Spark can carry.
    Raises: among rows there is no place for an answer."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                unit = tasks[number]
                carried = pa.ipc.read_schema(pa.py_buffer(unit["carried"]))
                for rows in _from_files(unit):
                    columns = [_carry(c, f) for c, f in zip(rows.columns, carried, strict=True)]
                    yield pa.RecordBatch.from_arrays(columns, schema=carried)

    return run


def _carry(column: Any, field: Any) -> Any:
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        raise ValueProblem(f"column {field.name!r}: Spark cannot carry a value: {error}") from error


def frame_job(unit: Unit) -> Callable[[Any], Iterator[Any]]:
    """A function for mapInArrow over the rows of a DataFrame: the fragments of a partition are one answer."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        missing = table_task._missing()
        if missing:
            yield table_task._rows([json.dumps({"missing": missing})])
            return
        schema = _schema(unit)
        fitted = (_whole(_aligned(batch), unit, schema, unit["lacks"]) for batch in batches if batch.num_rows)
        yield from _answered({**unit, "key": _partition()}, fitted)

    return run


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return int(context.partitionId()) if context is not None else 0


def _aligned(batch: Any) -> Any:
    """Wide numbers in memory of our own: Spark's is aligned to eight bytes, and lance wants sixteen for a decimal."""
    every = pa.array(range(batch.num_rows), pa.int32())
    columns = [column.take(every) if "decimal" in str(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _schema(unit: Unit) -> Any:
    return pa.ipc.read_schema(pa.py_buffer(unit["schema"]))


def _from_files(unit: Unit) -> Iterator[Any]:
    """Whole rows, file by file: each lacks what it lacks."""
    schema = _schema(unit)
    for file in unit["files"]:
        names = _names(file, unit)
        mapping = unit["mapping"]
        lacks = [name for name in unit["fills"] if names is not None and mapping.get(name, name) not in names]
        for batch in _read(file, unit, _without(schema, lacks, unit)):
            yield _whole(batch, {**unit, "mapping": {}, "rules": TEXT}, schema, lacks) if unit["fills"] else batch


def _without(schema: Any, lacks: Sequence[str], unit: Unit) -> Any:
    """What is read of a file. Whether a row of JSON has a value is seen when it is read."""
    loose = unit["fills"] if unit["format"] == "json" else {}
    kept = [f for f in schema if f.name not in lacks]
    return pa.schema([f.with_nullable(True) if f.name in loose else f for f in kept], schema.metadata)


def _names(file: dict[str, Any], unit: Unit) -> set[str] | None:
    """The columns of a file; None where only its rows tell."""
    if not unit["fills"]:
        return None
    if unit["format"] == "lance":
        return set(_source(file, unit).schema.names)
    options, storage = unit["format_options"], unit["source_options"]
    listed = file_reader.Listed(file["size"], file["stamp"], file["inode"])
    found = file_reader.schema_of(file["uri"], unit["format"], options, storage, listed)
    return set(found.names) if found is not None else None


def _read(file: dict[str, Any], unit: Unit, schema: Any) -> Iterator[Any]:
    if unit["format"] == "lance":
        yield from _from_lance(file, unit, schema)
        return
    yield from file_reader.read_batches(
        file["uri"],
        unit["format"],
        unit["format_options"],
        unit["source_options"],
        schema,
        unit["mapping"],
        size=file["size"],
        stamp=file["stamp"],
        inode=file["inode"],
        row_groups=file["part"],
        rules=unit["rules"],
    )


def _source(file: dict[str, Any], unit: Unit) -> Any:
    import lance

    return lance.dataset(file["uri"], version=int(file["stamp"]), storage_options=unit["source_options"] or None)


def _from_lance(file: dict[str, Any], unit: Unit, schema: Any) -> Iterator[Any]:
    """One fragment of a table, at the version that was pinned."""
    dataset = _source(file, unit)
    wanted = {field.name: unit["mapping"].get(field.name, field.name) for field in schema}
    have = [name for name in dict.fromkeys(wanted.values()) if name in dataset.schema.names]
    scanner = dataset.scanner(
        columns=have,
        fragments=[f for f in dataset.get_fragments() if f.fragment_id == file["part"]],
        blob_handling="all_binary",
        batch_size_bytes=file_reader.BATCH_BYTES,
    )
    for batch in scanner.to_batches():
        yield conform(batch, schema, wanted, unit["rules"])


def _answered(unit: Unit, batches: Iterator[Any]) -> Iterator[Any]:
    """One answer, as JSON."""
    watched = _Watched(batches)
    try:
        fragments = _fragments(unit, watched)
    except Exception:
        if watched.error is None:
            raise
        changed = isinstance(watched.error, FileChangedError)
        yield table_task._rows([json.dumps({"key": unit["key"], "error": str(watched.error), "changed": changed})])
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
    schema = _schema(unit)
    reader = pa.RecordBatchReader.from_batches(schema, itertools.chain([first], batches))
    made: Any = write_fragments(reader, target, schema=schema, mode="append", storage_options=options, **unit["layout"])
    for fragment in made:
        column_casts.need_readable(target.uri, fragment, {}, schema, options)
    return [json.dumps(f.to_json()) for f in made]


class _Watched:
    """Counts the rows, and keeps the error of the source: lance wraps what a reader raises in words of its own."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches
        self.error: ValueError | None = None
        self.count = self.size = 0

    def __iter__(self) -> _Watched:
        return self

    def __next__(self) -> Any:
        try:
            batch = next(self._batches)
        except (FileError, ValueProblem) as error:
            self.error = error
            raise
        self.count += batch.num_rows
        self.size += batch.nbytes
        return batch


def _whole(batch: Any, unit: Unit, schema: Any, lacks: Sequence[str]) -> Any:
    """With the columns that the source lacks, by their backfill: SQL, run by what runs a backfill, or a registered
    function. Of JSON also where a row has no value."""
    rules: Rules = unit["rules"]
    wanted = {f.name: unit["mapping"].get(f.name, f.name) for f in schema if f.name not in lacks}
    loose = [n for n in unit["fills"] if unit.get("format") == "json" and batch.column(wanted[n]).null_count]
    made = [*lacks, *(n for n in loose if n not in lacks)]
    if not made:
        return conform(batch, schema, wanted, rules)
    known = pa.schema([f for f in schema if f.name not in made])
    given = conform(batch, known, wanted, rules)
    texts = {n: unit["fills"][n] for n in made if isinstance(unit["fills"][n], str)}
    values = _by_sql(given, texts, unit.get("operations", {}))
    for name in made:
        if name not in values:
            function, columns = unit["fills"][name]
            values[name] = function(given.select(columns))
            if not isinstance(values[name], pa.Array) or len(values[name]) != batch.num_rows:
                raise ValueProblem(f"column {name}: its function must give a pyarrow.Array with one value for each row")
        if column_casts.counts_time(values[name].type, schema.field(name).type):
            raise ValueProblem(f"column {name}: nothing says what the numbers of its backfill count")
        if name not in lacks:
            there = batch.column(wanted[name])
            values[name] = pc.coalesce(there, to_type(values[name], there.type))
    arrays = [values[f.name] if f.name in values else given.column(f.name) for f in schema]
    whole = pa.RecordBatch.from_arrays(arrays, names=schema.names)
    return conform(whole, schema, {name: name for name in schema.names})


def _by_sql(batch: Any, expressions: dict[str, str], operations: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    import lance

    if not expressions:
        return {}
    store = lance.write_dataset(pa.Table.from_batches([batch]), "memory://rows")
    columns = {**expressions, _EVERY: "true"}
    checked = {name: sql_overflow.of_integers(store, operations.get(name, ())) for name in expressions}
    for name, of_column in checked.items():
        columns |= sql_overflow.columns_of(of_column, name)
    try:
        found = store.scanner(columns=columns, with_row_id=True, scan_in_order=True).to_table()
    except Exception as error:
        raise ValueProblem(f"a backfill expression cannot be evaluated: {error}") from error
    for name, of_column in checked.items():
        try:
            sql_overflow.need_room(found, of_column, name)
        except sql_overflow.Overflow as error:
            raise ValueProblem(f"column {name}: {error}") from error
    return {name: found.column(name).combine_chunks() for name in expressions}
