"""What has to be known before the first object is looked at: the overlay of the environment, the variables, the
defaults. Manifests that have none of these are not read for it: a look for two words is all they pay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.manifest.defaults import Defaults
from reconciler.manifest.identity import DEFAULTS, VARIABLES, Key
from reconciler.manifest.layers import Layer, Layered
from reconciler.manifest.overlay import Overlay, Place
from reconciler.manifest.shared_values import VariableValues
from reconciler.manifest.sink import Sink
from reconciler.manifest.variables import Resolver
from reconciler.manifest.yaml_careful import Flaw
from reconciler.manifest.yaml_reader import Document, documents
from reconciler.manifest.yaml_text import decode
from reconciler.model.diagnostic import Diagnostic

SHARED = frozenset({DEFAULTS, VARIABLES})
OWN = frozenset({"Catalog", "Namespace", "Table", "Policy"})
"""Kinds that are read after those."""


@dataclass(slots=True)
class File:
    sink: Sink
    text: str
    _documents: list[Document | Flaw] | None = None
    _prepared: bool = False
    keep: bool = False
    """Its documents are asked for again."""

    def was_prepared(self, document: Document) -> bool:
        """It is of a kind that was looked at before all others."""
        return self._prepared and _kind(document) in SHARED

    def documents(self) -> Iterable[Document | Flaw]:
        return documents(self.text) if self._documents is None and not self.keep else self.kept()

    def read_now(self) -> list[Document | Flaw]:
        self._prepared = True
        return self.kept()

    def kept(self) -> list[Document | Flaw]:
        """Read once, for all who ask later."""
        if self._documents is None:
            self._documents = list(documents(self.text))
        return self._documents


def opened(name: str, data: bytes, diagnostics: list[Diagnostic]) -> File:
    sink = Sink(name, diagnostics)
    text = decode(data)
    for flaw in text.flaws:
        sink.flaw(flaw)
    return File(sink, text.text)


@dataclass
class Prepared:
    defaults: Defaults = field(default_factory=Defaults)
    overlay: Overlay | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the documents, without those of the command line."""
    uses: dict[Key, frozenset[str]] = field(default_factory=dict)
    """The variables that defaults refer to."""
    documents: int = 0
    """Of the overlay, and of kind Defaults and Variables."""


def prepare(base: Iterable[File], overlay: Iterable[File] | None, resolver: Resolver) -> Prepared:
    """The resolver gets the variables. What the documents of these kinds get wrong is told."""
    out = Prepared(overlay=None if overlay is None else Overlay())
    shared = [place for file in base if DEFAULTS in file.text or VARIABLES in file.text for place in _shared(file)]
    values = VariableValues()
    waiting: list[Place] = []
    if out.overlay is not None:
        for sink, document in (place for file in overlay or () for place in _places(file, out.overlay)):
            out.documents += 1
            if _kind(document) == VARIABLES:
                out.overlay.take([(sink, document)], str)
            else:
                waiting.append((sink, document))
    for layer in _layers(VARIABLES, shared, out.overlay, resolver):
        values.take(layer)
    out.variables = values.values
    resolver.variables = {**values.values, **resolver.variables}
    if out.overlay is not None:
        out.overlay.take(waiting, resolver.plain)
    for layer in _layers(DEFAULTS, shared, out.overlay, resolver):
        resolver.asked.clear()
        key = out.defaults.take(layer, resolver)
        if key is not None:
            out.uses[key] = frozenset(resolver.asked)
    out.documents += len(shared)
    return out


def _layers(kind: str, shared: list[Place], overlay: Overlay | None, resolver: Resolver) -> Iterator[Layer]:
    """The documents of a kind: those of the base, changed by the overlay, and those that it adds."""
    for sink, document in shared:
        if _kind(document) == kind:
            whole: Document | Layered = document
            if overlay is not None:
                whole = overlay.applied(sink, document, resolver.plain)
            yield Layer(sink, whole, shared=True)
    for sink, document in overlay.new((kind,), resolver.plain) if overlay is not None else ():
        yield Layer(sink, document, shared=True)


def _shared(file: File) -> Iterator[Place]:
    for found in file.read_now():
        if isinstance(found, Document) and _kind(found) in SHARED and not _stopped(file.sink, found):
            yield file.sink, found


def _places(file: File, overlay: Overlay) -> Iterator[Place]:
    for found in file.read_now():
        if isinstance(found, Flaw):
            file.sink.flaw(found)
            overlay.incomplete = True
        elif _stopped(file.sink, found):
            overlay.incomplete = True
        else:
            yield file.sink, found


def _stopped(sink: Sink, document: Document) -> bool:
    """Tells the flaws of a document; True when the rest of it was not read."""
    if not document.was_careful:
        return False
    for flaw in document.careful().flaws:
        sink.flaw(flaw)
    return document.careful().stopped


def _kind(document: Document) -> str:
    value = document.value
    kind = value.get("kind") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""
