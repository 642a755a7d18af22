"""Whether the process that holds a lease still runs, asked of real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.engine import lease_holder
from reconciler.engine.lease_holder import has_ended, liveness, this_process
from reconciler.model.lease import Holder

pytestmark = pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="needs Linux: /proc tells processes")
TELL = "from reconciler.engine.lease_holder import *; print(this_process().started, flush=True); input()"


@pytest.fixture
def child() -> Iterator[tuple[subprocess.Popen[str], Holder]]:
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", TELL], stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None
    yield process, replace(this_process(), pid=process.pid, started=process.stdout.readline().strip())
    process.kill()
    process.communicate()


def test_running_stopped_dead_and_collected(child: tuple[subprocess.Popen[str], Holder]) -> None:
    process, holder = child
    assert liveness(holder) == "running"
    os.kill(process.pid, signal.SIGSTOP)
    assert liveness(holder) == "running", "it may go on"
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert liveness(holder) == "ended", "dead, and not yet collected"
    process.wait()
    assert liveness(holder) == "ended"


def test_a_number_that_went_to_another_process() -> None:
    assert liveness(this_process()) == "running"
    assert liveness(replace(this_process(), started="1")) == "ended"


@pytest.mark.parametrize("key", ["boot", "pids", "host"])
def test_another_machine_or_container_is_not_judged(key: str) -> None:
    assert not has_ended(replace(this_process(), pid=2**22, **{key: "another"}))
    assert not has_ended(Holder())


def test_a_proc_that_hides_others_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_holder, "_started", lambda pid: ("", ""))
    assert liveness(replace(this_process(), started="1")) == "unknown"


def test_what_is_told_of_a_run() -> None:
    environ = {"GITHUB_SERVER_URL": "https://g", "GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": "7"}
    told = this_process("sha256:" + "a" * 64, "reconciler apply m --yes", environ)
    assert told.url == "https://g/a/b/actions/runs/7"
    assert told.named.endswith("`reconciler apply m --yes`, plan aaaaaaaaaaaa, " + told.url + ")")
