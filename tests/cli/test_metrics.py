"""--metrics-file, read back with Prometheus' own parser: after every kind of end, and about this run only."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cli_runs import catalog, command, environment, namespace, process, reconciler, table, write
from prometheus_client.parser import text_string_to_metric_families

from reconciler import app
from reconciler.model.plan import CatalogSummary, Plan, Summary
from reconciler.model.run import OUTCOMES, Run
from reconciler.render.metrics import HELP, LAST_SUCCESS, metrics_text, time_in

Labels = frozenset[tuple[str, str]]
FILE = "reconciler.prom"
NAME = re.compile(r"reconciler_[a-z]+(_[a-z]+)*")


def samples(text: str) -> dict[tuple[str, Labels], float]:
    """Every series once, every name with its HELP and TYPE, of the names and labels that the documents know."""
    found: dict[tuple[str, Labels], float] = {}
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge"
        assert NAME.fullmatch(family.name)
        assert not family.name.endswith(("_total", "_count", "_sum", "_bucket"))
        assert family.documentation == HELP[family.name]
        for sample in family.samples:
            assert sample.name == family.name
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found
            found[key] = sample.value
    return found


def value(folder: Path, name: str, file: str = FILE, **labels: str) -> float | None:
    read = samples((folder / file).read_text(encoding="utf-8"))
    wanted = set(labels.items())
    matching = [v for (n, have), v in read.items() if n == f"reconciler_{name}" and wanted <= have]
    assert len(matching) < 2, f"{name} {labels}: {matching}"
    return matching[0] if matching else None


def outcome(folder: Path) -> str:
    told = {o: value(folder, "outcome", outcome=o) for o in OUTCOMES}
    (one,) = [o for o, v in told.items() if v == 1]
    assert set(told.values()) == {0, 1}
    return one


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write(tmp_path, catalog(), namespace("a"), table("a", "t"))
    return tmp_path


def test_drift_then_apply_then_drift(lake: Path) -> None:
    assert reconciler(lake, "drift", "m.yaml", "--metrics-file", FILE).code == 2
    assert outcome(lake) == "drift"
    assert value(lake, "exit_code") == 2
    assert value(lake, "pending", catalog="lake", kind="create") == 2
    assert value(lake, "steps", status="done") is None, "drift runs no steps"
    compared = value(lake, "last_success_timestamp_seconds", command="drift")
    assert compared == value(lake, "last_run_timestamp_seconds") != 0

    assert reconciler(lake, "apply", "m.yaml", "--yes", "--metrics-file", FILE).code == 0
    assert outcome(lake) == "applied"
    assert value(lake, "steps", catalog="lake", status="done", command="apply") == 3
    assert value(lake, "pending", catalog="lake", kind="create") == 0, "what is done is not pending"

    write(lake, catalog(), namespace("a"))
    assert reconciler(lake, "drift", "m.yaml", "--metrics-file", FILE).code == 2
    assert value(lake, "orphans", catalog="lake") == 1
    assert value(lake, "catalog_complete", catalog="lake") == 1
    assert [p.name for p in lake.glob("*.tmp")] + [p.name for p in lake.glob(".*.tmp")] == []


def test_a_failed_run_keeps_the_time_of_the_last_success_and_says_nothing_of_the_catalogs(lake: Path) -> None:
    assert reconciler(lake, "apply", "m.yaml", "--yes", "--metrics-file", FILE).code == 0
    good = value(lake, "last_success_timestamp_seconds")
    assert good
    (lake / "m.yaml").write_text("kind: Nonsense\n")
    assert reconciler(lake, "apply", "m.yaml", "--yes", "--metrics-file", FILE).code == 1
    assert outcome(lake) == "failed"
    assert value(lake, "last_success_timestamp_seconds") == good
    assert value(lake, "last_run_timestamp_seconds", command="apply") != good
    assert value(lake, "pending", kind="create") is None, "not known, which is not zero"
    assert value(lake, "catalog_complete") is None


def test_a_run_that_has_not_ended_says_running_and_keeps_no_exit_code(lake: Path, monkeypatch: Any) -> None:
    """All there will be when it is killed: the exit code of another run would look like its own."""
    assert reconciler(lake, "apply", "m.yaml", "--yes", "--metrics-file", FILE).code == 0
    ended, good = (value(lake, f"last_{w}_timestamp_seconds") for w in ("run", "success"))
    seen: list[object] = []

    def look(*_: object) -> None:
        seen.append((outcome(lake), value(lake, "exit_code"), value(lake, "steps", status="done")))
        seen.append([value(lake, f"last_{w}_timestamp_seconds") for w in ("run", "success")])
        raise app.Failure("stop here")

    monkeypatch.setattr("reconciler.cli.apply.planned", look)
    assert reconciler(lake, "apply", "m.yaml", "--yes", "--metrics-file", FILE).code == 1
    assert seen == [("running", None, None), [ended, good]]
    assert outcome(lake) == "failed"


def test_no_success_yet_is_zero(lake: Path) -> None:
    (lake / "m.yaml").write_text("kind: Nonsense\n")
    (lake / FILE).write_bytes(b"\xff not metrics\n")
    assert reconciler(lake, "drift", "m.yaml", "--metrics-file", FILE).code == 1
    assert value(lake, "last_success_timestamp_seconds", command="drift") == 0


def test_a_refused_run(lake: Path) -> None:
    write(lake, catalog(owner=None), namespace("a"), "---\n", table("a", "t").removeprefix("---\n"))
    assert reconciler(lake, "apply", "m.yaml", "--yes", "--prune", "--metrics-file", FILE).code == 3
    assert outcome(lake) == "refused"
    assert value(lake, "last_success_timestamp_seconds") == 0


def test_a_table_that_cannot_be_read(lake: Path) -> None:
    assert reconciler(lake, "apply", "m.yaml", "--yes").code == 0
    for broken in (lake / "lake").glob("*a$t/_versions/*.manifest"):
        broken.write_bytes(b"nothing that Lance can read")
    assert reconciler(lake, "drift", "m.yaml", "--metrics-file", FILE).code == 2
    assert value(lake, "catalog_complete", catalog="lake") == 0
    assert value(lake, "pending", catalog="lake", kind="blocked") == 1


def test_an_internal_error(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.app.planned", lambda *a: 1 / 0)
    assert reconciler(lake, "drift", "m.yaml", "--metrics-file", FILE).code == 1
    assert outcome(lake) == "failed"


@pytest.mark.parametrize("flag", ["--report", "--metrics-file"])
@pytest.mark.parametrize("path", ["nowhere/x.prom", "."])
def test_a_file_that_cannot_be_written_is_noticed_before_anything_is(lake: Path, flag: str, path: str) -> None:
    """The one that can be written tells of the other."""
    other = {"--report": "--metrics-file", "--metrics-file": "--report"}[flag]
    (lake / "other").write_text("of an earlier run\n")
    done = reconciler(lake, "apply", "m.yaml", "--yes", flag, path, other, "other")
    assert done.code == 1
    assert "nothing was written" in done.err
    assert not (lake / "lake").exists()
    assert "failed" in (lake / "other").read_text()
    assert "earlier" not in (lake / "other").read_text()


def test_it_does_not_replace_what_is_read(lake: Path) -> None:
    before = (lake / "m.yaml").read_bytes()
    done = reconciler(lake, "drift", "m.yaml", "--metrics-file", "m.yaml")
    assert (done.code, (lake / "m.yaml").read_bytes()) == (1, before)
    assert "would overwrite what is read from m.yaml" in done.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "kind"),
    [("apply --yes", "pipe"), ("drift", "link to a pipe"), ("drift", "socket"), ("apply --yes", "device")],
)
def test_what_cannot_be_replaced_is_refused_before_anything_is_done(lake: Path, command: str, kind: str) -> None:
    """A pipe that nobody reads would keep the run for ever, at its very end: a process, for the time limit."""
    path = "/dev/null" if kind == "device" else "odd.prom"
    if kind == "pipe":
        os.mkfifo(lake / path)
    elif kind == "link to a pipe":
        os.mkfifo(lake / "pipe")
        (lake / path).symlink_to("pipe")
    elif kind == "socket":
        with contextlib.chdir(lake), socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path)
    done = process(lake, *command.split(), "m.yaml", "--metrics-file", path)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"error: --metrics-file {path} is not a regular file, and the metrics replace the whole file in one step: "
        "choose another name; nothing was written\n"
    )
    assert not (lake / "lake").exists()


@pytest.mark.slow
def test_a_file_for_which_there_is_no_room(lake: Path) -> None:
    """The largest file of a process stands for the disk: one can be made, and nothing fits in. What was there stays."""
    before = "of an earlier run\n"
    (lake / FILE).write_text(before)
    words = command("apply", "m.yaml", "--yes", "--metrics-file", FILE)
    script = 'ulimit -f 1; exec "$@"'
    env = environment(PYTHONDONTWRITEBYTECODE="1")  # Cut off as well, it would be read by the next test.
    done = subprocess.run(
        ["sh", "-c", script, "sh", *words], cwd=lake, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: cannot write {FILE}: File too large; nothing was written\n"
    assert (lake / FILE).read_text() == before
    assert not (lake / "lake").exists()


def test_a_file_that_cannot_be_written_only_at_the_end_changes_no_exit_code(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder goes away while the run works."""
    (lake / "out").mkdir()
    real = app.plan

    def planned(*arguments: Any) -> Any:
        shutil.rmtree(lake / "out")
        return real(*arguments)

    monkeypatch.setattr("reconciler.app.plan", planned)
    done = reconciler(lake, "apply", "m.yaml", "--yes", "--metrics-file", "out/x.prom")
    assert done.code == 0
    assert done.err.count("warning: the metrics were not written") == 1


def test_labels_tell_two_jobs_on_one_machine_apart(lake: Path) -> None:
    odd = 'a "quoted" \\ value\nof two lines'
    labels = ("--metrics-label", f"lake={odd}", "--metrics-label", "env=prod")
    assert reconciler(lake, "apply", "m.yaml", "--yes", "--metrics-file", FILE, *labels).code == 0
    assert value(lake, "exit_code", lake=odd, env="prod", command="apply") == 0
    good = value(lake, "last_success_timestamp_seconds")
    (lake / "m.yaml").write_text("kind: Nonsense\n")
    assert reconciler(lake, "apply", "m.yaml", "--yes", "--metrics-file", FILE, *labels).code == 1
    assert value(lake, "last_success_timestamp_seconds", lake=odd) == good


def test_a_label_has_one_value(lake: Path) -> None:
    labels = ("--metrics-label", "a=x", "--metrics-label", "b=x", "--metrics-label", "a=y")
    done = reconciler(lake, "drift", "m.yaml", "--metrics-file", FILE, *labels)
    assert (done.code, done.err) == (1, "error: --metrics-label a=x and --metrics-label a=y: give one of them\n")
    same = reconciler(lake, "drift", "m.yaml", "--metrics-file", FILE, *["--metrics-label", "a=x"] * 2)
    assert (same.code, value(lake, "exit_code", a="x")) == (2, 2)


@pytest.mark.parametrize("label", ["catalog=x", "command=x", "a-b=x", "__name__=x", "1a=x"])
def test_a_label_that_cannot_be(lake: Path, label: str) -> None:
    done = reconciler(lake, "drift", "m.yaml", "--metrics-file", FILE, "--metrics-label", label)
    assert done.code == 1
    assert "--metrics-label" in done.err


def test_the_name_of_a_catalog_cannot_break_out() -> None:
    name = 'x"} 1\nreconciler_exit_code{command="apply"} 0 \\'
    plan = Plan("sha256:0", "0", "sha256:0", {name: CatalogSummary("dir", True, 0, 0, {})}, (), (), (), Summary())
    text = metrics_text(Run("apply", 0, 1.5, 1, plan), 0, {}, str)
    read = samples(text)
    assert [v for (n, _), v in read.items() if n == "reconciler_exit_code"] == [1]
    assert ("reconciler_orphans", frozenset({("command", "apply"), ("catalog", name)})) in read


def test_what_a_run_found_done_is_neither_pending_nor_done_by_it(lake: Path) -> None:
    """The same saved plan again: every step holds already."""
    assert reconciler(lake, "plan", "m.yaml", "-o", "p.json").code == 0
    for status in ("done", "skipped"):
        assert reconciler(lake, "apply", "--plan", "p.json", "--yes", "--metrics-file", FILE).code == 0
        assert value(lake, "steps", catalog="lake", status=status) == 3
        assert value(lake, "pending", catalog="lake", kind="create") == 0


def test_a_name_that_utf8_cannot_carry_does_not_cost_the_metrics(tmp_path: Path) -> None:
    """Half of a pair, as JSON can spell it in a saved plan."""
    catalogs = {"la\ud800ke": CatalogSummary("dir", True, 0, 0, {})}
    plan = Plan("sha256:0", "0", "sha256:0", catalogs, (), (), (), Summary())
    text = metrics_text(Run("apply", 0, 1.5, 0, plan), 0, {}, str)
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    assert value(tmp_path, "orphans", catalog="la?ke") == 0


@pytest.mark.parametrize("text", ["", "x", 'reconciler_last_success_timestamp_seconds{command="apply"} NaN\n'])
def test_what_an_earlier_file_does_not_say(text: str) -> None:
    assert time_in(text, LAST_SUCCESS, "apply", {}) == 0


@pytest.mark.slow
def test_a_signal_while_manifests_are_read(tmp_path: Path) -> None:
    """Manifests come through a pipe: the run waits on it when the signal comes."""
    running = subprocess.Popen(
        command("drift", "/dev/stdin", "--metrics-file", FILE), cwd=tmp_path, env=environment(),
        stdin=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert running.stdin is not None
    running.stdin.write(b"#" * 300_000)  # More than a pipe holds: returns once the program reads.
    running.send_signal(signal.SIGTERM)
    assert running.stderr is not None
    err = running.stderr.read()
    running.wait(60)
    running.stdin.close()
    assert running.returncode == 130, err
    assert outcome(tmp_path) == "interrupted"
