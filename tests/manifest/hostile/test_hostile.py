"""A hostile megabyte neither crashes the reader nor takes more than 200 MB; the time-out is generous on purpose."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .corpus import CORPUS

ROOT = Path(__file__).parents[3]
FAST = ("laughs", "open references", "tags")


def run(names: list[str], timeout: float) -> dict[str, dict[str, object]]:
    command = [sys.executable, "-m", "tests.manifest.hostile.corpus", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    results = [json.loads(line) for line in done.stdout.splitlines()]
    return {r["name"]: r for r in results}


def check(names: list[str], timeout: float) -> None:
    results = run(names, timeout)
    assert list(results) == names
    assert [r for r in results.values() if "status" in r] == [], "crashed"
    assert [r for r in results.values() if int(str(r["megabytes"])) >= 200] == []
    assert [r for r in results.values() if not r["codes"]] == [], "every one of them is refused"


def test_bounded() -> None:
    check(list(FAST), 120)


@pytest.mark.slow
def test_all_bounded() -> None:
    """The whole corpus takes well under a second for each file; quadratic work would run into the time-out."""
    check(sorted(CORPUS), 10 * len(CORPUS))
