"""`reconciler pipeline verify` on catalogs, on the Spark session of all tests."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import lance
import numpy as np
import pyarrow as pa
import pytest
from cli.cli_runs import Run, catalog, reconciler, table, write
from pipeline import spark_lake
from pipeline.in_process import InProcess
from pipeline.one_session import one_session
from pipeline.read_elsewhere import shown, sources
from pipeline.spark_lake import only_progress
from servers.moto import Moto
from servers.rest_adapter import RestServers

from reconciler.pipeline import checksum, jobs
from reconciler.pipeline.verify import read_tables

__all__ = ["one_session"]
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")]
PAGE = Path(__file__).parents[2] / "docs" / "data.md"
SCHEMA = '[{name: id, type: int64}, {name: text, type: string}, {name: vector, type: "fixed_size_list<float32>[2]"}]'


def verify(folder: Path, *more: str) -> Run:
    return reconciler(folder, "pipeline", "verify", "m.yaml", *more)


def verified(folder: Path, *more: str) -> dict[str, dict[str, Any]]:
    """By the last name of a table."""
    run = verify(folder, "--format", "json", *more)
    assert only_progress(run.err)
    found = run.json
    assert set(found) == {"tables", "summary"}
    for row in found["tables"]:
        assert list(row) == ["catalog", "id", "rows", "checksum", "checks", "ok"]
        assert all(list(check) == ["name", "ok", "detail"] for check in row["checks"])
    return {row["id"][-1]: row for row in found["tables"]}


def failed(row: dict[str, Any]) -> dict[str, str]:
    return {c["name"]: c["detail"] for c in row["checks"] if not c["ok"]}


def test_large_tables_are_read_by_fragments(spark: Any, tmp_path: Path) -> None:
    paths = spark_lake.two_tables(tmp_path)
    split = [shown(r) for r in read_tables(spark, sources(paths), split=1)]
    spark_lake.expected(split)
    assert split == [shown(r) for r in read_tables(spark, sources(paths))]


@pytest.mark.parametrize("most", [100_000, 1])
def test_keys_whose_hashes_meet_are_counted_by_value(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """On executors, whether they can be told which hashes meet or there are too many of them."""
    real = checksum.row_hashes
    monkeypatch.setattr(checksum, "row_hashes", lambda *given: real(*given) & np.uint64(3))
    monkeypatch.setattr(jobs, "MOST_MET", most)
    spark_lake.expected([shown(r) for r in read_tables(spark, sources(spark_lake.two_tables(tmp_path)), split=1)])


def lake(tmp_path: Path) -> None:
    """Tables of others, too: nothing here was made by us."""
    spark_lake.write(tmp_path / "lake" / "good.lance", spark_lake.rows())
    spark_lake.write(tmp_path / "lake" / "bad.lance", spark_lake.rows(repeat=0).append_column("more", pa.nulls(40)))
    spark_lake.write(tmp_path / "lake" / "broken.lance", spark_lake.rows())
    for file in (tmp_path / "lake" / "broken.lance" / "data").iterdir():
        file.write_bytes(b"?")
    write(
        tmp_path,
        catalog(),
        table("good", schema=SCHEMA, spec="checks: {rowCount: {min: 40, max: 40}, unique: [id]}"),
        table("bad", schema=SCHEMA, spec="checks: {unique: [id], notNull: [id]}"),
        table("broken", schema=SCHEMA),
        table("absent", schema=SCHEMA),
        table("to-go", schema=SCHEMA, spec="state: absent"),
    )


def test_what_holds_what_does_not_and_what_cannot_be_read(tmp_path: Path) -> None:
    lake(tmp_path)
    found = verified(tmp_path)
    assert list(found) == ["absent", "bad", "broken", "good"]
    assert (found["good"]["ok"], found["good"]["rows"]) == (True, 40)
    assert failed(found["bad"]) == {
        "schema": "more is not declared",
        "unique:id": "1 row with a key that another row has",
    }
    assert list(failed(found["broken"])) == ["read"]
    assert failed(found["absent"]) == {"read": "the table is not in the catalog"}
    assert found["broken"]["rows"] is found["broken"]["checksum"] is None
    run = verify(tmp_path)
    assert run.code == 2
    assert f"ok      lake:good  40 rows  {found['good']['checksum']}\n" in run.out
    assert run.out.endswith("4 tables, 9 checks: 1 ok, 3 failed (2 could not be read)\n")


def test_a_file_that_is_none_is_not_waited_for(tmp_path: Path) -> None:
    """A device stands for the pipe, which would stop the tests too. The other tables are read."""
    for name in ("t", "u"):
        spark_lake.write(tmp_path / f"{name}.lance", spark_lake.rows())
    for file in (tmp_path / "t.lance" / "data").iterdir():
        file.unlink()
        file.symlink_to("/dev/null")
    stuck, good = read_tables(InProcess(), sources([str(tmp_path / "t.lance"), str(tmp_path / "u.lance")]))
    assert stuck.error is not None
    assert stuck.error.endswith("it is not a regular file")
    assert (good.error, good.rows) == (None, 40)


def test_exit_codes(tmp_path: Path) -> None:
    lake(tmp_path)
    assert verify(tmp_path, "--target", "good").code == 0
    assert verify(tmp_path, "--target", "bad").code == 2
    assert verify(tmp_path, "--target", "broken", "--target", "absent").code == 1, "nothing could be read"
    assert verify(tmp_path, "--target", "broken", "--target", "good").code == 2
    run = verify(tmp_path, "--target", "nosuch")
    assert (run.code, run.out) == (1, "")
    (tmp_path / "lake").rename(tmp_path / "elsewhere")
    (tmp_path / "lake").write_text("no folder")
    assert verify(tmp_path).code == 1
    assert len(verified(tmp_path)) == 4, "a catalog that cannot be read does not hide its tables"


def test_sql_is_compiled_against_the_live_columns_before_an_executor_gets_it(tmp_path: Path) -> None:
    """A table without `schema`: what would take all memory is a check that fails, and the others are made."""
    spark_lake.write(tmp_path / "lake" / "t.lance", spark_lake.rows())
    ends = "arrow_cast(NULL, 'FixedSizeList(2000000000, Int64)') IS NULL AND id >= 0"
    listed = [("ends", ends), ("unknown", "lenght(text) > 1"), ("fine", "id >= 0"), ("not-true", "id < 0")]
    checks = "".join(f'\n      - {{name: {name}, sql: "{sql}"}}' for name, sql in listed)
    bare = table("t").replace("schema: [{name: id, type: int64}]", f"checks:\n    expressions:{checks}")
    write(tmp_path, catalog(), bare)
    told = failed(verified(tmp_path)["t"])
    assert list(told) == ["expression:ends", "expression:unknown", "expression:not-true"]
    assert "it ends the process that compiles it" in told["expression:ends"]
    assert told["expression:unknown"].endswith("Invalid function 'lenght'. Did you mean 'length'?")
    assert told["expression:not-true"] == "false in 40 rows"


def test_junit(tmp_path: Path) -> None:
    lake(tmp_path)
    run = verify(tmp_path, "--format", "junit", "-o", "result.xml")
    assert (run.code, run.out) == (2, "")
    top = ElementTree.parse(tmp_path / "result.xml").getroot()
    assert (top.tag, {k: top.get(k) for k in ("tests", "failures", "errors", "skipped")}) == (
        "testsuites",
        {"tests": "9", "failures": "2", "errors": "2", "skipped": "0"},
    )
    suites = {s.get("name"): s for s in top}
    assert list(suites) == ["lake:absent", "lake:bad", "lake:broken", "lake:good"]
    (error,) = suites["lake:absent"].iter("error")
    assert error.get("message") == "the table is not in the catalog"
    assert all(case.get("classname") and case.get("name") for case in top.iter("testcase"))


SCHEMAS = {
    "as it is": SCHEMA,
    "a column less": SCHEMA.replace("{name: text, type: string}, ", ""),
    "a column more": SCHEMA.replace("[{name", "[{name: x, type: int8}, {name", 1),
    "another type": SCHEMA.replace("int64", "int32"),
    "not nullable": SCHEMA.replace("type: int64", "type: int64, nullable: false"),
    "a rename to come": SCHEMA.replace("name: text", "name: note, renamedFrom: text"),
}


def test_schema_verdicts_are_those_of_a_plan(tmp_path: Path) -> None:
    documents = []
    for number, schema in enumerate(SCHEMAS.values()):
        spark_lake.write(tmp_path / "lake" / f"t{number}.lance", spark_lake.rows(4))
        documents.append(table(f"t{number}", schema=schema))
    write(tmp_path, catalog(), *documents)
    planned = reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json
    changed = {s["object"]["id"][0] for s in planned["steps"] if s["action"].endswith("_columns")}
    found = verified(tmp_path)
    assert {name for name, row in found.items() if not row["ok"]} == changed == {f"t{n}" for n in range(1, 6)}
    assert list(failed(found["t3"]).values()) == ["id is int64, not int32"]


def test_checks_are_no_difference(tmp_path: Path) -> None:
    write(tmp_path, catalog(), table("t"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog(), table("t", spec="checks: {rowCount: {min: 1}, notNull: [id]}"))
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0
    assert reconciler(tmp_path, "drift", "m.yaml").code == 0
    write(tmp_path, catalog(), name="c.yaml")
    assert reconciler(tmp_path, "import", "c.yaml", "-o", "out").code == 0
    assert "checks" not in (tmp_path / "out" / "lake" / "root-tables.yaml").read_text()


def test_against_another_table(tmp_path: Path) -> None:
    spark_lake.write(tmp_path / "lake" / "a.lance", spark_lake.rows())
    spark_lake.write(tmp_path / "lake" / "b.lance", spark_lake.rows().take(list(reversed(range(40)))), per_file=7)
    write(tmp_path, catalog(), table("a", schema=SCHEMA))
    assert verify(tmp_path, "--against", "lake:b").code == 0
    lance.dataset(str(tmp_path / "lake" / "b.lance")).update({"text": "'other'"}, where="id = 3")
    detail = failed(verified(tmp_path, "--against", "lake:b")["a"])["against"]
    assert "some rows differ" in detail
    lance.dataset(str(tmp_path / "lake" / "b.lance")).delete("id = 3")
    assert failed(verified(tmp_path, "--against", "lake:b")["a"]) == {"against": "40 rows here, 39 there"}
    assert "cannot be read" in failed(verified(tmp_path, "--against", "lake:nosuch")["a"])["against"]
    for wrong in ("b", "other:b", "lake:"):
        assert verify(tmp_path, "--against", wrong).code == 1


def test_a_rest_catalog(tmp_path: Path, rest_adapter: RestServers) -> None:
    endpoint = rest_adapter.serve(tmp_path / "served")
    head = catalog().replace("type: dir\n  path: ./lake", f"type: rest\n  uri: {endpoint}")
    space = "---\napiVersion: reconciler.lance/v1\nkind: Namespace\nmetadata: {catalog: lake, id: [ns]}\n"
    write(tmp_path, head, space, table("ns", "t", schema=SCHEMA, spec="checks: {unique: [id]}"))
    done = reconciler(tmp_path, "apply", "m.yaml", "--yes")
    assert done.code == 0, done.err
    (place,) = (tmp_path / "served").glob("*ns$t*")
    lance.write_dataset(spark_lake.rows(), str(place), mode="append")
    assert (verified(tmp_path)["t"]["ok"], verified(tmp_path)["t"]["rows"]) == (True, 40)


def test_tables_in_a_bucket_and_their_secrets(tmp_path: Path, moto: Moto) -> None:
    bucket = moto.make_bucket("pipeline-verify")
    spark_lake.write(f"{bucket}/lake/t.lance", spark_lake.rows(), options=moto.storage_options)
    spark_lake.write(f"{bucket}/lake/u.lance", spark_lake.rows(), options=moto.storage_options)
    for item in moto.client.list_objects_v2(Bucket="pipeline-verify", Prefix="lake/u.lance/data/")["Contents"]:
        moto.client.delete_object(Bucket="pipeline-verify", Key=item["Key"])
    options = {f"storage__{k}": v for k, v in moto.storage_options.items()}
    write(
        tmp_path,
        catalog(path=f"{bucket}/lake", **options),
        table("t", schema=SCHEMA, spec="checks: {unique: [id]}"),
        table("u", schema=SCHEMA),
    )
    run = verify(tmp_path, "--format", "json")
    found = {row["id"][0]: row for row in run.json["tables"]}
    assert (run.code, found["t"]["ok"], found["t"]["rows"]) == (2, True, 40)
    assert "read" in failed(found["u"])
    local = spark_lake.write(tmp_path / "same.lance", spark_lake.rows())
    assert found["t"]["checksum"] == sources_checksum(local)
    for secret in ("test-secret-canary", "test-key"):
        assert secret not in run.out + run.err + verify(tmp_path).out


def sources_checksum(path: str) -> str:
    sums = (0, 0)
    for batch in lance.dataset(path).to_batches():
        sums = checksum.add_rows(sums, batch)
    return checksum.shown(sums)


def test_a_job_that_spark_gives_up_is_one_clear_line(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake(tmp_path)

    def killed(unit: dict[str, Any]) -> Iterator[Any]:
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)
        yield json.dumps(unit)

    monkeypatch.setattr("reconciler.pipeline.table_task.verify", killed)
    run = verify(tmp_path, "--target", "good")
    assert (run.code, run.out) == (1, "")
    *before, last = run.err.splitlines()
    assert last.startswith("error: a Spark job failed: ")
    assert only_progress("\n".join(before))


def test_the_readme_shows_what_it_prints(tmp_path: Path) -> None:
    text = PAGE.read_text()
    (manifest,) = (block for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "checks:" in block)
    shown = re.search(r"<!-- verify:begin -->\n```console\n\$ (.*?)\n(.*?)```", text, re.DOTALL)
    assert shown is not None
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=3, minutes=30)
    orders = {
        "id": [*range(999), 7],
        "status": ["open", "paid", "sent", "lost"] * 250,
        "price": [n / 4 - 1 for n in range(1000)],
        "placed_at": pa.array(
            [then - datetime.timedelta(seconds=n) for n in range(1000)], pa.timestamp("us", tz="UTC")
        ),
    }
    spark_lake.write(tmp_path / "lake" / "orders.lance", pa.table(orders), per_file=1000)
    (tmp_path / "lake.yaml").write_text(manifest)
    printed = reconciler(tmp_path, *shown.group(1).split()[1:]).out
    assert re.sub("v2:[0-9a-f]{32}", "v2", printed) == re.sub("v2:[0-9a-f]{32}", "v2", shown.group(2))
