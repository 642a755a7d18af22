"""A file as it is to be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileChange:
    path: str
    before: str | None
    """None: there is no such file."""
    after: str
