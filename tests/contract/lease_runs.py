"""Real processes that apply, stop at a gate before their first write, and write down what they do in one file.

Run as a program: FOLDER NAME ARGUMENTS... The lines of `audit` are in the order in which things happened, whichever
process they are of: `NAME begin ACTION` and `NAME end ACTION`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
LONG = 90.0


def main(folder: Path, name: str, arguments: list[str]) -> int:
    from reconciler.cli import run
    from reconciler.engine import run_step as steps

    until_it_holds, applied = steps._write_until_it_holds, steps._applied

    def gated(*given: Any) -> Any:
        (folder / f"{name}.at-gate").touch()
        while (folder / f"{name}.gate").exists():
            time.sleep(0.01)
        return until_it_holds(*given)

    def noted(change: Any, *given: Any) -> Any:
        note(folder, f"{name} begin {change.action}")
        try:
            return applied(change, *given)
        finally:
            note(folder, f"{name} end {change.action}")

    steps._write_until_it_holds, steps._applied = gated, noted
    return run([*arguments, "--parallelism", "1"] if arguments[0] == "apply" else arguments)


def note(folder: Path, line: str) -> None:
    file = os.open(folder / "audit", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{line}\n".encode())
    os.close(file)


class Runs:
    """`ttl`: None for the ordinary time to live."""

    def __init__(self, folder: Path, ttl: float | None = None) -> None:
        self.folder = folder
        self.environment = {**os.environ, "PYTHONPATH": str(REPO)}
        if ttl is not None:
            self.environment["RECONCILER_LEASE_TTL"] = str(ttl)

    @contextmanager
    def started(self, name: str, *arguments: str, gate: bool = False) -> Iterator[subprocess.Popen[bytes]]:
        if gate:
            (self.folder / f"{name}.gate").touch()
        with open(self.folder / f"{name}.out", "wb") as out:
            process = subprocess.Popen(
                [sys.executable, __file__, str(self.folder), name, *arguments],
                cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    @contextmanager
    def holding(self, name: str) -> Iterator[subprocess.Popen[bytes]]:
        """Holds the lease and has not written yet."""
        with self.started(name, "apply", "m.yaml", "--yes", "--report", f"{name}.json", gate=True) as process:
            self.until(lambda: (self.folder / f"{name}.at-gate").exists(), process)
            yield process

    def run(self, name: str, *arguments: str) -> int:
        with self.started(name, *arguments) as process:
            return process.wait(LONG)

    def open_gate(self, name: str) -> None:
        (self.folder / f"{name}.gate").unlink()

    def out(self, name: str) -> str:
        return (self.folder / f"{name}.out").read_text()

    def audit(self) -> list[str]:
        file = self.folder / "audit"
        return file.read_text().splitlines() if file.exists() else []

    def writers(self) -> list[str]:
        return [line.split()[0] for line in self.audit()]

    def until(self, holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + LONG
        while not holds():
            assert process.poll() is None, [file.read_text() for file in self.folder.glob("*.out")]
            assert time.monotonic() < end, [file.read_text() for file in self.folder.glob("*.out")]
            time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
