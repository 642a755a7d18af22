"""Real processes that move a table are killed; a table of rows is never seen but complete; the next run ends it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lance
import pytest
from cli.cli_runs import REPO, environment
from pipeline import in_process
from pipeline.migrate_lake import ROWS, errors, files, local

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("migrate_killed.py")
SHOWN = {"in a file": None, "while it is compared": None, "before the marks": ROWS - 1, "after the marks": ROWS - 1}


def test_killed(tmp_path: Path) -> None:
    moves = {where: local(tmp_path / where, in_process.running()) for where in SHOWN}
    before = {where: files(move.folder / "old") for where, move in moves.items()}
    path = os.pathsep.join([str(REPO), str(REPO / "tests")])
    what = [word for where, move in moves.items() for word in (str(move.folder), where)]
    script = [sys.executable, str(SCRIPT), *what]
    done = subprocess.run(script, env=environment(PYTHONPATH=path), capture_output=True, text=True, check=False)
    assert done.stdout == f"{[9] * len(SHOWN)}\n", done.stderr
    for where, move in moves.items():
        (folder,) = [p for p in (move.folder / "new").iterdir() if p.name.endswith("moved")]
        if SHOWN[where] is None:
            with pytest.raises(ValueError, match="was not found"):
                lance.dataset(str(folder))
        else:
            assert lance.dataset(str(folder)).to_table().num_rows == SHOWN[where]
        assert errors(move.apply()) == []
        move.moved()
        assert files(move.folder / "old") == before[where]
