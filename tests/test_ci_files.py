"""Dockerfile and workflows run elsewhere, and `.ci/run` is what runs there: linters read them here, on every change."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted(str(p.relative_to(ROOT)) for p in (ROOT / ".github" / "workflows").iterdir())
PATHS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])

LINTERS = {
    "Dockerfile": ["hadolint", "--no-color", "Dockerfile"],
    "shape of the workflows": ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS],
    "shape of the updates": ["check-jsonschema", "--builtin-schema", "vendor.dependabot", ".github/dependabot.yml"],
    "safety of the workflows": ["zizmor", "--offline", "--quiet", "--color=never", ".github"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LINTERS)
def test_the_linters_find_nothing(name: str) -> None:
    program, *arguments = LINTERS[name]
    found = shutil.which(program, path=PATHS)
    if found is None:
        pytest.skip(f"{program} is missing: it comes with the extra `dev`")
    done = subprocess.run([found, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ci_runs_make_test_with_nothing_skipped(tmp_path: Path) -> None:
    """With a `make` that writes down how it was called, from another folder, and without CI in the environment."""
    fake = tmp_path / "make"
    fake.write_text('#!/bin/sh\necho "$PWD: CI=$CI make $*"\nexit 7\n')
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    environment = {k: v for k, v in os.environ.items() if k != "CI"}
    environment["PATH"] = f"{tmp_path}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        [ROOT / ".ci" / "run"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == f"{ROOT}: CI=true make test\n"
    assert done.returncode == 7, "a failure must reach the caller"


def test_make_test_runs_every_test() -> None:
    """No selection and no tolerated failure in the recipe that CI relies on."""
    done = subprocess.run(["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, check=True)
    (tests,) = [line for line in done.stdout.splitlines() if "/pytest" in line]
    assert re.fullmatch(r"\.venv/bin/pytest -n \d+( --dist \w+)?", tests)
    assert {"ruff check", "ruff format --check", "mypy --strict"} <= set(
        re.findall(r"ruff check|ruff format --check|mypy --strict", done.stdout)
    )


def test_the_workflow_runs_it() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    assert ".ci/run" in [step.get("run") for step in jobs["test"]["steps"]]
