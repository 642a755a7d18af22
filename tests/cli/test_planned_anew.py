"""`apply PATH --yes` when somebody was faster: nobody agreed to the plan that no longer fits, so another is made."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_runs import catalog, check_schema, namespace, reconciler, table, write

from reconciler import app

MINE = (catalog(), namespace("a", spec="{properties: {team: x}}"), table("a", "t"))
THEIRS = (catalog(), namespace("a", spec="{properties: {other: y}}"))
Between = Callable[[Callable[[], object]], list[str]]


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Between:
    """Does something between the plan and its execution, every time. The plans that were executed are given back."""

    def patch(action: Callable[[], object]) -> list[str]:
        real, seen = app.apply, []

        def applied(plan: Any, *given: Any) -> Any:
            with monkeypatch.context() as undone:
                undone.setattr(app, "apply", real)
                action()
            seen.append(plan.plan_id)
            return real(plan, *given)

        monkeypatch.setattr(app, "apply", applied)
        return seen

    return patch


def test_another_plan_is_made(tmp_path: Path, between: Between) -> None:
    write(tmp_path, *MINE)
    write(tmp_path, *THEIRS, name="theirs.yaml")
    seen = between(lambda: reconciler(tmp_path, "apply", "theirs.yaml", "--yes"))
    done = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--report", "r.json", "--metrics-file", "m.prom")
    assert (done.code, len(set(seen))) == (0, 2), done.err + done.out
    assert "note: planned anew: the plan is stale, nothing was written: lake:a: it exists" in done.err
    assert "review it" not in done.err
    assert "  ~ namespace a\n" in done.out, "the plan that was executed is shown"
    report = json.loads((tmp_path / "r.json").read_text())
    check_schema("report", report)
    assert (report["outcome"], report["plan_id"]) == ("applied", seen[1])
    assert 'outcome="applied"} 1' in (tmp_path / "m.prom").read_text()
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0


def test_one_document_as_json(tmp_path: Path, between: Between) -> None:
    write(tmp_path, *MINE)
    write(tmp_path, *THEIRS, name="theirs.yaml")
    between(lambda: reconciler(tmp_path, "apply", "theirs.yaml", "--yes"))
    done = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--format", "json")
    assert (done.code, done.json["outcome"]) == (0, "applied")


def test_it_ends_when_somebody_is_always_faster(tmp_path: Path, between: Between) -> None:
    write(tmp_path, *MINE)
    turn = iter(range(9))

    def change() -> None:
        spec = f"{{properties: {{n: '{next(turn)}'}}}}"
        write(tmp_path, catalog(), namespace("a", spec=spec), name="theirs.yaml")
        assert reconciler(tmp_path, "apply", "theirs.yaml", "--yes").code == 0

    seen = between(change)
    done = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--format", "json")
    assert (done.code, done.json["outcome"], len(seen)) == (4, "stale", 3)
    assert done.json["message"].endswith("review it.")


@pytest.mark.parametrize("how", ["saved", "reviewed"])
def test_a_plan_that_somebody_looked_at_is_not_exchanged(tmp_path: Path, between: Between, how: str) -> None:
    write(tmp_path, *MINE)
    write(tmp_path, *THEIRS, name="theirs.yaml")
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json").code == 0
    seen = between(lambda: reconciler(tmp_path, "apply", "theirs.yaml", "--yes"))
    given = ["--plan", "p.json"] if how == "saved" else ["m.yaml", "--reviewed", "p.json"]
    done = reconciler(tmp_path, "apply", *given, "--yes", "--format", "json")
    assert (done.code, done.json["outcome"], len(seen)) == (4, "stale", 1)


def test_nor_one_that_somebody_agreed_to(tmp_path: Path, between: Between, monkeypatch: pytest.MonkeyPatch) -> None:
    from reconciler.cli import apply

    write(tmp_path, *MINE)
    write(tmp_path, *THEIRS, name="theirs.yaml")
    monkeypatch.setattr(apply, "terminal", lambda: True)
    monkeypatch.setattr(apply, "confirm", lambda *given, **more: None)
    seen = between(lambda: reconciler(tmp_path, "apply", "theirs.yaml", "--yes"))
    done = reconciler(tmp_path, "apply", "m.yaml", "--format", "json")
    assert (done.code, done.json["outcome"], len(seen)) == (4, "stale", 1)


def test_nor_is_one_made_after_a_signal(tmp_path: Path, between: Between, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is told to stop writes nothing more, also when it was about to look again."""
    from reconciler.engine import execute

    write(tmp_path, *MINE)
    write(tmp_path, *THEIRS, name="theirs.yaml")
    real = execute.check

    def told_meanwhile(*given: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return real(*given)

    def theirs() -> None:
        reconciler(tmp_path, "apply", "theirs.yaml", "--yes")
        monkeypatch.setattr(execute, "check", told_meanwhile)

    seen = between(theirs)
    done = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--format", "json")
    assert (done.code, done.json["outcome"], len(seen)) == (130, "interrupted", 1), done.err
    assert done.json["summary"]["done"] == 0


def test_the_time_limit_is_for_all_of_it(tmp_path: Path, between: Between) -> None:
    write(tmp_path, *MINE)
    write(tmp_path, *THEIRS, name="theirs.yaml")

    def slowly() -> None:
        reconciler(tmp_path, "apply", "theirs.yaml", "--yes")
        time.sleep(0.6)

    seen = between(slowly)
    done = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--timeout", "0.5", "--format", "json")
    assert (done.code, done.json["outcome"], len(seen)) == (4, "stale", 1)
