"""Small helpers for the benchmark scripts: time in a fresh process, print ratios."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable


def best(action: Callable[[], object], times: int = 3) -> float:
    """Seconds of the fastest run: the one with the least of other people's work in it."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def in_fresh_process(script: str, *arguments: str) -> dict[str, float]:
    """Runs `script --measure ARGUMENTS` and reads one line of JSON from it: no run warms up the next."""
    command = [sys.executable, script, "--measure", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def measured() -> list[str] | None:
    """The arguments when this is the inner process."""
    return sys.argv[2:] if sys.argv[1:2] == ["--measure"] else None


def table(header: list[str], rows: list[list[str]]) -> None:
    widths = [max(len(r[i]) for r in [header, *rows]) for i in range(len(header))]
    for row in (header, ["-" * w for w in widths], *rows):
        print("| " + " | ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) + " |")
