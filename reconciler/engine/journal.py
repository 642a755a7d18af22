"""What a run did, line by line, on disk before it goes on: the story of a run that was killed.

JSON lines: `header`, what happened to the `lease`, `start` and `end` of each step, then `finish`. A step that the plan
holds back has an `end` only, with the reason. Nothing is read back from here: the live catalog is the state. A `start`
is synced before its step writes anything, an `end` before the run goes on from it. Threads that wait at the same time
share one sync.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from reconciler import __version__
from reconciler.model.log_commands import in_json
from reconciler.model.plan import Json, Step
from reconciler.model.report import Outcome, StepResult

FOLDER = Path(".reconciler") / "journal"

Clean = Callable[[Json], Json]


class JournalError(Exception):
    """The journal cannot be written (any more): no further step may start."""


class Journal(Protocol):
    def start(self, step: Step) -> None: ...
    def end(self, *results: StepResult) -> None: ...
    def lease(self, event: Mapping[str, Json]) -> None: ...
    def finish(self, outcome: Outcome) -> None: ...


class NoJournal:
    def lease(self, event: Mapping[str, Json]) -> None:
        pass

    def start(self, step: Step) -> None:
        pass

    def end(self, *results: StepResult) -> None:
        pass

    def finish(self, outcome: Outcome) -> None:
        pass


class Witness:
    """Passes everything on, and knows at any moment which steps have started and how those that ended did. Without a
    lock: it is asked by a signal handler."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.started: dict[str, Step] = {}
        self.ended: dict[str, StepResult] = {}

    def start(self, step: Step) -> None:
        self.started[step.id] = step
        self._journal.start(step)

    def end(self, *results: StepResult) -> None:
        self.ended.update({result.step.id: result for result in results})
        self._journal.end(*results)

    def lease(self, event: Mapping[str, Json]) -> None:
        self._journal.lease(event)

    def finish(self, outcome: Outcome) -> None:
        self._journal.finish(outcome)


class FileJournal:
    """`clean` takes secrets out of every value. An existing file is continued, never overwritten. The folder must be
    there, as for every file that someone names."""

    def __init__(
        self, path: Path, plan_id: str, clean: Clean = lambda value: value, run: Mapping[str, Json] | None = None
    ) -> None:
        self.path = path
        self._clean = clean
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._written = 0
        self._synced = 0
        self._broken: JournalError | None = None
        try:
            # A pipe that nobody reads is an error, not something to wait for.
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o644)
            os.set_blocking(self._file, True)
        except OSError as error:
            raise JournalError(f"cannot write the journal {path}: {error.strerror}") from error
        header: dict[str, Json] = {"event": "header", "plan_id": plan_id, "tool_version": __version__}
        self._note({**header, "pid": os.getpid(), **({"run": dict(run)} if run is not None else {})})

    def start(self, step: Step) -> None:
        self._note({"event": "start", "step": step.id, **_about(step)})

    def end(self, *results: StepResult) -> None:
        self._note(*(_end_event(result) for result in results))

    def finish(self, outcome: Outcome) -> None:
        self._note({"event": "finish", "outcome": outcome})
        with self._turn, self._lock:  # Nothing is written after it: the number of the file may be another's then.
            self._broken = JournalError(f"the journal {self.path} is closed")
            os.close(self._file)

    def lease(self, event: Mapping[str, Json]) -> None:
        self._note(event)

    def _note(self, *events: Mapping[str, Json]) -> None:
        """Returns once the lines are on disk."""
        self._wait_for(self._write(*events))

    def _write(self, *events: Mapping[str, Json]) -> int:
        """Hands the lines to the operating system, which a killed process cannot take back. Raises JournalError, also
        for every later line. Gives the number to wait for."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        values = [self._clean({**event, "time": now}) for event in events]
        data = "".join(in_json(json.dumps(v, ensure_ascii=True, separators=(",", ":"))) + "\n" for v in values).encode()
        with self._lock:
            if self._broken is not None:
                raise self._broken
            try:
                while data:
                    data = data[os.write(self._file, data) :]
            except OSError as error:
                raise self._break(error) from error
            self._written += 1
            return self._written

    def _wait_for(self, ticket: int) -> None:
        """Returns once that line is on disk. Who has to wait for another's sync often finds its own line synced."""
        with self._turn:
            if self._broken is not None:
                raise self._broken
            if self._synced >= ticket:
                return
            with self._lock:
                top = self._written
            try:
                os.fsync(self._file)
            except OSError as error:
                raise self._break(error) from error
            self._synced = top

    def _break(self, error: OSError) -> JournalError:
        self._broken = JournalError(f"cannot write the journal {self.path}: {error.strerror}")
        return self._broken


def _end_event(result: StepResult) -> dict[str, Json]:
    return {
        "event": "end",
        "step": result.step.id,
        "status": result.status,
        "attempts": result.attempts,
        "error": result.error_json(),
        "version_before": result.version_before,
        "version_after": result.version_after,
        "tag": result.tag,
        **(_about(result.step) | result.why_held_back() if result.held_back else {}),
    }


def _about(step: Step) -> dict[str, Json]:
    return {
        "action": step.action,
        "catalog": step.catalog,
        "object": {"kind": step.change.kind, "id": list(step.change.ident)},
    }


def default_path(plan_id: str, now: datetime | None = None, make_folder: bool = False) -> Path:
    """Under the working directory. The time comes first, so that the files sort by run. Raises JournalError when the
    folder is to be made and cannot be."""
    if make_folder:
        try:
            FOLDER.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise JournalError(f"cannot write the journal in {FOLDER}: {error.strerror}") from error
    stamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    return FOLDER / f"{stamp}-{short_id(plan_id)}.jsonl"


def short_id(plan_id: str) -> str:
    return plan_id.removeprefix("sha256:")[:12]
