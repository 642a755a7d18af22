"""One Spark for all: in a module that imports this name, whatever starts a session gets that one, and stops nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from reconciler.pipeline import data_plane
from reconciler.pipeline.session import SparkOptions
from reconciler.verbs import tables

__all__ = ["one_session"]


@pytest.fixture(autouse=True)
def one_session(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def shared(_options: SparkOptions) -> Iterator[Any]:
        yield spark

    for module in (data_plane, tables):
        monkeypatch.setattr(module, "session", shared)
