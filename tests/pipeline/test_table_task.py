"""What a task does with a table, in this process: no Spark, no JVM."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from reconciler.core.verdicts import span, tasks_of, verdicts
from reconciler.model.checks import Checks, Expression, Freshness
from reconciler.pipeline import checksum, jobs, table_task
from reconciler.pipeline.jobs import TASKS_PER_CORE, UNITS_PER_TASK, packed
from reconciler.pipeline.verify import Reading, _parts

NOON = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC)
ROWS = pa.table(
    {
        "id": [1, 2, 3, 3, None],
        "status": pa.array(["open", "paid", "odd", None, "open"]).dictionary_encode(),
        "price": [1.0, -2.0, None, 4.0, 5.0],
        "at": pa.array([NOON - datetime.timedelta(hours=n) for n in range(5)], pa.timestamp("ns", tz="UTC")),
        "place": [{"x": 1}, None, {"x": None}, {"x": 4}, {"x": 5}],
    }
)
CHECKS = Checks(
    not_null=("id", "place.x", "at"),
    unique=(("id",), ("id", "status"), ("place.x",)),
    accepted={"status": ("open", "paid"), "id": (1, 2, 3)},
    expressions=(Expression("positive", "price >= 0"), Expression("odd", "nosuch > 1")),
    freshness=Freshness("at", 3600),
)


def unit(path: Path, checks: Checks = CHECKS, **more: Any) -> dict[str, Any]:
    given = {"uri": str(path), "options": {}, "version": 1, "fragments": None, "split": 1 << 40}
    return {"key": 7, **given, "checks": list(tasks_of(checks)), **more}


def answer(work: dict[str, Any]) -> dict[str, Any]:
    (batch,) = table_task.verify(work)
    found: dict[str, Any] = json.loads(batch.column(0)[0].as_py())
    assert found["key"] == 7
    return found


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    lance.write_dataset(ROWS, str(tmp_path / "t"), max_rows_per_file=2)
    return tmp_path / "t"


def reading(dataset: Path, *fragments: list[int]) -> Reading:
    made = Reading()
    for ids in fragments:
        made.add(answer(unit(dataset, fragments=ids)))
    return made


FOUND = {
    "rowCount": (False, "5 rows, at most 4 are wanted"),
    "notNull:id": (False, "a null in 1 row"),
    "notNull:place.x": (False, "a null in 2 rows"),
    "notNull:at": (True, ""),
    "unique:id": (False, "1 row with a key that another row has"),
    "unique:id,status": (True, ""),
    "unique:place.x": (True, ""),
    "accepted:status": (False, "another value in 1 row"),
    "accepted:id": (True, ""),
    "expression:positive": (False, "false in 1 row"),
    "freshness:at": (False, "the newest is 2h 1m old, at most 1h is wanted"),
}


def test_the_checks(dataset: Path) -> None:
    seen = answer(unit(dataset))
    now = int(NOON.timestamp()) + 2 * 3600 + 60
    checks = Checks(
        None, 4, *(getattr(CHECKS, n) for n in ("not_null", "unique", "accepted", "expressions", "freshness"))
    )
    results = {r.name: (r.ok, r.detail) for r in verdicts(checks, seen["rows"], seen["found"], now)}
    assert "No field named nosuch" in results.pop("expression:odd")[1]
    assert results == FOUND


def test_fragments_add_up_to_the_table(dataset: Path) -> None:
    whole = Reading()
    whole.add(answer(unit(dataset, fragments=[0, 1, 2])))
    parts = reading(dataset, [1], [0, 2])
    assert (parts.rows, parts.checksum) == (whole.rows, whole.checksum) == (5, whole.checksum)
    unique = [n for n in whole.found if n.startswith("unique")]
    assert {n: v for n, v in parts.found.items() if n not in unique} == {
        n: v for n, v in whole.found.items() if n not in unique
    }


def test_a_large_table_says_what_it_is_made_of(dataset: Path) -> None:
    seen = answer(unit(dataset, split=1))
    assert [ident for ident, size in seen["fragments"] if size > 0] == [0, 1, 2]
    parts = list(_parts(unit(dataset), seen["fragments"], 1))
    assert sorted(i for p in parts for i in p["fragments"]) == [0, 1, 2]
    assert not any(c["kind"] == "unique" for p in parts for c in p["checks"])


def test_the_version_is_the_one_that_was_pinned(dataset: Path) -> None:
    before = answer(unit(dataset))
    lance.dataset(str(dataset)).delete("id = 1")
    assert answer(unit(dataset)) == before
    assert answer(unit(dataset, version=2))["rows"] == 4


def test_an_empty_table(tmp_path: Path) -> None:
    lance.write_dataset(ROWS.slice(0, 0), str(tmp_path / "t"))
    seen = answer(unit(tmp_path / "t"))
    assert (seen["rows"], seen["sums"]) == (0, ["0", "0"])
    results = {r.name: r.ok for r in verdicts(CHECKS, 0, seen["found"], 0) if "odd" not in r.name}
    assert results.pop("freshness:at") is False
    assert all(results.values())


def test_what_cannot_be_read_is_an_answer(tmp_path: Path, dataset: Path) -> None:
    assert "was not found" in answer(unit(tmp_path / "nothing"))["error"]
    assert "error" in answer(unit(dataset, version=9))
    for file in (dataset / "data").iterdir():
        file.write_bytes(b"broken")
    assert "error" in answer(unit(dataset))


@pytest.mark.parametrize("count", [0, 1, 3, 9, 5000])
def test_few_fat_tasks(count: int) -> None:
    units: list[dict[str, Any]] = [{"key": n} for n in range(count)]
    made = list(packed(units, 2))
    tasks = [task for some in made for task in some]
    assert sorted(u["key"] for task in tasks for u in task) == list(range(count))
    assert all(1 <= len(task) <= UNITS_PER_TASK for task in tasks)
    assert all(len(some) <= 2 * TASKS_PER_CORE for some in made)


def test_span() -> None:
    assert [span(n) for n in (0, 59, 3600, 90_061, 8 * 86_400)] == ["0s", "59s", "1h", "1d 1h", "8d"]


ELSEWHERE = """
import pickle, sys
sys.modules["reconciler"] = None    # an executor that does not have this program
if sys.argv[1] == "bare":
    sys.modules["lance"] = None
import pyarrow as pa
run = pickle.load(sys.stdin.buffer)
numbers = pa.RecordBatch.from_pydict({"id": [0]})
for batch in run([numbers]):
    print(batch.column(0)[0].as_py())
"""


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["with pylance", "bare"])
def test_tasks_run_where_this_program_is_not_installed(dataset: Path, executor: str) -> None:
    from pyspark import cloudpickle

    for module in (checksum, table_task):
        cloudpickle.register_pickle_by_value(module)
    carried = cloudpickle.dumps(table_task.job([[unit(dataset)]], table_task.verify))
    assert b"reconciler.core" not in carried
    command = [sys.executable, "-c", ELSEWHERE, executor]
    done = subprocess.run(command, input=carried, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert found["missing"] if executor == "bare" else found == answer(unit(dataset))


def test_a_bare_executor_is_told_how_to_get_pylance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_collected", lambda *_: [['{"missing": "No module named lance"}']])
    with pytest.raises(jobs.SparkError, match=r"executors have no pylance .*spark.pyspark.python"):
        list(jobs.answers(None, [{"key": 0}], 1, table_task.verify))


def test_options_are_not_shown() -> None:
    from reconciler.catalog.base import DataPlace

    assert "canary" not in repr(DataPlace("s3://b/t", {"aws_secret_access_key": "canary"}))
