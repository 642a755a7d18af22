"""One catalog of several cannot be read: no answer for any, and the way to one for the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runs import namespace, reconciler, write

COMMANDS = ["plan", "drift", "status"]
NAMESPACE = namespace("n")
SECRET = ', storage.key: "${env:NO_SUCH_KEY}"'


def named(name: str, path: str, more: str = "") -> str:
    return f"""---
apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {{name: {name}}}
spec: {{type: dir, path: {path}{more}}}
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_the_error_names_the_flags_for_the_others(tmp_path: Path, command: str) -> None:
    write(tmp_path, named("good", "./good"), named("also", "./also"), named("dead", "./no/such/place"))
    run = reconciler(tmp_path, command, "m.yaml")
    assert (run.code, run.out) == (1, "")
    assert "catalog dead cannot be read: " in run.err
    assert run.err.endswith("; for the others alone: `--catalog also --catalog good`\n")
    assert reconciler(tmp_path, command, "m.yaml", "--catalog", "also", "--catalog", "good").code == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_all_that_cannot_be_read_are_told_at_once(tmp_path: Path, command: str) -> None:
    """And none is offered when none is left."""
    write(tmp_path, named("one", "./no/such/place"), named("two", "./nor/this/one"))
    run = reconciler(tmp_path, command, "m.yaml")
    assert run.code == 1
    assert ["catalog one cannot be read" in run.err, "catalog two cannot be read" in run.err] == [True, True]
    assert "--catalog" not in run.err


def test_a_secret_that_is_missing_is_no_reason_to_leave_the_others(tmp_path: Path) -> None:
    write(tmp_path, named("good", "./good"), named("dead", "./dead", SECRET))
    run = reconciler(tmp_path, "plan", "m.yaml")
    assert (run.code, "error[M302]" in run.err) == (1, True)
    assert run.err.endswith("error: catalog dead cannot be opened; for the others alone: `--catalog good`\n")


def test_a_saved_plan_takes_no_such_flag(tmp_path: Path) -> None:
    """It is applied as a whole."""
    spaces = [NAMESPACE.replace("catalog: lake", f"catalog: {name}") for name in ("good", "dead")]
    write(tmp_path, named("good", "./good"), named("dead", "./dead", SECRET), *spaces)
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json", env={"NO_SUCH_KEY": "k3y-of-a-store"}).code == 0
    run = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes")
    assert (run.code, "catalog dead cannot be opened" in run.err) == (1, True)
    assert "--catalog" not in run.err
    assert not (tmp_path / "good").exists()
