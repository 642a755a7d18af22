"""Backfill and rewrite steps of a plan on Spark, on the session of all tests."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli.cli_runs import catalog, table, write
from pipeline.evolve_runs import DELETED, ON_SPARK, backfill, column, content, field, register, rows, written
from servers.moto import Moto

from reconciler import app
from reconciler.catalog.base import DataPlace
from reconciler.core.options import PlanOptions
from reconciler.engine.execute import execute
from reconciler.model.errors import CatalogError
from reconciler.model.plan import Plan
from reconciler.model.report import Report
from reconciler.pipeline.claims import Held
from reconciler.pipeline.data_plane import Running, SparkDataPlane
from reconciler.pipeline.evolve import evolve
from reconciler.pipeline.session import SparkOptions
from reconciler.session import Session

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")]
LEFT = [n for n in range(40) if n not in DELETED]
BEFORE = "[{name: id, type: int64}, {name: text, type: string}, {name: n, type: int32}]"
AFTER = """
    - {name: id, type: int64}
    - {name: text, type: int64}
    - {name: n, type: int32}
    - {name: length, type: int16, comment: of the text, backfill: {sql: length(text)}}
    - {name: source, type: string, nullable: false, default: unknown}
"""


@pytest.fixture
def running(spark: Any) -> Running:
    return Running(SparkOptions(), _spark=spark, _slots=2)


def planned(at: Session) -> Plan:
    return app.plan(app.Request(("m.yaml",), options=PlanOptions(data_plane=None, runner="spark")), at)[0]


def applied(running: Running) -> Report:
    at = Session()
    try:
        return execute(planned(at), at.catalogs, data=SparkDataPlane(running))
    finally:
        at.close()


def changes(folder: Path, lake: str, storage: dict[str, str] | None, running: Running) -> Report:
    """A table of ours with rows whose columns are then declared anew."""
    options = {f"storage__{key}": value for key, value in (storage or {}).items()}
    write(folder, catalog(path=lake, **options), table("t", schema=BEFORE))
    assert applied(running).outcome == "applied"
    uri = f"{lake}/t.lance"
    lance.write_dataset(rows(), uri, mode="append", max_rows_per_file=10, storage_options=storage)
    lance.dataset(uri, storage_options=storage).delete(f"id in {DELETED}")
    write(folder, catalog(path=lake, **options), table("t", schema=AFTER))
    report = applied(running)
    at = Session()
    assert planned(at).steps == ()
    at.close()
    return report


def test_declared_columns_are_filled_and_the_next_plan_is_empty(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report = changes(tmp_path, str(tmp_path / "lake"), None, running)
    assert [(r.step.change.action, r.status) for r in report.steps] == [
        ("rewrite_columns", "done"),
        ("backfill_columns", "done"),
        ("update_table", "done"),
    ]
    data = report.steps[:2]
    uri = str(tmp_path / "lake" / "t.lance")
    assert column(uri, "length") == {n: None if n % 10 == 0 else len(str(n)) for n in LEFT}
    assert column(uri, "text") == {n: None if n % 10 == 0 else n for n in LEFT}
    assert set(column(uri, "source").values()) == {"unknown"}
    tags = lance.dataset(uri).tags.list()
    assert [tags[r.tag or ""]["version"] for r in data] == [r.version_before for r in data]
    first = data[0].tag
    assert content(uri, ["id", "n"], first) == content(uri, ["id", "n"])
    assert column(uri, "text", first) == {n: None if n % 10 == 0 else str(n) for n in LEFT}


def test_a_table_in_a_bucket(running: Running, tmp_path: Path, moto: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lake = f"{moto.make_bucket('pipeline-evolve')}/lake"
    report = changes(tmp_path, lake, moto.storage_options, running)
    assert report.outcome == "applied"
    found = column(f"{lake}/t.lance", "length", storage_options=moto.storage_options)
    assert found == {n: None if n % 10 == 0 else len(str(n)) for n in LEFT}
    assert "test-secret-canary" not in json.dumps([r.error and r.error.message for r in report.steps])


def test_rows_that_come_while_spark_works(running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = written(tmp_path / "t.lance")
    landed, first = Held._landed, threading.Event()

    def looked(held: Held) -> Any:
        found = landed(held)
        if not first.is_set():
            first.set()
            lance.write_dataset(rows(45).slice(40), uri, mode="append")
        return found

    monkeypatch.setattr(Held, "_landed", looked)
    evolve(running, backfill(field("x", "int64", "n * 3", nullable=False)), DataPlace(uri), ON_SPARK)
    assert column(uri, "x") == {n: 3 * n for n in [*LEFT, *range(40, 45)]}


def test_a_function_goes_to_the_executors_with_its_module(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executors were started before the module was there."""
    uri = written(tmp_path / "t.lance")
    monkeypatch.syspath_prepend(register(tmp_path / "package"))
    vectors = field("v", "fixed_size_list<float32>[2]", function="vector", nullable=False)
    evolve(running, backfill(vectors), DataPlace(uri), ON_SPARK)
    assert column(uri, "v") == {n: [n, 1.0] for n in LEFT}


def test_what_is_wrong_with_the_values_is_told(running: Running, tmp_path: Path) -> None:
    uri = written(tmp_path / "t.lance")
    with pytest.raises(CatalogError, match="x has no value in 3 rows, but it is declared NOT NULL"):
        evolve(running, backfill(field("x", "int16", "length(text)", nullable=False)), DataPlace(uri), ON_SPARK)
    with pytest.raises(CatalogError, match="column y: the value 128 cannot be made int8"):
        evolve(running, backfill(field("y", "int8", "n + 119")), DataPlace(uri), ON_SPARK)
    assert lance.dataset(uri).schema.names == ["id", "text", "n"]
    assert lance.dataset(uri).tags.list() == {}


def declared(lake: Path, schema: str, **spec: str) -> None:
    more = "".join(f"\n  {key}: {value}" for key, value in spec.items())
    write(lake.parent, catalog(path=str(lake)), table("t", schema=schema, spec=more))


def indexes(uri: str) -> list[str]:
    return sorted(i.name for i in lance.dataset(uri).describe_indices())


BOTH = "[{column: text, type: btree}, {column: n, type: btree}]"


def test_a_rewrite_of_an_indexed_column(running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is there until the column has its new type, and right after that it is built again."""
    monkeypatch.chdir(tmp_path)
    lake, uri = tmp_path / "lake", str(tmp_path / "lake/t.lance")
    declared(lake, BEFORE, indexes=BOTH)
    assert applied(running).outcome == "applied"
    lance.write_dataset(rows(), uri, mode="append", max_rows_per_file=10)
    declared(lake, BEFORE.replace("text, type: string", "text, type: int64"), indexes=BOTH)
    report = applied(running)
    steps = ["create_index", "refresh_index", "rewrite_columns"]
    assert sorted((r.step.action, r.status) for r in report.steps) == [(action, "done") for action in steps]
    assert indexes(uri) == ["n_idx", "text_idx"]
    for version in lance.dataset(uri).versions():
        at = lance.dataset(uri, version=version["version"])
        names = {i.name for i in at.describe_indices()}
        assert at.count_rows() == 0 or "n_idx" in names
        assert at.count_rows() == 0 or "text_idx" in names or str(at.schema.field("text").type) == "int64"
    at = Session()
    assert planned(at).steps == ()
    at.close()


def test_a_rewrite_that_fails_leaves_its_index_and_holds_up_no_other_column(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that does not fit comes after the plan was made."""
    monkeypatch.chdir(tmp_path)
    lake, uri = tmp_path / "lake", str(tmp_path / "lake/t.lance")
    declared(lake, BEFORE, indexes=BOTH)
    assert applied(running).outcome == "applied"
    lance.write_dataset(rows(), uri, mode="append", max_rows_per_file=10)
    new = BEFORE.replace("text, type: string", "text, type: int64").replace("n, type: int32", "n, type: string")
    three = BOTH.replace("]", ", {column: id, type: btree}]")
    declared(lake, new, indexes=three)
    at = Session()
    plan = planned(at)
    assert [s.verdict for s in plan.steps] == ["allowed"] * len(plan.steps)
    lance.write_dataset(pa.table({"id": [99], "text": ["red"], "n": pa.array([1], pa.int32())}), uri, mode="append")
    report = execute(plan, at.catalogs, data=SparkDataPlane(running))
    at.close()
    assert report.outcome == "partial"
    lost = [(r.step.action, r.status) for r in report.steps if r.status != "done"]
    assert sorted(lost) == [("create_index", "not_run"), ("rewrite_columns", "failed")]
    assert indexes(uri) == ["id_idx", "n_idx", "text_idx"]
    assert [str(f.type) for f in lance.dataset(uri).schema] == ["int64", "string", "string"]
    at = Session()
    stuck, other = planned(at).steps
    at.close()
    assert (stuck.action, stuck.blocked_by) == ("rewrite_columns", "values")
    assert (other.action, other.verdict) == ("refresh_index", "allowed"), "the index of the old column goes on"
    assert "1 of 41 rows has a value that is no int64, for instance 'red'" in stuck.reason


def test_the_recipe_replaces_a_column_that_no_cast_gives(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the reason of the unsupported step says it: two applies, and the index comes along."""
    monkeypatch.chdir(tmp_path)
    lake, uri = tmp_path / "lake", str(tmp_path / "lake/t.lance")
    first = '[{name: id, type: int64}, {name: v, type: "fixed_size_list<float32>[2]"}]'
    on_v = "[{column: v, type: ivf_flat, params: {num_partitions: 1}}]"
    declared(lake, first, indexes=on_v)
    assert applied(running).outcome == "applied"
    short = pa.FixedSizeListArray.from_arrays(pa.array([float(n) for n in range(80)], pa.float32()), 2)
    lance.write_dataset(pa.table({"id": pa.array(range(40)), "v": short}), uri, mode="append")
    wanted = first.replace("[2]", "[4]")
    declared(lake, wanted, indexes=on_v)
    at = Session()
    stuck, other = planned(at).steps
    at.close()
    assert (stuck.verdict, "`renamedFrom` the new column" in stuck.reason) == ("unsupported", True)
    assert (other.action, other.verdict) == ("refresh_index", "allowed")
    longer = "make_array(v[1], v[2], cast(0 as float), cast(0 as float))"
    new = f'{{name: w, type: "fixed_size_list<float32>[4]", backfill: {{sql: "{longer}"}}}}'
    both = f"{on_v[:-1]}, {on_v[1:].replace('column: v', 'column: w')}"
    declared(lake, first[:-1] + f", {new}]", indexes=both)
    assert applied(running).outcome == "applied"
    renamed = wanted.replace('[4]"', '[4]", renamedFrom: w')
    declared(lake, renamed, indexes=on_v, allow="[drop_column]")
    report = applied(running)
    assert report.outcome == "applied", report.message
    assert [r.step.action for r in report.steps][:2] == ["drop_columns", "alter_columns"]
    assert column(uri, "v") == {n: [2.0 * n, 2.0 * n + 1, 0.0, 0.0] for n in range(40)}
    assert lance.dataset(uri).schema.names == ["id", "v"]
    assert len(indexes(uri)) == 1
    at = Session()
    assert planned(at).steps == ()
    at.close()
