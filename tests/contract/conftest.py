from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from servers.iceberg_rest import iceberg_rest
from servers.moto import moto
from servers.nessie import nessie
from servers.rest_adapter import rest_adapter

from contract.backends import BACKENDS, Backend
from contract.lake import Lake
from contract.scenario import Day, after, prepare

__all__ = ["iceberg_rest", "moto", "nessie", "rest_adapter"]


def _param(backend: Backend) -> object:
    return pytest.param(backend, id=backend.name, marks=[pytest.mark.slow] if backend.slow else [])


@pytest.fixture(params=[_param(b) for b in BACKENDS])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """A fresh, empty catalog, once for every backend."""
    backend: Backend = request.param
    return Lake(backend, backend.make(tmp_path, request.getfixturevalue), tmp_path)


@pytest.fixture(params=[_param(b) for b in BACKENDS if b.rows])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """The same, for tests about rows."""
    backend: Backend = request.param
    return Lake(backend, backend.make(tmp_path, request.getfixturevalue), tmp_path)


@pytest.fixture(params=[_param(b) for b in BACKENDS if b.strangers])
def mixed(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """The same, for tests about what is no Lance table."""
    backend: Backend = request.param
    return Lake(backend, backend.make(tmp_path, request.getfixturevalue), tmp_path)


@pytest.fixture(scope="session")
def shelf() -> dict[tuple[str, str], Lake]:
    """Catalogs that were prepared once, by backend and by what prepared them."""
    return {}


@pytest.fixture
def copy_of(
    stored: Lake, shelf: dict[tuple[str, str], Lake], tmp_path_factory: pytest.TempPathFactory, request: Any
) -> Callable[[Callable[[Lake], None]], Lake]:
    """A copy of a catalog that the given function has filled, made once for each backend."""

    def copy(prepare: Callable[[Lake], None]) -> Lake:
        key = stored.backend.name, f"{prepare.__module__}.{prepare.__name__}"
        if key not in shelf:
            folder = tmp_path_factory.mktemp(key[0])
            shelf[key] = Lake(stored.backend, stored.backend.make(folder, request.getfixturevalue), folder)
            prepare(shelf[key])
        return shelf[key].copy()

    return copy


@pytest.fixture(params=[_param(b) for b in BACKENDS], scope="session")
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Day:
    """Made once for each backend: tests work on copies."""
    backend: Backend = request.param
    folder = tmp_path_factory.mktemp(backend.name)
    lake = Lake(backend, backend.make(folder, request.getfixturevalue), folder)
    prepare(lake)

    @lru_cache
    def final() -> object:
        undisturbed = lake.copy()
        undisturbed.reach(after(undisturbed), adopt=True)
        return undisturbed.comparable()

    return Day(lake, final)


@pytest.fixture
def day(prepared: Day) -> Day:
    return Day(prepared.lake.copy(), prepared.final)
