"""A fleet on Spark: listed, joined with what is declared, read in executors, compared by fingerprint.

Nothing stays on the driver for each table but what differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.model.capabilities import Capabilities
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident
from reconciler.model.observed import LeftOut, Scope, Seen
from reconciler.pipeline import fleet_task
from reconciler.pipeline.fleet_task import LISTED, READ, CatalogTask, Keep, ident_of
from reconciler.pipeline.jobs import TASKS_PER_CORE, cores, done
from reconciler.pipeline.parcel import unpacked

DECLARED = "catalog string, key string, desired_hash string, location string"


@dataclass(frozen=True)
class Doubt:
    """A table that the planner has to compare itself."""

    catalog: str
    ident: Ident
    live: bool
    place: str | None


def declared_frame(spark: Any, rows: Sequence[tuple[str, str, str | None, str | None]]) -> Any:
    """`rows` as DECLARED, which is said: of no rows, Spark Connect infers no columns. Also identifiers that are only
    mentioned, without a hash."""
    import pyarrow as pa

    schema = fleet_task.arrow_schema(DECLARED)
    columns = [[*column] for column in zip(*rows, strict=True)] or [[] for _ in schema]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=schema), DECLARED)


def listed_frame(spark: Any, tasks: Sequence[CatalogTask], targets: Sequence[str], asked: Sequence[str]) -> Any:
    """One task for each catalog: it has threads of its own for the parts of a listing."""
    numbers = spark.range(0, len(tasks), 1, max(1, len(tasks)))
    return numbers.mapInArrow(fleet_task.listing(tasks, targets, asked), LISTED)


def joined(listed: Any, declared: Any) -> Any:
    both = listed.join(declared.selectExpr("*", "true AS declared_"), ["catalog", "key"], "full_outer")
    filled = {"declared": "declared_", "ours": "ours", "asked": "asked", "strange": "strange"}
    kept = ["catalog", "key", "kind", "error", "desired_hash", "location"]
    return both.selectExpr(*kept, *(f"coalesce({old}, false) AS {new}" for new, old in filled.items()))


def read_frame(spark: Any, both: Any, tasks: Sequence[CatalogTask]) -> Any:
    """Kept: the catalogs are read once, whatever is asked of the rows afterwards."""
    return both.repartition(few_tasks(spark)).mapInArrow(fleet_task.reading(tasks), READ).persist()


def few_tasks(spark: Any) -> int:
    """How many parts a fleet is worth; the joins of this session get as many."""
    count = cores(spark) * TASKS_PER_CORE
    spark.conf.set("spark.sql.shuffle.partitions", str(count))
    return count


def doubts(rows: Any, several: bool) -> Iterator[Doubt]:
    """`several` catalogs: a dataset that two of them declare is looked after by the first, so both are compared."""
    columns = ["catalog", "key", "kind", "place"]
    found = rows.where("doubt").select(columns)
    if several:
        shared = rows.where("declared AND place IS NOT NULL").groupBy("place").count().where("count > 1")
        found = found.union(rows.where("declared").join(shared.select("place"), "place", "left_semi").select(columns))
    for row in done(found.collect):
        yield Doubt(row["catalog"], ident_of(row["key"]), row["kind"] is not None, row["place"])


class FleetCatalog:
    """A catalog as a plan observes it, scanned in an executor. What no plan depends on stays there and is counted."""

    def __init__(self, spark: Any, task: CatalogTask, capabilities: Capabilities, keep: Keep) -> None:
        self._spark = spark
        self._task = task
        self.capabilities = capabilities
        self.keep = keep
        self.left_out = LeftOut()

    def scan(self, scope: Scope) -> Iterator[Seen]:
        """Raises CatalogError as the catalog does there."""
        job = fleet_task.looking(self._task, scope, self.keep)
        frame = self._spark.range(0, 1, 1, 1).mapInArrow(job, "parcel binary")
        for row in done(frame.collect):
            seen = unpacked(row[0])
            if isinstance(seen, tuple):
                raise CatalogError(*seen)
            if isinstance(seen, LeftOut):
                self.left_out = seen
            else:
                yield seen
