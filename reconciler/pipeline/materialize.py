"""Fills a table from its source: files are read where they are written, everything else comes through a DataFrame."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.catalog.arrow_convert import to_arrow_field
from reconciler.catalog.base import DataPlace, WriteContext, Written
from reconciler.catalog.lance_rows import row_state
from reconciler.core.source_files import as_listed
from reconciler.core.text import speed
from reconciler.core.world import record_after
from reconciler.model.change import MaterializeTable
from reconciler.model.data import FILE_FORMATS, DataRecord, RowState
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import dotted
from reconciler.pipeline import frames, row_commit, write_task
from reconciler.pipeline.claims import Clock, Held, changed_since, claimed
from reconciler.pipeline.data_plane import Line, Running
from reconciler.pipeline.functions import carry, columns_given, load_function
from reconciler.pipeline.jobs import TASKS_PER_CORE, answers, done
from reconciler.pipeline.listing import SourceError
from reconciler.pipeline.pieces import Piece, pieces_of
from reconciler.pipeline.source_fit import fits
from reconciler.pipeline.source_state import digest_of, files_of, json_columns, keyed, rules_for
from reconciler.pipeline.sources import Listing, changes, list_source, storage_of
from reconciler.pipeline.spark_types import arrow_schema
from reconciler.pipeline.sql_operations import operations
from reconciler.pipeline.way_back import tagged, version_before
from reconciler.pipeline.write_task import Unit

REDO = 5
"""How often the commit is tried again after somebody else's: the files that were written stay good."""
SHOWN = 5
NOTHING = "; nothing was committed. Let its writer finish, then make a new plan"
WHOLE = {"max_rows_per_file": 2**31 - 1}
"""One fragment for each part, where the manifest says how many there are to be."""


def materialize(running: Running, change: MaterializeTable, place: DataPlace, context: WriteContext) -> Written:
    """One commit, whatever happens in between: see `claims`."""
    source = running.resolve(change.reads)
    storage = storage_of(source) or dict(place.storage_options)
    with claimed(place, context, Clock(stopped=running.stopped)) as held:
        record = held.known
        after = record_after(record, change)
        if record is not None and record == replace(after, noted=record.noted):
            return Written(held.claim.base, held.version, False)  # Another run of this step was faster, or was cut off.
        if (record.digest if record is not None else None) != change.base:
            raise _moved_on(f"another run has filled {place.uri}")
        _need_rows_of_the_plan(held, change, record)
        _need_room(held, change)
        rows = [] if change.only_notes else _rows(running, change, source, storage, held)
        running.need_time()
        before, landed = _committed(held, change, rows, after, context.tag)
    return Written(before, int(landed.version), context.tag is not None)


def _rows(
    running: Running,
    change: MaterializeTable,
    source: Mapping[str, Any],
    storage: Mapping[str, str],
    held: Held,
) -> list[Any]:
    """Of the files of the plan, as they were listed from the first byte to the last."""
    listing = _listed(source, storage, change)
    rows = _written(running, change, source, storage, listing, held)
    _need_as_listed(source, storage, listing)
    return rows


def moved(running: Running, change: MaterializeTable, storage: Mapping[str, str]) -> str | None:
    """Why the source is not the one of the plan any more. Raises CatalogError when it cannot be listed."""
    if change.only_notes:
        return None  # The rows are in.
    source = running.resolve(change.reads)
    try:
        _listed(source, storage_of(source) or storage, change)
    except CatalogError as error:
        return error.message
    return None


def rows_changed(change: MaterializeTable, place: DataPlace, *, saved: bool) -> str | None:
    """Why rows of others that the step may remove or add to are not those of the plan any more. `saved`: the plan was
    read from a file. Raises CatalogError when the rows cannot be read."""
    assert change.seen_rows is not None
    found = changed_since(place, RowState(change.seen_rows, ""))
    if found is None or (change.mixes and not saved and not found.changed):
        return (
            None  # What was only added since is for `mix_rows` to mix with, but not part of a plan that was reviewed.
        )
    return f"another writer has changed the rows since the plan was made ({found.reason}). Make a new plan"


def _listed(source: Mapping[str, Any], storage: Mapping[str, str], change: MaterializeTable) -> Listing:
    """The files of the plan and no others; a source that is another one now is not read."""
    try:
        found = list_source(source, storage)
    except SourceError as error:
        raise CatalogError(Code.INVALID_INPUT, f"the source cannot be read: {error}") from error
    if change.files:
        there = files_of(found)
        if other := [path for path, stamp in change.files.items() if not as_listed(there.get(path, ""), stamp)]:
            now = keyed(found)
            names = [now[path].uri for path in other if path in now][:SHOWN]
            raise _moved_on(f"files of the source have changed or are gone{': ' if names else ''}{', '.join(names)}")
        return replace(found, files=tuple(file for key, file in keyed(found).items() if key in change.files))
    if digest_of(found, change.mapping, change.casts, change.units) != change.digest:
        raise _moved_on("the source has changed")
    return found


def _need_as_listed(source: Mapping[str, Any], storage: Mapping[str, str], listing: Listing) -> None:
    """What was read is what was listed, to its end: where an executor could not see that for itself, the listing of now
    tells."""
    try:
        found = changes(listing, source, storage)
    except SourceError as error:
        raise CatalogError(Code.INVALID_TABLE_STATE, f"the source is not there any more: {error}{NOTHING}") from error
    if found:
        names = f"{', '.join(found[:SHOWN])}{f' and {len(found) - SHOWN} more' if len(found) > SHOWN else ''}"
        raise CatalogError(Code.INVALID_TABLE_STATE, f"the source changed while it was read: {names}{NOTHING}")


def _moved_on(what: str) -> CatalogError:
    return CatalogError(Code.INVALID_TABLE_STATE, f"{what} since the plan was made. Make a new plan.")


def _need_rows_of_the_plan(held: Held, change: MaterializeTable, record: DataRecord | None) -> None:
    """Rows of unknown origin that came after the plan was made are neither removed nor added to: it did not show them.
    Once the table is claimed, because only then nobody of us changes it any more."""
    if change.mixes:
        return
    if change.purges is not None:
        found = held.external(RowState(change.purges, ""))
        why = found.reason if found is not None else None
    elif record is not None:
        why = record.external.reason if record.external is not None else None
    else:
        why = None if held.dataset.count_rows() == 0 else "rows were added, and no record says where they came from"
    if why is not None:
        raise _moved_on(f"another writer has changed the rows of {held.place.uri} ({why})")


def _need_rows_as_pinned(held: Held, pinned: RowState) -> None:
    """What others did since the claim. Who is quicker than the commit that follows is seen by Lance: see
    `row_commit`; then this says who it was."""
    found = held.external(pinned)
    if found is not None:
        raise CatalogError(
            Code.INVALID_TABLE_STATE,  # To try once more would find the same.
            f"another writer has changed the rows of {held.place.uri} while this step was at work: {found.reason}; "
            "nothing was committed. Make a new plan.",
        )


def _committed(
    held: Held, change: MaterializeTable, rows: list[Any], record: DataRecord, tag: str | None
) -> tuple[int, Any]:
    """And the version before."""
    pinned = row_state(held.dataset)
    for attempt in range(REDO):
        _need_room(held, change)
        if not change.mixes:
            _need_rows_as_pinned(held, pinned)
        operation = _operation(held.dataset, change, rows)
        before = version_before(held)
        try:
            with tagged(held.dataset, tag, before):
                return before, held.commit(operation, record)
        except CatalogError as error:
            if error.code != Code.CONCURRENT_MODIFICATION or attempt == REDO - 1:
                raise
            columns = _columns(held.dataset)
            held.pin_again()
            if not columns.items() <= _columns(held.dataset).items():
                message = (
                    f"the columns of {held.place.uri} changed while its rows were written: nothing was committed. "
                    "Make a new plan."
                )
                raise CatalogError(Code.CONCURRENT_MODIFICATION, message) from error
    raise AssertionError


def _operation(dataset: Any, change: MaterializeTable, rows: list[Any]) -> Any:
    """Of the pinned version. Lance refuses it when somebody else adds rows first, unless rows of others are welcome."""
    if change.replace:
        return row_commit.replacing(dataset, rows)
    return row_commit.beside(rows) if change.mixes else row_commit.adding(dataset, rows)


def _need_room(held: Held, change: MaterializeTable) -> None:
    """Lance takes rows without values for a NOT NULL column that came meanwhile; then nobody can read the table."""
    declared = {f.name for f in change.fields}
    strict = [f.name for f in held.latest().schema if not f.nullable and f.name not in declared]
    if strict:
        raise CatalogError(
            Code.INVALID_TABLE_STATE,
            f"{held.place.uri} has columns that are not declared and NOT NULL: {', '.join(strict)}. The source has no "
            "values for them, so nothing was committed: declare them, or let them be null",
        )


def _columns(dataset: Any) -> dict[str, tuple[int, Any]]:
    """By name: the rows that were written have values for these numbers. Columns that come later are null in them."""
    return {f.name(): (f.id(), dataset.schema.field(f.name())) for f in dataset.lance_schema.fields()}


def _written(
    running: Running,
    change: MaterializeTable,
    source: Mapping[str, Any],
    storage: Mapping[str, str],
    listing: Listing,
    held: Held,
) -> list[Any]:
    if source["format"] == "json":
        _need_keys(change, source, storage, listing)
    spark, slots = running.spark()
    unit = _unit(change, source, storage, held)
    if source["format"] in (*FILE_FORMATS, "lance") and not change.order_by:
        pieces = pieces_of(listing, source, storage)
        parts = list(_parts(unit, pieces, change.partitions, slots))
        if change.partitions is None or len(parts) == change.partitions:
            at_a_time = max(1, slots // TASKS_PER_CORE)  # Small jobs: they tell how far it is.
            found = answers(spark, parts, at_a_time, write_task.write, 1, running.stopped)
            return _gathered(running, found, len(parts))
    with frames.frame_of(running, spark, slots, source, storage, listing, unit) as (frame, unit):
        if source["format"] in (*frames.BY_SPARK, "sql"):
            names = _fitting(frame, change)
            unit = {**unit, "lacks": [n for n in unit["fills"] if change.mapping.get(n, n) not in names]}
        wanted = change.partitions or slots * TASKS_PER_CORE
        if change.order_by:
            frame = frames.sorted_by(frame, change.order_by, wanted)
        elif change.partitions is not None:
            frame = frame.repartition(wanted)
        return _gathered(running, frames.answers_of(frame, unit, running.stopped), None)


def _unit(change: MaterializeTable, source: Mapping[str, Any], storage: Mapping[str, str], held: Held) -> Unit:
    """What all parts have in common."""
    import pyarrow as pa

    live = held.dataset.schema
    fields = [live.field(f.name) if f.name in live.names else to_arrow_field(f) for f in change.fields]
    return {
        "key": 0,
        "uri": held.place.uri,
        "options": dict(held.place.storage_options),
        "version": held.version,
        "schema": pa.schema(fields).serialize().to_pybytes(),
        "fills": _fills(change),
        "operations": {f.name: operations(f.default) for f in change.fields if f.default is not None},
        "lacks": [],
        "layout": WHOLE if change.partitions is not None else {},
        "told": f"a row of {source['format']}",
        "format": source["format"],
        "format_options": {k: v for k, v in source.items() if not k.startswith("storage.")},
        "source_options": dict(storage),
        "mapping": dict(change.mapping),
        "rules": rules_for(source["format"], change.casts, change.nulls, change.units),
    }


def _fills(change: MaterializeTable) -> dict[str, Any]:
    """What gives the values of a column where the source has none."""
    fills: dict[str, Any] = {f.name: f.default for f in change.fields if f.default is not None}
    there = [f.name for f in change.fields if not f.filled]
    for field in change.fields:
        if field.function is not None:
            function = load_function(field.function)
            carry(function)
            fills[field.name] = (function, columns_given(field.function, function, there))
    return fills


def _fitting(frame: Any, change: MaterializeTable) -> set[str]:
    """The columns of a DataFrame, which are judged before any of its rows is read."""
    import pyarrow as pa

    schema = done(lambda: frame.schema)
    try:
        found = arrow_schema(schema)
    except ValueError as error:
        raise CatalogError(Code.INVALID_INPUT, f"the source does not fit the table: {error}") from error
    asked = [f for f in change.fields if not f.filled or change.mapping.get(f.name, f.name) in found.names]
    rules = replace(rules_for("", change.casts, change.nulls, change.units), folds=True)
    _need_fit(fits(found, pa.schema([to_arrow_field(f) for f in asked]), change.mapping, "", rules))
    if unused := [name for name in found.names if name not in {change.mapping.get(f.name, f.name) for f in asked}]:
        logging.getLogger("reconciler").info("%s: source columns not used: %s", dotted(change.ident), ", ".join(unused))
    return set(found.names)


def _need_fit(problems: Sequence[str]) -> None:
    if problems:
        raise CatalogError(Code.INVALID_INPUT, f"the source does not fit the table: {'; '.join(problems)}")


def _need_keys(
    change: MaterializeTable, source: Mapping[str, Any], storage: Mapping[str, str], listing: Listing
) -> None:
    """A key of JSON that no row has is a missing column; the files are read until all keys were seen."""
    kept = [f for f in change.fields if not f.filled]
    rules = rules_for("json", change.casts, change.nulls, change.units)
    try:
        _, problems = json_columns(listing, source, storage, kept, change.mapping, rules, None)
    except SourceError as error:
        raise CatalogError(Code.INVALID_INPUT, f"the source cannot be read: {error}") from error
    _need_fit(problems)


def _parts(unit: Unit, pieces: Sequence[Piece], partitions: int | None, slots: int) -> Iterator[Unit]:
    """About equal in size: as many as the manifest says, or as keep all cores busy to the end."""
    count = min(len(pieces), partitions or slots * TASKS_PER_CORE)
    groups: list[tuple[int, list[int]]] = [(0, []) for _ in range(count)]
    for place in sorted(range(len(pieces)), key=lambda i: -pieces[i].size):
        smallest = min(range(count), key=lambda i: groups[i][0])
        groups[smallest] = (groups[smallest][0] + pieces[place].size, [*groups[smallest][1], place])
    for number, places in enumerate(sorted(sorted(some) for _, some in groups)):
        yield {**unit, "key": number, "files": [pieces[i].to_unit() for i in places]}


def _gathered(running: Running, found: Iterator[Mapping[str, Any]], of: int | None) -> list[Any]:
    """The fragments in the order of the parts, so that the same files make the same table."""
    from lance import FragmentMetadata

    got: list[Mapping[str, Any]] = []
    errors: list[str] = []
    changed: list[str] = []
    size = 0
    started = time.monotonic()
    for answer in found:
        running.need_time()
        if "error" in answer:
            (changed if answer.get("changed") else errors).append(str(answer["error"]))
            continue
        got.append(answer)
        size += int(answer["bytes"])
        rows = sum(int(a["rows"]) for a in got)
        running.show(_pace(len(got), of, rows, size, time.monotonic() - started))
    if changed:
        raise CatalogError(Code.INVALID_TABLE_STATE, f"{changed[0]}; nothing was committed")
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise CatalogError(Code.INVALID_INPUT, f"the source does not fit the table: {errors[0]}{more}")
    got.sort(key=lambda a: int(a["key"]))
    return [FragmentMetadata.from_json(f) for a in got for f in a["fragments"]]


def _pace(done: int, of: int | None, rows: int, size: int, seconds: float) -> Line:
    parts = f"{done}/{of} parts" if of is not None else f"{done} parts"
    text = f"{parts}, {rows} rows{speed(size, seconds)}"
    return lambda _: text
