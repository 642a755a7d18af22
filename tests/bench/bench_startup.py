"""(d) `reconciler --help`, as installed, against bare `python -c pass`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from timing import best, table

INSTALLED = Path(sys.executable).with_name("reconciler")
COMMAND = [str(INSTALLED)] if INSTALLED.exists() else [sys.executable, "-m", "reconciler"]


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    bare = best(lambda: run(sys.executable, "-c", "pass"), 20)
    ours = best(lambda: run(*COMMAND, "--help"), 20)
    table(
        ["what", "ours", "python -c pass", "ours/bare"],
        [["--help", f"{1000 * ours:.0f} ms", f"{1000 * bare:.0f} ms", f"{ours / bare:.2f}x"]],
    )
