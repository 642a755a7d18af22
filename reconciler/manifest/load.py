"""Manifests on disk -> Desired, with every diagnostic in one run."""

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
from reconciler.manifest.problem import Problem
from reconciler.manifest.registry import CatalogEntry, Entry, Registry
from reconciler.manifest.schema_check import accepts, explain, settle
from reconciler.manifest.substitute import mentions_reference, substitute
from reconciler.manifest.variables import Resolver
from reconciler.manifest.yaml_careful import Flaw
from reconciler.manifest.yaml_reader import Document, documents
from reconciler.manifest.yaml_scalars import Value
from reconciler.manifest.yaml_text import decode
from reconciler.model.desired import CatalogSpec, Desired, DesiredNamespace, DesiredTable
from reconciler.model.diagnostic import Diagnostic, Source, tidy

MAX_PROBLEMS = 100
"""Per file. After that the file is not read on: a person fixes the first hundred, a hostile file gets no more time."""


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
    environ: Mapping[str, str] | None = None,
) -> Loaded:
    """Reads files and folders. Nothing is raised for bad input: everything wrong is a diagnostic."""
    loader = _Loader(Resolver(variables, environ))
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
    return Loaded(loader.desired(), tidy(loader.diagnostics), loader.documents)


class _Full(Exception):
    """The file has enough problems."""


@dataclass
class _Loader:
    resolver: Resolver
    diagnostics: list[Diagnostic] = field(default_factory=list)
    registry: Registry = field(default_factory=Registry)
    columns: Columns = field(default_factory=Columns)
    digests: list[bytes] = field(default_factory=list)
    documents: int = 0
    _room: int = MAX_PROBLEMS

    def read(self, file: str, data: bytes) -> None:
        self._room = MAX_PROBLEMS
        text = decode(data)
        references = "${" in text.text
        try:
            for flaw in text.flaws:
                self._flaw(file, flaw)
            for found in documents(text.text):
                if isinstance(found, Flaw):
                    self._flaw(file, found)
                else:
                    self.documents += 1
                    self._document(file, found, references)
        except _Full:
            hint = "fix these first; the rest of the file was not read"
            last = max((d.source for d in self.diagnostics if d.source.file == file), default=Source(file))
            message = f"more than {MAX_PROBLEMS} problems in this file"
            self.diagnostics.append(Diagnostic(last, "M116", "error", message, hint))

    def _add(self, diagnostic: Diagnostic) -> None:
        if self._room <= 0:
            raise _Full
        self._room -= 1
        self.diagnostics.append(diagnostic)

    def _flaw(self, file: str, flaw: Flaw) -> None:
        self._add(Diagnostic(Source(file, flaw.line, flaw.column), flaw.code, "error", flaw.message, flaw.hint))

    def _document(self, file: str, document: Document, references: bool) -> None:
        value = document.value
        problems: list[Problem] = []
        if document.was_careful:
            for flaw in document.careful().flaws:
                self._flaw(file, flaw)
            if document.careful().stopped:
                return
        if references and mentions_reference(value):
            substituted = substitute(value, document.careful(), self.resolver)
            settle(substituted)
            value, problems = substituted.value, substituted.problems
        if not accepts(value):
            for problem in explain(value, document.careful()):
                self._add(locate(file, document, problem))
            self._remember_broken(value)
        else:
            self._accept(file, document, value, problems)
        for problem in problems:
            self._add(locate(file, document, problem))

    def _accept(self, file: str, document: Document, value: Value, problems: list[Problem]) -> None:
        self.digests.append(hashlib.sha256(_ENCODER.encode(value).encode()).digest())
        declared = convert(value, Source(file, document.line, document.column), self.columns, problems)

        def report(problem: Problem) -> None:
            self.diagnostics.append(locate(file, document, problem))

        if isinstance(declared, CatalogSpec):
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
        digest = hashlib.sha256(b"".join(sorted(self.digests))).hexdigest()
        return Desired(catalogs, namespaces, tables, f"sha256:{digest}")


def locate(file: str, document: Document, problem: Problem) -> Diagnostic:
    """The place of a problem in its file: the value's, the key's, or a character inside a one-line scalar."""
    key, node = document.careful().locate(problem.path)
    target = key if problem.at_key and key is not None else node
    if target is None:
        source = Source(file, document.line, document.column)
    else:
        inside = problem.offset if target.kind == "scalar" else 0
        if inside and not target.plain:
            inside += 1  # the opening quote
        source = Source(file, target.line, target.column + inside)
    return Diagnostic(source, problem.code, problem.severity, problem.message, problem.hint)
