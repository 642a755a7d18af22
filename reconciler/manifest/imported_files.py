"""The files of an import, put together before the first is written: new ones, and those that are there already, in
which documents are changed or added. Nothing outside the folder is ever changed, not through links either.

With an environment, nothing outside its overlay is: the other files are those of all environments.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from reconciler.core.text import listing
from reconciler.manifest.columns import Columns
from reconciler.manifest.convert import convert
from reconciler.manifest.emit import Part
from reconciler.manifest.emit_columns import Doc
from reconciler.manifest.emit_secrets import edits_with_references, with_references
from reconciler.manifest.files import MAX_MANIFEST
from reconciler.manifest.import_columns import rewritten
from reconciler.manifest.import_defaults import Conflict, DefaultsTold, check_defaults, under_defaults
from reconciler.manifest.import_edits import edits_for, left_edits
from reconciler.manifest.import_taken_away import TakenAwayTold, without_removed, written_paths
from reconciler.manifest.import_target import (
    LEFT,
    PROTECT,
    Found,
    Given,
    base_of,
    check_meaning,
    for_overlay,
    patch_of,
    source_of,
    without_defaults,
    without_left,
)
from reconciler.manifest.import_unread import UnreadTold
from reconciler.manifest.origins import Origins
from reconciler.manifest.sheet import Sheet
from reconciler.manifest.unread_documents import is_unread
from reconciler.manifest.variables import escaped
from reconciler.manifest.yaml_edit import CannotEdit, Edit, Set, edited_value
from reconciler.manifest.yaml_write import as_block
from reconciler.model.desired import DesiredNamespace, DesiredObject, DesiredTable
from reconciler.model.diagnostic import Source
from reconciler.model.file_change import FileChange
from reconciler.model.ident import ObjectKey
from reconciler.model.state import NamespaceState, TableState
from reconciler.regular_files import read_regular

Say = Callable[[str], None]


class CannotAdd(Exception):
    """Why a file that is in the way cannot be added to, or is not to be written at all."""


class ImportedFiles:
    def __init__(
        self, folder: Path, say: Say, origins: Origins | None = None, shared: bool = False, environment: str = ""
    ) -> None:
        """`shared`: the folder has overlays of environments. With an environment its overlay is written then."""
        self._folder = folder
        self._root = os.path.realpath(folder)
        self._say = say
        self._origins = origins or Origins()
        self._shared = shared
        self._environment = environment if shared else ""
        self._sheets: dict[str, tuple[str, Sheet | CannotEdit]] = {}
        self._new: dict[str, list[str]] = {}
        self._worth: set[str] = set()
        self._columns = Columns()
        self._only_there = 0
        self._by_defaults = DefaultsTold()
        self._unread = UnreadTold()
        self._taken_away = TakenAwayTold()
        self.left = 0
        """How many times something is live and the files do not say it. Each was told."""

    def holds(self, file: str) -> bool:
        """True for a file of the folder, however its path is written."""
        return os.path.commonpath([self._root, os.path.realpath(file)]) == self._root

    def _check_links(self, file: str) -> None:
        """Raises CannotAdd for a path in the folder that a link takes out of it, or nowhere. That the folder itself is
        a link is up to whoever named it."""
        path = os.path.abspath(file)
        ways = [path, *map(str, Path(path).parents)]
        if not self.holds(path) and any(self.holds(way) for way in ways):
            raise CannotAdd(
                f"{file} is reached by a link that leads out of {self._folder}, to {os.path.realpath(path)}: put the "
                "file or folder itself there, or give -o the folder that the link leads to"
            )
        if lost := next((way for way in ways if os.path.islink(way) and not os.path.exists(way)), None):
            raise CannotAdd(f"{lost} is a link that leads nowhere; move it away")

    def takes_more(self, file: str) -> bool:
        """True for a file that new documents may be added to."""
        return self.holds(file) and (not self._environment or file in self._origins.overlay_files)

    def path(self, below: str) -> str:
        """Where a new document goes."""
        return str(self._folder / self._overlay() / below)

    def option(self) -> str:
        """For a command that is to read what is written here."""
        return f" --env {self._environment}" if self._environment else ""

    def _overlay(self) -> Path:
        return Path("overlays", self._environment) if self._environment else Path()

    @property
    def unread(self) -> int:
        """How many parameters of indexes the files say that nobody can read from what is live."""
        return len(self._unread)

    def leave(self, message: str) -> None:
        """Something differs and stays."""
        self.left += 1
        self._say(message)

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

    def add_document(self, file: str, document: Doc, comments: str = "") -> None:
        self.add(file, comments + self._whole(document))

    def _whole(self, document: Doc) -> str:
        """A new document; in an overlay it says that it is new."""
        if self._environment:
            document = {"apiVersion": document["apiVersion"], "overlay": "add", **document}
        return as_block(document)

    def add_object(self, file: str, part: Part, catalog: str, live: NamespaceState | TableState) -> bool:
        """One that is not declared yet. False when it cannot be: somebody is told."""
        key = ObjectKey(catalog, part.ident, part.kind)
        try:
            short, given = under_defaults(part, catalog, self._origins.defaults, live, self._columns)
        except Conflict as error:
            self.leave(f"warning: {key} is left out: {error}; give it its own value, or narrow `match`")
            return False
        self._note_new(key, part, short, given, live)
        self._only_there += bool(self._environment)
        self.add_document(file, with_references(escaped(short.document), part.references), part.comments)
        return True

    def add_unread(self, file: str, part: Part, catalog: str) -> bool:
        """One that is not declared yet and could not be read. False when it cannot be declared: somebody is told."""
        assert part.document is not None
        try:
            check_defaults(part, catalog, self._origins.defaults)
        except Conflict as error:
            key = ObjectKey(catalog, part.ident, part.kind)
            self.leave(f"warning: {key} is left out: {error}; narrow `match`")
            return False
        self._only_there += bool(self._environment)
        self.add_document(file, escaped(part.document), part.comments)
        return True

    def is_unread(self, declared: DesiredObject) -> bool:
        """Its document says no more than that it is there: an earlier import could not read it."""
        document = self._origins.of(declared)
        return patch_of(document) is None and is_unread(base_of(document).value)

    def fill_in(self, part: Part, declared: DesiredObject, live: NamespaceState | TableState) -> bool:
        """Writes such a document anew. False when it says something else, or may not be changed."""
        if not self.is_unread(declared) or not self.takes_more(declared.source.file):
            return False
        key = ObjectKey(declared.catalog, part.ident, part.kind)
        try:
            short, given = under_defaults(part, declared.catalog, self._origins.defaults, live, self._columns)
            assert short.document is not None
            text = part.comments + self._whole(with_references(escaped(short.document), part.references))
            if not self._open(declared.source.file).fill_in(declared.source, text):
                return False
        except (Conflict, CannotEdit):
            return False
        self._note_new(key, part, short, given, live)
        return True

    def _note_new(
        self, key: ObjectKey, part: Part, short: Part, given: Sequence[Given], live: NamespaceState | TableState
    ) -> None:
        self._note_unread(self._meaning(part), live, part)
        self._by_defaults.add(key, given)
        assert short.document is not None
        written = escaped((short.document.get("spec") or {}).get(LEFT, []))
        together = self._origins.defaults.given_to(part.kind, key.catalog, key.ident)
        left = () if together is None else together.value.get(LEFT, ())
        left = (*left, *(g.name for g in given))
        noted = self._taken_away.add(key, part.taken_away, written, left)
        self.left += bool(given) + noted

    def _meaning(self, part: Part) -> DesiredObject:
        """Of a new document."""
        assert part.document is not None
        meant = convert(part.document, Source("-"), self._columns, [])
        assert isinstance(meant, DesiredNamespace | DesiredTable)
        return meant

    def _note_unread(self, said: DesiredObject, live: NamespaceState | TableState, part: Part) -> None:
        if isinstance(said, DesiredTable) and "indexes" not in said.ignore_differences:
            left_alone = {i.name for i in said.indexes if f"indexes.{i.name}" in said.ignore_differences}
            indexes = [i for i in said.indexes if i.name not in left_alone]
            self._unread.add(ObjectKey(said.catalog, said.ident, part.kind), indexes, live)

    def update(self, part: Part, declared: DesiredObject, live: NamespaceState | TableState, new_file: str) -> None:
        """Makes the documents that declare the object say what is live. Where that cannot be done they stay, and
        somebody is told. `new_file`: for a document of the overlay, if there is none yet."""
        assert part.document is not None
        wanted = convert(part.document, declared.source, self._columns, [])
        assert isinstance(wanted, DesiredNamespace | DesiredTable)
        self._note_unread(declared, live, part)
        key, at = ObjectKey(declared.catalog, declared.ident, part.kind), declared.source
        document = self._origins.of(declared)
        try:
            edits = edits_for(declared, live, wanted, part.document, document.value)  # type: ignore[arg-type]
            edits += left_edits(declared, wanted, part.taken_away, document.value)  # type: ignore[arg-type]
            edits = edits_with_references(edits, part.references)
            edits, given = without_defaults(edits, document, declared.source.file)
            self._by_defaults.add(key, given)
            self.left += bool(given)
            patch = patch_of(document)
            at = source_of(patch) if patch is not None else at
            for file in (declared.source.file, at.file) if edits else ():
                self._check_links(file)
            if edits and not (self.holds(declared.source.file) and self.holds(at.file)):
                self.leave(f"note: {key} is not as {at} says, which is not below {self._folder}: it is left as it is")
                return
            done = self._written(document, edits, declared, part, new_file)
            if Set(PROTECT, False) in done:
                self._say(f"note: {key} has no protect mark any more, and its document says so now")
            kept, gone = without_removed(declared.ignore_differences, done)
            if gone:
                self._say(
                    f"note: {key}: {listing(gone)} of `ignoreDifferences` can mean no live column, and is taken out"
                )
            left = (*kept, *(g.name for g in given))
            self.left += self._taken_away.add(key, part.taken_away, written_paths(done), left)
        except CannotEdit as error:
            self.leave(f"warning: {key} is not as {at} says, and the document is left as it is: {error}")

    def _written(
        self, document: Found, edits: Sequence[Edit], declared: DesiredObject, part: Part, new_file: str
    ) -> Sequence[Edit]:
        """Those that were made: all, or all but what `ignoreDifferences` would get. Raises CannotEdit."""
        try:
            self._edit(document, edits, declared, part, new_file)
        except CannotEdit:
            rest = without_left(edits)
            if len(rest) == len(edits):
                raise
            self._edit(document, rest, declared, part, new_file)
            return rest
        return edits

    def _edit(self, document: Found, edits: Sequence[Edit], declared: DesiredObject, part: Part, new_file: str) -> None:
        """Raises CannotEdit, and then nothing was changed."""
        if not edits:
            return
        patch = patch_of(document)
        at = source_of(patch) if patch is not None else declared.source
        if self._environment and (at.file not in self._origins.overlay_files or patch is not None):
            self._edit_overlay(document, edits, declared, part, new_file)
            return
        check_meaning(document, edits, edits, None)
        self._open(at.file).edit(at, edits)
        for name in rewritten(edits, document.value):
            key = ObjectKey(declared.catalog, declared.ident, part.kind)
            self._say(f"note: {key}: the fields of column {name} are another type live: written anew, in one piece")

    def _edit_overlay(
        self, document: Found, edits: Sequence[Edit], declared: DesiredObject, part: Part, new_file: str
    ) -> None:
        assert part.document is not None
        patch, own = patch_of(document), for_overlay(edits, document, declared.source.file)
        empty = {k: part.document[k] for k in ("apiVersion", "kind", "metadata")}
        after = edited_value(patch.document.value if patch is not None else escaped(empty), own)
        check_meaning(document, edits, [], after)
        if patch is not None:
            self._open(patch.sink.file).edit(source_of(patch), own)
        else:
            self.add(new_file, as_block(after))

    def _open(self, file: str) -> Sheet:
        sheet = self._sheet(file)
        if isinstance(sheet, CannotEdit):
            raise sheet
        return sheet

    def _sheet(self, file: str) -> Sheet | CannotEdit:
        """One for each file, however its path is written."""
        real = os.path.realpath(file)
        if real not in self._sheets:
            self._sheets[real] = file, _opened(file)
        return self._sheets[real][1]

    def notes(self, changed: bool) -> Iterator[str]:
        """What is to be known about all of it."""
        if self._unread:
            yield self._unread.text()
        if self._by_defaults:
            yield self._by_defaults.text()
        yield from self._taken_away.texts()
        if self._only_there:
            new = "1 new object is" if self._only_there == 1 else f"{self._only_there} new objects are"
            yield f"{new} in {self.path('')}, for {self._environment} only; documents for all are outside overlays/"
        if changed and self._shared and not self._environment:
            yield "environments share these files, and keep only what overlays/ says otherwise: plan each, with --env"

    def changes(self) -> Sequence[FileChange]:
        """Catalog documents first, so that what there is at any moment can be read. Raises CannotAdd."""
        found = [FileChange(f, None, "---\n".join(t)) for f, t in self._new.items() if f in self._worth]
        for file, sheet in self._sheets.values():
            if isinstance(sheet, CannotEdit):
                continue
            try:
                after = sheet.after()
            except CannotEdit as error:
                raise CannotAdd(f"{file} is in the way: {error}; move it away") from error
            if after != sheet.before:
                found.append(FileChange(file, sheet.before, after))
        for change in found:
            self._check_links(change.path)
        return sorted(found, key=lambda c: ("kind: Catalog\n" not in c.after, c.path))


def _opened(file: str) -> Sheet | CannotEdit:
    try:
        return Sheet(read_regular(file, MAX_MANIFEST))
    except CannotEdit as error:
        return error
    except OSError as error:
        return CannotEdit(f"it cannot be read: {error.strerror}")
