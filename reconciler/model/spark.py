"""What runs the data steps, and which Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Runner = Literal["local", "spark"]
"""`local`: threads of this process."""
RUNNERS: Final[tuple[Runner, ...]] = ("local", "spark")
ZONE: Final = "UTC"
"""Of every session: a time without a zone counts as UTC, wherever the program runs."""
DEFAULT_IN_PROCESS_ROWS = 10_000_000
DEFAULT_IN_PROCESS_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class InProcess:
    """`management.inProcess`: up to which size of a table its columns are written without Spark."""

    max_rows: int = DEFAULT_IN_PROCESS_ROWS
    max_bytes: int = DEFAULT_IN_PROCESS_BYTES

    def holds(self, rows: int | None, size: int | None) -> bool:
        """`size`: bytes of the data files. What is not known is not small."""
        return rows == 0 or (rows is not None and size is not None and rows <= self.max_rows and size <= self.max_bytes)


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Neither `master` nor `remote`: a session on this machine."""

    master: str | None = None
    remote: str | None = None
    conf: tuple[tuple[str, str], ...] = ()
    sql_code: bool = False
    """SQL may read files by their paths."""
