"""Markdown that others' names and values cannot break out of.

A comment on a pull request is read with trust, and a property value is written by anybody. GitHub, GitLab and their kin
make links, mentions, references and emoji out of plain text, each by rules of its own; what all of them leave alone is
code. So what is not ours stands in a code span, or is a word in which there is nothing to interpret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from reconciler.render.safe_text import LONGEST, bounded, safe

_TICKS = re.compile("`+")
_SPAN = re.compile("`([^`]+)`")
_WORD = re.compile(r"\(?[A-Za-z]+(?:['-][A-Za-z]+)*[.,;:)]{0,2}|[0-9]{1,6}[,;:]?|%")
_TRAP = re.compile(r"(?<![A-Za-z])(?:[0-9A-Fa-f]{7,}|(?i:www|https?|ftp|mailto|xmpp))(?![A-Za-z])")
"""GitHub links what could be the hash of a commit, and some words could be; and `www.` with nothing after it."""
_QUESTION = re.compile(r"\bdid you mean ([^\s`?]+)\?(?=\s|$)")
"""Its mark is no part of the name; anywhere else it may be one of a pattern."""
_MARKS = (",", ";", ":", ".", "?")
_PUNCTUATION = re.compile(r"(.*[^.,;:])([.,;:]+)")


def code(text: str, longest: int = LONGEST) -> str:
    """A code span that shows the text, on one line. Its fence is the shortest that the text does not have: renderers
    give up on long ones."""
    shown = safe(bounded(text, longest))
    if not shown:
        return '`""`'
    taken = {len(run) for run in _TICKS.findall(shown)}
    fence = "`" * next(n for n in range(1, len(taken) + 2) if n not in taken)
    padded = shown[0] in "` " or shown[-1] in "` "
    return f"{fence} {shown} {fence}" if padded and shown.strip() else f"{fence}{shown}{fence}"


def prose(text: str, longest: int = LONGEST) -> str:
    """A sentence with names in it: plain words as they are, all else as code; what is in backticks is one span."""
    return _joined(list(_parts(_QUESTION.sub(r"did you mean `\1`?", safe(bounded(text, longest))))))


def cell(markdown: str) -> str:
    """Code spans and prose, for a table: there every pipe ends a cell, in code too, unless it is escaped."""
    return markdown.replace("|", r"\|")


def row(*cells: str) -> str:
    return f"| {' | '.join(cell(c) for c in cells)} |\n"


def header(*names: str) -> str:
    return f"{row(*names)}|{'---|' * len(names)}\n"


def length(text: str) -> int:
    """As the strictest of those who limit comments would count: UTF-16 units, never less than characters."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _parts(text: str) -> Iterator[str]:
    end = 0
    for span in _SPAN.finditer(text):
        yield from _words(text[end : span.start()])
        yield code(span[1], len(span[1]))
        end = span.end()
    yield from _words(text[end:])


def _words(text: str) -> Iterator[str]:
    """Neighbours that are not plain share a span; the punctuation after them stays outside. What stands in brackets
    stays together, plain words in it too: it is YAML to be copied."""
    odd: list[str] = []
    words = text.split()
    inside = _bracketed(words)
    for number, word in enumerate(words):
        if number not in inside and _WORD.fullmatch(word) and not _TRAP.search(word):
            yield from _spanned(odd)
            odd = []
            yield word
        else:
            odd.append(word)
    yield from _spanned(odd)


def _bracketed(words: Sequence[str]) -> set[int]:
    """Those from a `[` or `{` up to where all are closed; one that is never closed opens nothing."""
    found: set[int] = set()
    begin, depth = 0, 0
    for number, word in enumerate(words):
        begin = begin if depth else number
        depth = max(0, depth + sum(map(word.count, "[{")) - sum(map(word.count, "]}")))
        if not depth and begin < number:
            found.update(range(begin, number + 1))
    return found


def _spanned(words: list[str]) -> Iterator[str]:
    if not words:
        return
    text = " ".join(words)
    if text in _MARKS:
        yield text
        return
    parts = _PUNCTUATION.fullmatch(text)
    body, after = (parts[1], parts[2]) if parts else (text, "")
    yield code(body, len(body)) + after


def _joined(parts: list[str]) -> str:
    """With a space between, which also keeps two spans from becoming one; none before punctuation alone."""
    out = ""
    for part in parts:
        out += part if not out or part in _MARKS else f" {part}"
    return out
