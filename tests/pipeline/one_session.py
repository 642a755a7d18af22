"""One Spark for all tests of a module: whatever starts a session gets this one, and stops nothing.
A module that imports both names has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from servers.spark import need_java

from reconciler.pipeline import data_plane
from reconciler.pipeline.session import SparkOptions, session
from reconciler.verbs import tables

__all__ = ["one_session", "spark"]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    need_java()
    with session(SparkOptions("local[2,4]")) as running:
        yield running


@pytest.fixture(autouse=True)
def one_session(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def shared(_options: SparkOptions) -> Iterator[Any]:
        yield spark

    for module in (data_plane, tables):
        monkeypatch.setattr(module, "session", shared)
