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
    missing: str = ""
    """The key that is not there, when that is the problem."""


MAX_PROBLEMS = 100
"""Per file. After that the file is not read on: a person fixes the first hundred, a hostile file gets no more time."""


class TooMany(Exception):
    """The document has enough problems."""


class Problems(list[Problem]):
    """Stops the work on a document, and not only its output, once there is enough to report."""

    def __init__(self, permitted: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self._permitted = permitted
        self._unresolved: frozenset[Path] = frozenset()
        self._repeated: set[Path] = set()

    @property
    def none(self) -> bool:
        """Nothing is wrong, not even something that was told at another place."""
        return not self and not self._repeated

    def repeated(self, path: Path) -> None:
        """A reference there failed as one before did, which is told already."""
        self._repeated.add(path)

    def append(self, problem: Problem) -> None:
        if problem.code in self._permitted or self.follows(problem):
            return
        super().append(problem)
        if len(self) > MAX_PROBLEMS:
            raise TooMany

    def references_done(self) -> None:
        """All problems so far are about references. What else is wrong at their places follows from them."""
        places = {p.path for p in self} | self._repeated
        lists = {p[:-1] for p in places if p and isinstance(p[-1], int)}  # an element decides what `metadata.id` is
        self._unresolved = frozenset(places | lists)

    def told(self, places: frozenset[Path]) -> None:
        """What is wrong there is among the problems."""
        self._unresolved |= places

    def follows(self, problem: Problem) -> bool:
        return bool(self._unresolved) and problem.path in self._unresolved

    @property
    def identity_unknown(self) -> bool:
        """A reference in `metadata` failed: it is not known what the document is about."""
        return bool(self._unresolved) and any(path[:1] == ("metadata",) for path in self._unresolved)


class ManifestError(Exception):
    """Raised where there is no list of diagnostics to add to. `code` is one of `codes.CODES`; `problems` are all that
    were found, of which the error itself tells the first."""

    def __init__(self, code: str, message: str, hint: str = "", problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message if not hint else f"{message} ({hint})")
        self.code = code
        self.message = message
        self.hint = hint
        self.problems = problems or (Problem(code, (), message, hint),)
