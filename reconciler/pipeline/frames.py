"""Sources as DataFrames: what only Spark can read, and what has to be sorted or spread anew."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reconciler.model.errors import CatalogError, Code
from reconciler.pipeline import write_task
from reconciler.pipeline.conform import TEXT, Rules, ambiguous
from reconciler.pipeline.jobs import TASKS_PER_CORE, Stopped, carried_by_value, done, finished
from reconciler.pipeline.listing import SourceError
from reconciler.pipeline.pieces import Piece, pieces_of
from reconciler.pipeline.sources import Listing, opening, source_schema
from reconciler.pipeline.spark_types import carried_schema, queried_schema
from reconciler.pipeline.write_task import Unit

if TYPE_CHECKING:
    from reconciler.pipeline.data_plane import Running

BY_SPARK = frozenset({"delta", "iceberg", "jdbc"})
_NTZ = "preferTimestampNTZ"


@contextmanager
def frame_of(
    running: Running,
    spark: Any,
    slots: int,
    source: Mapping[str, Any],
    storage: Mapping[str, str],
    listing: Listing,
    unit: Unit,
) -> Iterator[tuple[Any, Unit]]:
    """The rows of the source, and how they are written. For as long as they are read: a query needs its views."""
    if source["format"] == "sql":
        with _views(running, spark, slots, source, storage, listing):
            yield done(lambda: spark.sql(source["sql"])), unit
    elif source["format"] in BY_SPARK:
        yield done(lambda: _loaded(spark, source, listing)), unit
    else:
        schema = pa.ipc.read_schema(pa.py_buffer(unit["schema"]))
        pieces = pieces_of(listing, source, storage)
        try:
            carried = carried_schema(schema)
        except ValueError as error:
            raise CatalogError(Code.UNSUPPORTED, f"{error}: leave `orderBy` and `partitions` out") from error
        yield _from_files(spark, slots, pieces, unit, carried), {**unit, "mapping": {}, "fills": {}, "rules": TEXT}


def _from_files(spark: Any, slots: int, pieces: Sequence[Piece], unit: Unit, carried: pa.Schema) -> Any:
    """Rows already in the names of the table, and in types that Spark can carry."""
    from pyspark.sql.pandas.types import from_arrow_schema

    count = min(len(pieces), slots * TASKS_PER_CORE)
    files = [piece.to_unit() for piece in pieces]
    tasks = [{**unit, "files": files[i::count], "carried": carried.serialize().to_pybytes()} for i in range(count)]
    carried_by_value(write_task)
    numbers = spark.range(0, count, 1, count)
    return numbers.mapInArrow(write_task.read_job(tasks), from_arrow_schema(carried, prefer_timestamp_ntz=True))


def _loaded(spark: Any, source: Mapping[str, Any], listing: Listing) -> Any:
    """A timestamp without a zone stays one: Spark would take it for the local time of the JVM's machine."""
    options = source.get("options", {})
    reader = spark.read.format(source["format"]).options(**options, **_pinned(source, listing))
    match source["format"]:
        case "jdbc":
            if not any(key.lower() == _NTZ.lower() for key in options):
                reader = reader.option(_NTZ, "true")
            named = {"url": "url", "table": "dbtable", "query": "query", "user": "user", "password": "password"}
            for key, option in {**named, "driver": "driver"}.items():
                if key in source:
                    reader = reader.option(option, source[key])
            return reader.load()
        case "iceberg" if "table" in source:
            return spark.table(source["table"])
        case _:
            return reader.load(source["path"])


def _pinned(source: Mapping[str, Any], listing: Listing) -> dict[str, str]:
    """The version that was listed, where the source itself names no time or version."""
    asked = {key.lower() for key in source.get("options") or {}}
    if source["format"] != "delta" or asked & {"versionasof", "timestampasof"}:
        return {}
    return {"versionAsOf": str(listing.version)}


@contextmanager
def _views(
    running: Running,
    spark: Any,
    slots: int,
    source: Mapping[str, Any],
    storage: Mapping[str, str],
    listing: Listing,
) -> Iterator[None]:
    """One query at a time: views are names in the one session."""
    with running.views:
        names: list[str] = []
        try:
            for name, view in source.get("views", {}).items():
                frame = _view(spark, slots, view, opening(view, storage), listing.views[name])
                done(partial(frame.createOrReplaceTempView, name))
                names.append(name)
            yield
        finally:
            for name in names:
                with contextlib.suppress(Exception):
                    spark.catalog.dropTempView(name)


def _view(spark: Any, slots: int, view: Mapping[str, Any], options: Mapping[str, str], listing: Listing) -> Any:
    """Of exactly what was listed when the step began."""
    if view["format"] in BY_SPARK:
        frame = done(lambda: _loaded(spark, view, listing))
        _need_distinct(
            done(lambda: frame.columns), f"{view['format']} {view.get('table') or view.get('path', '')}".rstrip()
        )
        return frame
    schema, pieces = _known(listing, view, options)
    if schema is None:
        raise CatalogError(
            Code.UNSUPPORTED, f"a view of {view['format']} has no columns of its own: use another format"
        )
    _need_distinct(schema.names, listing.files[0].uri if listing.files else str(view["path"]))
    schema = pa.schema([f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in schema])
    unit: Unit = {
        "key": 0,
        "schema": schema.serialize().to_pybytes(),
        "fills": {},
        "format": view["format"],
        "format_options": {k: v for k, v in view.items() if not k.startswith("storage.")},
        "source_options": dict(options),
        "mapping": {},
        "rules": Rules(nulls=frozenset(schema.names), folds=True),
    }
    try:
        carried = queried_schema(schema)
    except ValueError as error:
        raise CatalogError(Code.UNSUPPORTED, str(error)) from error
    return done(lambda: _from_files(spark, slots, pieces, unit, carried))


def _known(listing: Listing, view: Mapping[str, Any], options: Mapping[str, str]) -> tuple[Any, list[Piece]]:
    """What files say of themselves before their rows are read."""
    try:
        return source_schema(listing, view, options), pieces_of(listing, view, options)
    except SourceError as error:
        raise CatalogError(Code.INVALID_INPUT, f"the source cannot be read: {error}") from error


def _need_distinct(names: Sequence[str], where: str) -> None:
    """Spark would take two of them for one column, or fill one with the other's values."""
    every = pa.schema([(name, pa.null()) for name in names])
    if problem := ambiguous(names, every, {}, Rules(folds=True)):
        raise CatalogError(Code.INVALID_INPUT, f"the source cannot be read: {where}: {problem}")


def sorted_by(frame: Any, columns: Sequence[str], partitions: int) -> Any:
    from pyspark.sql import functions

    keys = [functions.col(f"`{name.replace('`', '``')}`") for name in columns]
    return frame.repartitionByRange(partitions, *keys).sortWithinPartitions(*keys)


def answers_of(frame: Any, unit: Unit, stopped: Stopped) -> Iterator[dict[str, Any]]:
    """What the partitions wrote."""
    carried_by_value(write_task)
    written = frame.mapInArrow(write_task.frame_job(unit), "answer string")
    return finished([lambda: list(done(written.collect))], stopped)
