"""A run that creates a hundred tables is killed after single lines of its journal, and run again to the end: that does
exactly what was left, and plain pylance then sees what it sees after an undisturbed run. With KILL_EVERY_LINE=1 after
every line there is; otherwise after each kind of line, and some along the way.

Two things save time. Lines come in stretches: a run from nothing is killed right before each, and the kills of that
stretch hit runs that go on from a copy of what was left there. And a kill right after the start of a step leaves the
lake exactly as it was at the end of the step before, which is checked: one run to the end then stands for both lines.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from kill_calm import Calm
from kill_lake import described, manifests, seen
from kill_runs import KILLED, Line, Warm, story

pytestmark = pytest.mark.slow

LINES = 446
"""A header, a start and an end of 222 steps (2 namespaces, 100 tables, 100 datasets, 20 indexes), a finish. The line
about the lease, after the header, is left out: test_kill.py kills after that one too."""
LEASE = ("lease", "", "")
LENGTH = 28
"""Even: each stretch then begins with the end of a step, whose start closed the stretch before."""
ALL = [range(first, min(first + LENGTH, LINES + 1)) for first in range(1, LINES + 1, LENGTH)]
SAMPLE = [range(1, 17), *(range(first, first + 4) for first in range(77, 443, 62)), range(443, LINES + 1)]
"""Each begins with the end of a step as well."""
STRETCHES = ALL if os.environ.get("KILL_EVERY_LINE") == "1" else SAMPLE


def test_the_stretches_are_all_lines_of_an_undisturbed_run(hundred: Calm) -> None:
    assert hundred.story[1] == LEASE
    assert [k for stretch in ALL for k in stretch] == list(range(1, len(hundred.story)))
    told = without_lease(hundred.story)
    assert kinds(told, SAMPLE) == kinds(told, ALL), "a kind of line is not in the sample"
    assert len(set(hundred.story)) == len(hundred.story), "a line does not tell where a run was killed"
    steps = ["start", "end"] * ((LINES - 2) // 2)
    assert [event for event, _, _ in without_lease(hundred.story)] == ["header", *steps, "finish"]
    assert len(hundred.seen) == len(hundred.described) == 102


@pytest.mark.parametrize("stretch", STRETCHES, ids=lambda s: f"{s[0]}-{s[-1]}")
def test_killed_after_each_line(stretch: range, folder: Path, hundred: Calm, warm: Warm) -> None:
    header, told = hundred.story[0], without_lease(hundred.story)
    before = folder / "before"
    before.mkdir()
    here = before
    done = max(0, stretch[0] - 2)
    if done:
        killed_run(before, told[:done], warm)
    kept = content(before)
    covered = []
    for k in stretch:
        if told[k - 1][0] == "start":
            # Goes on from the kill after the line before.
            was = files(here)
            covered.append(told.index(killed_run(here, [header, told[k - 1]], warm)) + 1)
            assert files(here) == was, f"written before line {k}"
        else:
            here = copied(before, folder / str(k))
            covered.append(told.index(killed_run(here, [header, *told[max(1, done) : k]], warm)) + 1)
            if k < LINES and told[k][0] == "start":
                continue
        assert ends(warm.finish(here)) == ends(told[k:]), f"killed after line {k}"
        assert seen(here / "lake") == hundred.seen, f"killed after line {k}"
        if k == stretch[-1]:
            assert described(here / "lake") == hundred.described
        shutil.rmtree(here)
    assert covered == list(stretch)
    assert content(before) == kept, "a file of the lake was changed in place: the copies were none"


def killed_run(folder: Path, expected: list[Line], warm: Warm) -> Line:
    """One step after another, killed in the moment in which the last of these lines was written. What the journal
    ends with."""
    (folder / "m.yaml").write_text(manifests(100))
    journal = folder / "killed.jsonl"
    journal.unlink(missing_ok=True)
    arguments = ("apply", "m.yaml", "--parallelism", "1")
    code = warm.run(folder, *arguments, journal=journal.name, stop_at=len(expected) + (len(expected) > 1))
    assert code == KILLED, (folder / "out.txt").read_text()
    lines = without_lease(story(journal))
    assert lines == expected
    return lines[-1]


def kinds(told: list[Line], stretches: list[range]) -> set[tuple[Line, ...]]:
    """What was written last and what comes next, whatever the objects are called."""
    plain: list[Line] = [(event, action, "") for event, action, _ in told]
    return {tuple(plain[k - 1 : k + 1]) for stretch in stretches for k in stretch}


def without_lease(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line != LEASE]


def copied(source: Path, target: Path) -> Path:
    """Links, because no file of a lake is ever changed in place."""
    target.mkdir()
    if (source / "lake").exists():
        shutil.copytree(source / "lake", target / "lake", copy_function=os.link)
    return target


def files(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Each file and folder of the lake, and whether it is still the same one. Not the lease, which every run takes."""
    found = {}
    for path in (folder / "lake").rglob("*"):
        if "__reconciler" in path.parts:
            continue
        status = path.lstat()
        found[str(path)] = (status.st_ino, status.st_size, status.st_mtime_ns)
    return found


def content(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in (folder / "lake").rglob("*") if p.is_file()}


def ends(lines: list[Line]) -> set[Line]:
    return {line for line in lines if line[0] == "end"}
