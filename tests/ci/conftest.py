"""A checkout of a pull request with one of its base branch inside, as the example workflow makes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from action_runs import BASE, SECRET, Job
from cli.cli_runs import catalog, namespace, table, write
from github_stand_in import StandIn, stand_in


@pytest.fixture
def github() -> Iterator[StandIn]:
    with stand_in() as state:
        yield state


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    for place in (folder / BASE / "manifests", folder / "manifests"):
        place.mkdir(parents=True)
        write(place, catalog(storage__token="${env:CATALOG_TOKEN}"), name="lake.yaml")
    write(folder / "manifests", namespace("a"), table("a", "t"), name="tables.yaml")
    return folder


@pytest.fixture
def job(workspace: Path, github: StandIn, tmp_path: Path) -> Job:
    return Job(workspace, tmp_path / "temp", github, secrets={"CATALOG_TOKEN": SECRET})
