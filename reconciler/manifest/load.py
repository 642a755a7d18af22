"""Manifests on disk -> Desired, with every diagnostic in one run.

Except inside one document: its further rules are checked on what its structure leaves intact (`prune`), and not before
it is corrected when a part is wrong that the rest depends on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from reconciler.manifest import files
from reconciler.manifest.base_catalogs import take_catalogs
from reconciler.manifest.columns import Columns
from reconciler.manifest.convert import convert
from reconciler.manifest.cross_rules import CapabilitiesOf, check
from reconciler.manifest.limits import UNLIMITED, Limits
from reconciler.manifest.plugin_options import PluginTypes
from reconciler.manifest.problem import Problem, Problems, TooMany
from reconciler.manifest.prune import without_refused
from reconciler.manifest.registry import CatalogEntry, Entry, Registry
from reconciler.manifest.schema_check import accepts, explain, settle
from reconciler.manifest.sink import Sink
from reconciler.manifest.sql_at_run import SqlProblems, check_sql_at_run
from reconciler.manifest.substitute import mentions_reference, substitute
from reconciler.manifest.variables import MAX_EXPANSION, Resolver
from reconciler.manifest.yaml_careful import Flaw
from reconciler.manifest.yaml_reader import Document, documents
from reconciler.manifest.yaml_scalars import Value
from reconciler.manifest.yaml_text import decode
from reconciler.model.collector import collection_paused
from reconciler.model.desired import CatalogSpec, Desired, DesiredNamespace, DesiredTable
from reconciler.model.diagnostic import Diagnostic, Source, has_errors, tidy


@dataclass(frozen=True)
class Loaded:
    desired: Desired
    """Best effort when there are errors: never act on it then."""
    diagnostics: list[Diagnostic]
    documents: int


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
    limits: Limits = UNLIMITED,
    catalogs_from: Sequence[str] = (),
) -> Loaded:
    """Reads files and folders. Nothing is raised for bad input: everything wrong is a diagnostic."""
    plugins = plugins or PluginTypes()
    loader = _Loader(Resolver(variables, environ, limits=limits), plugins)
    with collection_paused():
        base = None
        if catalogs_from:
            base = _Loader(Resolver(variables, environ, limits=Limits(resolve=limits.resolve)), plugins)
            _read_all(base, catalogs_from)
        _read_all(loader, paths, inside=base is not None)
        if base is not None:
            loader.take_catalogs(base, ", ".join(catalogs_from))
        return _load(loader, paths, capabilities_of, sql_problems)


def _read_all(loader: _Loader, paths: Sequence[str], inside: bool = False) -> None:
    for file in files.find(paths, loader.diagnostics, inside):
        data = files.read(file, loader.diagnostics)
        if data is not None:
            loader.read(file, data)


def _load(
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
    return Loaded(loader.desired(), tidy(loader.diagnostics), loader.documents)


@dataclass
class _Loader:
    resolver: Resolver
    plugins: PluginTypes
    diagnostics: list[Diagnostic] = field(default_factory=list)
    registry: Registry = field(default_factory=Registry)
    columns: Columns = field(default_factory=Columns)
    digests: list[bytes] = field(default_factory=list)
    documents: int = 0
    catalog_digests: list[bytes] = field(default_factory=list)
    catalog_files: set[str] = field(default_factory=set)

    def take_catalogs(self, base: _Loader, where: str) -> None:
        """Of what is wrong in `base` only what hides a catalog counts: the rest may be what the manifests put right."""
        told = [d for d in base.diagnostics if d.source.file in base.catalog_files or d.code.startswith("M1")]
        if not base.registry.catalogs and not has_errors(told):
            told.append(Diagnostic(Source(where), "M102", "error", f"no Catalog document found in {where}"))
        self.diagnostics += told
        self.catalog_digests = base.catalog_digests
        take_catalogs(self.registry, base.registry, where)

    def read(self, file: str, data: bytes) -> None:
        sink = Sink(file, self.diagnostics)
        self.resolver.room = MAX_EXPANSION
        text = decode(data)
        references = "${" in text.text
        for flaw in text.flaws:
            sink.flaw(flaw)
        for found in documents(text.text):
            if isinstance(found, Flaw):
                sink.flaw(found)
            else:
                self.documents += 1
                self._document(sink, found, references)
            if sink.full:
                return

    def _document(self, sink: Sink, document: Document, references: bool) -> None:
        value = document.value
        if isinstance(value, dict) and value.get("kind") == "Catalog":
            self.catalog_files.add(sink.file)
        problems = Problems()
        if document.was_careful:
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

    def _accept(self, sink: Sink, document: Document, value: Any, problems: Problems) -> None:
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

        if problems.identity_unknown:
            self._remember_broken(value)
        elif isinstance(declared, CatalogSpec):
            self.registry.add_catalog(CatalogEntry(declared, report))
        else:
            self.registry.add(Entry(declared, report))

    def _remember_broken(self, value: Value) -> None:
        """A document with errors still names something: no follow-up errors because of it."""
        metadata = value.get("metadata") if isinstance(value, dict) else None
        if not isinstance(metadata, dict):
            return
        name, catalog, ident = metadata.get("name"), metadata.get("catalog"), metadata.get("id")
        if isinstance(name, str):
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
        return Desired(catalogs, namespaces, tables, f"sha256:{digest}")
