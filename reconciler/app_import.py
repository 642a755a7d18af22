"""`import`: live state as manifests. The first time it writes files; afterwards it brings them up to date, and what
people wrote in them stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler import app
from reconciler.core.ownership import entry_owner
from reconciler.core.text import listing
from reconciler.model.diagnostic import has_errors
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident, ObjectKey, dotted
from reconciler.model.missed import Missed, Unlisted
from reconciler.model.observed import Detached, Gap, Present, Scope, Snapshot, Unreadable
from reconciler.model.reading import Reading
from reconciler.session import Failure, Session

if TYPE_CHECKING:
    from reconciler.manifest.emit import Part, Rules
    from reconciler.manifest.imported_files import ImportedFiles
    from reconciler.manifest.load import Loaded
    from reconciler.model.desired import CatalogSpec, Desired, DesiredObject
    from reconciler.model.file_change import FileChange

MOST_TOLD = 10
Found = Present | Detached | Unreadable


@dataclass(frozen=True)
class ImportRequest:
    paths: tuple[str, ...]
    folder: Path
    reading: Reading = field(default_factory=Reading)
    catalogs: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    split_tables: bool = False
    only_unmanaged: bool = False
    """Leave out what has an owner, and what is declared."""
    dry_run: bool = False


@dataclass(frozen=True)
class Imported:
    changes: Sequence[FileChange]
    """What was written, or would be."""
    left: int
    """How many times something is live and the files do not say it. Each was told."""
    missed: Missed = field(default_factory=Missed)
    unread: int = 0
    """How many parameters of indexes the files say that nobody can read from what is live."""


def import_catalogs(request: ImportRequest, at: Session) -> Imported:
    """Everything is known before the first file is written. Raises Failure."""
    from reconciler.engine.select import unmatched_target
    from reconciler.manifest.imported_files import CannotAdd
    from reconciler.manifest.scopes import scope_problems

    loaded = app.validate(request.paths, request.reading)
    if has_errors(loaded.diagnostics):
        raise Failure("the manifests have errors", loaded.diagnostics)
    names = app.selected(loaded.desired, request.catalogs)
    if nowhere := scope_problems(loaded.desired, names):
        raise Failure("nothing says what to import", nowhere)
    there, files = _there(request, at)
    snapshots = {}
    missed = Missed()
    try:
        for name in names:
            one = _Import(request, loaded.desired, there, loaded.desired.catalogs[name], files, at, missed)
            snapshots[name] = one.run()
        if problem := unmatched_target(request.targets, loaded.desired, snapshots):
            raise Failure(f"{problem}; nothing was written")
        changes = files.changes()
    except CannotAdd as error:
        raise Failure(f"{error}; nothing was written") from error
    for note in files.notes(bool(changes)):
        at.say(f"note: {note}")
    if not request.dry_run:
        _write(changes)
    return Imported(changes, files.left, missed, files.unread)


def _there(request: ImportRequest, at: Session) -> tuple[Desired, ImportedFiles]:
    """What is read together with the new files. A folder whose Catalog documents are elsewhere is read with those; one
    that stands alone and has no overlays was imported from one environment, and is read without."""
    from reconciler.manifest.import_folder import read_together, shared_by_environments
    from reconciler.manifest.imported_files import ImportedFiles
    from reconciler.model.desired import Desired

    def valid(paths: Sequence[str], reading: Reading) -> Loaded | None:
        found = app.validate(paths, reading, keep_origins=True)
        return None if has_errors(found.diagnostics) and found.documents else found

    together = read_together(request.paths, request.folder)
    if not together:
        return Desired({}, {}, {}), ImportedFiles(request.folder, at.say)
    shared = shared_by_environments(together)
    reading = request.reading if shared else replace(request.reading, environment="")
    found = valid(together, reading) or valid([*request.paths, str(request.folder)], request.reading)
    if found is None:
        errors = app.validate(together, reading).diagnostics
        raise Failure(f"the manifests in {', '.join(together)} have errors; nothing was written", errors)
    environment = request.reading.environment
    return found.desired, ImportedFiles(request.folder, at.say, found.origins, shared, environment)


def _write(changes: Sequence[FileChange]) -> None:
    """A file is replaced only if it is what was read."""
    from reconciler.engine.files import create_atomically, write_atomically
    from reconciler.manifest.files import MAX_MANIFEST
    from reconciler.regular_files import read_regular

    for number, change in enumerate(changes):
        path = Path(change.path)
        go_on = f"; {number} files were written before it: import again" if number else "; nothing was written"
        try:
            if change.before is None:
                path.parent.mkdir(parents=True, exist_ok=True)
                create_atomically(path, change.after)
            elif read_regular(path, MAX_MANIFEST) != change.before.encode():
                raise Failure(f"{path} was changed while the catalogs were read{go_on}")
            else:
                write_atomically(path, change.after)
        except OSError as error:
            raise Failure(f"cannot write {path}: {error.strerror}{go_on}") from error


@dataclass
class _Import:
    """Of one catalog."""

    request: ImportRequest
    desired: Desired
    """Of the manifests given."""
    there: Desired
    """Of the folder, and what is read with it."""
    spec: CatalogSpec
    files: ImportedFiles
    at: Session
    missed: Missed
    unowned: int = 0
    foreign: int = 0
    """Tables of other formats."""

    def run(self) -> Snapshot:
        """Raises Failure and CannotAdd."""
        from reconciler.core.globs import matcher
        from reconciler.manifest.emit import objects
        from reconciler.manifest.import_layout import Layout

        name = self.spec.name
        wanted = matcher(self.request.targets) if self.request.targets else lambda _: True
        listed, snapshot = self._look(wanted)
        self._check(listed)
        self.layout = Layout(name, self.request.split_tables, listed.namespaces, listed.tables)
        self._catalog(bool(listed.namespaces or listed.tables))
        self.declared: dict[Ident, DesiredObject] = {
            **self.there.namespaces.get(name, {}),
            **self.there.tables.get(name, {}),
        }
        live = {**snapshot.namespaces, **snapshot.tables}
        there = _names(listed)
        renamed = {d.renamed_from: d for i, d in self.declared.items() if d.renamed_from and i not in there}
        self._tell_gaps([*listed.gaps, *snapshot.gaps])
        for part in objects(name, snapshot, self._rules()):
            if not self._is_foreign(part, live[part.ident], renamed):
                self._part(part, live[part.ident], renamed.get(part.ident))
        if self.foreign:
            formats = "1 table of another format" if self.foreign == 1 else f"{self.foreign} tables of other formats"
            self.at.say(f"note: catalog {name}: {formats} left out: no manifest can say anything of them")
        self._tell_steps(live)
        if not self.request.targets:
            self._search()
        if self.unowned:
            told = f"{_counted(self.unowned, 'object')} of catalog {name} had no owner"
            adopt = f"reconciler apply {self.request.folder}{self.files.option()} --adopt"
            self.at.say(f"note: {told}: `{adopt}` makes them ours")
        if not self.request.only_unmanaged:
            self._tell_gone(listed, wanted)
        return listed

    def _search(self) -> None:
        """Datasets that are there and are no tables of the catalog. That they cannot be searched for is no failure."""
        from reconciler.catalog.base import Searched

        catalog = self.at.catalogs[self.spec.name]
        if not isinstance(catalog, Searched):
            return
        try:
            found = catalog.unlisted()
        except CatalogError as error:
            found = Unlisted(problems=(f"other datasets could not be searched for: {error.message}",))
        self.missed.unlisted.append((self.spec.name, found))

    def _look(self, wanted: Callable[[Ident], bool]) -> tuple[Snapshot, Snapshot]:
        """Everything by name, and what is wanted of it in full."""
        from reconciler.core.looks import in_full
        from reconciler.core.planner import scope_of

        name = self.spec.name
        self.at.connect(self.spec)
        named = scope_of(self.desired, name).namespaces
        if name in self.there.catalogs:
            named |= scope_of(self.there, name).namespaces
        scope = Scope(ignore=self.spec.management.ignore, namespaces=named)
        listed = self.at.look(name, scope)
        kept = self._selection(listed, wanted)
        detailed = self.at.look(name, replace(scope, detail=frozenset(i for i in listed.tables if kept(i))))
        return listed, in_full(listed, detailed, kept)

    def _selection(self, listed: Snapshot, wanted: Callable[[Ident], bool]) -> Callable[[Ident], bool]:
        if not self.request.only_unmanaged:
            return wanted
        name, us = self.spec.name, self.spec.management.owner
        managed: set[Ident] = set()
        for desired in (self.desired, self.there):
            managed |= {*desired.namespaces.get(name, {}), *desired.tables.get(name, {})}
        owners = {i: _owner(f) for i, f in (*listed.namespaces.items(), *listed.tables.items())}
        others = [i for i, owner in owners.items() if owner not in (None, us) and wanted(i)]
        if others:
            self.at.say(f"note: {_counted(len(others), 'object')} of other owners in catalog {name} left out")
        managed |= {i for i, owner in owners.items() if owner is not None}
        return lambda ident: wanted(ident) and ident not in managed

    def _check(self, listed: Snapshot) -> None:
        for gap in listed.gaps if not listed.namespaces and not listed.tables else ():
            raise Failure(
                f"catalog {self.spec.name} cannot be listed: {gap.message}; nothing was written", error=gap.error
            )
        known = self.there.catalogs.get(self.spec.name)
        as_imported = app.public_spec(self.spec).options
        if known is not None and (
            known.type != self.spec.type or known.options not in (self.spec.options, as_imported)
        ):
            raise Failure(
                f"catalog {self.spec.name} is declared otherwise at {known.source}, which is read together with "
                f"{self.request.folder}: choose another folder; nothing was written"
            )

    def _catalog(self, anything: bool) -> None:
        """Its document, unless one is read together with the folder."""
        from reconciler.manifest.emit import catalog_document
        from reconciler.manifest.import_folder import same_file, side_by_side

        name, known = self.spec.name, self.there.catalogs.get(self.spec.name)
        if known is not None:
            if not self.files.holds(known.source.file) or same_file(known.source.file, self.spec.source.file):
                empty = "" if anything else "; nothing else is live"
                self.at.say(f"note: catalog {name} is declared at {known.source} already and not written again{empty}")
            return
        file = self.files.path(self.layout.catalog_file())
        self.files.add_document(file, catalog_document(app.public_spec(self.spec)))
        app.warn_of_literals(self.at, str(self.request.folder))
        for spec in side_by_side([self.spec], self.request.folder):
            both = f"{file} and {spec.source.file} both declare catalog {name}"
            self.at.say(f"note: {both}: plan with one of them, not with a folder that holds both")

    def _is_foreign(self, part: Part, found: Found, renamed: Mapping[Ident, DesiredObject]) -> bool:
        """A table of another format that no manifest names: there may be thousands, so they are counted."""
        named = part.ident in self.declared or part.ident in renamed
        foreign = part.kind == "Table" and isinstance(found, Unreadable) and found.foreign and not named
        self.foreign += foreign
        return foreign

    def _part(self, part: Part, found: Found, renamed: DesiredObject | None) -> None:
        for warning in part.warnings:
            self.files.leave(self.at.redactor.text(f"warning: catalog {self.spec.name}: {warning}"))
        declared = self.declared.get(part.ident)
        key = ObjectKey(self.spec.name, part.ident, part.kind)
        if part.unread:
            self._unread(part, declared or renamed)
        elif declared is not None and declared.absent:
            self.files.leave(f"note: {key} is live; {declared.source} says that it has to go, and stays as it is")
        elif declared is None and renamed is not None:
            self.files.leave(f"note: {key} is live; {renamed.source} renames it, and stays as it is")
        elif part.document is None or not isinstance(found, Present):
            if declared is None:
                self.files.add(self._file(part), part.text, worth_it=False)
                self.missed.left_out += _owner(found) == self.spec.management.owner
        elif declared is not None and self.files.fill_in(part, declared, found.state):
            pass
        elif declared is not None:
            left_alone = (*declared.ignore_differences, *part.withheld)
            self.files.update(part, replace(declared, ignore_differences=left_alone), found.state, self._file(part))
        elif self.files.add_object(self._file(part), part, self.spec.name, found.state):
            self.unowned += entry_owner(self.spec.management.owner, found.state) is None
        else:
            self.missed.left_out += _owner(found) == self.spec.management.owner

    def _unread(self, part: Part, declared: DesiredObject | None) -> None:
        """It is named in the files all the same: what is in none looks like an orphan."""
        if declared is not None:
            if self.files.is_unread(declared):
                self.missed.unread += 1
            else:
                self.missed.kept += 1
        elif part.document is None:
            self.files.add(self._file(part), part.text, worth_it=False)
            self.missed.left_out += 1
        elif self.files.add_unread(self._file(part), part, self.spec.name):
            self.missed.unread += 1
        else:
            self.missed.left_out += 1

    def _tell_gaps(self, gaps: Sequence[Gap]) -> None:
        """Those in which something may be that was asked for. A gap that both looks saw is told once."""
        from reconciler.core.globs import reaches

        name, targets = self.spec.name, self.request.targets
        for ident, gap in {g.ident: g for g in reversed(gaps)}.items():
            if targets and not any(reaches(target, ident) for target in targets):
                continue
            where = f"{dotted(ident)} in catalog {name}" if ident else f"catalog {name}"
            self.at.say(f"warning: {where} could not be listed completely: {gap.code.title}: {gap.message}")
            self.missed.listings.append(f"{name}:{dotted(ident)}" if ident else name)

    def _file(self, part: Part) -> str:
        """Tables go where their namespace is."""
        if part.kind == "Namespace":
            return self.files.path(self.layout.namespace_file(part.ident))
        home = self.there.namespaces.get(self.spec.name, {}).get(part.ident[:-1])
        if home is not None and not self.request.split_tables and self.files.takes_more(home.source.file):
            return home.source.file
        return self.files.path(self.layout.table_file(part.ident))

    def _tell_steps(self, live: Mapping[Ident, Found]) -> None:
        """Files have no place for our own notes on an object, nor for our mark in the data of a table."""
        from reconciler.core.taken_away import given_over, lost_our_mark

        us, told = self.spec.management.owner, list[str]()
        for ident, found in sorted(live.items()):
            if not isinstance(found, Present):
                continue
            key, declared = ObjectKey(self.spec.name, ident, "Table"), self.declared.get(ident)
            if lost_our_mark(us, found.state):
                told.append(f"{key}: the data does not carry our mark any more: `apply --adopt` takes it over")
            if declared and (over := given_over(us, found.state, declared.ignore_differences)):
                are = "is" if len(over) == 1 else "are"
                step = "the next plan has a step that takes that off our own notes"
                told.append(f"{key}: {listing(over)} {are} live and left to others: {step}")
        for text in told[:MOST_TOLD]:
            self.files.leave(f"note: {text}")
        if len(told) > MOST_TOLD:
            self.at.say(f"note: the next plan has such steps for {_counted(len(told) - MOST_TOLD, 'more object')}")

    def _tell_gone(self, listed: Snapshot, wanted: Callable[[Ident], bool]) -> None:
        """Nothing is taken out of files because it is not live: it may be about to be made."""
        known = _names(listed) | listed.hidden
        gone = [d for i, d in sorted(self.declared.items()) if wanted(i) and i not in known and not d.absent]
        gone = [d for d in gone if listed.gap_at(d.ident) is None]
        for d in gone[:MOST_TOLD]:
            key = ObjectKey(d.catalog, d.ident, "Table")
            self.files.leave(f"note: {key} is declared at {d.source} and not live; it stays in the file")
        if len(gone) > MOST_TOLD:
            self.at.say(f"note: {len(gone) - MOST_TOLD} more declared objects are not live; they stay in their files")

    def _rules(self) -> Rules:
        from reconciler.manifest.emit import Rules

        asked = app.capabilities_of(self.desired, [self.spec.name])[self.spec.name]
        clean = self.at.redactor.content
        owner = self.spec.management.owner
        rules = (asked.type_problem, asked.ident_problem, asked.property_problem, asked.schema_problem)
        return Rules(*rules, clean, owner)


def _names(snapshot: Snapshot) -> set[Ident]:
    tables = {i for i, f in snapshot.tables.items() if not isinstance(f, Detached)}
    return {*snapshot.namespaces, *tables}


def _owner(found: Found) -> str | None:
    return found.state.marks.owner if isinstance(found, Present) else None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
