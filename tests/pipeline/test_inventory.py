"""`reconciler pipeline inventory` on catalogs, with one Spark session for all tests of this file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lance
import pytest
from cli.cli_runs import Run, reconciler
from pipeline import fleet_lake
from servers.spark import need_java

from reconciler import app
from reconciler.model.ident import dotted
from reconciler.pipeline.session import SparkOptions, session
from reconciler.verbs import tables

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    need_java()
    with session(SparkOptions("local[2,4]")) as running:
        yield running


@pytest.fixture(autouse=True)
def one_session(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def shared(_options: SparkOptions) -> Iterator[Any]:
        yield spark

    monkeypatch.setattr(tables, "session", shared)


def inventory(folder: Path, *more: str) -> Run:
    return reconciler(folder, "pipeline", "inventory", "m.yaml", "--history", "history.lance", *more)


def only_progress(text: str) -> bool:
    return all(re.fullmatch(r"(reading \d+ catalogs|comparing|writing), \d+ s", line) for line in text.splitlines())


def history(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = lance.dataset(folder / "history.lance").to_table().to_pylist()
    return sorted(rows, key=lambda r: (r["at"], r["kind"], r["catalog"], r["path"]))


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The tables that each diff gave to the planner."""
    seen: list[set[str]] = []
    real = app.planned

    def planned(desired: Any, *rest: Any) -> Any:
        seen.append({dotted(i) for tables_ in desired.tables.values() for i in tables_})
        return real(desired, *rest)

    monkeypatch.setattr(app, "planned", planned)
    return seen


def test_the_diff_is_the_plan(tmp_path: Path, compared: list[set[str]]) -> None:
    fleet_lake.differing(tmp_path)
    run = inventory(tmp_path, "--diff", "--format", "json")
    planned = reconciler(tmp_path, "plan", "m.yaml", "--format", "json")
    assert planned.code == 0, planned.err
    assert run.json["diff"] == planned.json
    of_diff, of_plan = compared[-2:]
    assert of_plan - of_diff == {"a.same", "at_root"}, "the fingerprint was enough"
