"""Manifests on disk -> Desired, with every diagnostic in one run.

Except inside one document: its further rules are checked on what its structure leaves intact (`prune`), and not before
it is corrected when a part is wrong that the rest depends on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reconciler.manifest import files
from reconciler.manifest.base_catalogs import take_catalogs
from reconciler.manifest.columns import Columns
from reconciler.manifest.convert import convert
from reconciler.manifest.cross_rules import CapabilitiesOf, check
from reconciler.manifest.identity import Key, identity
from reconciler.manifest.layers import Layered
from reconciler.manifest.limits import UNLIMITED, Limits
from reconciler.manifest.origins import Origins
from reconciler.manifest.overlay import folders
from reconciler.manifest.plugin_options import PluginTypes
from reconciler.manifest.prepare import OWN, SHARED, File, Prepared, opened, prepare
from reconciler.manifest.problem import Path, Problem, Problems, TooMany
from reconciler.manifest.prune import without_refused
from reconciler.manifest.registry import CatalogEntry, Entry, PolicyEntry, Registry
from reconciler.manifest.schema_check import accepts, explain, settle
from reconciler.manifest.sink import Sink, place_in
from reconciler.manifest.sql_at_run import SqlProblems, check_sql_at_run
from reconciler.manifest.substitute import mentions_reference, substitute
from reconciler.manifest.variables import MAX_EXPANSION, Resolver
from reconciler.manifest.yaml_careful import Flaw
from reconciler.manifest.yaml_reader import Document
from reconciler.manifest.yaml_scalars import Value
from reconciler.model.collector import collection_paused
from reconciler.model.desired import CatalogSpec, Desired, DesiredNamespace, DesiredTable
from reconciler.model.diagnostic import Diagnostic, Source, has_errors, tidy
from reconciler.model.policy import Policy

if TYPE_CHECKING:
    from reconciler.manifest.affected import Changed
    from reconciler.manifest.since import Since


@dataclass(frozen=True)
class Loaded:
    desired: Desired
    """Best effort when there are errors: never act on it then."""
    diagnostics: list[Diagnostic]
    documents: int
    variables: frozenset[str] = frozenset()
    """Those that a document refers to, or gives a value."""
    changed: Changed | None = None
    """What the run is about, when it is about what changed since a revision."""
    origins: Origins | None = None
    """When it was asked for: it keeps the text of the manifests."""


_NOTHING: Mapping[str, str] = MappingProxyType({})
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def load(
    paths: Sequence[str],
    *,
    variables: Mapping[str, str] = _NOTHING,
    capabilities_of: CapabilitiesOf | None = None,
    sql_problems: SqlProblems | None = None,
    plugins: PluginTypes | None = None,
    environ: Mapping[str, str] | None = None,
    environment: str = "",
    changed_since: str = "",
    limits: Limits = UNLIMITED,
    catalogs_from: Sequence[str] = (),
    keep_origins: bool = False,
) -> Loaded:
    """Reads files and folders. Nothing is raised for bad input: everything wrong is a diagnostic."""
    plugins = plugins or PluginTypes()
    loader = _Loader(Resolver(variables, environ, limits=limits), plugins)
    with collection_paused():
        base = None
        if catalogs_from:
            base = _Loader(Resolver(variables, environ, limits=Limits(resolve=limits.resolve)), plugins)
            _read(base, catalogs_from, environment)
            base.finish()
            base.check_defaults()
        if keep_origins:
            loader.origins = Origins()
        since = _since(changed_since) if changed_since and paths else None
        _read(loader, paths, environment, None if base is None else paths, since)
        loader.finish()
        if base is not None:
            loader.take_catalogs(base, ", ".join(catalogs_from))
        loader.check_defaults()
        loaded = _checked(loader, paths, capabilities_of, sql_problems)
        if since is None:
            return loaded
        loader.resolver.room = MAX_EXPANSION
        changed = since.changed(loaded.desired, loader.uses, loader.prepared.defaults, loader.resolver.plain)
        return replace(loaded, changed=changed, diagnostics=tidy([*loaded.diagnostics, *since.diagnostics]))


def warnings_of_changed(loaded: Loaded) -> list[Diagnostic]:
    """Without the warnings about files that nobody touched, when the run is about what changed. Errors always stay."""
    changed = loaded.changed
    if changed is None:
        return loaded.diagnostics
    stores = (loaded.desired.namespaces, loaded.desired.tables)
    objects = [o for store in stores for n, found in store.items() for i, o in found.items() if i in changed.only[n]]
    files_ = changed.files | {o.source.file for o in objects}
    return [d for d in loaded.diagnostics if d.severity == "error" or d.source.file in files_]


def _since(revision: str) -> Since:
    from reconciler.manifest.since import Since

    return Since(revision)


def _read(
    loader: _Loader,
    paths: Sequence[str],
    environment: str,
    inside: Sequence[str] | None = None,
    since: Since | None = None,
) -> None:
    overlays: list[str] = []
    base = _opened(files.find(paths, loader.diagnostics, overlays, inside), loader)
    changes = None
    if environment:
        given = paths[0] if paths else "."
        found = folders(environment, overlays, given, loader.diagnostics)
        changes = _opened(files.find(found, loader.diagnostics, inside=inside), loader)
    if since is not None:
        since.ask(paths, base, changes or [], environment)
    loader.prepared = prepare(base, changes, loader.resolver)
    loader.documents += loader.prepared.documents
    loader.uses |= loader.prepared.uses
    loader.asked |= {name for used in loader.uses.values() for name in used}
    loader.resolver.asked.clear()
    if loader.origins is not None:
        loader.origins.defaults = loader.prepared.defaults
        loader.origins.overlay_files = frozenset(f.sink.file for f in changes or ())
    for file in base:
        loader.read(file)


def _opened(names: Iterable[str], loader: _Loader) -> list[File]:
    out = []
    for name in names:
        data = files.read(name, loader.diagnostics)
        if data is not None:
            out.append(opened(name, data, loader.diagnostics))
    return out


def _checked(
    loader: _Loader, paths: Sequence[str], capabilities_of: CapabilitiesOf | None, sql_problems: SqlProblems | None
) -> Loaded:
    if not loader.documents and not loader.diagnostics:
        shown = ", ".join(paths) or "no path"
        loader.diagnostics.append(
            Diagnostic(
                Source(paths[0] if paths else "."),
                "M102",
                "error",
                f"no manifest found in {shown}",
                "folders are searched for *.yaml and *.yml",
            )
        )
    check(loader.registry, capabilities_of)
    if sql_problems is not None:
        check_sql_at_run(loader.registry, sql_problems)
    desired = loader.desired()
    if not has_errors(loader.diagnostics):
        _check_policies(loader.registry, desired, capabilities_of)
    known = frozenset({*loader.asked, *loader.prepared.variables})
    return Loaded(desired, tidy(loader.diagnostics), loader.documents, known, origins=loader.origins)


def _check_policies(registry: Registry, desired: Desired, capabilities_of: CapabilitiesOf | None) -> None:
    """What waivers are for is known once everything else is right."""
    waived = (o.waivers for stores in (desired.namespaces, desired.tables) for s in stores.values() for o in s.values())
    if registry.policies or any(waived):
        from reconciler.manifest.policy_rules import check_policies

        check_policies(registry, desired, capabilities_of)


@dataclass
class _Loader:
    resolver: Resolver
    plugins: PluginTypes
    diagnostics: list[Diagnostic] = field(default_factory=list)
    registry: Registry = field(default_factory=Registry)
    columns: Columns = field(default_factory=Columns)
    digests: list[bytes] = field(default_factory=list)
    documents: int = 0
    prepared: Prepared = field(default_factory=Prepared)
    asked: set[str] = field(default_factory=set)
    """Variables that a document refers to."""
    uses: dict[Key, frozenset[str]] = field(default_factory=dict)
    whole: bool = True
    """No part of a file was passed over."""
    catalog_digests: list[bytes] = field(default_factory=list)
    catalog_files: set[str] = field(default_factory=set)
    origins: Origins | None = None

    def take_catalogs(self, base: _Loader, where: str) -> None:
        """Of what is wrong in `base` only what hides a catalog counts: the rest may be what the manifests put right."""
        told = [d for d in base.diagnostics if d.source.file in base.catalog_files or d.code.startswith(("M1", "M51"))]
        if not base.registry.catalogs and not has_errors(told):
            told.append(Diagnostic(Source(where), "M102", "error", f"no Catalog document found in {where}"))
        self.diagnostics += told
        self.catalog_digests = base.catalog_digests
        self.asked |= base.asked
        take_catalogs(self.registry, base.registry, where)

    def read(self, file: File) -> None:
        sink = file.sink
        self.resolver.room = MAX_EXPANSION
        references = "${" in file.text
        overlay = self.prepared.overlay
        for found in file.documents():
            if isinstance(found, Flaw):
                sink.flaw(found)
                self.whole = False
            elif not file.was_prepared(found):
                self.documents += 1
                layered = found if overlay is None else overlay.applied(sink, found, self.resolver.plain)
                self._document(sink, layered, references or layered is not found)
            if sink.full:
                self.whole = False
                return

    def finish(self) -> None:
        """After the documents of the base: those that the overlay adds, and what only the whole can tell."""
        overlay = self.prepared.overlay
        if overlay is not None:
            for sink, document in overlay.new(OWN, self.resolver.plain):
                self.resolver.room = MAX_EXPANSION
                self._document(sink, document, True)
            overlay.incomplete |= not self.whole
            overlay.tell()

    def check_defaults(self) -> None:
        """Once it is known which catalogs there are."""
        if self.prepared.defaults:
            self.prepared.defaults.tell({*self.registry.catalogs, *self.registry.broken_catalogs}, self.whole)

    def _document(self, sink: Sink, document: Document | Layered, references: bool) -> None:
        value = document.value
        if isinstance(value, dict) and value.get("kind") in ("Catalog", "Policy"):
            self.catalog_files.add(sink.file)
        problems = Problems()
        if isinstance(document, Document) and document.was_careful:
            for flaw in document.careful().flaws:
                sink.flaw(flaw)
            if document.careful().stopped:
                return
        try:
            if references and mentions_reference(value):
                substituted = substitute(value, document.careful, self.resolver, problems)
                problems.references_done()
                problems.told(substituted.unknown)
                settle(substituted, document.careful)
                value = substituted.value
                self._note(value)
            if self.prepared.defaults:
                document, value = self.prepared.defaults.applied(document, value)
            if accepts(value):
                self._accept(sink, document, value, problems)
            else:
                for problem in explain(value, document.careful()):
                    problems.append(problem)
                rest = without_refused(value)
                if rest is None:
                    self._remember_broken(value)
                else:
                    problems.told(rest.unknown)
                    self._accept(sink, document, rest.value, problems)
        except TooMany:
            self._remember_broken(value)
        for problem in problems:
            sink.problem(document, problem)

    def _note(self, value: Value) -> None:
        """Which variables the document refers to."""
        key = identity(value)
        if self.resolver.asked and key is not None:
            self.uses[key] = frozenset(self.resolver.asked)
        self.asked |= self.resolver.asked
        self.resolver.asked.clear()

    def _accept(self, sink: Sink, document: Document | Layered, value: Any, problems: Problems) -> None:
        if value["kind"] in SHARED:
            message = "this kind is looked for in the text, and stands there in another spelling"
            problems.append(Problem("M504", ("kind",), message, f"write kind: {value['kind']}"))
            return
        if value["kind"] == "Catalog":
            refused = self.plugins.problems(value, document.careful)
            for problem in refused:
                problems.append(problem)
            if refused:
                self._remember_broken(value)
                return
        digests = self.catalog_digests if value["kind"] == "Catalog" else self.digests
        digests.append(hashlib.sha256(_ENCODER.encode(value).encode()).digest())
        declared = convert(value, Source(sink.file, document.line, document.column), self.columns, problems)

        def report(problem: Problem) -> None:
            if not problems.follows(problem):
                sink.problem(document, problem)

        def place(path: Path) -> Source:
            return place_in(sink.file, document, path)

        if problems.identity_unknown:
            self._remember_broken(value)
        elif isinstance(declared, CatalogSpec):
            self.registry.add_catalog(CatalogEntry(declared, report, place))
        elif isinstance(declared, Policy):
            if not problems:  # One whose patterns cannot be used cannot be asked.
                self.registry.add_policy(PolicyEntry(declared, value, report))
        else:
            self.registry.add(Entry(declared, report, place))
            if self.origins is not None:
                self.origins.add(declared, document)

    def _remember_broken(self, value: Value) -> None:
        """A document with errors still names something: no follow-up errors because of it."""
        metadata = value.get("metadata") if isinstance(value, dict) else None
        if not isinstance(metadata, dict):
            return
        name, catalog, ident = metadata.get("name"), metadata.get("catalog"), metadata.get("id")
        if isinstance(name, str) and isinstance(value, dict) and value.get("kind") != "Policy":
            self.registry.broken_catalogs.add(name)
        if isinstance(catalog, str) and isinstance(ident, list):
            self.registry.broken_objects.add((catalog, tuple(str(i) for i in ident)))

    def desired(self) -> Desired:
        catalogs = {name: entry.spec for name, entry in sorted(self.registry.catalogs.items())}
        namespaces: dict[str, dict[Any, DesiredNamespace]] = {}
        tables: dict[str, dict[Any, DesiredTable]] = {}
        for name, found in sorted(self.registry.namespaces.items()):
            namespaces[name] = {
                i: e.declared for i, e in sorted(found.items()) if isinstance(e.declared, DesiredNamespace)
            }
        for name, found in sorted(self.registry.tables.items()):
            tables[name] = {i: e.declared for i, e in sorted(found.items()) if isinstance(e.declared, DesiredTable)}
        digest = hashlib.sha256(b"".join(sorted([*self.digests, *self.catalog_digests]))).hexdigest()
        policies = tuple(entry.policy for _, entry in sorted(self.registry.policies.items()))
        places = self.registry.place if policies else None  # It keeps the text of the manifests.
        return Desired(catalogs, namespaces, tables, f"sha256:{digest}", policies, places)
