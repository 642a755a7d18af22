"""Which Spark runs the data steps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Neither `master` nor `remote`: a session on this machine."""

    master: str | None = None
    remote: str | None = None
    conf: tuple[tuple[str, str], ...] = ()
