"""(d) `reconciler --help` against bare `python -c pass`."""

from __future__ import annotations

import subprocess
import sys

from timing import best, table


def run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    bare = best(lambda: run("-c", "pass"), 20)
    ours = best(lambda: run("-m", "reconciler", "--help"), 20)
    table(
        ["what", "ours", "python -c pass", "ours/bare"],
        [["--help", f"{1000 * ours:.0f} ms", f"{1000 * bare:.0f} ms", f"{ours / bare:.2f}x"]],
    )
