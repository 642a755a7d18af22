"""The file of --report: claimed before the first write, so that what it holds is always about this run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from reconciler import app, app_files
from reconciler.model.report import Report
from reconciler.render import as_json


class ReportFile:
    """`lost`: the report could not be written at the end, although the file could be at the start."""

    def __init__(
        self, path: str | None, say: Callable[[str], None], told: Callable[[Report], None] = lambda report: None
    ) -> None:
        """`told`: who else wants the report, whether or not there is a file."""
        self._path = None if path is None else Path(path)
        self._say = say
        self._told = told
        self.lost = False

    def claim(self) -> None:
        """Replaces the report of an earlier run by one that says `interrupted`, which stays if this one is killed.
        Raises Failure when the file cannot be written."""
        path, self._path = self._path, None  # A file that is refused gets no report about the refusal either.
        if path is None:
            return
        app_files.claim_report(path)
        self._path = path

    def began(self, plan_id: str, journal: Path) -> None:
        """What is there if the run is killed names its journal. That it could not be written the end will tell."""
        if self._path is not None:
            with contextlib.suppress(app.Failure):
                app_files.claim_report(self._path, plan_id, str(journal))

    def write(self, report: Report) -> None:
        """What was applied stays applied: a failure is told, and kept in `lost`."""
        self._write(report)
        self._told(report)

    def _write(self, report: Report) -> None:
        if self._path is None:
            return
        try:
            app_files.write_file(self._path, as_json.report_json(report))
        except app.Failure as error:
            self.lost = True
            self._say(f"error: the report was not written: {error.message}; the outcome is {report.outcome}")
