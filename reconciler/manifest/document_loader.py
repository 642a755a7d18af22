"""One document after the other: references, layers and the schema, then what it declares into the registry."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.manifest.base_catalogs import take_catalogs
from reconciler.manifest.columns import Columns
from reconciler.manifest.convert import convert
from reconciler.manifest.hidden_characters import hidden_names
from reconciler.manifest.identity import Key, identity
from reconciler.manifest.layers import Layered
from reconciler.manifest.origins import Origins
from reconciler.manifest.others_catalogs import Others, is_catalog
from reconciler.manifest.overlay import Overlay
from reconciler.manifest.plugin_options import PluginTypes
from reconciler.manifest.prepare import OWN, SHARED, File, Prepared
from reconciler.manifest.problem import Path, Problem, Problems, TooMany
from reconciler.manifest.prune import without_refused
from reconciler.manifest.reference_places import with_places
from reconciler.manifest.registry import CatalogEntry, Entry, PolicyEntry, Registry
from reconciler.manifest.schema_check import accepts, explain, settle
from reconciler.manifest.sink import Sink, place_in
from reconciler.manifest.substitute import mentions_reference, substitute
from reconciler.manifest.variables import MAX_EXPANSION, Resolver
from reconciler.manifest.yaml_careful import Flaw
from reconciler.manifest.yaml_reader import Document
from reconciler.manifest.yaml_scalars import Value
from reconciler.model.desired import CatalogSpec, Desired, DesiredNamespace, DesiredTable
from reconciler.model.diagnostic import Diagnostic, Source, has_errors
from reconciler.model.policy import Policy

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass
class Loader:
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
    others: Others | None = None
    """Where Catalog documents are taken from, when it is another place."""
    overlays: list[str] = field(default_factory=list)
    """The folders of this name, with those of the environments in them."""

    def take_catalogs(self, base: Loader, where: str) -> None:
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
        self.resolver.missing.next_file()
        references = "${" in file.text or "\\" in file.text  # An escape may stand for a part of one.
        overlay = self.prepared.overlay
        for found in file.documents():
            if isinstance(found, Flaw):
                sink.flaw(found)
                self.whole = False
            elif not file.was_prepared(found):
                self.documents += 1
                if self.others is not None and overlay is not None and is_catalog(found):
                    self._catalog_of_others(sink, found, overlay, self.others)
                else:
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
            if self.others is not None:
                self.others.pass_over(overlay)
            overlay.tell()

    def check_defaults(self) -> None:
        """Once it is known which catalogs there are."""
        if self.prepared.defaults:
            self.prepared.defaults.tell({*self.registry.catalogs, *self.registry.broken_catalogs}, self.whole)

    def _document(self, sink: Sink, document: Document | Layered, references: bool) -> None:
        value = document.value
        if isinstance(value, dict) and value.get("kind") in ("Catalog", "Policy"):
            self.catalog_files.add(sink.file)
        problems = Problems(self.resolver.limits.permitted)
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

    def _catalog_of_others(self, sink: Sink, document: Document, overlay: Overlay, others: Others) -> None:
        """It is compared with the one that is used, as the overlay leaves it. What the overlay makes wrong about it is
        no error: neither of the two is used."""
        told, known = len(self.diagnostics), (dict(self.registry.catalogs), set(self.registry.broken_catalogs))
        layered = overlay.applied(sink, document, self.resolver.plain)
        self._document(sink, layered, True)
        wrong = [d for d in self.diagnostics[told:] if d.severity == "error"]
        if wrong and isinstance(layered, Layered) and layered.patch is not None:
            del self.diagnostics[told:]
            self.registry.catalogs, self.registry.broken_catalogs = known
            others.warn(layered.patch, f"; it would be wrong: {wrong[0].message}")
            self._document(sink, document, True)

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
        encoded = _ENCODER.encode(value)
        digests.append(hashlib.sha256(encoded.encode()).digest())
        if not encoded.isascii() or "\\" in encoded:
            self._hidden(sink, document, value, problems)
        declared = convert(value, Source(sink.file, document.line, document.column), self.columns, problems)

        def report(problem: Problem) -> None:
            if not problems.follows(problem):
                sink.problem(document, problem)

        def place(path: Path) -> Source:
            return place_in(sink.file, document, path)

        if problems.identity_unknown:
            self._remember_broken(value)
        elif isinstance(declared, CatalogSpec):
            self.registry.add_catalog(CatalogEntry(with_places(declared, sink.file, document), report, place))
        elif isinstance(declared, Policy):
            if problems.none:  # One whose patterns cannot be used cannot be asked.
                self.registry.add_policy(PolicyEntry(declared, value, report))
        else:
            if declared.allow:
                words = {word: place(("spec", "allow", index)) for index, word in enumerate(declared.allow)}
                declared = replace(declared, allow_sources=words)
            self.registry.add(Entry(declared, report, place))
            if self.origins is not None:
                self.origins.add(declared, document)

    def _hidden(self, sink: Sink, document: Document | Layered, value: Value, problems: Problems) -> None:
        """Not what the text of a file was told for already."""
        found = list(hidden_names(value, document.careful))
        told = {(d.source.file, d.source.line) for d in self.diagnostics if d.code == "M118"} if found else ()
        for problem in found:
            place = place_in(sink.file, document, problem.path)
            if (place.file, place.line) not in told:
                problems.append(problem)

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
