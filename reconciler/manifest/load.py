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
from reconciler.manifest.columns import Columns
from reconciler.manifest.convert import convert
from reconciler.manifest.cross_rules import CapabilitiesOf, check
from reconciler.manifest.plugin_options import PluginTypes
from reconciler.manifest.problem import Path, Problem, Problems, TooMany
from reconciler.manifest.prune import without_refused
from reconciler.manifest.registry import CatalogEntry, Entry, PolicyEntry, Registry
from reconciler.manifest.schema_check import accepts, explain, settle
from reconciler.manifest.sink import Sink, place_in
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
from reconciler.model.policy import Policy


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
) -> Loaded:
    """Reads files and folders. Nothing is raised for bad input: everything wrong is a diagnostic."""
    loader = _Loader(Resolver(variables, environ), plugins or PluginTypes())
    with collection_paused():
        return _load(loader, paths, capabilities_of, sql_problems)


def _load(
    loader: _Loader, paths: Sequence[str], capabilities_of: CapabilitiesOf | None, sql_problems: SqlProblems | None
) -> Loaded:
    for file in files.find(paths, loader.diagnostics):
        data = files.read(file, loader.diagnostics)
        if data is not None:
            loader.read(file, data)
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
    return Loaded(desired, tidy(loader.diagnostics), loader.documents)


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
        self.digests.append(hashlib.sha256(_ENCODER.encode(value).encode()).digest())
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
        digest = hashlib.sha256(b"".join(sorted(self.digests))).hexdigest()
        policies = tuple(entry.policy for _, entry in sorted(self.registry.policies.items()))
        places = self.registry.place if policies else None  # It keeps the text of the manifests.
        return Desired(catalogs, namespaces, tables, f"sha256:{digest}", policies, places)
