"""The termination message: what `kubectl describe pod` shows of a run, and that it is about this run."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from cli_runs import catalog, command, environment, namespace, reconciler, table, write

from reconciler.cli import ending
from reconciler.model.run import Run
from reconciler.render.termination import LONGEST, termination_text

VARIABLE = {"RECONCILER_TERMINATION_LOG": "last-words"}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write(tmp_path, catalog(), namespace("a"), table("a", "t"))
    return tmp_path


def last_words(folder: Path) -> list[str]:
    return (folder / "last-words").read_text(encoding="utf-8").splitlines()


def test_a_run_that_went_well(lake: Path) -> None:
    done = reconciler(lake, "apply", "m.yaml", "--yes", "--format", "json", env=VARIABLE)
    first, *rest = last_words(lake)
    assert first.startswith("apply: applied, exit code 0")
    assert rest == [f"plan: {done.json['plan_id']}", "3 done"]


def test_errors_in_the_manifests_come_with_their_places_and_hints(lake: Path) -> None:
    (lake / "m.yaml").write_text(catalog() + table("a", "t", schema="[{name: id, type: int46}]"))
    done = reconciler(lake, "drift", "m.yaml", env=VARIABLE)
    assert done.code == 1
    text = "\n".join(last_words(lake))
    assert text.startswith("drift: failed, exit code 1")
    assert "to do: " in text
    assert "m.yaml:" in text
    assert "int46" in text


def test_an_earlier_and_longer_message_does_not_show_through(lake: Path) -> None:
    (lake / "last-words").write_text("x" * 10_000)
    assert reconciler(lake, "validate", "m.yaml", env=VARIABLE).code == 0
    assert "x" * 10 not in "\n".join(last_words(lake))


def test_a_pipe_that_nobody_reads_keeps_no_run_from_its_end(lake: Path) -> None:
    os.mkfifo(lake / "last-words")
    assert reconciler(lake, "validate", "m.yaml", env=VARIABLE).code == 0


def test_what_is_blocked_is_named(lake: Path) -> None:
    write(lake, catalog(), namespace("a"), table("a", "t", schema="[{name: id, type: int64}, {name: n, type: int8}]"))
    assert reconciler(lake, "apply", "m.yaml", "--yes").code == 0
    write(lake, catalog(), namespace("a"), table("a", "t"))
    done = reconciler(lake, "apply", "m.yaml", "--yes", env=VARIABLE)
    assert done.code == 3
    assert any(line.startswith("blocked ") and "drop_column" in line for line in last_words(lake))


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f9ed"])
def test_it_is_cut_between_characters(letter: str) -> None:
    problems = tuple(f"{i}: {letter * 500}" for i in range(100))
    data = termination_text(Run("apply", 0, 1, 1, problems=problems)).encode()
    assert LONGEST - 8 < len(data) <= LONGEST
    assert data.decode().endswith("…\n")


def test_a_secret_is_out_before_anything_is_cut() -> None:
    """Half a secret would not be known for one."""
    secret = "CANARY" * 20
    for before in range(LONGEST - 200, LONGEST, 7):
        padding = ["p" * 599] * (before // 600)
        run = Run("apply", 0, 1, 1, problems=(*padding, "p" * (before % 600), secret, "x" * 590))
        assert "CANARY" not in termination_text(run, lambda text: text.replace(secret, "***"))


def test_nothing_of_it_steers_a_terminal() -> None:
    assert "\x1b" not in termination_text(Run("apply", 0, 1, 1, problems=("\x1b[31mred",)))


def test_where_it_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only inside Kubernetes by itself; a device of that name elsewhere is none of ours."""
    mounted = tmp_path / "termination-log"
    monkeypatch.setattr(ending, "KUBERNETES_LOG", mounted)
    for name in (ending.TERMINATION_LOG, ending.KUBERNETES):
        monkeypatch.delenv(name, raising=False)
    mounted.touch()
    assert list(ending.termination_logs()) == []
    monkeypatch.setenv(ending.KUBERNETES, "10.0.0.1")
    assert list(ending.termination_logs()) == [mounted]
    mounted.unlink()
    assert list(ending.termination_logs()) == [], "no file is made where Kubernetes mounted none"
    mounted.touch()
    monkeypatch.setenv(ending.TERMINATION_LOG, "")
    assert list(ending.termination_logs()) == [], "turned off"


def test_a_place_that_cannot_be_written_is_no_reason_to_fail(lake: Path) -> None:
    env = {"RECONCILER_TERMINATION_LOG": "no/such/folder/file"}
    assert reconciler(lake, "apply", "m.yaml", "--yes", env=env).code == 0


@pytest.mark.slow
def test_two_signals_in_the_middle_of_a_run(tmp_path: Path) -> None:
    """The second one ends the program at once: message and metrics are there all the same."""
    write(tmp_path, catalog(), namespace("a"), *(table("a", f"t{i:03}") for i in range(150)))
    words = ("apply", "m.yaml", "--yes", "--journal", "j.jsonl", "--metrics-file", "m.prom", "--log-format", "json")
    running = subprocess.Popen(
        command(*words), cwd=tmp_path, env=environment(**VARIABLE), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert running.stderr is not None
    for line in running.stderr:
        if b"step_ended" in line:
            break
    os.kill(running.pid, signal.SIGTERM)
    for line in running.stderr:
        if b"SIGTERM" in line:
            break
    os.kill(running.pid, signal.SIGTERM)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert last_words(tmp_path)[0].startswith("apply: interrupted, exit code 130")
    assert 'outcome="interrupted"} 1' in (tmp_path / "m.prom").read_text()
