"""The toy plug-in, installed as a user would, and the contract's fixtures on it."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from contract.backends import Backend
from contract.lake import Lake
from contract.scenario import Day, after, prepare
from outsider_jsonfile import jsonfile_site

from reconciler.catalog.registry import backend_of

TOY = Path(__file__).parent / "toy"
JSONFILE = Backend("jsonfile", jsonfile_site)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that pip installed the package into. Nothing is downloaded."""
    folder = tmp_path_factory.mktemp("toy")
    shutil.copytree(TOY, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(folder / "site")]
    done = subprocess.run([*pip, *offline, str(folder / "source")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.fixture
def plug_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """Makes the packages of a folder known to this process, for one test."""

    def add(folder: Path) -> None:
        monkeypatch.syspath_prepend(str(folder))
        importlib.invalidate_caches()
        backend_of.cache_clear()

    yield add
    backend_of.cache_clear()


@pytest.fixture
def plugged_in(installed: Path, plug_in: Callable[[Path], None]) -> None:
    plug_in(installed)


@pytest.fixture
def lake(plugged_in: None, request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(JSONFILE, JSONFILE.make(tmp_path, request.getfixturevalue), tmp_path)


@pytest.fixture
def stored(lake: Lake) -> Lake:
    return lake


@pytest.fixture
def copy_of(lake: Lake) -> Callable[[Callable[[Lake], None]], Lake]:
    def copy(fill: Callable[[Lake], None]) -> Lake:
        fill(lake)
        return lake

    return copy


@pytest.fixture
def day(lake: Lake) -> Day:
    prepare(lake)

    @lru_cache
    def final() -> object:
        undisturbed = lake.copy()
        undisturbed.reach(after(lake), adopt=True)
        return undisturbed.comparable()

    return Day(lake.copy(), final)
