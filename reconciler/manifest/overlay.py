"""`--env NAME`: the documents of `overlays/NAME/` change those of the same kind and identity.

One that finds nothing to change is an error: a misspelt identifier would otherwise be a setting that is not there. So
what is new in an environment says so, with `overlay: add`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from reconciler.manifest.identity import Key, identity, shown
from reconciler.manifest.layers import Layer, Layered, overlaid
from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import Problem
from reconciler.manifest.schema_check import Rules, explain
from reconciler.manifest.schema_files import schema
from reconciler.manifest.sink import Sink
from reconciler.manifest.yaml_reader import Document
from reconciler.model.diagnostic import Diagnostic, Source

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_IDENTITY = ("name", "catalog", "id")
Place = tuple[Sink, Document]


@lru_cache(maxsize=1)
def _rules() -> Rules:
    return Rules(schema("overlay"))


def folders(environment: str, overlays: Sequence[str], given: str, diagnostics: list[Diagnostic]) -> list[str]:
    """The folders of an environment. `overlays`: the folders of this name that were found below the given paths."""
    if not _NAME.fullmatch(environment):
        message = f"--env {environment!r}: this is not a name"
        hint = "an environment is a folder in overlays/: letters, digits, '.', '_' and '-', with no '/'"
        diagnostics.append(Diagnostic(Source(given), "M510", "error", message, hint))
        return []
    found = [path for folder in overlays if os.path.isdir(path := os.path.join(folder, environment))]
    if not found:
        known = environments_in(overlays)
        message = f"--env {environment}: there is no folder overlays/{environment} in the given paths"
        hint = "environments: " + ", ".join(known) if known else "none has a folder overlays/; give the folder above it"
        near = nearest(environment, known)
        hint = f"did you mean {near}? {hint}" if near else hint
        diagnostics.append(Diagnostic(Source(given), "M511", "error", message, hint))
    return found


def environments_in(overlays: Iterable[str]) -> list[str]:
    """The names that `--env` may have."""
    return sorted({name for folder in overlays for name in _environments(folder)})


def _environments(folder: str) -> Iterable[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [n for n in names if _NAME.fullmatch(n) and os.path.isdir(os.path.join(folder, n))]


@dataclass(slots=True)
class _Patch:
    layer: Layer
    hit: bool = False


@dataclass(slots=True)
class Overlay:
    patches: dict[Key, _Patch] = field(default_factory=dict)
    added: list[Place] = field(default_factory=list)
    """Documents that are new, without the word that says so."""
    base: dict[Key, str] = field(default_factory=dict)
    """Where the documents of the base are."""
    incomplete: bool = False
    """Something could not be read, or says not what it is about: what a patch finds is not known."""

    def take(self, documents: Iterable[Place], expand: Callable[[str], str]) -> None:
        for sink, document in documents:
            problems = (
                [] if _rules().accepts(document.value) else list(explain(document.value, document.careful(), _rules()))
            )
            for problem in problems:
                sink.problem(document, problem)
            if problems or not isinstance(document.value, dict):
                self.incomplete = True
            elif "overlay" in document.value:
                self.added.append((sink, _whole(document)))
            else:
                self._patch(sink, document, expand)

    def _patch(self, sink: Sink, document: Document, expand: Callable[[str], str]) -> None:
        key = identity(document.value, expand)
        if key is None:
            self.incomplete = True
            return
        patch = _Patch(Layer(sink, document))
        first = self.patches.setdefault(key, patch)
        if first is not patch:
            message = f"{shown(key)} is changed at {first.layer.place} already"
            sink.problem(document, Problem("M513", (), message, "write one document for both"))

    def applied(self, sink: Sink, document: Document, expand: Callable[[str], str]) -> Document | Layered:
        """The document of the base, changed if there is something for it."""
        key = identity(document.value, expand)
        if key is None:
            self.incomplete = True
            return document
        self.base.setdefault(key, f"{sink.file}:{document.line}")
        patch = self.patches.get(key)
        if patch is None:
            return document
        patch.hit = True
        return patched(document, patch.layer, shown(key))

    def new(self, kinds: Container[str], expand: Callable[[str], str]) -> Iterator[Place]:
        """The added documents of these kinds, once the base is known. One that is there already is told."""
        for sink, document in self.added:
            key = identity(document.value, expand)
            if isinstance(document.value, dict) and document.value["kind"] in kinds:
                if key is None or key not in self.base:
                    yield sink, document
                    continue
                message = f"{shown(key)} is not new: it is declared at {self.base[key]}"
                sink.problem(document, Problem("M514", ("overlay",), message, "remove `overlay: add` to change it"))

    def tell(self) -> None:
        """After all documents of the base: what changed nothing."""
        for key, patch in self.patches.items():
            if not patch.hit and not self.incomplete:
                message = f"there is no {shown(key)} that this could change"
                near = nearest(shown(key), sorted(shown(k) for k in self.base if k[0] == key[0]))
                hint = f"did you mean {near}? " if near else ""
                hint += "`overlay: add` makes it a new document of this environment"
                patch.layer.sink.problem(patch.layer.document, Problem("M512", ("metadata",), message, hint))


def patched(document: Document, layer: Layer, about: str) -> Layered:
    base, patch = document.value, layer.document.value
    assert isinstance(base, dict)
    assert isinstance(patch, dict)
    out = Layered(document, None, about, patch=layer)
    body = {k: v for k, v in patch.items() if k not in ("apiVersion", "kind", "metadata")}
    metadata = patch.get("metadata")
    if isinstance(metadata, dict):
        body |= {"metadata": {k: v for k, v in metadata.items() if k not in _IDENTITY}}
    out.value = overlaid(base, body, layer, out)
    return out


def _whole(document: Document) -> Document:
    assert isinstance(document.value, dict)
    return replace(document, value={k: v for k, v in document.value.items() if k != "overlay"})
