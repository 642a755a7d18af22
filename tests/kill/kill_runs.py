"""Runs of the program as real processes, to be killed or to end; and what their journals say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPO)}
KILLED = -9

Line = tuple[str, str, str]
"""Event, action, object. No line of a journal occurs twice."""


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "reconciler", *arguments]
    return subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(folder: Path, *arguments: str) -> None:
    running = start(folder, *arguments)
    out, _ = running.communicate(timeout=300)
    assert running.returncode == 0, out.decode()


def story(journal: Path) -> list[Line]:
    """The lines of a journal. Ids of steps are left out: a later run numbers what is left anew."""
    told: list[Line] = []
    steps: dict[str, tuple[str, str]] = {}
    for text in journal.read_text().splitlines():
        event = json.loads(text)
        if event["event"] == "start":
            steps[event["step"]] = (event["action"], ".".join(event["object"]["id"]))
        told.append((event["event"], *steps.get(event.get("step", ""), ("", ""))))
    return told


class Warm:
    """Real processes of the program, forked from one that has imported everything (see warm.py)."""

    def __init__(self) -> None:
        self.parent = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "warm.py")],
            # More threads than cores only cost time here.
            env={**ENVIRONMENT, "TOKIO_WORKER_THREADS": "1", "LANCE_CPU_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, folder: Path, *arguments: str, journal: str, **when: float) -> int:
        """`stop_at=k`: killed at the very moment in which line k was written. `lines=k, delay=s`: killed by the clock,
        so many seconds after line k was seen. Neither: not killed. The exit code, KILLED when it was."""
        command = {
            "folder": str(folder),
            "arguments": [*arguments, "--yes", "--journal", journal],
            "journal": journal,
            **when,
        }
        assert self.parent.stdin is not None
        assert self.parent.stdout is not None
        self.parent.stdin.write(json.dumps(command) + "\n")
        self.parent.stdin.flush()
        return int(self.parent.stdout.readline())

    def finish(self, folder: Path) -> list[Line]:
        """Applied to the end: what was left to do."""
        code = self.run(folder, "apply", "m.yaml", journal="last.jsonl")
        assert code == 0, (folder / "out.txt").read_text()
        journal = folder / "last.jsonl"
        return story(journal) if journal.exists() else []

    def close(self) -> None:
        self.parent.communicate(timeout=60)
