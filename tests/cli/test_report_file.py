"""--report and --journal: found out to be unwritable before the first write, never mistaken for another run's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import patch

import pytest
from cli_runs import Run, catalog, check_schema, command, environment, namespace, reconciler, table, write

from reconciler.catalog.memory import MemoryCatalog

TWO = (catalog(), namespace("a"), table("a", "t"))
YESTERDAY = '{"outcome": "applied", "plan_id": "", "steps": [], "summary": {}, "message": "yesterday"}'


def report_in(path: Path) -> dict[str, object]:
    report: dict[str, object] = json.loads(path.read_text())
    check_schema("report", report)
    return report


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("where", ["no/such/r.json", ".", "/dev/full", "m.yaml/r.json"])
def test_an_unwritable_report_is_found_before_the_first_write(tmp_path: Path, where: str, form: str) -> None:
    write(tmp_path, *TWO)
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--report", where, "--format", form)
    assert run.code == 1
    assert run.err.startswith(f"error: cannot write the report {where}: ")
    assert run.err.endswith("nothing was written\n")
    assert run.err.count("\n") == 1
    assert ("create the folder no/such first" in run.err) is where.startswith("no/")
    assert not (tmp_path / "lake").exists()
    assert not (tmp_path / "no").exists()
    if form == "json":
        check_schema("report", run.json)
        assert run.json["outcome"] == "failed"


def test_files_that_someone_names_need_their_folder(tmp_path: Path) -> None:
    write(tmp_path, *TWO)
    for arguments in (["plan", "m.yaml", "-o"], ["apply", "m.yaml", "--yes", "--journal"]):
        run = reconciler(tmp_path, *arguments, "no/such/file")
        assert run.code == 1
        assert "create the folder no/such first" in run.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.yaml"]


@pytest.mark.parametrize("report", ["m.yaml", "./m.yaml", "p.json", "more/new.yaml", "link"])
def test_a_report_never_replaces_what_the_run_reads(tmp_path: Path, report: str) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "link").symlink_to("m.yaml")
    write(tmp_path, *TWO)
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json").code == 0
    before = {p: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()}
    source = ["--plan", "p.json"] if report == "p.json" else ["m.yaml", "more"]
    run = reconciler(tmp_path, "apply", *source, "--yes", "--report", report)
    assert run.code == 1
    assert "would overwrite" in run.err
    assert {p: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before
    assert not (tmp_path / "more/new.yaml").exists()


def on_memory(folder: Path, memory: MemoryCatalog, *arguments: str) -> Run:
    write(folder, catalog(), namespace("a"), namespace("a", "b"))
    with patch("reconciler.catalog.registry.connect", lambda spec, options: memory):
        return reconciler(folder, "apply", "m.yaml", "--yes", "--report", "out/r.json", *arguments)


def test_a_report_that_is_lost_at_the_end_is_no_success(tmp_path: Path) -> None:
    """The folder goes away while the run writes to the catalog. The second run finds nothing to do."""
    memory = MemoryCatalog()
    for code, point, outcome in ((5, "before", "applied"), (1, "scan", "no_changes")):
        (tmp_path / "out").mkdir()

        def fault(at: str, subject: object, gone: str = point) -> None:
            if at == gone:
                shutil.rmtree(tmp_path / "out", ignore_errors=True)

        memory.fault = fault
        run = on_memory(tmp_path, memory)
        assert run.code == code, run
        assert "error: the report was not written: cannot write out/r.json" in run.err
        assert f"the outcome is {outcome}" in run.err
    (tmp_path / "out").mkdir()
    memory.fault = None
    assert on_memory(tmp_path, memory).code == 0


def test_nothing_to_do_is_said_once(tmp_path: Path) -> None:
    write(tmp_path, *TWO)
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--report", "r.json")
    assert (run.code, run.out, run.err) == (0, "No changes. The live catalogs match the manifests.\n", "")
    assert report_in(tmp_path / "r.json")["outcome"] == "no_changes"


def test_a_pipe_gets_one_report(tmp_path: Path) -> None:
    write(tmp_path, *TWO)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes", "--report", "pipe").code == 0
    reader.join(30)
    assert json.loads(read[0])["outcome"] == "applied"


BLOCKING = """
import sys, time
from unittest.mock import patch
from reconciler.catalog.memory import MemoryCatalog
from reconciler.cli import run
memory = MemoryCatalog()
def fault(at, subject):
    if at == "before" and memory.calls.writes == 1:
        print("blocked", file=sys.stderr, flush=True)
        time.sleep(600)
memory.fault = fault
with patch("reconciler.catalog.registry.connect", lambda spec, options: memory):
    run(["apply", "m.yaml", "--yes", "--report", "r.json", "--journal", "j.jsonl"])
"""


def blocked(folder: Path) -> subprocess.Popen[str]:
    """A run whose second step does not come back, and yesterday's report in its way."""
    write(folder, catalog(), namespace("a"), namespace("a", "b"), namespace("a", "b", "c"))
    (folder / "r.json").write_text(YESTERDAY)
    running = subprocess.Popen(
        [sys.executable, "-c", BLOCKING], cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert running.stderr is not None
    assert running.stderr.readline() == "blocked\n"
    return running


@pytest.mark.slow
def test_a_second_signal_still_leaves_a_report(tmp_path: Path) -> None:
    with blocked(tmp_path) as running:
        assert running.stderr is not None
        running.send_signal(signal.SIGINT)
        assert running.stderr.readline().startswith("SIGINT: finishing")
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=30) == 130
    report = report_in(tmp_path / "r.json")
    assert report["outcome"] == "interrupted"
    steps = report["steps"]
    assert isinstance(steps, list)
    assert [s["status"] for s in steps] == ["done", "unknown", "not_run"]
    assert "apply again" in steps[1]["error"]["message"]
    assert report["message"] == (
        "1 done, 1 unknown, 1 not run; ended at once by a second signal: running steps were not waited for"
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["j.jsonl", "m.yaml", "r.json"], "no temporary file stays"


@pytest.mark.slow
def test_a_killed_run_does_not_leave_the_report_of_another(tmp_path: Path) -> None:
    with blocked(tmp_path) as running:
        running.kill()
    report = report_in(tmp_path / "r.json")
    assert (report["outcome"], report["steps"]) == ("interrupted", [])
    assert "was killed: its journal j.jsonl says how far it came" in str(report["message"])
    assert report["journal"] == "j.jsonl"
    assert str(report["plan_id"]).startswith("sha256:")
    shown = subprocess.run(
        command("show", "r.json"), cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("Interrupted: this run has not ended yet")


def test_a_signal_after_the_run_does_not_deny_it(tmp_path: Path) -> None:
    """The last thing a run does is to print, which may wait for a reader for as long as it likes."""
    write(tmp_path, *TWO)
    with patch("reconciler.render.text.report_text", side_effect=KeyboardInterrupt):
        run = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--report", "r.json")
    assert run.code == 130
    assert run.err == "interrupted while the report was printed; the run ended with outcome applied\n"
    assert report_in(tmp_path / "r.json")["outcome"] == "applied"


LATE = {
    "journal": (("--journal", "/dev/full"), {}, "cannot write the journal /dev/full: No space left on device"),
    "lease": ((), {"RECONCILER_LEASE_TTL": "soon"}, "RECONCILER_LEASE_TTL is 'soon'"),
}


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("why", LATE)
def test_a_run_that_fails_before_its_first_step_reports_the_plan_it_had(tmp_path: Path, why: str, form: str) -> None:
    """The report, the metrics and the termination message are about the same steps."""
    write(tmp_path, *TWO)
    planned = reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json
    flags, env, message = LATE[why]
    files = ("--report", "r.json", "--metrics-file", "m.prom", "--format", form)
    env = {**env, "RECONCILER_TERMINATION_LOG": "last-words"}
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes", *files, *flags, env=env)
    assert run.code == 1
    assert not (tmp_path / "lake").exists()
    report = report_in(tmp_path / "r.json")
    assert (report["outcome"], report["plan_id"]) == ("failed", planned["plan_id"])
    assert [(s["id"], s["status"]) for s in report["steps"]] == [(s["id"], "not_run") for s in planned["steps"]]  # type: ignore[attr-defined]
    assert str(report["message"]).startswith(message)
    assert form == "text" or run.json == report
    assert 'status="not_run"} 3' in (tmp_path / "m.prom").read_text()
    words = (tmp_path / "last-words").read_text().splitlines()
    assert sum(message in line for line in words) == 1, words


def test_a_saved_plan_whose_catalog_cannot_be_opened_is_in_the_report(tmp_path: Path) -> None:
    write(tmp_path, catalog(storage__token="${env:KEY}"), *TWO[1:])
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json", env={"KEY": "CANARYkey12"}).code == 0
    run = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", "--report", "r.json")
    assert run.code == 1
    report = report_in(tmp_path / "r.json")
    assert report["plan_id"] == json.loads((tmp_path / "p.json").read_text())["plan_id"]
    assert [s["status"] for s in report["steps"]] == ["not_run"] * 3  # type: ignore[attr-defined]


def test_a_verb_of_the_pipeline_that_fails_after_its_plan_has_a_report(tmp_path: Path) -> None:
    write(tmp_path, *TWO)
    env = {"RECONCILER_LEASE_TTL": "soon"}
    run = reconciler(tmp_path, "pipeline", "materialize", "m.yaml", "--report", "r.json", env=env)
    assert run.code == 1
    report = report_in(tmp_path / "r.json")
    assert report["outcome"] == "failed"
    assert str(report["plan_id"]).startswith("sha256:")
    assert "RECONCILER_LEASE_TTL" in str(report["message"])


def test_the_journal_of_a_run_that_failed_before_its_first_step_has_an_end(tmp_path: Path) -> None:
    """Or it would look like that of a process that was killed."""
    write(tmp_path, *TWO)
    env = {"RECONCILER_LEASE_TTL": "soon"}
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes", "--journal", "j.jsonl", env=env).code == 1
    last = json.loads((tmp_path / "j.jsonl").read_text().splitlines()[-1])
    assert (last["event"], last["outcome"]) == ("finish", "failed")
