"""SIGINT and SIGTERM on real processes: running steps finish, none starts, the report is written, exit code 130."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_runs import catalog, check_schema, command, environment, namespace, reconciler, table, write

pytestmark = pytest.mark.slow


def wait_for(path: Path, lines: int, running: subprocess.Popen[str]) -> None:
    while running.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") >= lines:
            return
        time.sleep(0.001)


def start(folder: Path, *arguments: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*arguments),
        cwd=folder,
        env=environment(**env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_well(tmp_path: Path, number: signal.Signals) -> None:
    write(tmp_path, catalog(), namespace("a"), *(table("a", f"t{i:03}") for i in range(150)))
    running = start(tmp_path, "apply", "m.yaml", "--yes", "--journal", "j.jsonl", "--report", "r.json")
    wait_for(tmp_path / "j.jsonl", 12, running)
    running.send_signal(number)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert number.name in err
    report = json.loads((tmp_path / "r.json").read_text())
    check_schema("report", report)
    assert report["outcome"] == "interrupted"
    assert report["summary"]["done"] > 0
    assert report["summary"]["not_run"] > 0
    assert report["summary"]["failed"] == report["summary"]["unknown"] == 0
    events = [json.loads(line) for line in (tmp_path / "j.jsonl").read_text().splitlines()]
    started = {e["step"] for e in events if e["event"] == "start"}
    assert started == {e["step"] for e in events if e["event"] == "end"}, "every step that started has ended"
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    assert reconciler(tmp_path, "drift", "m.yaml").code == 0


def test_a_second_signal_ends_at_once() -> None:
    script = (
        "import os, time\nfrom reconciler.engine.signals import stop_on_signals\n"
        "with stop_on_signals(lambda text: os.write(1, text.encode() + b'\\n')) as stop:\n"
        "    os.write(1, b'ready\\n')\n    time.sleep(60)\n    time.sleep(60)\n"
    )
    running = subprocess.Popen([sys.executable, "-c", script], env=environment(), stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n"
    running.send_signal(signal.SIGTERM)
    assert running.stdout.readline().startswith("SIGTERM: finishing")
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=30) == 130
    running.stdout.close()


def test_a_signal_while_a_catalog_does_not_answer(tmp_path: Path) -> None:
    """Nothing runs yet: the program ends although a thread still waits for the server."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = {
            "storage.aws_endpoint": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "storage.allow_http": "true",
            "storage.aws_access_key_id": "someone",
            "storage.aws_secret_access_key": "something",
            "storage.aws_region": "us-east-1",
        }
        write(tmp_path, catalog(path="s3://bucket/lake", **{k.replace(".", "__"): v for k, v in options.items()}))
        running = start(tmp_path, "apply", "m.yaml", "--yes", "--report", "r.json")
        accepted, _ = silent.accept()
        with accepted:
            running.send_signal(signal.SIGTERM)
            _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "nothing was written" in err
    report = json.loads((tmp_path / "r.json").read_text())
    check_schema("report", report)
    assert report["outcome"] == "interrupted"
