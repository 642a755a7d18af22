from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest
from servers.moto import moto

from contract.backends import BACKENDS, Backend
from contract.lake import Lake
from contract.scenario import Day, after, prepare

__all__ = ["moto"]


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
        undisturbed.reach(after(lake), adopt=True)
        return undisturbed.outsider.state().comparable()

    return Day(lake, final)


@pytest.fixture
def day(prepared: Day) -> Day:
    return Day(prepared.lake.copy(), prepared.final)
