"""The rows of a run in sum, one result for each catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reconciler.model.ident import dotted
from reconciler.model.inventory import ReadCatalog
from reconciler.pipeline.fleet_task import ident_of
from reconciler.pipeline.jobs import done

_SUMS = ("rows", "bytes", "fragments", "small_fragments")


def read_catalogs(rows: Any, names: Sequence[str], clean: Callable[[str], str]) -> list[ReadCatalog]:
    """The first question to the rows: this is when the catalogs are read. Raises SparkError."""
    counted = rows.where("recorded").groupBy("catalog")
    frame = counted.agg(*_expressions()).collect
    found = {row["catalog"]: row.asDict() for row in done(frame)}
    gaps: dict[str, list[str]] = {name: [] for name in names}
    for row in done(rows.where("kind = 'Gap'").select("catalog", "key", "error").orderBy("key").collect):
        where = dotted(ident_of(row["key"]))
        gaps[row["catalog"]].append(clean(f"{where}: {row['error']}" if where else row["error"]))
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
