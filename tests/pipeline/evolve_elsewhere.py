"""Fills new columns with the Spark that is named on the command line: Spark Connect and a classic session do not go
together in one process.

    python evolve_elsewhere.py '{"remote": …}' URI
"""

from __future__ import annotations

import json
import sys

from pipeline.evolve_runs import CONTEXT, backfill, field

from reconciler.catalog.base import DataPlace
from reconciler.pipeline.data_plane import Running
from reconciler.pipeline.evolve import evolve
from reconciler.pipeline.session import SparkOptions

CHANGE = backfill(
    field("length", "int16", "length(text)"),
    field("v", "fixed_size_list<float32>[2]", function="vector", nullable=False),
)


def main() -> None:
    where, uri = sys.argv[1:]
    given = json.loads(where)
    running = Running(SparkOptions(given.get("master"), given.get("remote"), tuple(given.get("conf", {}).items())))
    try:
        evolve(running, CHANGE, DataPlace(uri), CONTEXT)
    finally:
        running.close()


if __name__ == "__main__":
    main()
