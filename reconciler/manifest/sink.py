"""Where the diagnostics of one file go: located, and bounded in number."""

from __future__ import annotations

from reconciler.manifest.layers import Layered
from reconciler.manifest.problem import MAX_PROBLEMS, Path, Problem
from reconciler.manifest.yaml_careful import Flaw
from reconciler.manifest.yaml_reader import Document
from reconciler.model.diagnostic import OF_OTHERS, Diagnostic, Source


class Sink:
    """Errors and warnings are counted apart, so that many warnings never become an error. A warning of what others may
    not do always has room, or whoever tries it would fill the room before; it comes once a document, of those that the
    base has too."""

    def __init__(self, file: str, diagnostics: list[Diagnostic]) -> None:
        self.file = file
        self._all = diagnostics
        self._room = {"error": MAX_PROBLEMS, "warning": MAX_PROBLEMS}

    @property
    def full(self) -> bool:
        """Enough errors: nothing more of this file needs to be read."""
        return self._room["error"] < 0

    def flaw(self, flaw: Flaw) -> None:
        source = Source(self.file, flaw.line, flaw.column)
        self._add(Diagnostic(source, flaw.code, "error", flaw.message, flaw.hint))

    def problem(self, document: Document | Layered, problem: Problem) -> None:
        if isinstance(document, Layered):
            layer, told = document.home(problem)
            if told is None:
                return
            if layer is not None:
                layer.sink.problem(layer.document, told)
                return
            document, problem = document.base, told
        if problem.code in OF_OTHERS and problem.severity == "warning":
            self._all.append(locate(self.file, document, problem))
        elif self._room[problem.severity] >= 0:  # looking a place up costs a second reading of the document
            self._add(locate(self.file, document, problem))

    def _add(self, diagnostic: Diagnostic) -> None:
        self._room[diagnostic.severity] -= 1
        left = self._room[diagnostic.severity]
        if left >= 0:
            self._all.append(diagnostic)
        elif left == -1:
            message = f"more than {MAX_PROBLEMS} {diagnostic.severity}s in this file"
            hint = "fix those shown first; the rest was not looked at"
            self._all.append(Diagnostic(diagnostic.source, "M116", diagnostic.severity, message, hint))


def locate(file: str, document: Document, problem: Problem) -> Diagnostic:
    """The place of a problem in its file: the value's, the key's, or a character inside a scalar."""
    key, node = document.careful().locate(problem.path)
    target = key if problem.at_key and key is not None else node
    if target is None:
        source = Source(file, document.line, document.column)
    else:
        inside = problem.offset and target.kind == "scalar"
        source = Source(file, target.line, target.column_of(problem.offset) if inside else target.column)
    return Diagnostic(source, problem.code, problem.severity, problem.message, problem.hint)


def place_in(file: str, document: Document | Layered, path: Path) -> Source:
    """Of a key, or of what comes closest to it; in the document that it was written in."""
    if isinstance(document, Layered):
        layer = document.layer_of(path)
        if layer is not None:
            return place_in(layer.sink.file, layer.document, path)
        document = document.base
    key, node = document.careful().locate(path)
    target = key or node
    line, column = (target.line, target.column) if target is not None else (document.line, document.column)
    return Source(file, line, column)
