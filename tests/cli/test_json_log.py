"""--log-format json: every line of stderr is one JSON object, whoever wrote it, and stdout is as it was."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Run, catalog, environment, namespace, process, reconciler, table, write

from reconciler.cli.json_log import asked, stderr_as_json
from reconciler.engine.events import ProgressEvents

AS_JSON = ("--log-format", "json")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def events(run: Run) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in run.err.splitlines()]
    for one in found:
        assert TIME.fullmatch(one["time"])
        assert one["level"] in ("debug", "info", "warning", "error")
        assert {"event", "message", "run_id"} <= set(one)
        assert run.err.isascii(), "nothing that could steer a terminal"
    assert len({one["run_id"] for one in found}) <= 1
    return found


def of(found: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [one for one in found if one["event"] == event]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write(tmp_path, catalog(), namespace("a"), table("a", "t"))
    return tmp_path


def test_apply_tells_each_step(lake: Path) -> None:
    done = reconciler(lake, "apply", "m.yaml", "--yes", "--format", "json", *AS_JSON)
    found = events(done)
    ended = of(found, "step_ended")
    assert [(e["action"], e["status"], e["level"]) for e in ended] == [
        ("create_namespace", "done", "info"),
        ("declare_table", "done", "info"),
        ("create_dataset", "done", "info"),
    ]
    assert ended[1]["object"] == {"kind": "Table", "id": ["a", "t"]}
    assert ended[1]["catalog"] == "lake"
    assert all(e["seconds"] >= 0 for e in ended)
    assert [e["step"] for e in of(found, "step_started")] == [e["step"] for e in ended]
    assert {e["plan_id"] for e in found} == {done.json["plan_id"]}
    assert (found[-1]["event"], found[-1]["outcome"], found[-1]["exit_code"]) == ("run_ended", "applied", 0)


def test_a_step_that_fails(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.engine.execute.run_step", lambda *a: 1 / 0)
    found = events(reconciler(lake, "apply", "m.yaml", "--yes", *AS_JSON))
    (failed,) = [e for e in of(found, "step_ended") if e["level"] == "error"]
    assert failed["status"] == "unknown"
    assert failed["error"]["message"] in failed["message"]


def test_diagnostics_and_errors(lake: Path) -> None:
    (lake / "m.yaml").write_text("kind: Nonsense\n")
    found = events(reconciler(lake, "plan", "m.yaml", *AS_JSON))
    diagnostic = of(found, "diagnostic")[0]
    assert (diagnostic["level"], diagnostic["file"], diagnostic["line"]) == ("error", "m.yaml", 1)
    assert diagnostic["code"].startswith("M")
    assert diagnostic["hint"]
    (message,) = of(found, "message")
    assert (message["level"], message["message"]) == ("error", "the manifests have errors")
    assert found[-1]["exit_code"] == 1


@pytest.mark.parametrize("words", [("--log-format", "json", "apply", "--nope"), ("plan", "--log-format=json")])
def test_a_wrong_command_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = reconciler(tmp_path, *words)
    assert done.code == 1
    assert [e["level"] for e in events(done)].count("error") == 1


def test_an_internal_error_with_its_traceback(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.app.planned", lambda *a: 1 / 0)
    found = events(reconciler(lake, "plan", "m.yaml", "--debug", *AS_JSON))
    (told,) = of(found, "traceback")
    assert told["traceback"].startswith("Traceback")
    assert told["message"] == "ZeroDivisionError: division by zero"


def test_what_libraries_say(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a logger, and straight to stderr; a text without an end of line too."""

    def noisy(*arguments: object) -> None:
        logging.getLogger("library").warning("of a %s", "logger")
        print("straight\nto \x1b[31mstderr", file=sys.stderr)
        sys.stderr.write("no end of line")
        raise KeyboardInterrupt

    monkeypatch.setattr("reconciler.app.planned", noisy)
    done = reconciler(lake, "plan", "m.yaml", *AS_JSON)
    found = events(done)
    by_message = {e["message"]: e for e in found}
    assert by_message["of a logger"]["logger"] == "library"
    assert {"straight", "to \x1b[31mstderr", "no end of line"} <= set(by_message)
    assert (done.code, of(found, "run_ended")[0]["outcome"]) == (130, "interrupted")


def test_a_prompt_is_shown_when_it_is_flushed(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with stderr_as_json(AS_JSON):
        sys.stderr.write("Apply? ")
        assert stream.getvalue() == ""
        sys.stderr.flush()
        assert json.loads(stream.getvalue())["message"] == "Apply? "
    assert sys.stderr is stream


def test_no_secret(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In none of the ways in which a library could say it once a catalog was opened with it."""
    secret = 'CANARY"s3cret'

    def leaking(*arguments: object) -> None:
        logging.getLogger(secret).warning(secret)
        print(secret, file=sys.stderr)
        raise RuntimeError(secret)

    monkeypatch.setattr("reconciler.app.planned", leaking)
    write(lake, catalog(storage__key="${env:KEY}"), namespace("a"))
    done = reconciler(lake, "plan", "m.yaml", "--debug", *AS_JSON, env={"KEY": secret})
    assert [e["event"] for e in events(done)] == ["log", "stderr", "traceback", "message", "run_ended"]
    assert "CANARY" not in done.out + done.err
    assert done.err.count("***") > 5


@pytest.mark.slow
def test_in_a_process_stdout_is_the_result_only(lake: Path) -> None:
    plain = process(lake, "drift", "m.yaml", "--format", "json")
    logged = process(lake, "drift", "m.yaml", "--format", "json", *AS_JSON)
    assert logged.out == plain.out
    assert [e["event"] for e in events(logged)] == ["run_ended"]


@pytest.mark.slow
def test_a_warning_of_python(tmp_path: Path) -> None:
    """In a process: here the test runner takes all warnings."""
    script = (
        "import sys, warnings\nimport reconciler.app as app\nfrom reconciler.cli import run\n"
        "app.validate = lambda *a: warnings.warn('odd', UserWarning) or 1 / 0\n"
        "sys.exit(run(['plan', 'm.yaml', '--log-format', 'json']))"
    )
    call = [sys.executable, "-c", script]
    done = subprocess.run(call, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    (told,) = of(events(Run(done.returncode, done.stdout, done.stderr)), "log")
    assert (told["level"], told["logger"]) == ("warning", "py.warnings")
    assert "UserWarning: odd" in told["message"]


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["plan", "--log-format", "json"], True),
        (["--log-format=json", "plan"], True),
        (["--log-format=json", "plan", "--log-format", "text"], False),
        (["plan", "--", "--log-format=json"], False),
        (["plan", "--log-format"], False),
    ],
)
def test_it_is_known_before_the_command_line_is(argv: list[str], expected: bool) -> None:
    assert asked(argv) is expected


def test_progress_is_told_now_and_then() -> None:
    now = [0.0]
    told: list[tuple[str, Any]] = []
    progress = ProgressEvents(lambda level, event, message, fields: told.append((message, fields)), lambda: now[0])
    progress.update(0, 9, ["lake:a"])
    now[0] = 6.0
    progress.update(3, 9, ["lake:b"])
    progress.show(lambda seconds: "too early")
    assert told == [("3/9 steps, 6 s: lake:b", {"done": 3, "total": 9, "running": ["lake:b"], "seconds": 6.0})]
