"""`python tests/mutants/run.py [NAME...]`: whether the tests see realistic mistakes in the safety rules.

`mutants.yaml` is the list: one replacement in one file, and the tests of which one must fail with it. Each mutant is
tried in a copy of this repository, so the work tree stays as it is. A mutant is `caught` when a test fails, `survived`
when all pass, and `not applicable` when its text is not in the source exactly once or its tests cannot be run. Exit 1
unless every mutant is caught.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info")
LONGEST = 300.0
"""Seconds for the tests of one mutant. One that makes them hang is seen."""
PASSED, FAILED = 0, 1
"""The exit codes of pytest that say something about the code."""


@dataclass(frozen=True)
class Mutant:
    name: str
    rule: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied_to(self, source: str) -> str:
        """Raises ValueError when the text to replace is not there exactly once."""
        if (count := source.count(self.old)) != 1:
            raise ValueError(f"{self.file} has its text {count} times: write the replacement anew")
        return source.replace(self.old, self.new)


def mutants() -> list[Mutant]:
    listed = yaml.safe_load((HERE / "mutants.yaml").read_text())
    return [Mutant(**{**one, "tests": tuple(one["tests"])}) for one in listed]


def verdict(mutant: Mutant, copy: Path) -> tuple[str, str]:
    """The word, and what there is to say about it."""
    file = copy / mutant.file
    source = file.read_text()
    try:
        file.write_text(mutant.applied_to(source))
        code, output = tested(copy, mutant.tests)
    except ValueError as error:
        return "not applicable", str(error)
    finally:
        file.write_text(source)
    if code == FAILED:
        return "caught", ""
    return ("survived", mutant.rule) if code == PASSED else ("not applicable", output)


def tested(copy: Path, tests: Sequence[str]) -> tuple[int, str]:
    """The exit code of pytest and what it printed."""
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return FAILED, "it hangs"
    return run.returncode, run.stdout + run.stderr


def main(names: Sequence[str]) -> int:
    known = {mutant.name: mutant for mutant in mutants()}
    if strange := sorted(set(names) - set(known)):
        print(f"mutants.yaml has no mutant {', '.join(strange)}", file=sys.stderr)
        return 1
    chosen = [known[name] for name in names] or list(known.values())
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
        tests = sorted({test for mutant in chosen for test in mutant.tests})
        code, output = tested(copy, tests)
        if code != PASSED:
            print(f"{output}\nthe tests fail without any mutant, so they say nothing about one", file=sys.stderr)
            return 1
        missed = 0
        for mutant in chosen:
            word, why = verdict(mutant, copy)
            missed += word != "caught"
            print(f"{word:15} {mutant.name}{': ' if why else ''}{why}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
