"""The files of an import, put together before the first is written: new ones, and those that are there already, in
which documents are changed or added. Nothing outside the folder is ever changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from reconciler.manifest.columns import Columns
from reconciler.manifest.convert import convert
from reconciler.manifest.emit import Part
from reconciler.manifest.emit_secrets import edits_with_references
from reconciler.manifest.import_edits import edits_for
from reconciler.manifest.sheet import Sheet
from reconciler.manifest.yaml_edit import CannotEdit
from reconciler.model.desired import DesiredNamespace, DesiredObject, DesiredTable
from reconciler.model.diagnostic import Source
from reconciler.model.file_change import FileChange
from reconciler.model.ident import ObjectKey
from reconciler.model.state import NamespaceState, TableState

Say = Callable[[str], None]


class CannotAdd(Exception):
    """Why a file that is in the way cannot be added to."""


class ImportedFiles:
    def __init__(self, folder: Path, say: Say) -> None:
        self._folder = folder
        self._root = os.path.realpath(folder)
        self._say = say
        self._sheets: dict[str, Sheet | CannotEdit] = {}
        self._new: dict[str, list[str]] = {}
        self._worth: set[str] = set()
        self._columns = Columns()

    def holds(self, file: str) -> bool:
        """True for a file of the folder, however its path is written."""
        return os.path.commonpath([self._root, os.path.realpath(file)]) == self._root

    def path(self, below: str) -> str:
        return str(self._folder / below)

    def add(self, file: str, text: str, worth_it: bool = True) -> None:
        """A document, to a file that may be there. What is not worth it (a comment alone) goes only where a new file
        is made for something else: a second import would say it again."""
        if os.path.exists(file):
            if not worth_it:
                return
            sheet = self._sheet(file)
            if isinstance(sheet, CannotEdit):
                raise CannotAdd(f"{file} is in the way, and nothing can be added to it: {sheet}; move it away")
            sheet.add(text)
        else:
            self._new.setdefault(file, []).append(text)
            if worth_it:
                self._worth.add(file)

    def update(self, part: Part, declared: DesiredObject, live: NamespaceState | TableState) -> None:
        """Makes the document that declares the object say what is live. Where that cannot be done it stays, and
        somebody is told."""
        assert part.document is not None
        wanted = convert(part.document, declared.source, self._columns, [])
        assert isinstance(wanted, DesiredNamespace | DesiredTable)
        if not edits_for(declared, live, wanted, part.document, {}):
            return
        key, at = ObjectKey(declared.catalog, declared.ident, part.kind), declared.source
        if not self.holds(at.file):
            self._say(f"note: {key} is not as {at} says, which is not below {self._folder}: it is left as it is")
            return
        try:
            self._edit(at, part, declared, live, wanted)
        except CannotEdit as error:
            self._say(f"warning: {key} is not as {at} says, and the document is left as it is: {error}")

    def _edit(
        self,
        at: Source,
        part: Part,
        declared: DesiredObject,
        live: NamespaceState | TableState,
        wanted: DesiredObject,
    ) -> None:
        sheet = self._sheet(at.file)
        if isinstance(sheet, CannotEdit):
            raise sheet
        assert part.document is not None
        edits = edits_for(declared, live, wanted, part.document, sheet.value(at))
        sheet.edit(at, edits_with_references(edits, part.references))

    def _sheet(self, file: str) -> Sheet | CannotEdit:
        if file not in self._sheets:
            try:
                self._sheets[file] = Sheet(Path(file).read_bytes())
            except CannotEdit as error:
                self._sheets[file] = error
            except OSError as error:
                self._sheets[file] = CannotEdit(f"it cannot be read: {error.strerror}")
        return self._sheets[file]

    def changes(self) -> Sequence[FileChange]:
        """Catalog documents first, so that what there is at any moment can be read. Raises CannotAdd."""
        found = [FileChange(f, None, "---\n".join(t)) for f, t in self._new.items() if f in self._worth]
        for file, sheet in self._sheets.items():
            if isinstance(sheet, CannotEdit):
                continue
            try:
                after = sheet.after()
            except CannotEdit as error:
                raise CannotAdd(f"{file} is in the way: {error}; move it away") from error
            if after != sheet.before:
                found.append(FileChange(file, sheet.before, after))
        return sorted(found, key=lambda c: ("kind: Catalog\n" not in c.after, c.path))
