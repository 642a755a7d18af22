"""Tables filled by the real program on a real Spark: what is in them afterwards, and that it is in there once."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.cli_runs import REPO, Run, catalog, reconciler, table, write
from pipeline.in_process import InProcess
from pipeline.one_session import one_session
from servers.moto import Moto

from reconciler.catalog.base import DataPlace, WriteContext
from reconciler.catalog.lance_data import CLAIM_KEY
from reconciler.model.change import MaterializeTable
from reconciler.model.errors import CatalogError
from reconciler.model.plan_json import plan_from_json
from reconciler.pipeline.data_plane import Running
from reconciler.pipeline.materialize import materialize
from reconciler.pipeline.session import SparkOptions

__all__ = ["one_session"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]
PAGE = REPO / "docs" / "data.md"
BLOCK = re.compile(r"(<!-- demo-data:begin -->\n```console\n)(.*?)(```\n<!-- demo-data:end -->)", re.DOTALL)
SCHEMA = (
    "[{name: id, type: int64, nullable: false}, {name: text, type: string}, "
    '{name: vector, type: "fixed_size_list<float32>[2]"}]'
)


def rows(start: int, count: int = 10) -> pa.Table:
    numbers = list(range(start, start + count))
    vectors = pa.array([[n, n + 0.5] for n in numbers], pa.list_(pa.float32()))
    return pa.table({"id": numbers, "body": [f"row {n}" for n in numbers], "vector": vectors})


def raw(folder: Path, *starts: int) -> Path:
    (folder / "raw").mkdir(exist_ok=True)
    for start in starts:
        pq.write_table(rows(start), folder / "raw" / f"{start}.parquet")
    return folder


def manifest(folder: Path, mode: str = "append", more: str = "", source: str = "", schema: str = SCHEMA) -> None:
    source = source or "{format: parquet, path: raw}"
    data = f"data: {{source: {source}, mode: {mode}, columns: {{text: body}}{more}}}"
    write(folder, catalog(owner="us"), table("t", schema=schema, spec=data))


def apply(folder: Path, *more: str) -> Run:
    return reconciler(folder, "apply", "m.yaml", "--yes", "--format", "json", *more)


def applied(folder: Path, *more: str) -> dict[str, Any]:
    run = apply(folder, *more)
    assert run.code == 0, run.err + run.out
    again = reconciler(folder, "plan", "m.yaml", "--detailed-exitcode")
    assert again.code == 0, again.out
    found: dict[str, Any] = run.json
    return found


def dataset(folder: Path) -> Any:
    return lance.dataset(folder / "lake" / "t.lance")


def ids(folder: Path) -> list[int]:
    return sorted(dataset(folder).to_table(columns=["id"]).column("id").to_pylist())


def actions(report: dict[str, Any]) -> list[str]:
    return [s["action"] for s in report["steps"] if s["status"] == "done"]


def test_each_file_once(tmp_path: Path) -> None:
    manifest(raw(tmp_path, 0, 10))
    assert actions(applied(tmp_path)) == ["declare_table", "create_dataset", "materialize_table"]
    assert ids(tmp_path) == list(range(20))
    live = dataset(tmp_path)
    assert live.schema.field("vector").type == pa.list_(pa.float32(), 2)
    first = live.to_table(filter="id = 7").to_pylist()
    assert first == [{"id": 7, "text": "row 7", "vector": [7.0, 7.5]}]
    raw(tmp_path, 20)
    assert actions(applied(tmp_path)) == ["materialize_table"]
    assert ids(tmp_path) == list(range(30))
    (tmp_path / "raw" / "0.parquet").unlink()
    assert applied(tmp_path)["outcome"] == "no_changes"


def test_the_commit_names_plan_and_step(tmp_path: Path) -> None:
    manifest(raw(tmp_path, 0))
    report = applied(tmp_path)
    found = [t.transaction_properties for t in dataset(tmp_path).get_transactions(10)]
    (properties,) = (p for p in found if p and "reconciler.data" in p)
    step = next(s["id"] for s in report["steps"] if s["action"] == "materialize_table")
    assert (properties["reconciler.plan"], properties["reconciler.step"]) == (report["plan_id"], step)


def test_a_changed_source_replaces_all_rows_in_one_commit_and_keeps_the_rest(tmp_path: Path) -> None:
    manifest(raw(tmp_path, 0, 10), "replace-if-changed")
    applied(tmp_path)
    live = dataset(tmp_path)
    live.create_scalar_index("id", "BTREE", name="theirs")
    live.update_config({"theirs": "1"})
    before = dataset(tmp_path).version
    raw(tmp_path, 20)
    (tmp_path / "raw" / "0.parquet").unlink()
    report = applied(tmp_path)
    assert ids(tmp_path) == list(range(10, 30))
    live = dataset(tmp_path)
    assert (live.config()["theirs"], [i.name for i in live.describe_indices()]) == ("1", ["theirs"])
    assert live.to_table(filter="id = 25").num_rows == 1
    (step,) = report["steps"]
    assert (step["version_before"], live.tags.list()[step["tag"]]["version"]) == (before, before)
    for version in range(before, live.version + 1):
        assert lance.dataset(live.uri, version=version).count_rows() == 20, "readable and whole at all times"


def test_once_is_once(tmp_path: Path) -> None:
    manifest(raw(tmp_path, 0), "once")
    applied(tmp_path)
    raw(tmp_path, 10)
    assert applied(tmp_path)["outcome"] == "no_changes"
    assert ids(tmp_path) == list(range(10))


@pytest.mark.parametrize(("count", "expected"), [(2, 2), (7, 7)])
def test_as_many_fragments_as_asked_for(tmp_path: Path, count: int, expected: int) -> None:
    """Three files: two parts hold whole files, seven need rows to be spread anew."""
    manifest(raw(tmp_path, 0, 10, 20), more=f", partitions: {count}")
    applied(tmp_path)
    assert ids(tmp_path) == list(range(30))
    assert len(dataset(tmp_path).get_fragments()) == expected


def test_sorted(tmp_path: Path) -> None:
    manifest(raw(tmp_path, 20, 0, 10), more=", orderBy: [text], partitions: 3")
    applied(tmp_path)
    table_ = dataset(tmp_path).to_table()
    assert table_.column("text").to_pylist() == sorted(f"row {n}" for n in range(30))
    assert table_.schema.field("vector").type == pa.list_(pa.float32(), 2)
    assert len(dataset(tmp_path).get_fragments()) == 3


def test_csv_and_json(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id;text;extra\n1;one;x\n2;;y\n")
    (tmp_path / "a.jsonl").write_text('{"id": 3, "vector": [1, 2]}\n{"id": 4, "text": "four"}\n')
    schema = SCHEMA
    csv = '{format: csv, path: a.csv, delimiter: ";", nullValues: [""]}'
    write(
        tmp_path,
        catalog(owner="us"),
        table("t", schema=schema, spec=f"data: {{source: {csv}, mode: append, missing: null}}"),
        table("j", schema=schema, spec="data: {source: {format: json, path: a.jsonl}, mode: append}"),
    )
    applied(tmp_path)
    assert dataset(tmp_path).to_table().to_pylist() == [
        {"id": 1, "text": "one", "vector": None}, {"id": 2, "text": None, "vector": None},
    ]  # fmt: skip
    assert lance.dataset(tmp_path / "lake" / "j.lance").to_table().to_pylist() == [
        {"id": 3, "text": None, "vector": [1.0, 2.0]}, {"id": 4, "text": "four", "vector": None},
    ]  # fmt: skip


@pytest.mark.parametrize("more", ["", ", orderBy: [id]"])
def test_what_the_source_lacks_is_computed(tmp_path: Path, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By SQL, as a constant, and by a function that the executors do not have."""
    info = tmp_path / "package" / "doubling-1.0.dist-info"
    info.mkdir(parents=True)
    doubled = "import pyarrow.compute as pc\n\ndef doubled(batch):\n    return pc.multiply(batch.column('id'), 2)\n"
    (tmp_path / "package" / "doubling.py").write_text(doubled)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: doubling\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[reconciler.functions]\ndoubled = doubling:doubled\n")
    monkeypatch.syspath_prepend(str(tmp_path / "package"))
    size = '{name: size, type: int32, backfill: {sql: "length(text) + 1"}}'
    twice = "{name: twice, type: int64, nullable: false, backfill: {function: doubled}}"
    schema = f"{SCHEMA[:-1]}, {size}, {{name: origin, type: string, default: here}}, {twice}]"
    manifest(raw(tmp_path, 0), schema=schema, more=more)
    applied(tmp_path)
    found = dataset(tmp_path).to_table(columns=["id", "size", "origin", "twice"]).to_pylist()
    assert sorted(found, key=lambda r: int(r["id"])) == [
        {"id": n, "size": 6, "origin": "here", "twice": 2 * n} for n in range(10)
    ]


def test_a_query_that_does_not_fit_is_refused_before_it_runs(tmp_path: Path) -> None:
    source = '{format: sql, sql: "SELECT 1 AS text, raise_error(2) AS vector"}'
    write(tmp_path, catalog("us"), table("t", schema=SCHEMA, spec=f"data: {{source: {source}, mode: once}}"))
    run = apply(tmp_path)
    assert run.code == 5
    message = run.json["steps"][-1]["error"]["message"]
    assert "does not fit" in message
    assert "(id is NOT NULL)" in message


def test_from_a_lance_table_and_from_a_query(tmp_path: Path) -> None:
    source = tmp_path / "source.lance"
    lance.write_dataset(rows(0, 30), source, max_rows_per_file=7)
    pq.write_table(pa.table({"key": [1, 2, 3], "name": ["a", "b", "c"]}), tmp_path / "names.parquet")
    sql = "SELECT s.id, n.name AS text, s.vector FROM s JOIN n ON s.id = n.key"
    views = "{s: {format: lance, path: source.lance}, n: {format: parquet, path: names.parquet}}"
    copied = "data: {source: {format: lance, path: source.lance}, mode: replace-if-changed, columns: {text: body}}"
    joined = f'data: {{source: {{format: sql, sql: "{sql}", views: {views}}}, mode: replace-if-changed}}'
    write(tmp_path, catalog(owner="us"), table("t", schema=SCHEMA, spec=copied), table("j", schema=SCHEMA, spec=joined))
    applied(tmp_path)
    assert ids(tmp_path) == list(range(30))
    found = sorted(lance.dataset(tmp_path / "lake" / "j.lance").to_table().to_pylist(), key=lambda r: int(r["id"]))
    assert found == [{"id": n, "text": t, "vector": [float(n), n + 0.5]} for n, t in ((1, "a"), (2, "b"), (3, "c"))]
    lance.write_dataset(rows(30), source, mode="append")
    applied(tmp_path)
    assert ids(tmp_path) == list(range(40))


def test_from_a_database(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Derby comes with Spark. The password is in no output."""
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    url = f"jdbc:derby:{tmp_path}/base"
    whole = [(n, f"row {n}", n % 3 == 0) for n in range(20)]
    frame = spark.createDataFrame(whole, "id long, body string, third boolean")
    frame.write.jdbc(f"{url};create=true", "EVENTS", properties={"driver": "org.apache.derby.jdbc.EmbeddedDriver"})
    monkeypatch.setenv("BASE_PASSWORD", "canary-7f3a")
    columns = "[{name: id, type: int32, nullable: false}, {name: text, type: string}, {name: third, type: bool}]"
    login = 'user: app, password: "${env:BASE_PASSWORD}", driver: org.apache.derby.jdbc.EmbeddedDriver'

    def declare(token: str) -> None:
        source = f'{{format: jdbc, url: "{url}", table: EVENTS, {login}, token: "{token}"}}'
        data = f"data: {{source: {source}, mode: replace-if-changed, columns: {{text: body}}}}"
        write(tmp_path, catalog("us"), table("t", schema=columns, spec=data))

    def rows_now() -> list[dict[str, Any]]:
        return sorted(dataset(tmp_path).to_table().to_pylist(), key=lambda row: int(row["id"]))

    declare("monday")
    env = {"BASE_PASSWORD": "canary-7f3a"}
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--format", "json", "--report", "r.json", env=env)
    assert run.code == 0, run.err + run.out
    assert rows_now() == [{"id": n, "text": t, "third": b} for n, t, b in whole]
    spark.createDataFrame([(99, "late", False)], frame.schema).write.mode("append").jdbc(url, "EVENTS")
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode", env=env).code == 0
    declare("tuesday")
    plan = reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json", env=env)
    assert reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", env=env).code == 0
    assert len(rows_now()) == 21
    kept = [f.read_text() for f in tmp_path.rglob("*.json*") if f.is_file()]
    assert "canary" not in "".join([run.out, run.err, plan.out, plan.err, *kept])


def test_from_a_table_of_another_catalog_also_by_a_saved_plan(tmp_path: Path) -> None:
    """That catalog is not among those that are planned."""
    (tmp_path / "raws").mkdir()
    lance.write_dataset(rows(0, 20), tmp_path / "raws" / "events.lance")
    raws = catalog("others", "./raws").replace("{name: lake}", "{name: raws}") + "---\n"
    source = "{format: lance, table: {catalog: raws, id: [events]}}"
    data = f"data: {{source: {source}, mode: replace-if-changed, columns: {{text: body}}}}"
    write(tmp_path, raws, catalog("us"), table("t", schema=SCHEMA, spec=data))
    assert reconciler(tmp_path, "plan", "m.yaml", "--catalog", "lake", "-o", "p.json").code == 0
    run = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes")
    assert run.code == 0, run.err + run.out
    assert ids(tmp_path) == list(range(20))
    assert reconciler(tmp_path, "plan", "m.yaml", "--catalog", "lake", "--detailed-exitcode").code == 0


def test_values_that_do_not_fit_leave_the_table_as_it_was(tmp_path: Path) -> None:
    manifest(raw(tmp_path, 0))
    applied(tmp_path)
    bad = rows(10).set_column(2, "vector", pa.array([[1.0]] * 10, pa.list_(pa.float32())))
    pq.write_table(bad, tmp_path / "raw" / "10.parquet")
    run = apply(tmp_path)
    assert run.code == 1
    (step,) = run.json["steps"]
    assert step["status"] == "failed"
    assert "vector" in step["error"]["message"]
    assert "10.parquet" in step["error"]["message"]
    assert ids(tmp_path) == list(range(10))
    assert "reconciler.data.claim" not in dataset(tmp_path).metadata


def test_a_schema_that_does_not_fit_holds_the_step_back_before_anything_is_read(tmp_path: Path) -> None:
    manifest(raw(tmp_path, 0), schema=SCHEMA.replace("{name: id, type: int64", "{name: number, type: int64"))
    run = apply(tmp_path)
    assert run.code == 3
    plan = reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json
    (step,) = (s for s in plan["steps"] if s["action"] == "materialize_table")
    assert (step["verdict"], step["blocked_by"], step["plane"]) == ("blocked", "source", "data")
    assert "number" in step["reason"]


def test_a_source_that_changes_after_the_plan_is_not_read(tmp_path: Path) -> None:
    manifest(raw(tmp_path, 0, 10))
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json").code == 0
    pq.write_table(rows(100), tmp_path / "raw" / "10.parquet")
    run = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", "--format", "json")
    assert (run.code, run.json["outcome"]) == (4, "stale")
    assert "Make a new plan" in run.json["message"]
    assert [p.name for p in (tmp_path / "lake").iterdir()] == ["__reconciler"], "nothing was written but the lease"


@pytest.mark.parametrize("mode", ["append", "once"])
def test_a_run_that_planned_before_another_filled_the_table(tmp_path: Path, mode: str) -> None:
    """It claims the table after the other one, and what it planned on is not so any more."""
    manifest(raw(tmp_path, 0), mode)
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "first.json").code == 0
    write(tmp_path, catalog(owner="us"), table("t", schema=SCHEMA), name="bare.yaml")
    assert reconciler(tmp_path, "apply", "bare.yaml", "--yes").code == 0
    late = app_plan(tmp_path)
    raw(tmp_path, 10)
    both = app_plan(tmp_path)
    place = DataPlace(str(tmp_path / "lake" / "t.lance"))
    running = Running(SparkOptions(), _spark=InProcess(), _slots=2)
    materialize(running, late, place, WriteContext("sha256:one", "s1"))
    with pytest.raises(CatalogError, match="another run has filled") as refused:
        materialize(running, both, place, WriteContext("sha256:two", "s1"))
    assert not refused.value.retryable
    assert ids(tmp_path) == list(range(10))
    assert CLAIM_KEY not in dataset(tmp_path).metadata
    materialize(running, late, place, WriteContext("sha256:one", "s1"))
    assert ids(tmp_path) == list(range(10)), "the same step again finds its rows"


def app_plan(folder: Path) -> MaterializeTable:
    """The step that fills the table, from the plan as it is now."""
    value = reconciler(folder, "plan", "m.yaml", "--format", "json").json
    (change,) = (s.change for s in plan_from_json(value).steps if isinstance(s.change, MaterializeTable))
    reads = {**change.reads, "path": str(folder / "raw")}
    return replace(change, reads=reads)


def test_the_same_folder_elsewhere_is_asked_for(tmp_path: Path) -> None:
    """A copy in another place: whether its rows are others nobody can tell."""
    manifest(raw(tmp_path, 0))
    applied(tmp_path)
    shutil.copytree(tmp_path / "raw", tmp_path / "elsewhere" / "raw")
    manifest(tmp_path, source="{format: parquet, path: elsewhere}")
    plan = reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json
    (step,) = plan["steps"]
    assert (step["verdict"], step["blocked_by"]) == ("blocked", "allow:skip_files")
    assert "under another path" in step["reason"]
    assert ids(tmp_path) == list(range(10))


def test_each_file_lacks_what_it_lacks(tmp_path: Path) -> None:
    """A value that is there is never computed."""
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "a.csv").write_text("id,name\n1,x\n")
    (tmp_path / "csv" / "b.csv").write_text("id,name,label,origin\n2,y,REAL,there\n")
    (tmp_path / "j.json").write_text('{"id": 3, "name": "z"}\n{"id": 4, "name": "w", "label": "OWN"}\n')
    schema = (
        "[{name: id, type: int64}, {name: name, type: string}, {name: origin, type: string, default: here}, "
        '{name: label, type: string, nullable: false, backfill: {sql: "upper(name)"}}]'
    )
    query = "SELECT CAST(id AS BIGINT) AS id, name FROM v WHERE id = 1"
    sql = f'{{format: sql, sql: "{query}", views: {{v: {{format: csv, path: csv/a.csv}}}}}}'
    sources = {"t": "{format: csv, path: csv}", "j": "{format: json, path: j.json}", "q": sql}
    documents = [
        table(name, schema=schema, spec=f"data: {{source: {source}, mode: once}}") for name, source in sources.items()
    ]
    write(tmp_path, catalog(owner="us"), *documents)
    applied(tmp_path)
    found = {
        name: sorted(
            tuple(r.values()) for r in lance.dataset(tmp_path / "lake" / f"{name}.lance").to_table().to_pylist()
        )
        for name in sources
    }
    assert found == {
        "t": [(1, "x", "here", "X"), (2, "y", "there", "REAL")],
        "j": [(3, "z", "here", "Z"), (4, "w", "here", "OWN")],
        "q": [(1, "x", "here", "X")],
    }


def test_decimals_through_sparks_own_engine(tmp_path: Path) -> None:
    """Their memory comes aligned for less than lance wants."""
    (tmp_path / "raw").mkdir()
    wide_types = "{name: p, type: 'decimal128(10, 2)'}, {name: q, type: 'decimal128(38, 2)'}"
    columns = f"[{{name: id, type: int64}}, {{name: k, type: int32}}, {wide_types}]"
    for count in (1, 3, 5):
        ids_ = list(range(count))
        values = {"id": ids_, "k": pa.array(ids_, pa.int32())}
        wide = {name: pa.array(map(Decimal, ids_), pa.decimal128(size, 2)) for name, size in (("p", 10), ("q", 38))}
        pq.write_table(pa.table({**values, **wide}), tmp_path / "raw" / f"{count}.parquet")
    data = "data: {source: {format: parquet, path: raw}, mode: once, orderBy: [id], partitions: 3}"
    write(tmp_path, catalog(owner="us"), table("t", schema=columns, spec=data))
    applied(tmp_path)
    assert dataset(tmp_path).to_table().column("q").to_pylist() == [*map(Decimal, (0, 0, 0, 1, 1, 2, 2, 3, 4))]


def test_a_saved_plan_takes_its_files_and_no_others(tmp_path: Path) -> None:
    manifest(raw(tmp_path, 0))
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json").code == 0
    raw(tmp_path, 10)
    assert reconciler(tmp_path, "apply", "--plan", "p.json", "--yes").code == 0
    assert ids(tmp_path) == list(range(10))
    again = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", "--format", "json")
    assert (again.code, again.json["summary"].get("done", 0)) == (0, 0)
    applied(tmp_path)
    assert ids(tmp_path) == list(range(20))


def test_the_verb_runs_its_own_steps_alone(tmp_path: Path) -> None:
    manifest(raw(tmp_path, 0), more="")
    waiting = reconciler(tmp_path, "pipeline", "materialize", "m.yaml", "--dry-run", "--format", "json")
    (step,) = waiting.json["steps"]
    assert (waiting.code, step["verdict"], step["blocked_by"]) == (0, "blocked", "needs_blocked_step")
    assert reconciler(tmp_path, "pipeline", "materialize", "m.yaml").code == 3
    write(tmp_path, catalog(owner="us"), table("t", schema=SCHEMA))
    applied(tmp_path)
    manifest(tmp_path)
    run = reconciler(tmp_path, "pipeline", "materialize", "m.yaml", "--report", "r.json")
    assert run.code == 0, run.err
    assert "done     s1  materialize_table  lake:t" in run.out
    assert json.loads((tmp_path / "r.json").read_text())["outcome"] == "applied"
    assert ids(tmp_path) == list(range(10))


def test_an_s3_lake_from_s3_files(moto: Moto, tmp_path: Path) -> None:
    moto.make_bucket("filled")
    for start in (0, 10):
        pq.write_table(rows(start), tmp_path / "x.parquet")
        body = (tmp_path / "x.parquet").read_bytes()
        moto.client.put_object(Bucket="filled", Key=f"raw/{start}.parquet", Body=body)
    options = {f"storage__{key}": value for key, value in moto.storage_options.items()}
    data = "{source: {format: parquet, path: s3://filled/raw/}, mode: append, columns: {text: body}}"
    write(
        tmp_path,
        catalog("us", "s3://filled/lake", **options),
        table("t", schema=SCHEMA, spec=f"data: {data}"),
    )
    assert "materialize_table" in actions(applied(tmp_path))
    live = lance.dataset("s3://filled/lake/t.lance", storage_options=moto.storage_options)
    assert sorted(live.to_table().column("id").to_pylist()) == list(range(20))


def test_the_demo_fills_a_table_as_the_readme_shows(tmp_path: Path) -> None:
    for name in ("manifests-example", "manifests-example-data"):
        shutil.copytree(REPO / name, tmp_path / name)
    (tmp_path / ".demo").mkdir()
    makefile = (REPO / "Makefile").read_text()
    start = re.search(r"^DEMO := (.*)$", makefile, re.MULTILINE)
    more = re.search(r"^DEMO_DATA := (.*)$", makefile, re.MULTILINE)
    assert start is not None
    assert more is not None
    assert reconciler(tmp_path, "apply", *start.group(1).split(), "--yes").code == 0
    printed = []
    for call in re.findall(r"\$\(call run,reconciler (.*\$\(DEMO_DATA\).*)\)$", makefile, re.MULTILINE):
        words = call.replace("$(DEMO_DATA)", more.group(1))
        run = reconciler(tmp_path, *words.split())
        assert run.code == 0, run.err
        printed.append(f"$ reconciler {words}\n{run.out}")
    shown = "\n".join(printed)
    if os.environ.get("UPDATE_README"):
        PAGE.write_text(BLOCK.sub(lambda m: m.group(1) + shown + m.group(3), PAGE.read_text()))
    block = BLOCK.search(PAGE.read_text())
    assert block is not None
    assert block.group(2) == shown
