"""Where stdout or stderr cannot be written: the exit code still tells the truth about the catalog."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MANIFEST = """apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {name: lake}
spec: {type: dir, path: ./lake}
---
apiVersion: reconciler.lance/v1
kind: Namespace
metadata: {catalog: lake, id: [a]}
"""


def run(folder: Path, words: str) -> tuple[int, str]:
    """Through a shell, so that descriptors can be closed. Gives the exit code and what stderr got."""
    (folder / "m.yaml").write_text(MANIFEST)
    command = f"{sys.executable} -m reconciler {words}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("target", [">/dev/full", ">&-"])
def test_a_report_that_cannot_be_printed_does_not_undo_the_run(tmp_path: Path, target: str) -> None:
    code, told = run(tmp_path, f"apply m.yaml --yes --format json --report r.json {target}")
    assert code == 0
    assert "cannot be written" in told
    assert "outcome applied" in told
    assert (tmp_path / "r.json").exists()
    assert (tmp_path / "lake").exists()


@pytest.mark.slow
@pytest.mark.parametrize("target", [">/dev/full", ">&-"])
def test_a_plan_that_cannot_be_shown_is_not_applied(tmp_path: Path, target: str) -> None:
    code, told = run(tmp_path, f"apply m.yaml --yes {target}")
    assert code == 1
    assert "cannot be written" in told
    assert not (tmp_path / "lake").exists()


@pytest.mark.slow
def test_a_closed_stderr_keeps_nothing_from_running(tmp_path: Path) -> None:
    assert run(tmp_path, "apply m.yaml --yes >out.txt 2>&-")[0] == 0
    assert "Applied: 1 done" in (tmp_path / "out.txt").read_text()
