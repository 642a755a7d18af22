"""The life of a table's rows in every kind of catalog: filled, checked, changed, tidied, counted. Moving is in
test_migrate_spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from cli.cli_runs import Run, reconciler
from contract.backends import BACKENDS, Site
from pipeline.one_session import one_session

__all__ = ["one_session"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]
MAKE = {backend.name: backend.make for backend in BACKENDS}
FILES, EACH = 4, 10


def write(folder: Path, site: Site, home: tuple[str, ...], columns: list[dict[str, Any]]) -> None:
    def document(kind: str, metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
        return {"apiVersion": "reconciler.lance/v1", "kind": kind, "metadata": metadata, "spec": spec}

    at = [*site.container, *home]
    spec = {
        "schema": columns,
        "data": {"source": {"format": "parquet", "path": str(folder / "raw")}, "mode": "append"},
        "maintenance": {"compact": {"minSmallFragments": 2}},
        "checks": {"rowCount": {"min": 1}, "unique": ["id"]},
    }
    documents = [
        document("Catalog", {"name": "lake"}, {**site.options, "management": {"owner": "us"}}),
        *([document("Namespace", {"catalog": "lake", "id": at}, {})] if home else []),
        document("Table", {"catalog": "lake", "id": [*at, "t"]}, spec),
    ]
    (folder / "m.yaml").write_text(yaml.safe_dump_all(documents))


def raw(folder: Path, *numbers: int) -> None:
    (folder / "raw").mkdir(exist_ok=True)
    for number in numbers:
        ids = list(range(number * EACH, (number + 1) * EACH))
        pq.write_table(pa.table({"id": ids, "text": [f"row {n}" for n in ids]}), folder / "raw" / f"{number}.parquet")


def good(run: Run) -> Run:
    assert run.code == 0, run.err + run.out
    return run


@pytest.mark.parametrize("name", ["dir-v1", "dir-s3", "rest", "iceberg", "unity", "glue"])
def test_a_life(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "site").mkdir()
    site = MAKE[name](tmp_path / "site", request.getfixturevalue)
    home = () if name == "dir-v1" else ("n",)
    columns: list[dict[str, Any]] = [{"name": "id", "type": "int64"}, {"name": "text", "type": "string"}]
    raw(tmp_path, *range(FILES))
    write(tmp_path, site, home, columns)
    good(reconciler(tmp_path, "apply", "m.yaml", "--yes"))

    def settled() -> None:
        good(reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode"))

    settled()
    columns.append({"name": "size", "type": "int32", "backfill": {"sql": "length(text)"}})
    write(tmp_path, site, home, columns)
    shown = good(reconciler(tmp_path, "pipeline", "evolve", "m.yaml"))
    assert "backfill_columns" in shown.out
    raw(tmp_path, FILES)
    good(reconciler(tmp_path, "pipeline", "materialize", "m.yaml"))
    good(reconciler(tmp_path, "apply", "m.yaml", "--yes"))  # Where the catalog shows columns.
    settled()
    found = good(reconciler(tmp_path, "pipeline", "verify", "m.yaml", "--format", "json")).json["tables"]
    before = [(row["rows"], row["checksum"]) for row in found]
    assert [rows for rows, _ in before] == [(FILES + 1) * EACH]
    tidied = good(reconciler(tmp_path, "pipeline", "maintain", "m.yaml", "--format", "json")).json["tables"]
    assert [part["outcome"] for part in tidied[0]["parts"]] == ["done", None, None]
    found = good(reconciler(tmp_path, "pipeline", "verify", "m.yaml", "--format", "json")).json["tables"]
    assert [(row["rows"], row["checksum"]) for row in found] == before
    words = ("pipeline", "inventory", "m.yaml", "--history", "history.lance", "--diff", "--format", "json")
    counted = good(reconciler(tmp_path, *words))
    assert counted.json["diff"] == reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json
    rows = lance.dataset(tmp_path / "history.lance").to_table().to_pylist()
    (mine,) = (r for r in rows if r["kind"] == "Table" and r["path"][-1] == "t")
    assert (mine["rows"], mine["fragments"], mine["error"]) == ((FILES + 1) * EACH, 1, None)
    settled()
