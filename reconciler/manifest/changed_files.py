"""Which files of a run may not be what they were at a git revision."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.manifest import git
from reconciler.manifest.files import SKIPPED_FOLDERS, SUFFIXES

Layer = str
BASE, OVERLAY = "base", "overlay"


@dataclass(frozen=True, slots=True)
class Found:
    """The files that a run reads."""

    paths: Sequence[str]
    """As given."""
    base: Sequence[str]
    overlay: Sequence[str]
    environment: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    layer: Layer
    file: str | None
    """As it was found; None when it is gone."""
    blob: str | None
    """What it was; None when it was not there."""


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    repository: git.Repository
    candidates: Sequence[Candidate]

    def earlier(self) -> Mapping[str, bytes]:
        """By blob. Raises GitError."""
        return self.repository.contents(sorted({c.blob for c in self.candidates if c.blob is not None}))


def changed_files(revision: str, found: Found) -> ChangedFiles:
    """Since this branch left the revision; what is not committed, and files that git does not know, count too. Raises
    GitError."""
    repository = git.repository(found.paths[0])
    places = _Places(repository.top, found)
    commit = repository.base(revision)
    tracked = repository.tracked(places.roots)
    before: dict[str, str | None] = {d.path: d.blob for d in repository.differences(commit, places.roots)}
    before |= {name: None for name in places.files if name not in tracked and name not in before}
    layers = {name: layer for name in before if (layer := places.layer(name)) is not None}
    return ChangedFiles(repository, [Candidate(layer, places.files.get(n), before[n]) for n, layer in layers.items()])


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
