"""What Lance logs by itself does not reach the stderr of a normal run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOSES = """
import sys
from reconciler import __main__, cli

def run(argv):
    import lance, pyarrow as pa
    from lance.optimize import Compaction
    for number in range(3):
        lance.write_dataset(pa.table({"a": [number]}), argv[0], mode="append" if number else "create")
    old = lance.dataset(argv[0])
    done = [task.execute(old) for task in Compaction.plan(old, {}).tasks]
    lance.dataset(argv[0]).delete("a = 1")
    try:
        Compaction.commit(old, done)
    except OSError:
        return 7

cli.run = run
__main__.main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("level", [None, "warn"])
def test_a_compaction_that_loses_is_logged_for_those_who_ask(tmp_path: Path, level: str | None) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "LANCE_LOG"} | ({"LANCE_LOG": level} if level else {})
    command = [sys.executable, "-c", LOSES, str(tmp_path / "t.lance")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 7, ended.stderr
    assert ("WARN" in ended.stderr) is (level is not None)
    assert level or not ended.stderr
