"""One manifest file that is there already: some of its documents are changed, others are added. What is not meant to
change does not: the text that comes out is read again and compared before anybody gets it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconciler.manifest.unread_documents import comment_start
from reconciler.manifest.yaml_edit import CannotEdit, Edit, edited_text, edited_value, parse, values_in
from reconciler.manifest.yaml_reader import Document, documents
from reconciler.manifest.yaml_text import decode
from reconciler.model.diagnostic import Source

BOM = "\ufeff"


class Sheet:
    def __init__(self, data: bytes) -> None:
        """Raises CannotEdit for a file that could not be written back as it was."""
        try:
            self.before = data.decode("utf-8")
        except UnicodeDecodeError:
            raise CannotEdit("it is not UTF-8") from None
        self._windows = "\r" in self.before
        if self._windows and {"\r", "\n"} & set(self.before.replace("\r\n", "")):
            raise CannotEdit("its lines end in different ways")
        self._text = decode(data).text
        self._documents = [d for d in documents(self._text) if isinstance(d, Document)]
        self._at = {(d.line, d.column): number for number, d in enumerate(self._documents)}
        self._new: dict[int, tuple[str, Any]] = {}
        self._begins: dict[int, int] = {}
        """Of a first document whose comment is replaced too: without a marker it begins only after that."""
        self._added: list[str] = []

    def _number(self, source: Source) -> int:
        number = self._at.get((source.line, source.column))
        if number is None:
            raise CannotEdit("it is not where it was read")
        return number

    def edit(self, source: Source, edits: Sequence[Edit]) -> None:
        """Raises CannotEdit, and then that document stays as it is."""
        number = self._number(source)
        document = self._documents[number]
        begin, end = document.span
        self._new[number] = (edited_text(self._text[begin:end], edits), edited_value(document.value, edits))

    def fill_in(self, source: Source, text: str) -> bool:
        """Puts another text in the place of a document of what could not be read, and of its comment; what stands
        around both stays. False when the comment is not there. Raises CannotEdit."""
        number = self._number(source)
        begin, end = self._documents[number].span
        root = parse(self._text[begin:end])
        first = 0 if number == 0 else begin
        comment = comment_start(self._text[first : begin + root.start])
        if comment is None:
            return False
        self._begins[number] = min(begin, first + comment)
        kept = self._text[self._begins[number] : first + comment]
        own = kept + text.rstrip("\n") + self._text[begin + root.end : end]
        self._new[number] = (own, values_in(text)[0])
        return True

    def add(self, text: str) -> None:
        """One more document, at the end."""
        self._added.append(text)

    def after(self) -> str:
        """The whole file. Raises CannotEdit."""
        if not self._new and not self._added:
            return self.before
        text = self._text
        for number, (own, _) in sorted(self._new.items(), reverse=True):
            begin, end = self._documents[number].span
            text = text[: self._begins.get(number, begin)] + own + text[end:]
        values = [self._new[n][1] if n in self._new else d.value for n, d in enumerate(self._documents)]
        if self._added:
            text = _joined(text, self._added)
            values += [value for added in self._added for value in values_in(added)]
        if values_in(text) != values:
            raise CannotEdit("nothing can be added to it")
        text = text.replace("\n", "\r\n") if self._windows else text
        return BOM + text if self.before.startswith(BOM) else text


def _joined(text: str, added: Sequence[str]) -> str:
    if not text.strip():
        return "---\n".join(added)
    return "---\n".join([text if text.endswith("\n") else text + "\n", *added])
