"""The one word for how a run ended, and what is to be done: at the end of the log and in the termination message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Run, catalog, namespace, reconciler, table, write
from test_metrics import FILE, outcome
from test_unlock import hold

from reconciler.engine.events import StepEvents
from reconciler.engine.journal import NoJournal
from reconciler.model.diagnostic import Diagnostic, Source
from reconciler.model.lease_event import STATES, WORRYING
from reconciler.render import what_to_do as to_do

LAST_WORDS = {"RECONCILER_TERMINATION_LOG": "last-words"}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write(tmp_path, catalog(), namespace("a"), table("a", "t"))
    return tmp_path


def told(folder: Path, *words: str) -> tuple[Run, dict[str, Any], list[str]]:
    """The run, the last line of its log, its termination message."""
    run = reconciler(folder, *words, "--log-format", "json", env=LAST_WORDS)
    ended = json.loads(run.err.splitlines()[-1])
    assert (ended["event"], ended["exit_code"]) == ("run_ended", run.code)
    words_left = (folder / "last-words").read_text().splitlines()
    assert words_left[0].startswith(f"{ended['command']}: {ended['outcome']}, exit code {run.code}, ")
    return run, ended, words_left


def advice(lines: list[str]) -> str:
    (found,) = [line.removeprefix("to do: ") for line in lines if line.startswith("to do: ")]
    return found


def break_table(folder: Path) -> None:
    for broken in (folder / "lake").glob("*a$t/_versions/*.manifest"):
        broken.write_bytes(b"nothing that Lance can read")


@pytest.mark.parametrize(("flags", "code"), [((), 0), (("--detailed-exitcode",), 2)])
def test_a_plan_with_steps_is_drift_whatever_its_exit_code(lake: Path, flags: tuple[str, ...], code: int) -> None:
    run, ended, words = told(lake, "plan", "m.yaml", "--format", "json", *flags)
    assert (run.code, ended["outcome"], ended["level"]) == (code, "drift", "info")
    assert ended["plan_id"] == run.json["plan_id"]
    assert f"plan: {run.json['plan_id']}" in words
    assert not code or advice(words) == to_do.REVIEW


def test_a_plan_without_steps(lake: Path) -> None:
    assert reconciler(lake, "apply", "m.yaml", "--yes").code == 0
    run, ended, _ = told(lake, "plan", "m.yaml")
    assert (run.code, ended["outcome"]) == (0, "no_changes")


@pytest.mark.parametrize("words", [("validate", "m.yaml"), ("unlock", "m.yaml"), ("status", "m.yaml")])
def test_a_command_that_makes_no_plan_is_done(lake: Path, words: tuple[str, ...]) -> None:
    _, ended, _ = told(lake, *words)
    assert (ended["exit_code"], ended["outcome"], ended["level"]) == (0, "done", "info")


def test_locked_is_a_word_of_its_own_although_the_report_says_refused(lake: Path) -> None:
    assert reconciler(lake, "apply", "m.yaml", "--yes").code == 0
    hold(lake)
    write(lake, catalog(), namespace("a"), namespace("b"))
    flags = ("--yes", "--lock-timeout", "0", "--report", "r.json", "--metrics-file", FILE)
    run, ended, words = told(lake, "apply", "m.yaml", *flags)
    assert (run.code, ended["outcome"], outcome(lake)) == (6, "locked", "locked")
    assert json.loads((lake / "r.json").read_text())["outcome"] == "refused"
    assert "another run holds the lease" in advice(words)
    (refused,) = [e for e in map(json.loads, run.err.splitlines()) if e["event"] == "lease"]
    assert (refused["state"], refused["level"]) == ("refused", "error")


def test_orphans_alone_are_not_to_be_applied(lake: Path) -> None:
    assert reconciler(lake, "apply", "m.yaml", "--yes").code == 0
    write(lake, catalog())
    run, _, words = told(lake, "drift", "m.yaml")
    assert (run.code, advice(words)) == (2, to_do.ORPHANS)


def test_what_cannot_be_read_needs_access_and_no_flag(lake: Path) -> None:
    assert reconciler(lake, "apply", "m.yaml", "--yes").code == 0
    break_table(lake)
    for command, code in ((("drift", "m.yaml"), 2), (("apply", "m.yaml", "--yes"), 3)):
        run, _, words = told(lake, *command)
        assert (run.code, advice(words)) == (code, to_do.ACCESS)
        assert any("cannot be read" in line or "unreadable" in line for line in words[3:]), words


def test_each_thing_to_do_is_said(lake: Path) -> None:
    """A column to drop that is not allowed, an orphan, and something that apply would make."""
    write(lake, catalog(), namespace("a"), table("a", "t", schema="[{name: id, type: int64}, {name: n, type: int8}]"))
    assert reconciler(lake, "apply", "m.yaml", "--yes").code == 0
    write(lake, catalog(), namespace("b"), table("a", "t"))
    run, _, words = told(lake, "drift", "m.yaml")
    assert (run.code, advice(words)) == (2, "; ".join((to_do.REVIEW, to_do.HELD_BACK, to_do.ORPHANS)))
    run, _, words = told(lake, "apply", "m.yaml", "--yes")
    assert (run.code, advice(words)) == (3, to_do.HELD_BACK), "what could be applied is"


def test_a_diagnostic_without_a_hint_ends_with_its_code(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from reconciler import app

    def failing(*a: object) -> None:
        bare = Diagnostic(Source("m.yaml", 3, 1), "M101", "error", "it is wrong", "")
        raise app.Failure("no", [bare, Diagnostic(Source("m.yaml", 4, 1), "M101", "error", "this too", "mend it")])

    monkeypatch.setattr("reconciler.app.plan", failing)
    _, _, words = told(lake, "drift", "m.yaml")
    assert "m.yaml:3:1: it is wrong [M101]" in words
    assert "m.yaml:4:1: this too [M101]; mend it" in words


@pytest.mark.parametrize("state", STATES)
def test_a_lease_that_keeps_steps_from_running_is_an_error_in_the_log(state: str) -> None:
    levels: list[str] = []
    events = StepEvents(NoJournal(), lambda level, event, message, fields: levels.append(level))
    events.lease({"event": "lease", "state": state, "catalog": "lake", "place": "p"})
    assert levels == ["error" if state in WORRYING else "info"]
