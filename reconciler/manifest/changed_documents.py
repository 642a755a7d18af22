"""`--changed-since`: the documents that are not what they were at a git revision. Documents are compared, not files: a
comment, another order, a document that moved to another file are no change."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from reconciler.manifest import git
from reconciler.manifest.files import SKIPPED_FOLDERS, SUFFIXES
from reconciler.manifest.identity import Key, identity
from reconciler.manifest.yaml_reader import Document, documents
from reconciler.manifest.yaml_scalars import Value
from reconciler.manifest.yaml_text import decode

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
Layer = str
BASE, OVERLAY = "base", "overlay"


@dataclass(frozen=True, slots=True)
class Change:
    old: Value
    """None when it was not there."""
    new: Value


@dataclass(slots=True)
class Changes:
    documents: dict[Key, list[Change]] = field(default_factory=dict)
    """Those of the base, and those of the overlay."""
    files: set[str] = field(default_factory=set)
    """Files, as they were found, whose content changed."""


@dataclass(frozen=True, slots=True)
class Found:
    """The files that a run reads."""

    paths: Sequence[str]
    """As given."""
    base: Sequence[str]
    overlay: Sequence[str]
    environment: str = ""


def changed_documents(revision: str, found: Found, expand: Callable[[str], str]) -> Changes:
    """Since this branch left the revision; what is not committed, and files that git does not know, count too. Raises
    GitError."""
    repository = git.repository(found.paths[0])
    places = _Places(repository.top, found)
    commit = repository.base(revision)
    tracked = repository.tracked(places.roots)
    before: dict[str, str | None] = {d.path: d.blob for d in repository.differences(commit, places.roots)}
    before |= {name: None for name in places.files if name not in tracked and name not in before}
    layers = {name: layer for name in before if (layer := places.layer(name)) is not None}
    old = repository.contents(sorted({blob for name in layers if (blob := before[name]) is not None}))
    changes, was, now = Changes(), _Versions(expand), _Versions(expand)
    for name, layer in layers.items():
        blob = before[name]
        earlier = b"" if blob is None else old[blob]
        file = places.files.get(name)
        current = b"" if file is None else _read(file)
        if earlier != current:
            was.take(layer, earlier)
            now.take(layer, current)
            changes.files |= set() if file is None else {file}
    for mark in was.texts.keys() | now.texts.keys():
        if sorted(was.texts.get(mark, ())) != sorted(now.texts.get(mark, ())):
            change = Change(was.values.get(mark), now.values.get(mark))
            changes.documents.setdefault(mark[1], []).append(change)
    return changes


class _Versions:
    """Documents by what they are about."""

    def __init__(self, expand: Callable[[str], str]) -> None:
        self.expand = expand
        self.texts: dict[tuple[Layer, Key], list[str]] = {}
        self.values: dict[tuple[Layer, Key], Value] = {}

    def take(self, layer: Layer, data: bytes) -> None:
        for document in _documents(data):
            key = identity(document.value, self.expand)
            if key is not None:
                self.texts.setdefault((layer, key), []).append(_ENCODER.encode(document.value))
                self.values.setdefault((layer, key), document.value)


def _documents(data: bytes) -> Iterator[Document]:
    for found in documents(decode(data).text):
        if isinstance(found, Document):
            yield found


def _read(file: str) -> bytes:
    try:
        with open(file, "rb") as handle:
            return handle.read()
    except OSError:
        return b""  # That it cannot be read is told where it is loaded.


class _Places:
    """Which file of the repository is which file of the run; links are followed."""

    def __init__(self, top: str, found: Found) -> None:
        self._top = top
        self._environment = found.environment
        self._folders: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self._layers: dict[str, Layer] = {}
        for layer, names in ((BASE, found.base), (OVERLAY, found.overlay)):
            for file in names:
                name = self._inside(file)
                self.files[name] = file
                self._layers[name] = layer
        given = [self._inside(path) for path in found.paths]
        linked = {os.path.dirname(name) for name in self.files if not _below(name, given)}
        self.roots = [root or "." for root in _outermost([*given, *linked])]

    def _inside(self, path: str) -> str:
        """Relative to the top of the repository. Raises GitError for what is outside."""
        folder, name = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder or ".")
        real = os.path.join(self._folders[folder], name) if name not in ("", ".", "..") else os.path.realpath(path)
        if os.path.islink(real):
            real = os.path.realpath(real)
        if real == self._top:
            return ""
        if not real.startswith(os.path.join(self._top, "")):
            message = f"{path} is outside of the git repository {self._top}"
            raise git.GitError("M534", message, "--changed-since compares files of one repository")
        return os.path.relpath(real, self._top) if os.sep != "/" else real[len(os.path.join(self._top, "")) :]

    def layer(self, name: str) -> Layer | None:
        """Of a file that is read, or would be if it were still there."""
        if name in self._layers:
            return self._layers[name]
        root = next((r for r in self.roots if r in (".", name) or name.startswith(f"{r}/")), None)
        if root is None or not name.endswith(SUFFIXES):
            return None
        *folders, last = (name if root == "." else name[len(root) :].lstrip("/") or name).split("/")
        if any(part.startswith(".") for part in (*folders, last)):
            return None
        skipped = [n for n, part in enumerate(folders) if part in SKIPPED_FOLDERS]
        if not skipped:
            return BASE
        environment = folders[skipped[0] + 1 : skipped[0] + 2]
        return OVERLAY if len(skipped) == 1 and environment == [self._environment] else None


def _below(name: str, roots: Iterable[str]) -> bool:
    return any(not root or name == root or name.startswith(f"{root}/") for root in roots)


def _outermost(names: Iterable[str]) -> list[str]:
    out: list[str] = []
    for name in sorted(set(names)):
        if not _below(name, out):
            out.append(name)
    return out
