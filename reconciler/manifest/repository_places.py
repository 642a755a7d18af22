"""Which file of a git repository is which file of a run.

Links are followed as they are when manifests are read. To git a link is a file of its own that holds a path: so those
on the way to a manifest are noted, and where they lead to is looked at too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from reconciler.manifest import git
from reconciler.manifest.files import SKIPPED_FOLDERS
from reconciler.manifest.suffixes import is_manifest

Layer = str
BASE, OVERLAY = "base", "overlay"
_MOST_LINKS = 40
"""On the way to one file, as the operating system has it: more is a circle."""


@dataclass(frozen=True, slots=True)
class Found:
    """The files that a run reads."""

    paths: Sequence[str]
    """As given."""
    base: Sequence[str]
    overlay: Sequence[str]
    environment: str = ""


class Places:
    """Names are relative to the top of the repository, which is `""`. Raises GitError for files outside of it."""

    def __init__(self, top: str, found: Found) -> None:
        self._top = top
        self._environment = found.environment
        self._targets: dict[str, str | None] = {}
        self._folders: dict[str, str] = {}
        self.links: set[str] = set()
        """On the way to what is read."""
        self.further_links: set[str] = set()
        """On the way to where tracked links lead: something may have been read there."""
        self.files: dict[str, str] = {}
        """As they were found."""
        self._layers: dict[str, Layer] = {}
        self._roots: dict[str, Layer] = {self._inside(path): BASE for path in found.paths}
        for layer, names in ((BASE, found.base), (OVERLAY, found.overlay)):
            for file in names:
                name = self._inside(file)
                self.files[name] = file
                self._layers[name] = layer

    @property
    def asked(self) -> list[str]:
        """What git is asked about."""
        names = {*self._roots, *self.links, *self.further_links}
        return sorted(n or "." for n in names if not any(above in names for above in _above(n)))

    @property
    def folders_above(self) -> set[str]:
        """They are no links now."""
        return {above for name in self._roots for above in _above(name) if above}

    def follow(self, links: Iterable[str]) -> None:
        """Takes in what is read through these links, be it there or not."""
        for name in {*links, *self.links}:
            layer = self.leads(name)
            if layer is None:
                continue
            to = (name, self._environment) if os.path.basename(name) in SKIPPED_FOLDERS else (name,)
            target = self._name(real := self._followed(os.path.join(self._top, *to), self.further_links))
            if target is not None and (is_manifest(name) or not os.path.isfile(real)):
                self._roots.setdefault(target, layer)

    def layer(self, name: str) -> Layer | None:
        """Of a file that is read, or would be if it were still there."""
        return self._layers[name] if name in self._layers else self._judged(name, is_link=False)

    def leads(self, name: str) -> Layer | None:
        """Of what is read through a link of this name."""
        return self._judged(name, is_link=True)

    def led(self, name: str) -> bool:
        """Something may have been read through what was a link of this name."""
        return name in self.further_links or self.leads(name) is not None

    def _judged(self, name: str, is_link: bool) -> Layer | None:
        """By the rules of `files.find`; a link may be a folder."""
        if name in self._roots:
            return self._roots[name]
        if not is_link and not is_manifest(name):
            return None
        for root in _above(name):
            if root in self._roots:
                parts = name[len(root) :].lstrip("/").split("/")
                judged = self._layer_below(self._roots[root], parts, is_link)
                if judged is not None:
                    return judged
        return None

    def _layer_below(self, layer: Layer, parts: Sequence[str], is_link: bool) -> Layer | None:
        if any(part.startswith(".") for part in parts):
            return None
        folders = parts if is_link else parts[:-1]
        skipped = [n for n, part in enumerate(folders) if part in SKIPPED_FOLDERS]
        if not skipped:
            return layer
        environment = [*folders[skipped[0] + 1 : skipped[0] + 2]]
        is_asked = environment == [self._environment] or (is_link and not environment and self._environment)
        return OVERLAY if layer == BASE and len(skipped) == 1 and is_asked else None

    def _inside(self, path: str) -> str:
        folder, last = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = self._followed(os.path.join(os.getcwd(), folder), self.links)
        real = self._followed(last, self.links, self._folders[folder])
        name = self._name(real)
        if name is None:
            message = f"{path} is outside of the git repository {self._top}"
            raise git.GitError("M534", message, "--changed-since compares files of one repository")
        return name

    def _name(self, real: str) -> str | None:
        """None outside of the repository."""
        if real == self._top:
            return ""
        above = os.path.join(self._top, "")
        return real[len(above) :] if real.startswith(above) else None

    def _followed(self, path: str, passed: set[str], at: str = "/") -> str:
        """As `os.path.realpath` has it; `passed` gets the links."""
        todo = path.split("/")[::-1]
        count = 0
        while todo:
            part = todo.pop()
            if part in ("", ".", ".."):
                at = os.path.dirname(at) if part == ".." else at
                continue
            below = os.path.join(at, part)
            target = self._target(below)
            if target is None:
                at = below
                continue
            count += 1
            if count > _MOST_LINKS:
                return os.path.join(below, *todo[::-1])
            name = self._name(below)
            if name is not None:
                passed.add(name)
            at = "/" if target.startswith("/") else at
            todo += target.split("/")[::-1]
        return at

    def _target(self, path: str) -> str | None:
        """Of a link."""
        if path not in self._targets:
            try:
                self._targets[path] = os.readlink(path)
            except OSError:
                self._targets[path] = None
        return self._targets[path]


def tracked_in(repository: git.Repository, places: Places) -> git.Tracked:
    """The files of these places, and of those that links in them lead to. Raises GitError."""
    while True:
        asked = places.asked
        tracked = repository.tracked(asked)
        places.follow(name for name, is_link in tracked.links.items() if is_link)
        if places.asked == asked:
            return tracked


def _above(name: str) -> Iterator[str]:
    """The folders that it is in, the nearest first."""
    while name:
        name = name.rpartition("/")[0]
        yield name
