"""What is wrong with the input, where, and how to fix it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]
OF_OTHERS = frozenset({"M310", "M311", "M312", "M313", "M314"})
"""What the manifests of others tried and may not do."""


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """A place in a manifest. Lines and columns count from 1."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, order=True)
class Diagnostic:
    source: Source
    code: str
    severity: Severity
    message: str
    hint: str = ""

    def to_json(self) -> dict[str, str | int]:
        return {
            "code": self.code,
            "severity": self.severity,
            "file": self.source.file,
            "line": self.source.line,
            "column": self.source.column,
            "message": self.message,
            "hint": self.hint,
        }


def tidy(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Sorted by place and without repeats: the order never depends on how the files were read."""
    return sorted(set(diagnostics))


def foremost(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """What others may not do, then errors: who reads only the beginning, or gets no more of it, has that. Whoever tries
    something can add as many harmless problems as it takes to hide it."""
    return sorted(diagnostics, key=lambda d: (d.code not in OF_OTHERS, d.severity != "error"))


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(d.severity == "error" for d in diagnostics)
