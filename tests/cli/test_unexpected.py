"""What should not happen: libraries that leak, bugs, answers at a prompt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
from cli_runs import Run, catalog, check_schema, namespace, reconciler, write

from reconciler.catalog.memory import MemoryCatalog
from reconciler.model.errors import CatalogError, Code

CANARY = 'CANARY"leak\\ed'


def run_on(memory: MemoryCatalog, folder: Path, *arguments: str) -> Run:
    """The program with the catalog `lake` in memory, so that it can be made to fail as libraries do."""
    write(folder, catalog(storage__token="${env:TOKEN}"), namespace("a"), namespace("a", "b"))
    with patch("reconciler.catalog.registry.connect", lambda spec, options: memory):
        return reconciler(folder, *arguments, env={"TOKEN": CANARY})


def failing(point: str, error: Callable[[str], Exception]) -> MemoryCatalog:
    memory = MemoryCatalog()

    def fault(at: str, subject: object) -> None:
        if at == point and (at != "before" or memory.calls.writes == 1):
            raise error(f"GET http://h/?token={CANARY} failed: {CANARY!r} {json.dumps(CANARY)}")

    memory.fault = fault
    return memory


def refused(message: str) -> CatalogError:
    return CatalogError(Code.UNAUTHENTICATED, message)


APPLY = ("apply", "m.yaml", "--yes", "--report", "r.json", "--debug", "--log-level", "debug")


@pytest.mark.parametrize("error", [refused, RuntimeError])
@pytest.mark.parametrize(("point", "code"), [("scan", 1), ("read", 1), ("before", 5)])
def test_what_a_library_leaks_is_masked_everywhere(
    tmp_path: Path, point: str, code: int, error: Callable[[str], Exception]
) -> None:
    run = run_on(failing(point, error), tmp_path, *APPLY)
    assert run.code == code, run
    written = [p.read_text() for p in tmp_path.rglob("*") if p.is_file() and p.name != "m.yaml"]
    for text in (run.out, run.err, *written):
        for form in (CANARY, repr(CANARY)[1:-1], json.dumps(CANARY)[1:-1], json.dumps(json.dumps(CANARY))[3:-3]):
            assert form not in text
    assert "***" in run.out + run.err
    if code == 5:
        report = json.loads((tmp_path / "r.json").read_text())
        check_schema("report", report)
        assert [s["status"] for s in report["steps"]] == ["done", "failed"]
        assert "***" in report["steps"][1]["error"]["message"]


def test_a_bug_is_one_line_and_a_traceback_only_with_debug(tmp_path: Path) -> None:
    memory = failing("scan", RuntimeError)
    quiet = run_on(memory, tmp_path, "plan", "m.yaml")
    assert quiet.code == 1
    assert quiet.err.startswith("internal error: RuntimeError: ")
    assert quiet.err.count("\n") == 1
    assert "--debug" in quiet.err
    assert "Traceback" in run_on(memory, tmp_path, "plan", "m.yaml", "--debug").err


def test_a_bug_of_ours_while_writing_is_5(tmp_path: Path) -> None:
    with patch("reconciler.engine.execute.report_of", side_effect=ZeroDivisionError("ours")):
        run = run_on(MemoryCatalog(), tmp_path, "apply", "m.yaml", "--yes", "--report", "r.json")
    assert run.code == 5
    report = json.loads((tmp_path / "r.json").read_text())
    check_schema("report", report)
    assert report["outcome"] == "partial"
    assert "ZeroDivisionError" in run.err
