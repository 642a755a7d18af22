"""Real kills: the program is SIGKILLed while it applies; running it again ends in the same state as an undisturbed run.
Both are read with plain pylance, not with our own code. Every line of a large run: `test_every_line.py`."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest
from kill_calm import Calm, undisturbed
from kill_lake import described, manifests
from kill_runs import KILLED, Warm, finish, start, story

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("k", range(1, 18))
def test_killed_after_each_line_of_a_small_run(k: int, folder: Path, small: Calm, warm: Warm) -> None:
    """A header, the lease, a start and an end of 7 steps, a finish."""
    assert len(small.story) == 17
    (folder / "m.yaml").write_text(manifests(2))
    code = warm.run(folder, "apply", "m.yaml", "--parallelism", "1", journal="killed.jsonl", stop_at=k)
    assert code == KILLED
    assert story(folder / "killed.jsonl") == small.story[:k]
    warm.finish(folder)
    assert described(folder / "lake") == small.described


def test_killed_at_any_moment(folder: Path, hundred: Calm, warm: Warm) -> None:
    """Inside of steps: by the clock, some milliseconds after a line. Each run goes on where the one before was killed;
    side by side, several steps are cut short at once."""
    (folder / "m.yaml").write_text(manifests(100))
    chance = random.Random(3)
    for n in range(200):
        # Alone, three lines are a whole step: every other run makes progress, whatever the moment.
        parallelism, lines = ("1", chance.choice((3, 5, 9))) if n % 2 else ("8", chance.choice((2, 9, 20)))
        arguments = ("apply", "m.yaml", "--parallelism", parallelism)
        code = warm.run(folder, *arguments, journal=f"{n}.jsonl", lines=lines, delay=chance.uniform(0, 0.012))
        if code != KILLED:
            break
    assert code == 0, (folder / "out.txt").read_text()
    assert n >= 10, "too few runs were really killed"
    assert described(folder / "lake") == hundred.described


def kill_after(folder: Path, more: int, *arguments: str) -> bool:
    """Kills once the journal has `more` further lines. False when the run ended first."""
    journal = folder / "j.jsonl"
    goal = lines(journal) + more
    running = start(folder, *arguments, "--yes", "--journal", "j.jsonl")
    while running.poll() is None and lines(journal) < goal:
        time.sleep(0.0005)
    running.kill()
    running.communicate()
    return running.returncode == KILLED


def lines(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def test_a_saved_plan_is_resumed_after_kills(tmp_path: Path, folder: Path) -> None:
    goal = undisturbed(tmp_path, 30).described
    (folder / "m.yaml").write_text(manifests(30))
    finish(folder, "plan", "m.yaml", "-o", "p.json")
    kills = sum(kill_after(folder, more, "apply", "--plan", "p.json") for more in (3, 10, 25, 40))
    assert kills >= 2
    finish(folder, "apply", "--plan", "p.json", "--yes", "--report", "r.json")
    assert described(folder / "lake") == goal
    report = json.loads((folder / "r.json").read_text())
    assert report["outcome"] == "applied"
    assert report["summary"]["skipped"] > 0
    finish(folder, "apply", "--plan", "p.json", "--yes", "--report", "r.json")
    assert json.loads((folder / "r.json").read_text())["summary"]["done"] == 0
