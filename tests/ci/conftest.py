"""A checkout of a pull request with one of its base branch inside, as the example workflow makes them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest
from action_runs import BASE, PLAN, SECRET, Job
from cli.cli_runs import catalog, namespace, table, write
from github_stand_in import StandIn, stand_in


@pytest.fixture
def github() -> Iterator[StandIn]:
    with stand_in() as state:
        yield state


def made_workspace(folder: Path) -> Path:
    for place in (folder / BASE / "manifests", folder / "manifests"):
        place.mkdir(parents=True)
        write(place, catalog(storage__token="${env:CATALOG_TOKEN}"), name="lake.yaml")
    write(folder / "manifests", namespace("a"), table("a", "t"), name="tables.yaml")
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return made_workspace(tmp_path / "workspace")


@pytest.fixture
def job(workspace: Path, github: StandIn, tmp_path: Path) -> Job:
    return Job(workspace, tmp_path / "temp", github, secrets={"CATALOG_TOKEN": SECRET})


@pytest.fixture(scope="session")
def planned_once(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("planned")
    with stand_in() as state:
        done = Job(made_workspace(folder / "workspace"), folder / "temp", state, secrets={"CATALOG_TOKEN": SECRET})
        assert done.use(**PLAN) == 0, done.log
    return done


@pytest.fixture
def planned(job: Job, planned_once: Job) -> Job:
    """The job after the action planned the pull request, which left GitHub an artifact and the runner a folder; that
    was done once, in another workspace with the same files."""
    shutil.copytree(planned_once.temp, job.temp)
    for name in ("comments", "artifacts", "runs", "zips"):
        setattr(job.github, name, deepcopy(getattr(planned_once.github, name)))
    return job
