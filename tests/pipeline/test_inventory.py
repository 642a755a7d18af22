"""`reconciler pipeline inventory` on catalogs, on the Spark session of all tests."""

from __future__ import annotations

import json
import os
import re
from contextlib import redirect_stdout
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli.cli_runs import Run, catalog, namespace, reconciler, table, write
from pipeline import fleet_lake, spark_lake
from pipeline.one_session import one_session
from servers.moto import Moto
from servers.rest_adapter import RestServers

from reconciler import app
from reconciler.engine import progress
from reconciler.model.ident import dotted
from reconciler.pipeline.history import History
from reconciler.pipeline.history_figures import figures
from reconciler.pipeline.inventory_source import register

PAGE = Path(__file__).parents[2] / "docs" / "data.md"
__all__ = ["one_session"]
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")]


def inventory(folder: Path, *more: str) -> Run:
    return reconciler(folder, "pipeline", "inventory", "m.yaml", "--history", "history.lance", *more)


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


def test_the_diff_and_the_page_show_an_index_that_lacks_rows(tmp_path: Path) -> None:
    write(tmp_path, catalog(), table("t", spec="indexes: [{column: id, type: btree}]"))
    fleet_lake.applied(tmp_path, "m.yaml")
    lance.write_dataset(pa.table({"id": range(30)}), str(tmp_path / "lake" / "t.lance"), mode="append")
    run = inventory(tmp_path, "--diff", "--format", "json", "--report", "page.html")
    assert [s["action"] for s in run.json["diff"]["steps"]] == ["refresh_index"]
    assert run.json["diff"] == reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json
    assert "<td>lake:t</td><td>0 %</td><td>30</td><td>30</td>" in (tmp_path / "page.html").read_text()


def small_lake(folder: Path) -> None:
    """Three fragments, an index that lacks one of them; a table without data; one that nobody can read."""
    empty = table("a", "declared_only").replace("schema: [{name: id, type: int64}]", "properties: {x: y}")
    write(folder, catalog(), namespace("a"), empty)
    fleet_lake.applied(folder, "m.yaml")
    spark_lake.write(folder / "lake" / "big.lance", spark_lake.rows(20))
    made = lance.dataset(folder / "lake" / "big.lance")
    made.create_scalar_index("id", "BTREE")
    lance.write_dataset(spark_lake.rows(5), folder / "lake" / "big.lance", mode="append")
    spark_lake.write(folder / "lake" / "broken.lance", spark_lake.rows(4))
    for file in (folder / "lake" / "broken.lance" / "_versions").iterdir():
        file.write_bytes(b"?")


def test_every_table_is_a_row_of_every_run(tmp_path: Path) -> None:
    small_lake(tmp_path)
    first = inventory(tmp_path, "--format", "json")
    assert first.code == 2, "a table could not be read"
    (told,) = first.json["catalogs"]
    assert (told["complete"], told["tables"], told["unreadable"], told["rows"]) == (True, 3, 1, 25)
    lake, empty, big, broken = history(tmp_path)
    assert (lake["kind"], lake["catalog"], lake["error"], lake["drift"]) == ("Catalog", "lake", None, None)
    names = ("rows", "fragments", "small_fragments", "unindexed_rows", "versions", "version")
    assert {n: big[n] for n in names} == dict(zip(names, (25, 3, 3, 5, 3, 3), strict=True))
    assert (big["id"], big["path"], big["owner"], big["error"]) == ("big", ["big"], None, None)
    assert big["location"] == str(tmp_path / "lake" / "big.lance")
    files = (tmp_path / "lake" / "big.lance" / "data").iterdir()
    assert big["bytes"] == sum(f.stat().st_size for f in files)
    assert (empty["owner"], empty["rows"], empty["schema_hash"], empty["error"]) == ("team", None, None, None)
    assert empty["state_hash"].startswith("sha256:")
    assert (broken["state_hash"], broken["rows"]) == (None, None)
    assert broken["error"]
    assert {r["run"] for r in history(tmp_path)} == {first.json["run"]}
    lance.dataset(tmp_path / "lake" / "big.lance").drop_columns(["text"])
    second = inventory(tmp_path)
    assert f"is version {first.json['version'] + 1} of history.lance" in second.out
    rows = history(tmp_path)
    assert len(rows) == 8
    hashes = [(r["state_hash"], r["schema_hash"]) for r in rows if r["id"] == "big"]
    assert len({h for h, _ in hashes}) == len({h for _, h in hashes}) == 2
    assert len({r["state_hash"] for r in rows if r["id"] == "a.declared_only"}) == 1
    assert rows[-1]["last_commit"] is None or rows[-1]["last_commit"] <= rows[-1]["at"]


def test_as_applied_nothing_differs(tmp_path: Path, compared: list[set[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    write(tmp_path, catalog(), namespace("a"), table("a", "t"), table("a", "u", schema=fleet_lake.TWO))
    fleet_lake.applied(tmp_path, "m.yaml")
    run = inventory(tmp_path, "--diff")
    assert run.code == 0
    assert run.out.endswith(reconciler(tmp_path, "drift", "m.yaml").out)
    assert compared[1] == set(), "nothing was left for the planner"
    assert re.fullmatch(r"starting Spark\nreading 1 catalog, .* s\ncomparing, .* s\nwriting, .* s\n", run.err)


def test_targets_and_catalogs_that_share_a_table(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    other = catalog(path=str(tmp_path / "lake")).replace("name: lake", "name: other")
    both = [catalog(), other.replace("apiVersion", "---\napiVersion", 1)]
    mine = [table("t", schema=fleet_lake.TWO), table("u", schema=fleet_lake.TWO)]
    write(tmp_path, *both, *mine)
    fleet_lake.applied(tmp_path, "m.yaml")
    theirs = [one.replace("catalog: lake", "catalog: other") for one in mine]
    lance.dataset(tmp_path / "lake" / "u.lance").drop_columns(["text"])
    write(tmp_path, *both, *mine, *theirs)
    agrees(tmp_path)
    agrees(tmp_path, "--target", "u")
    agrees(tmp_path, "--catalog", "other")
    spark_lake.write(tmp_path / "lake" / "stranger.lance", spark_lake.rows(4))
    agrees(tmp_path, "--target", "strang*")
    run = inventory(tmp_path, "--diff", "--target", "nosuch")
    assert run.code == 1
    assert "--target nosuch: nothing declared or live has such an identifier" in run.err
    only = [r for r in history(tmp_path) if r["kind"] == "Table"][-1]
    assert only["id"] == "stranger"
    assert any(r["error"] == "only strang* was read" for r in history(tmp_path) if r["kind"] == "Catalog")


def agrees(folder: Path, *more: str) -> None:
    planned = reconciler(folder, "plan", "m.yaml", "--format", "json", *more)
    assert planned.code == 0, planned.err
    assert inventory(folder, "--diff", "--format", "json", *more).json["diff"] == planned.json


def test_a_catalog_that_cannot_be_listed_is_no_empty_one(tmp_path: Path) -> None:
    write(tmp_path, catalog(), table("t"))
    fleet_lake.applied(tmp_path, "m.yaml")
    assert inventory(tmp_path).code == 0
    (tmp_path / "lake").rename(tmp_path / "elsewhere")
    (tmp_path / "lake").write_text("no folder")
    run = inventory(tmp_path, "--diff")
    planned = reconciler(tmp_path, "plan", "m.yaml")
    assert run.code == planned.code == 1
    assert run.err.splitlines()[-1] == planned.err.splitlines()[-1]
    last = history(tmp_path)[-1]
    assert last["kind"] == "Catalog"
    assert "folder" in last["error"]
    assert last["drift"] is None
    text = inventory(tmp_path)
    assert text.code == 1
    assert "lake: 0 tables" in text.out
    assert "  not complete: InvalidInput (13): " in text.out
    (problem,) = inventory(tmp_path, "--format", "json").json["catalogs"][0]["problems"]
    assert (list(problem), problem["code"], problem["name"]) == (["code", "name", "message"], 13, "InvalidInput")
    assert "is not a folder" in problem["message"]


def test_what_cannot_be_compared_is_told_beside_what_was_read(tmp_path: Path) -> None:
    other = catalog(path="./other").replace("name: lake", "name: other")
    both = [catalog(), "---\n" + other, table("t"), table("t").replace("catalog: lake", "catalog: other")]
    write(tmp_path, *both)
    fleet_lake.applied(tmp_path, "m.yaml")
    lance.write_dataset(spark_lake.rows(10).select(["id"]), tmp_path / "other" / "t.lance", mode="append")
    assert inventory(tmp_path).code == 0
    (tmp_path / "other").rename(tmp_path / "elsewhere")
    (tmp_path / "other").write_text("no folder")
    run = inventory(tmp_path, "--diff", "--format", "json", "--report", "page.html")
    planned = reconciler(tmp_path, "plan", "m.yaml")
    assert (run.code, planned.code) == (2, 1)
    told = f"error: {run.json['uncompared']['message']}"
    assert run.err.splitlines()[-1] == told
    assert planned.err.splitlines()[-1] == f"{told}; for the others alone: `--catalog lake`"
    assert [(c["complete"], c["tables"]) for c in run.json["catalogs"]] == [(True, 1), (False, 0)]
    assert (run.json["diff"], history(tmp_path)[-1]["run"]) == (None, run.json["run"])
    page = (tmp_path / "page.html").read_text()
    assert "other:t" in page.split("Biggest tables")[1].split("<h2>")[0], "as it was when it could be read"
    assert '<p class="big">10</p>' in page.split("<h2>other")[1]
    write(tmp_path, *both, table("nosuch", "t"))
    run = inventory(tmp_path, "--diff", "--catalog", "lake")
    assert run.code == 2
    assert run.out.startswith("lake: 1 table, ")
    assert run.out.endswith("not compared: there is no plan for these manifests\n")
    assert run.err.endswith(reconciler(tmp_path, "plan", "m.yaml", "--catalog", "lake").err)


def test_a_bucket_its_secrets_and_a_history_there(tmp_path: Path, moto: Moto, spark: Any) -> None:
    bucket = moto.make_bucket("pipeline-inventory")
    options = {f"storage__{k}": v for k, v in moto.storage_options.items()}
    write(tmp_path, catalog(path=f"{bucket}/lake", **options), table("t", schema=fleet_lake.TWO), table("u"))
    fleet_lake.applied(tmp_path, "m.yaml", "--target", "t")
    place = f"{bucket}/history.lance"
    given = [word for k in moto.storage_options for word in ("--history-option", f"{k}=${{env:S_{k.upper()}}}")]
    env = {f"S_{k.upper()}": v for k, v in moto.storage_options.items()}
    words = ("pipeline", "inventory", "m.yaml", "--history", place, *given)
    planned = reconciler(tmp_path, "plan", "m.yaml", "--format", "json")
    run = reconciler(tmp_path, *words, "--diff", "--format", "json", "--report", "page.html", env=env)
    assert run.json["diff"] == planned.json
    rows = lance.dataset(place, storage_options=moto.storage_options).to_table().to_pylist()
    assert [(r["id"], r["rows"], r["error"]) for r in rows if r["kind"] == "Table"] == [("t", 0, None)]
    everything = run.out + run.err + json.dumps(rows, default=str) + (tmp_path / "page.html").read_text()
    for secret in ("test-secret-canary", "test-key"):
        assert secret not in everything


def test_a_rest_catalog(tmp_path: Path, rest_adapter: RestServers) -> None:
    endpoint = rest_adapter.serve(tmp_path / "served")
    head = catalog().replace("type: dir\n  path: ./lake", f"type: rest\n  uri: {endpoint}")
    write(tmp_path, head, namespace("ns"), table("ns", "t", schema=fleet_lake.TWO), table("ns", "same"))
    fleet_lake.applied(tmp_path, "m.yaml")
    wide = fleet_lake.TWO.replace("[", "[{name: x, type: int8}, ")
    write(tmp_path, head, namespace("ns"), table("ns", "t", schema=wide), table("ns", "same"), table("ns", "new"))
    agrees(tmp_path)


def test_sql_over_the_history(tmp_path: Path, spark: Any) -> None:
    small_lake(tmp_path)
    runs = [inventory(tmp_path, "--format", "json").json["run"] for _ in range(2)]
    register(spark)

    def fleet(**options: str) -> Any:
        named = spark.read.format("reconciler_inventory").option("history", str(tmp_path / "history.lance"))
        return named.options(**options).load()

    whole = fleet()
    both = whole.where("id = 'big'").union(whole.where("kind = 'Catalog'")).union(whole)
    assert both.count() == 2 + 2 + 8, "no use of a table knows of another's conditions"
    assert {tuple(r) for r in fleet(run=runs[1], prefix="b").select("run", "id").collect()} == {
        (runs[1], "big"),
        (runs[1], "broken"),
    }
    assert fleet(catalog="it's").count() == 0
    pushed = fleet(pushdown="true").where(f"run = '{runs[1]}' AND id LIKE 'b%' AND rows > 0")
    with redirect_stdout(StringIO()) as explained:
        pushed.explain(True)
    left = re.findall(r"Filter .*", explained.getvalue().partition("== Physical Plan ==")[2])
    assert len(left) == 1
    assert "rows#" in left[0]
    assert not re.search(r"run#\d+ =|StartsWith", left[0]), "Lance does it"
    assert [r["id"] for r in pushed.collect()] == ["big"]
    inventory(tmp_path)
    assert (whole.count(), fleet().count(), fleet(version="2").count()) == (8, 12, 4), "the version was pinned"
    (example,) = (code for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "fleet" in code)
    found: dict[str, Any] = {"spark": spark}
    exec(example.replace("inventory.lance", str(tmp_path / "history.lance")), found)
    assert [tuple(r)[:2] for r in found["growth"].collect()] == [("lake", "big")]


def test_figures_are_those_of_runs_that_read_everything(tmp_path: Path, spark: Any) -> None:
    made = History(str(tmp_path / "history.lance"))
    since, rows = made.create(), []
    for day, (error, hash_, size) in enumerate([(None, "a", 1), ("gap", "b", 5), (None, "b", 9), ("outage", None, 0)]):
        row = {"run": f"r{day}", "at": datetime(2026, 1, day + 1, tzinfo=UTC), "catalog": "lake"}
        rows.append({**row, "kind": "Catalog", "id": "", "path": [], "error": error})
        if hash_:
            rows.append(
                {**row, "kind": "Table", "id": "t", "path": ["t"], "state_hash": hash_, "bytes": size, "rows": 0}
            )
    made.commit("all", made.write_here(rows), since)
    found = figures(spark, made)
    assert [(r["error"], r["changed"]) for r in found["runs"] if r["error"] is None] == [(None, 0), (None, 1)]
    assert [(r["id"], r["bytes"]) for r in found["biggest"]] == [("t", 9)]
    assert [(r["id"], r["bytes"], r["days"]) for r in found["growing"]] == [("t", 8, 2.0)]


def test_the_page(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    write(tmp_path, catalog(), namespace("a"), table("a", "<img src=x>"))
    fleet_lake.applied(tmp_path, "m.yaml")
    (place,) = (tmp_path / "lake").glob("*img*")
    for more in ([], ["--diff"], ["--diff", "--report", "page.html"]):
        lance.write_dataset(spark_lake.rows(10).select(["id"]), place, mode="append")
        run = inventory(tmp_path, *more)
        assert run.code == 0, run.err
    page = (tmp_path / "page.html").read_text()
    assert "<img" not in page
    assert "lake:a.&lt;img src=x&gt;" in page
    assert "default-src 'none'" in page
    assert page.count("<svg") == 6
    assert "3 runs" in page
    growing = page[page.index("Fastest growing") :]
    assert "lake:a.&lt;img" in growing.split("Most small")[0]


def test_the_readme_shows_what_it_prints(tmp_path: Path) -> None:
    text = PAGE.read_text()
    (manifest,) = (block for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "checks:" in block)
    block = re.compile(
        r"(<!-- inventory:begin -->\n```console\n\$ )(.*?)\n(.*?)(```\n<!-- inventory:end -->)", re.DOTALL
    )
    shown = block.search(text)
    assert shown is not None
    (tmp_path / "lake.yaml").write_text(manifest)
    fleet_lake.applied(tmp_path, "lake.yaml")
    (place,) = (tmp_path / "lake").glob("*orders*")
    schema = lance.dataset(place).schema
    lance.write_dataset(pa.table([pa.nulls(1000, f.type) for f in schema], schema=schema), place, mode="append")
    lance.dataset(place).drop_columns(["price"])
    printed = reconciler(tmp_path, *shown.group(2).split()[1:]).out
    if os.environ.get("UPDATE_README"):
        PAGE.write_text(block.sub(lambda m: f"{m.group(1)}{m.group(2)}\n{printed}{m.group(4)}", text))
        shown = block.search(PAGE.read_text())
        assert shown is not None
    run = r"run [0-9TZ]+-[0-9a-f]+"
    assert re.sub(run, "run", printed) == re.sub(run, "run", shown.group(3))
