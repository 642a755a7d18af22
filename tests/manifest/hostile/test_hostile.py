"""A hostile megabyte neither crashes the reader nor takes more than 200 MB; the time-out is generous on purpose."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .corpus import CORPUS

ROOT = Path(__file__).parents[3]
FAST = ("flow brackets", "laughs", "tags", "open references", "deep type")


def run(name: str) -> dict[str, object]:
    command = [sys.executable, "-m", "tests.manifest.hostile.corpus", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    result: dict[str, object] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("name", FAST)
def test_bounded(name: str) -> None:
    result = run(name)
    assert int(str(result["megabytes"])) < 200
    assert result["codes"]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(CORPUS) - set(FAST)))
def test_all_bounded(name: str) -> None:
    test_bounded(name)
