"""The rows of a run in sum, one result for each catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from reconciler.model.errors import ReadError
from reconciler.model.inventory import ReadCatalog
from reconciler.pipeline.fleet_task import gap_error
from reconciler.pipeline.jobs import done

_SUMS = ("rows", "bytes", "fragments", "small_fragments")


def read_catalogs(rows: Any, names: Sequence[str], clean: Callable[[str], str]) -> list[ReadCatalog]:
    """The first question to the rows: this is when the catalogs are read. Raises SparkError."""
    counted = rows.where("recorded").groupBy("catalog")
    frame = counted.agg(*_expressions()).collect
    found = {row["catalog"]: row.asDict() for row in done(frame)}
    gaps: dict[str, list[ReadError]] = {name: [] for name in names}
    for row in done(rows.where("kind = 'Gap'").select("catalog", "key", "error").orderBy("key").collect):
        error = gap_error(row["error"])
        gaps[row["catalog"]].append(replace(error, message=clean(error.message)))
    return [
        ReadCatalog(name, {k: v or 0 for k, v in found.get(name, dict.fromkeys(_FIGURES)).items() if k != "catalog"},
                    tuple(gaps[name]))
        for name in names
    ]  # fmt: skip


_FIGURES = ("tables", "unreadable", *_SUMS)


def _expressions() -> list[Any]:
    from pyspark.sql.functions import expr

    parts = ["count(*) AS tables", "count(error) AS unreadable", *(f"sum({name}) AS {name}" for name in _SUMS)]
    return [expr(part) for part in parts]
