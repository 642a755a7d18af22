"""The exit codes that are not the outcome of a report (`model/report.py` has those)."""

from __future__ import annotations

OK, ERROR, CHANGES, PARTLY, INTERRUPTED = 0, 1, 2, 5, 130
