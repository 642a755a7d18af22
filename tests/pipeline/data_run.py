"""Runs the program with a stop built in at one place of a data step, for a test that kills something there.

    python data_run.py PLACE MARK ARGUMENTS…

At the place the file MARK is made, with the process id in it, and the process waits to be killed; once the mark is
there, nothing waits any more.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pipeline.in_process import InProcess

from reconciler.catalog.lance_data import RECORD_KEY
from reconciler.cli import run
from reconciler.pipeline import claims, data_plane, write_task

BEFORE, AFTER, WORKER = "before-commit", "after-commit", "in-worker"


def stop_here(mark: str) -> None:
    if not Path(mark).exists():
        Path(mark + ".new").write_text(str(os.getpid()))
        Path(mark + ".new").rename(mark)
        time.sleep(600)


def build_in(place: str, mark: str) -> None:
    if place == WORKER:
        read = write_task._from_files

        def slowly(unit: Any) -> Any:
            for batch in read(unit):
                yield batch
                stop_here(mark)

        write_task._from_files = slowly
        return
    if place == AFTER:  # Spark is done with it by then; that a JVM ends with its driver is seen at the other places.
        data_plane.session = lambda options: nullcontext(InProcess())  # type: ignore[assignment]
    commit = claims.committed

    def committed(where: Any, operation: Any, version: int, properties: Mapping[str, str]) -> Any:
        rows = RECORD_KEY in properties
        if rows and place == BEFORE:
            stop_here(mark)
        done = commit(where, operation, version, properties)
        if rows and place == AFTER:
            stop_here(mark)
        return done

    claims.committed = committed


if __name__ == "__main__":
    build_in(sys.argv[1], sys.argv[2])
    sys.exit(run(sys.argv[3:]))
