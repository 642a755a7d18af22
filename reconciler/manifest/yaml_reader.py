"""A file's text to documents. One broken document never hides what can be said about the others."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass

import yaml
from yaml.events import DocumentEndEvent, DocumentStartEvent, ScalarEvent, StreamEndEvent

from reconciler.manifest.yaml_careful import Careful, Flaw, read_careful
from reconciler.manifest.yaml_fast import LIMITS, NeedsCare, TooMuch, builder, events
from reconciler.manifest.yaml_scalars import Value

MAX_EMPTY = 10_000
_MARKER = re.compile("^---(?=[ \t\n\x85\u2028\u2029]|\\Z)", re.MULTILINE)
"""As libyaml has it: no other space ends it."""


@dataclass(slots=True)
class Document:
    """`line` and `column` of the root node, from 1. Positions inside come from `careful()`, on demand."""

    value: Value
    line: int
    column: int
    _text: str
    _begin: int
    _body: int
    _first_line: int
    _careful: Careful | None = None

    @property
    def was_careful(self) -> bool:
        """The fast builder passed it on; the careful reading may have found flaws."""
        return self._careful is not None

    def careful(self) -> Careful:
        """Where everything stands in the file."""
        if self._careful is None:
            self._careful = read_careful(self._own_text(), self._first_line, positions_only=True)
        return self._careful

    def read_with_care(self) -> Careful:
        """Instead of the fast builder, which gave up: the data comes from here too."""
        self._careful = read_careful(self._own_text(), self._first_line)
        self.value = self._careful.value
        return self._careful

    @property
    def begin(self) -> int:
        """Where the line of its marker begins; without a marker, that of its first word."""
        return self._begin

    @property
    def span(self) -> tuple[int, int]:
        """A document ends at the next marker: without this bound every look-up would copy the rest of the file."""
        after = _MARKER.search(self._text, self._body)
        return self._begin, after.start() if after else len(self._text)

    def _own_text(self) -> str:
        begin, end = self.span
        return self._text[begin:end]


def documents(text: str) -> Iterator[Document | Flaw]:
    """Documents in order, and flaws between them. After a syntax error reading goes on at the next `---`."""
    start, line = 0, 0
    while start < len(text):
        try:
            stopped = yield from _stream(text, start, line)
            if stopped is None:
                return
        except yaml.YAMLError as error:
            flaw, stopped = _syntax_error(error, line)
            yield flaw
        # `stopped` is the line (from 0, in the file) from which the next document is looked for.
        after = _next_marker(text, start, stopped - line)
        if after is None:
            return
        line += text.count("\n", start, after)
        start = after


def _next_marker(text: str, start: int, lines: int) -> int | None:
    at = start
    for _ in range(lines):
        at = text.find("\n", at) + 1
        if at == 0:
            return None
    found = _MARKER.search(text, max(at, start + 1))  # The error may be at the marker that reading began at.
    return found.start() if found else None


def _stream(text: str, start: int, line: int) -> Generator[Document | Flaw, None, int | None]:
    """Reads from `start` on. Returns None at the end, or the line from which to look for the next document."""
    next_event = events(text[start:] if start else text)
    build = builder(next_event)
    empty = 0
    while True:
        event = next_event()
        kind: type = event.__class__
        if event is None or kind is StreamEndEvent:
            return None
        if kind is not DocumentStartEvent:
            continue
        root = next_event()
        kind = root.__class__
        if kind is ScalarEvent and not root.value and root.implicit[0]:
            empty += 1
            if empty > MAX_EMPTY:
                message = f"the file has more than {MAX_EMPTY:,} empty documents"
                yield Flaw("M114", root.start_mark.line + line + 1, 1, message, "remove the extra --- lines")
                return None
            continue
        mark = root.start_mark
        begin, body = event.start_mark, event.end_mark
        document = Document(
            None,
            mark.line + line + 1,
            mark.column + 1,
            text,
            begin.index - begin.column + start,
            body.index + start,
            begin.line + line,
        )
        try:
            document.value = build(root)
        except TooMuch as limit:
            yield Flaw(limit.code, limit.line + line + 1, limit.column + 1, *LIMITS[limit.code])
            return limit.line + line + 1
        except NeedsCare:
            if document.read_with_care().stopped:
                yield document
                return int(mark.line) + line + 1
            while next_event().__class__ is not DocumentEndEvent:  # raises on a syntax error further down
                pass
        yield document


def _syntax_error(error: yaml.YAMLError, line: int) -> tuple[Flaw, int]:
    """And the line to go on from. A marker that the error is at ends what is wrong, and its document is still to be
    read; one that the error stands behind has begun the wrong document."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "the YAML cannot be read")
    context = getattr(error, "context", None)
    row, column = (mark.line + line, mark.column) if mark else (line, 0)
    message = f"YAML syntax: {problem}" + (f" ({context})" if context else "")
    return Flaw("M105", row + 1, column + 1, message, _syntax_hint(problem)), row + (column > 0)


def _syntax_hint(problem: str) -> str:
    if "cannot start any token" in problem:
        return "indent with spaces, not tabs; quote values that begin with a special character"
    if "mapping values are not allowed" in problem:
        return "quote a value that contains ': '"
    if "did not find expected ',' or '}'" in problem:
        return (
            "close every quote and bracket; inside of { } a value with [ ] { } or ', ' is in quotes, such as "
            '{name: at, type: "timestamp[us, tz=UTC]"}'
        )
    if "did not find expected" in problem or "could not find expected" in problem:
        return "check the indentation, and that every quote and bracket is closed"
    return ""
