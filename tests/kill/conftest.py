"""Fixtures of the kill tests: once per test process, because xdist shares the tests out."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kill_calm import Calm, undisturbed
from kill_runs import Warm

MEMORY = Path("/dev/shm")
ENOUGH = 200 * 2**20


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    made = Warm()
    yield made
    made.close()


@contextmanager
def a_folder() -> Iterator[Path]:
    """In memory where there is room: a killed process takes nothing back from either place, and syncs cost nothing."""
    room = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ENOUGH
    made = Path(tempfile.mkdtemp(prefix="kill-", dir=MEMORY if room else None))
    try:
        yield made
    finally:
        shutil.rmtree(made)


@pytest.fixture
def folder() -> Iterator[Path]:
    with a_folder() as made:
        yield made


@pytest.fixture(scope="session")
def small() -> Calm:
    with a_folder() as made:
        return undisturbed(made, 2)


@pytest.fixture(scope="session")
def hundred() -> Calm:
    with a_folder() as made:
        return undisturbed(made, 100)
