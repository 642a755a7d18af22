"""Reads datasets with the Spark that is named on the command line and prints what it found: Spark Connect and a
classic session do not go together in one process. With `"folder": FOLDER, "runs": [[ARGUMENT, …], …]` the program is
run there afterwards, in the same session, and one more line for each says how that went.

    python read_elsewhere.py '{"remote": …}' SPLIT PATH...
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import lance
from cli.cli_runs import reconciler
from pipeline import evolve_elsewhere

from reconciler.catalog.arrow_convert import from_arrow_schema
from reconciler.catalog.base import DataPlace
from reconciler.model.checks import Checks
from reconciler.pipeline import data_plane
from reconciler.pipeline.session import SparkOptions, session
from reconciler.pipeline.verify import Reading, Source, read_tables
from reconciler.verbs import tables

CHECKS = Checks(not_null=("id",), unique=(("id",),))


def sources(paths: list[str], options: dict[str, str] | None = None) -> list[Source]:
    made = []
    for path in paths:
        dataset = lance.dataset(path, storage_options=options)
        made.append(
            Source(DataPlace(path, options or {}), dataset.version, from_arrow_schema(dataset.schema)[0], CHECKS)
        )
    return made


def shown(reading: Reading) -> dict[str, Any]:
    return {"rows": reading.rows, "checksum": reading.checksum, "found": reading.found, "error": reading.error}


def main() -> None:
    where, split, *paths = sys.argv[1:]
    given = json.loads(where)
    options = SparkOptions(given.get("master"), given.get("remote"), tuple(given.get("conf", {}).items()))
    with session(options) as spark:
        print(json.dumps([shown(r) for r in read_tables(spark, sources(paths), split=int(split))]))
        if "evolve" in given:
            evolve_elsewhere.fill(spark, Path(given["evolve"]))
        for module in (data_plane, tables):
            module.session = lambda options: nullcontext(spark)  # type: ignore[attr-defined]
        for arguments in given.get("runs", ()):
            run = reconciler(Path(given["folder"]), *arguments)
            print(json.dumps({"code": run.code, "out": run.out, "err": run.err}))


if __name__ == "__main__":
    main()
