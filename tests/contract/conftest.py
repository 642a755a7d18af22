from __future__ import annotations

from pathlib import Path

import pytest
from servers.moto import moto

from contract.backends import BACKENDS, Backend
from contract.lake import Lake

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
