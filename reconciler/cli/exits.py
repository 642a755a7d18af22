"""The exit codes that are not the outcome of a report (`model/report.py` has those)."""

from __future__ import annotations

OK, ERROR, CHANGES, REFUSED, PARTLY, INTERRUPTED = 0, 1, 2, 3, 5, 130
