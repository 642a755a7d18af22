"""What a run leaves for those who did not watch it: --metrics-file and the termination message, whatever happens."""

from __future__ import annotations

import argparse
import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from reconciler import app, app_files
from reconciler.model.plan import Plan
from reconciler.model.report import Report
from reconciler.model.run import Run
from reconciler.render.metrics import LAST_RUN, LAST_SUCCESS, label_problem, metrics_text, running_text, time_in
from reconciler.render.termination import termination_text

TERMINATION_LOG = "RECONCILER_TERMINATION_LOG"
KUBERNETES, KUBERNETES_LOG = "KUBERNETES_SERVICE_HOST", Path("/dev/termination-log")


class Ending:
    """Knows the run so far. Written at the end, and when a report is: a second signal ends the program right there."""

    def __init__(self, say: Callable[[str], None], clean: Callable[[str], str]) -> None:
        self._say, self._clean = say, clean
        self._started, self._clock = time.time(), time.monotonic()
        self._command = ""
        self._metrics: Path | None = None
        self._labels: dict[str, str] = {}
        self._last_success = 0.0
        self._warned: set[str] = set()
        self.plan: Plan | None = None
        self.report: Report | None = None
        self.problems: list[str] = []

    def begin(self, args: argparse.Namespace) -> None:
        self._command = " ".join(filter(None, (args.command, getattr(args, "verb", None))))

    def claim(self, args: argparse.Namespace) -> None:
        """Replaces the metrics of an earlier run by ones that say `running`, which stay if this one is killed. Raises
        Failure when they could not be written: a job whose metrics nobody gets is to be noticed on its first day."""
        if args.metrics_file is None:
            if args.metrics_label:
                raise app.Failure("--metrics-label is for --metrics-file, which was not given")
            return
        path, labels = Path(args.metrics_file), _labels(args.metrics_label)
        if _cannot_be_replaced(path):
            problem = "is not a regular file, and the metrics replace the whole file in one step: choose another name"
            raise app.Failure(f"--metrics-file {path} {problem}; nothing was written")
        earlier = app_files.text_to_replace(path)
        last_run, self._last_success = (time_in(earlier, n, self._command, labels) for n in (LAST_RUN, LAST_SUCCESS))
        app_files.write_file(path, running_text(self._command, last_run, self._last_success, labels, self._clean))
        self._metrics, self._labels = path, labels

    def reported(self, report: Report) -> None:
        self.report = report
        self.write(report.exit_code)

    def write(self, code: int) -> Run:
        """What was done stays done: that something cannot be written is told, and changes no exit code."""
        seconds = time.monotonic() - self._clock
        run = Run(self._command, self._started, seconds, code, self.plan, self.report, tuple(self.problems))
        if self._metrics is not None:
            try:
                app_files.write_file(self._metrics, metrics_text(run, self._last_success, self._labels, self._clean))
            except app.Failure as error:
                self._warn(f"warning: the metrics were not written: {error.message}")
        for path in termination_logs():
            with contextlib.suppress(OSError):
                _write_in_place(path, termination_text(run, self._clean).encode())
        return run

    def _warn(self, text: str) -> None:
        """Once: what cannot be written after the report cannot be at the end either."""
        if text not in self._warned:
            self._warned.add(text)
            self._say(text)


def _labels(given: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Raises Failure for a name that cannot be, and for two values of one: labels tell jobs apart, so that a guess
    would mix two of them."""
    labels: dict[str, str] = {}
    for name, value in given:
        if problem := label_problem(name):
            raise app.Failure(f"--metrics-label: {problem}")
        if labels.setdefault(name, value) != value:
            both = f"--metrics-label {name}={labels[name]} and --metrics-label {name}={value}"
            raise app.Failure(f"{both}: give one of them")
    return labels


def _cannot_be_replaced(path: Path) -> bool:
    """A pipe, a socket, a device: to open a pipe that nobody reads would take for ever. Folders have an error of their
    own, and what cannot be looked at is told by whoever tries to write it."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _write_in_place(path: Path, data: bytes) -> None:
    """Raises OSError, also for a pipe that nobody reads: a run does not wait for a reader to end."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o666)
    with os.fdopen(handle, "wb", buffering=0) as file:
        file.write(data)


def termination_logs() -> Iterable[Path]:
    """In place: Kubernetes mounts the file, so that it cannot be replaced. An empty variable turns it off."""
    chosen = os.environ.get(TERMINATION_LOG)
    if chosen is not None:
        return [Path(chosen)] if chosen else []
    inside = KUBERNETES in os.environ and os.access(KUBERNETES_LOG, os.W_OK)
    return [KUBERNETES_LOG] if inside else []
