"""Runs of the program that others write into, and runs that are cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.lance_data import RECORD_KEY
from reconciler.model.errors import CatalogError, Code
from reconciler.pipeline import claims


@contextmanager
def around_the_commit(before: Callable[[], object] | None = None, after: Callable[[], object] | None = None) -> Any:
    """Calls these once, right before and right after the rows are committed."""
    commit = claims.committed
    left = [before, after]

    def committed(place: Any, operation: Any, version: int, properties: Mapping[str, str]) -> Any:
        rows = RECORD_KEY in properties
        if rows and left[0] is not None:
            call, left[0] = left[0], None
            call()
        done = commit(place, operation, version, properties)
        if rows and left[1] is not None:
            call, left[1] = left[1], None
            call()
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "committed", committed)
        yield


def killed() -> None:
    """A kill within a thread of ours would leave the others waiting: nothing runs after this either."""
    raise CatalogError(Code.PERMISSION_DENIED, "killed")


@contextmanager
def cut_off() -> Iterator[None]:
    """The run ends without giving its claim back, and its process is gone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "_give_back", lambda held: None)
        patch.setattr(claims, "_claim", _as_another_process(claims._claim))
        yield


def _as_another_process(made: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: replace(made(*args), born="another")
