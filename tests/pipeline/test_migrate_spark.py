"""Tables moved between catalogs on Spark: every kind of catalog, on disk and in a bucket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from contract.backends import BACKENDS, Site
from pipeline.migrate_lake import Move, errors

from reconciler.pipeline.data_plane import Running
from reconciler.pipeline.jobs import cores
from reconciler.pipeline.session import SparkOptions

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")]
MAKE = {backend.name: backend.make for backend in BACKENDS}


@pytest.fixture
def running(spark: Any) -> Running:
    return Running(SparkOptions(), _spark=spark, _slots=cores(spark))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dir-v2", "dir-v2"),
        ("dir-v2", "dir-s3"),
        ("dir-s3", "dir-s3"),
        ("dir-s3", "dir-v2"),
        ("dir-v2", "rest"),
        ("dir-v2", "unity"),
        ("glue", "iceberg"),
    ],
)
def test_between(old: str, new: str, running: Running, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    def site(name: str, folder: str) -> Site:
        (tmp_path / folder).mkdir()
        return MAKE[name](tmp_path / folder, request.getfixturevalue)

    move = Move(tmp_path, site(old, "from"), site(new, "to"), running)
    move.fill()
    before = move.source.outsider.raw()
    assert errors(move.apply()) == []
    move.moved()
    assert move.source.outsider.raw() == before
