"""Regular expressions that a manifest may hold: always matched against the whole text, in time linear in its length.

Python's `re` backtracks: one hostile pattern in a pull request would hang the run that reviews it. So patterns are the
part of its syntax that needs no backtracking, and all ways through a pattern are followed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NoReturn

MAX_PATTERN = 255
MAX_STATES = 1_000
MAX_DEPTH = 20
MAX_TEXT = 10_000
"""A longer text matches no pattern: nothing that people name, tag or describe is that long."""
_MAX_CACHED = 5_000
_SPECIAL = frozenset("\\^$.|?*+()[]{}")

Accepts = Callable[[str], bool]


class PatternError(ValueError):
    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


def problem_with(pattern: str) -> PatternError | None:
    try:
        compiled(pattern)
    except PatternError as error:
        return error
    return None


def matches(pattern: str, text: str, one_line: bool = False) -> bool:
    """The whole text, and the letter case as it is. Raises PatternError.

    `one_line`: no `.` stands for a line end, as in Python; a name that has one is no name that somebody meant to allow.
    In values it does: a description of two lines is one text, and a block of YAML ends with a line end anyway."""
    return compiled(pattern, one_line).matches(text)


@lru_cache(maxsize=256)
def compiled(pattern: str, one_line: bool = False) -> Machine:
    return _Parser(pattern, one_line).machine()


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


_CLASSES: dict[str, Accepts] = {
    "d": str.isdecimal,
    "w": _is_word,
    "s": str.isspace,
    "D": lambda c: not c.isdecimal(),
    "W": lambda c: not _is_word(c),
    "S": lambda c: not c.isspace(),
}


@dataclass(slots=True)
class Machine:
    """States with at most one character edge, or with free edges to others. State 0 is the end."""

    edges: list[tuple[Accepts, int] | None] = field(default_factory=lambda: [None])
    free: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    start: int = 0
    _seen: dict[tuple[frozenset[int], str], frozenset[int]] = field(default_factory=dict)

    def add(self, accepts: Accepts, target: int) -> int:
        return self._new((accepts, target), ())

    def split(self, *targets: int) -> int:
        return self._new(None, targets)

    def _new(self, edge: tuple[Accepts, int] | None, free: tuple[int, ...]) -> int:
        if len(self.edges) >= MAX_STATES:
            raise PatternError("it is too large: its repetitions multiply", 0)
        self.edges.append(edge)
        self.free.append(free)
        return len(self.edges) - 1

    def matches(self, text: str) -> bool:
        if len(text) > MAX_TEXT:
            return False
        now = self._reached([self.start])
        for char in text:
            now = self._after(now, char)
            if not now:
                return False
        return 0 in now

    def _after(self, now: frozenset[int], char: str) -> frozenset[int]:
        """Ways that were gone before are remembered: most names take the same few."""
        found = self._seen.get((now, char))
        if found is None:
            steps = (self.edges[state] for state in now)
            found = self._reached([edge[1] for edge in steps if edge is not None and edge[0](char)])
            if len(self._seen) < _MAX_CACHED:
                self._seen[now, char] = found
        return found

    def _reached(self, states: list[int]) -> frozenset[int]:
        reached: set[int] = set()
        while states:
            state = states.pop()
            if state not in reached:
                reached.add(state)
                states.extend(self.free[state])
        return frozenset(reached)


Part = Callable[[int], int]
"""Builds a piece of the machine that goes on to the given state; gives the state where the piece begins."""


class _Parser:
    def __init__(self, pattern: str, one_line: bool) -> None:
        self.text = pattern
        self.one_line = one_line
        self.at = 0
        self.depth = 0
        self.built = 0
        self.made = Machine()
        self.begin, self.end = int(pattern.startswith("^")), len(pattern)
        if pattern.endswith("$") and not pattern.endswith("\\$"):
            self.end -= 1

    def machine(self) -> Machine:
        if len(self.text) > MAX_PATTERN:
            raise PatternError(f"it is longer than {MAX_PATTERN} characters", 0)
        self.at = self.begin
        part = self._either()
        if self.at < self.end:
            self._fail("a ) without its (")
        self.made.start = part(0)
        return self.made

    def _fail(self, message: str, at: int | None = None) -> NoReturn:
        raise PatternError(message, self.at if at is None else at)

    def _peek(self) -> str:
        return self.text[self.at] if self.at < self.end else ""

    def _either(self) -> Part:
        parts = [self._sequence()]
        while self._peek() == "|":
            self.at += 1
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else lambda to: self.made.split(*[part(to) for part in parts])

    def _sequence(self) -> Part:
        parts: list[Part] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._one()))
        return lambda to: _joined(parts, to)

    def _one(self) -> Part:
        char, start = self._peek(), self.at
        self.at += 1
        match char:
            case "(":
                return self._group(start)
            case "[":
                return self._step(self._set(start))
            case ".":
                return self._step(lambda c: c != "\n" or not self.one_line)
            case "\\":
                return self._step(self._escape())
            case "*" | "+" | "?" | "{":
                self._fail(f"{char} has nothing before it to repeat; write \\{char} for the character", start)
            case "^" | "$":
                self._fail(f"{char} inside a pattern: a pattern is for the whole text; write \\{char} for it", start)
        return self._step(lambda c: c == char)

    def _step(self, accepts: Accepts) -> Part:
        return lambda to: self.made.add(accepts, to)

    def _group(self, start: int) -> Part:
        if self.text.startswith("?:", self.at):
            self.at += 2
        elif self._peek() == "?":
            self._fail("only ( and (?: begin a group: no look-around, no flags, no names", start)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self._fail(f"more than {MAX_DEPTH} groups inside each other", start)
        part = self._either()
        if self._peek() != ")":
            self._fail("this ( is not closed", start)
        self.depth -= 1
        self.at += 1
        return part

    def _repeated(self, part: Part) -> Part:
        char, start = self._peek(), self.at
        if char not in ("*", "+", "?", "{") or not char:
            return part
        low, high = self._count()
        if self._peek() in ("*", "+", "?", "{") and self._peek():
            self._fail("two repetitions in a row: put the first into a group", self.at)
        if high is not None and high < low:
            self._fail("the repetition ends before it begins", start)
        return lambda to: self._times(part, low, high, to)

    def _count(self) -> tuple[int, int | None]:
        char = self._peek()
        self.at += 1
        if char != "{":
            return (1 if char == "+" else 0), (1 if char == "?" else None)
        start = self.at - 1
        closing = self.text.find("}", self.at, self.end)
        first, comma, last = self.text[self.at : closing].partition(",") if closing >= 0 else ("", "", "")
        if closing < 0 or not (first + last).isdecimal() or not first or len(first) > 4 or len(last) > 4:
            self._fail("a { that is no repetition such as {2} or {1,63}; write \\{ for the character", start)
        self.at = closing + 1
        low = int(first)
        return low, low if not comma else int(last) if last else None

    def _times(self, part: Part, low: int, high: int | None, to: int) -> int:
        if high is None:
            loop = self.made.split(to)
            self.made.free[loop] = (part(loop), to)
            state = loop
        else:
            state = to
            for _ in range(high - low):
                state = self.made.split(part(state), to)
        for _ in range(low):
            state = part(state)
            self.built += 1  # A repeated nothing makes no states, and would go on for ages.
            if self.built > MAX_STATES:
                self._fail("it is too large: its repetitions multiply", 0)
        return state

    def _escape(self) -> Accepts:
        char = self._peek()
        self.at += 1
        if char in _CLASSES:
            return _CLASSES[char]
        if not char or char.isalnum():
            self._fail(f"\\{char} has no meaning here; \\d, \\w, \\s and escaped signs have", self.at - 2)
        return lambda c: c == char

    def _set(self, start: int) -> Accepts:
        negated = self._peek() == "^"
        self.at += negated
        tests = list(self._members(start))
        return lambda c: any(test(c) for test in tests) is not negated

    def _members(self, start: int) -> Iterator[Accepts]:
        first = True
        while first or self._peek() != "]":
            low = self._peek()
            if not low:
                self._fail("this [ is not closed", start)
            first = False
            self.at += 1
            if low == "\\" and self._peek() in _CLASSES and self._peek():
                yield self._escape()
                continue
            low = self._literal(low)
            if self._peek() != "-" or self.text[self.at + 1 : self.at + 2] in ("]", ""):
                yield lambda c, low=low: c == low  # type: ignore[misc]
                continue
            self.at += 2
            high = self._literal(self.text[self.at - 1])
            if high < low:
                self._fail(f"the range {low}-{high} runs backwards")
            yield lambda c, low=low, high=high: low <= c <= high  # type: ignore[misc]
        self.at += 1

    def _literal(self, char: str) -> str:
        if char != "\\":
            return char
        char = self._peek()
        self.at += 1
        if not char or char.isalnum():
            self._fail(f"\\{char} has no meaning here", self.at - 2)
        return char


def _joined(parts: list[Part], to: int) -> int:
    for part in reversed(parts):
        to = part(to)
    return to


def shown_literally(pattern: str) -> bool:
    """True for a pattern that is just a text: a message can name that text."""
    return not _SPECIAL & set(pattern)
