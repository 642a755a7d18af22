"""What an executor does for some fragments of a table: it writes the new columns beside the old ones, in files of their
own. Nothing is committed here. What is wrong with the values is an answer too, so that Spark repeats nothing in vain.

The module stands alone, as `table_task` does: Spark carries it to executors that do not have this program.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from reconciler.pipeline import column_casts, sql_overflow

BATCH_BYTES = 32 * 2**20
"""Of rows at a time: a table of large blobs must not fill the memory of an executor."""
_VALUE, _GIVEN = "value:", "given:"
"""What the scan calls the values of the columns to write, and the columns that a function is given."""
Unit = dict[str, Any]
"""job (uri, options, version, schema of the new columns, sources of their values) and fragments (ids). A source is
{"sql": …, "operations": its integer arithmetic} or {"function": …, "columns": the names of what it is given}."""


def evolve(unit: Unit) -> Iterator[Any]:
    """One answer, as JSON: the fragments as they would be and the schema of the table, or what is wrong."""
    try:
        answer = _written(unit)
    except column_casts.Misfit as error:
        answer = {"misfit": str(error)}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    yield pa.RecordBatch.from_arrays([pa.array([json.dumps(answer)], pa.string())], ["answer"])


def scanned(dataset: Any, sources: list[dict[str, Any]], fragments: list[Any] | None = None) -> Any:
    """The scan that has the values. Row ids are asked for because a scan needs a column, and a constant is none."""
    columns = {f"{_VALUE}{number}": s["sql"] for number, s in enumerate(sources) if "sql" in s}
    for number, source in enumerate(sources):
        columns |= sql_overflow.columns_of(source.get("operations", ()), str(number))
    columns |= {f"{_GIVEN}{name}": quoted(name) for s in sources for name in s.get("columns", ())}
    return dataset.scanner(
        columns=columns,
        fragments=fragments,
        with_row_id=True,
        blob_handling="all_binary",
        batch_size_bytes=BATCH_BYTES,
    )


def value_type(schema: Any, number: int) -> Any:
    """Of a source, in the schema of the scan."""
    return schema.field(f"{_VALUE}{number}").type


def value_name(number: int) -> str:
    """The column of a scan that has the values of a source."""
    return f"{_VALUE}{number}"


def quoted(name: str) -> str:
    return f"`{name}`"


def _written(unit: Unit) -> dict[str, Any]:
    import lance

    job = unit["job"]
    dataset = lance.dataset(job["uri"], version=job["version"], storage_options=job["options"] or None)
    schema = pa.ipc.read_schema(pa.py_buffer(job["schema"]))
    metas: dict[int, Any] = {}
    nulls: dict[str, int] = {}
    parts: list[str] = []
    for number in unit["fragments"]:
        fragment = dataset.get_fragment(number)
        found = _null_counts(dataset, fragment, schema, job["sources"]) if nulls else {}
        if not nulls:
            try:
                meta, whole = _merged(dataset, fragment, schema, job["sources"])
                names = {field.name: s["column"] for field, s in zip(schema, job["sources"], strict=True)}
                column_casts.need_readable(dataset.uri, meta, names, schema, job["options"] or None)
                metas[number], parts = meta.to_json(), packed(whole)
            except _Nulls:
                found = _null_counts(dataset, fragment, schema, job["sources"])
        for name, count in found.items():
            nulls[name] = nulls.get(name, 0) + count
    return {"nulls": nulls} if nulls else {"fragments": metas, "schema": parts}


def packed(schema: Any) -> list[str]:
    """A LanceSchema as text: its metadata and its fields."""
    _, (metadata, *fields) = schema.__reduce__()
    return [metadata, *(base64.b64encode(field).decode() for field in fields)]


class _Nulls(ValueError):
    """A column that must not have any has some."""


def _merged(dataset: Any, fragment: Any, schema: Any, sources: list[dict[str, Any]]) -> tuple[Any, Any]:
    """lance gives values for live rows their places among the deleted ones, and notices when there are too few or too
    many. It wraps what a reader raises: the reason is kept aside."""
    scanner = scanned(dataset, sources, [fragment])
    reasons: list[Exception] = []

    def batches() -> Iterator[Any]:
        try:
            for batch in scanner.to_batches():
                yield _batch(batch, schema, sources)
        except Exception as error:
            reasons.append(error)
            raise

    try:
        return fragment.merge_columns(pa.RecordBatchReader.from_batches(schema, batches()))  # type: ignore[no-any-return]
    except Exception as error:
        raise (reasons[0] if reasons else error) from error


def _batch(batch: Any, schema: Any, sources: list[dict[str, Any]]) -> Any:
    columns = []
    for number, (field, source) in enumerate(zip(schema, sources, strict=True)):
        values = _values(batch, number, source)
        if not field.nullable and values.null_count:
            raise _Nulls(field.name)
        column_casts.need_cast(source["column"], values.type, field.type)
        columns.append(column_casts.cast_all(source["column"], values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _values(batch: Any, number: int, source: dict[str, Any]) -> Any:
    if "sql" in source:
        try:
            sql_overflow.need_room(batch, source.get("operations", ()), str(number))
        except sql_overflow.Overflow as error:
            raise column_casts.Misfit(f"column {source['column']}: {error}") from error
        return batch.column(f"{_VALUE}{number}")
    names = source["columns"]
    given = pa.RecordBatch.from_arrays([batch.column(f"{_GIVEN}{n}") for n in names], names=names)
    values = source["function"](given)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not isinstance(values, pa.Array) or len(values) != batch.num_rows:
        got = f"{len(values)} values" if isinstance(values, pa.Array) else type(values).__name__
        raise column_casts.Misfit(
            f"column {source['column']}: its function must give a pyarrow.Array with one value for each of the "
            f"{batch.num_rows} rows, not {got}"
        )
    return values


def _null_counts(dataset: Any, fragment: Any, schema: Any, sources: list[dict[str, Any]]) -> dict[str, int]:
    """By column, of those that must not have any."""
    counts: dict[str, int] = {}
    for batch in scanned(dataset, sources, [fragment]).to_batches():
        for number, (field, source) in enumerate(zip(schema, sources, strict=True)):
            missing = 0 if field.nullable else _values(batch, number, source).null_count
            if missing:
                counts[source["column"]] = counts.get(source["column"], 0) + missing
    return counts
