"""Maintenance that would do harm."""

from __future__ import annotations

from reconciler.manifest.problem import Path, Problem
from reconciler.model.maintenance import Maintenance

PLACE: Path = ("spec", "maintenance")
SHORTEST = 3600
"""Seconds. Whoever has opened a version reads its files for a while after it is not the newest any more."""


def check_maintenance(maintenance: Maintenance, problems: list[Problem]) -> None:
    cleanup = maintenance.cleanup
    if cleanup is not None and cleanup.older_than < SHORTEST:
        message = "a version that was the newest within the last hour may still be read"
        problems.append(Problem("M460", (*PLACE, "cleanup", "olderThan"), message, "write 1h or more, such as 14d"))
