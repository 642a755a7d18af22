"""What a report shows of a history: sums of each run, the largest tables, what grows, what is in small fragments,
which indexes lack rows.

A run that read only a part of a catalog (its `error` says why) tells nothing of the rest: the lists are those of the
last run that read all of it, and of the last run only where there is none; what has changed is counted between such
runs. Asked in SQL of all rows, so that only sums and short lists come to the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconciler.pipeline.history import History
from reconciler.pipeline.inventory_source import NAME, register
from reconciler.pipeline.jobs import done

LONGEST_LIST = 10
MOST_RUNS = 100
_RUNS = """
WITH runs AS (SELECT DISTINCT run, at FROM fleet ORDER BY at DESC LIMIT {most}),
part AS (SELECT run, catalog, error IS NOT NULL AS partly FROM fleet JOIN runs USING (run) WHERE kind = 'Catalog'),
seen AS (SELECT f.*, lag(state_hash) OVER (PARTITION BY catalog, id, partly ORDER BY at) AS before
         FROM fleet f JOIN part USING (run, catalog) WHERE kind = 'Table'),
sums AS (SELECT run, catalog, count(*) AS tables, sum(rows) AS rows, sum(bytes) AS bytes,
         sum(fragments) AS fragments, sum(small_fragments) AS small_fragments, count(error) AS unreadable,
         count_if(state_hash IS NOT NULL AND before IS NOT NULL AND state_hash <> before) AS changed
         FROM seen GROUP BY run, catalog)
SELECT c.run, unix_micros(c.at) / 1e6 AS at, c.catalog, c.error, c.drift, coalesce(s.tables, 0) AS tables,
       coalesce(s.rows, 0) AS rows, coalesce(s.bytes, 0) AS bytes, coalesce(s.fragments, 0) AS fragments,
       coalesce(s.small_fragments, 0) AS small_fragments, coalesce(s.unreadable, 0) AS unreadable,
       coalesce(s.changed, 0) AS changed
FROM fleet c JOIN runs r ON c.run = r.run LEFT JOIN sums s ON c.run = s.run AND c.catalog = s.catalog
WHERE c.kind = 'Catalog' ORDER BY c.catalog, c.at
"""
_LAST = """
WITH last AS (SELECT catalog, max_by(run, struct(error IS NULL, at)) AS run FROM fleet WHERE kind = 'Catalog'
              GROUP BY catalog)"""
_LATEST = f"""{_LAST}
SELECT f.catalog, f.id, f.rows, f.bytes, f.fragments, f.small_fragments, f.unindexed_rows, f.error
FROM fleet f JOIN last USING (catalog, run) WHERE f.kind = 'Table' AND f.{{column}} > 0
ORDER BY f.{{column}} DESC, f.catalog, f.id LIMIT {{most}}
"""
_GROWING = f"""{_LAST},
now AS (SELECT f.* FROM fleet f JOIN last USING (catalog, run) WHERE f.kind = 'Table' AND f.bytes IS NOT NULL),
first AS (SELECT catalog, id, min(at) AS at, min_by(bytes, at) AS bytes, min_by(rows, at) AS rows FROM fleet
          WHERE kind = 'Table' AND bytes IS NOT NULL GROUP BY catalog, id)
SELECT now.catalog, now.id, now.bytes - first.bytes AS bytes, now.rows - first.rows AS rows, now.bytes AS now,
       (unix_micros(now.at) - unix_micros(first.at)) / 8.64e10 AS days
FROM now JOIN first USING (catalog, id) WHERE now.bytes > first.bytes AND now.at > first.at
ORDER BY (now.bytes - first.bytes) / (unix_micros(now.at) - unix_micros(first.at)) DESC, now.catalog, now.id
LIMIT {{most}}
"""


def figures(spark: Any, history: History) -> dict[str, Any]:
    """Raises SparkError."""
    register(spark, history.options)
    fleet = done(lambda: spark.read.format(NAME).option("history", history.uri).load())
    fleet.persist().createOrReplaceTempView("fleet")  # Five questions, one read.
    lists = {
        "biggest": _LATEST.format(column="bytes", most=LONGEST_LIST),
        "small": _LATEST.format(column="small_fragments", most=LONGEST_LIST),
        "uncovered": _LATEST.format(column="unindexed_rows", most=LONGEST_LIST),
        "growing": _GROWING.format(most=LONGEST_LIST),
    }
    try:
        return {k: _rows(spark, sql) for k, sql in {"runs": _RUNS.format(most=MOST_RUNS), **lists}.items()}
    finally:
        fleet.unpersist()


def _rows(spark: Any, sql: str) -> Sequence[dict[str, Any]]:
    return [row.asDict() for row in done(lambda: spark.sql(sql).collect())]
