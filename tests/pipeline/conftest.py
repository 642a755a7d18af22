from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pipeline.filled_table import APPEND, FilledTable, Make, filled
from servers.iceberg_rest import iceberg_rest
from servers.moto import moto
from servers.rest_adapter import rest_adapter
from servers.spark import SMALL, need_java

from reconciler.pipeline.session import SparkOptions, session

__all__ = ["iceberg_rest", "moto", "rest_adapter"]


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Its workers have loaded what they need once the first test that asks for it is through."""
    need_java()
    with session(SparkOptions("local[2,4]", conf=tuple(SMALL.items()))) as running:
        yield running


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Make:
    """A table that a data step has filled, on a backend."""
    need_java()

    def made(mode: str = APPEND, name: str = "dir-v1", **spec: Any) -> FilledTable:
        return filled(tmp_path, request.getfixturevalue, name, mode, **spec)

    return made
