from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
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
