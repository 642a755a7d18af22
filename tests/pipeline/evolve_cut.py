"""A backfill by a process that ends itself, as SIGKILL would, right before or right after the commit.

python evolve_cut.py URI before|after|never
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from pipeline.evolve_runs import backfill, evolve, field

from reconciler.pipeline.claims import Held

CHANGE = backfill(field("x", "int64", "n * 3", nullable=False), field("y", "string", "text"))


def main() -> None:
    uri, moment = sys.argv[1:]
    commit = Held.commit

    def cut(held: Held, *arguments: Any) -> Any:
        if moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = commit(held, *arguments)
        if moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    Held.commit = cut  # type: ignore[method-assign]
    evolve(uri, CHANGE)


if __name__ == "__main__":
    main()
