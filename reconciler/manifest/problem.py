"""A problem found in one document, before it is known where in the file that is.

Positions are looked up only when there is something to report, so that good manifests never pay for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.diagnostic import Severity

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    code: str
    path: Path
    message: str
    hint: str = ""
    severity: Severity = "error"
    at_key: bool = False
    """Point at the key instead of the value."""
    offset: int = 0
    """Characters into the scalar, for a type string or a reference."""


MAX_PROBLEMS = 100
"""Per file. After that the file is not read on: a person fixes the first hundred, a hostile file gets no more time."""


class TooMany(Exception):
    """The document has enough problems."""


class Problems(list[Problem]):
    """Stops the work on a document, and not only its output, once there is enough to report."""

    def append(self, problem: Problem) -> None:
        super().append(problem)
        if len(self) > MAX_PROBLEMS:
            raise TooMany


class ManifestError(Exception):
    """Raised where there is no list of diagnostics to add to. `code` is one of `codes.CODES`."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message if not hint else f"{message} ({hint})")
        self.code = code
        self.message = message
        self.hint = hint
