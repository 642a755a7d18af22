"""A process that dies: from some call on, nothing it does reaches the disk, its own cleaning up included."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dir_support import CONTEXT

from reconciler.catalog import directory, storage_local
from reconciler.catalog.directory_manifest import Manifest
from reconciler.model.change import Change
from reconciler.model.errors import CatalogError


class Killed(BaseException):
    """Not an error: nobody may catch it and go on."""


class Life:
    """Ends right after call number `last`."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.count = 0

    @property
    def over(self) -> bool:
        return self.count >= self.last

    def call(self, action: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        if self.over:
            raise Killed
        result = action(*arguments, **named)
        self.count += 1
        if self.over:
            raise Killed
        return result

    def watched(self, action: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments, **named: self.call(action, *arguments, **named)


class Watched:
    """An object whose methods (or those of them that are named) are calls of that life."""

    def __init__(self, what: Any, life: Life, *names: str) -> None:
        self._what, self._life, self._names = what, life, names

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._what, name)
        watch = name in self._names if self._names else callable(value)
        return self._life.watched(value) if watch else value


@contextmanager
def every_storage_call(life: Life) -> Iterator[None]:
    """Reads and writes of the storage, and commits to `__manifest`."""
    real_open, real_commit = directory.open_storage, Manifest._commit
    with (
        patch.object(directory, "open_storage", lambda *a: Watched(real_open(*a), life)),
        patch.object(Manifest, "_commit", lambda *a: life.call(real_commit, *a)),
    ):
        yield


@contextmanager
def every_system_call(life: Life) -> Iterator[None]:
    """Inside a write to the local disk: between the folder, the temporary file and its final name."""
    calls = ("makedirs", "mkdir", "link", "unlink", "replace", "rename", "rmdir")
    with (
        patch.object(storage_local, "os", Watched(os, life, *calls)),
        patch.object(storage_local, "open", life.watched(builtins.open), create=True),
    ):
        yield


Watch = Callable[[Life], Any]


def dies(watch: Watch, root: Path, change: Change, last: int, **options: str) -> bool:
    """Makes the change in a life that ends with call `last`. False: the change was complete before that."""
    life = Life(last)
    with suppress(Killed, CatalogError), watch(life):
        directory.DirectoryCatalog({"path": str(root), **options}).apply(change, CONTEXT)
    return life.over
