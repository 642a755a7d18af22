"""The documents of an earlier version of a file. Only their data is asked for, and most of it is known: from the
current version of the same document, or from lines that others have too."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise

from reconciler.manifest.yaml_lines import LineReader, NotByLines
from reconciler.manifest.yaml_reader import MAX_EMPTY, Document, documents
from reconciler.manifest.yaml_scalars import Value

_ODD = re.compile("[\t\x85\u2028\u2029\ufeff]")


class EarlierDocuments:
    def __init__(self) -> None:
        self._known: dict[str, Value] = {}
        self._lines = LineReader()

    def know(self, text: str, found: Iterable[Document]) -> None:
        """What was read from a file of today."""
        if _is_divisible(text):
            starts = [*_starts(text), len(text)]
            for document in found:
                if not document.was_careful:
                    part = bisect_right(starts, document.begin)
                    self._known[text[starts[part - 1] : starts[part]]] = document.value

    def values(self, text: str) -> Iterator[Value]:
        """What the usual reader finds in the text. Never change one: they are shared."""
        starts = _starts(text) if _is_divisible(text) else []
        if not 0 < len(starts) <= MAX_EMPTY:
            yield from _read(text)
            return
        for start, end in pairwise([*starts, len(text)]):
            part = text[start:end]
            if part in self._known:
                yield self._known[part]
                continue
            try:
                value = self._lines.read(_body(part))
            except NotByLines:
                yield from _read(part)
            else:
                if value is not None:
                    yield value


def _is_divisible(text: str) -> bool:
    """False with directives and ends of documents, which say something about what follows, and with other characters
    than the usual that end a line or a marker. Everywhere else a `---` in column 1 begins a document, even inside
    quotes or a block scalar."""
    if text.startswith(("%", "...")) or "\n%" in text or "\n..." in text:
        return False
    return "\t" not in text if text.isascii() else not _ODD.search(text)


def _starts(text: str) -> list[int]:
    """Where the documents begin, with what stands above the first."""
    starts, at = [0], -1
    while (at := text.find("\n---", at + 1)) >= 0:
        if text[at + 4 : at + 5] in ("", " ", "\n"):
            starts.append(at + 1)
    return starts


def _body(part: str) -> str:
    """Without the marker, where it is alone on its line; what else stands there is not for `LineReader`."""
    return part[4:] if part.startswith("---\n") else part


def _read(text: str) -> Iterator[Value]:
    return (found.value for found in documents(text) if isinstance(found, Document))
