from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from servers.moto import moto

from contract.backends import BACKENDS, Backend
from contract.lake import Lake
from contract.scenario import Day, after, prepare

__all__ = ["moto"]


def _param(backend: Backend) -> object:
    return pytest.param(backend, id=backend.name, marks=[pytest.mark.slow] if backend.slow else [])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where a write costs much, one variant of a test stands for its siblings: they differ in the plan, not in how the
    catalog is written."""
    seen: set[tuple[str, str]] = set()
    dropped = []
    for item in items:
        call = getattr(item, "callspec", None)
        backends = [v for v in call.params.values() if isinstance(v, Backend) and v.slow] if call else []
        if backends:
            key = (item.nodeid.partition("[")[0], backends[0].name)
            (dropped.append if key in seen else lambda _: None)(item)
            seen.add(key)
    config.hook.pytest_deselected(items=dropped)
    gone = set(map(id, dropped))
    items[:] = [item for item in items if id(item) not in gone]


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
        undisturbed.reach(after(lake), adopt=True)
        return undisturbed.outsider.state().comparable()

    return Day(lake, final)


@pytest.fixture
def day(prepared: Day) -> Day:
    return Day(prepared.lake.copy(), prepared.final)
