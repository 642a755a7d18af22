"""The documents of an earlier version of a file. Only their data is asked for, and most of it is known: from the
current version of the same document, or from lines that others have too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from reconciler.manifest.yaml_lines import LineReader, NotByLines
from reconciler.manifest.yaml_reader import MAX_EMPTY, Document, documents
from reconciler.manifest.yaml_scalars import Value

_MARKER = re.compile(r"^---(?=[ \n]|\Z)", re.MULTILINE)
_TOGETHER = re.compile("[\t\x85\u2028\u2029\ufeff]|^(?:%|\\.\\.\\.)", re.MULTILINE)
"""What documents of a file may share, or what begins a line or ends a marker besides the usual: then the file is not
taken apart. Everywhere else a `---` in column 1 begins a document, even inside quotes or a block scalar."""


class EarlierDocuments:
    def __init__(self) -> None:
        self._known: dict[str, Value] = {}
        self._lines = LineReader()

    def know(self, text: str, found: Iterable[Document]) -> None:
        """What was read from a file of today."""
        if not _TOGETHER.search(text):
            self._known.update({document.own_text: document.value for document in found if not document.was_careful})

    def values(self, text: str) -> Iterator[Value]:
        """What the usual reader finds in the text. Never change one: they are shared."""
        parts = None if _TOGETHER.search(text) else _parts(text)
        if parts is None or len(parts) > MAX_EMPTY:
            yield from _read(text)
            return
        for part in parts:
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


def _parts(text: str) -> list[str]:
    starts = [found.start() for found in _MARKER.finditer(text)]
    if not starts or starts[0]:
        starts.insert(0, 0)
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def _body(part: str) -> str:
    """Without the marker, where it is alone on its line; what else stands there is not for `LineReader`."""
    return part[4:] if part.startswith("---\n") else part


def _read(text: str) -> Iterator[Value]:
    return (found.value for found in documents(text) if isinstance(found, Document))
