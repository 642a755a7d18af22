"""What a task does with a table, in this process: no Spark, no JVM."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import lance
import numpy as np
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


KEYS = pa.table(
    {
        "l": pa.array([[1, 2], [2, 1], [1, 2], None, [None]]),
        "v": pa.array([[1, 2], [1, 2], [2, 1], None, [0, 0]], pa.list_(pa.float32(), 2)),
        "f": [float("nan"), float("nan"), 0.0, -0.0, 1.0],
        "st": [{"x": 1, "y": "a"}, {"x": 1, "y": None}, {"x": 1, "y": "a"}, None, {"x": None, "y": "a"}],
        "de": pa.array([1, 1, 2, 2, 3]).cast(pa.decimal128(19, 0)),
        "m": pa.array([[("a", 1)], [("a", 2)], [("a", 1)], [], []], pa.map_(pa.string(), pa.int64())),
        "b": [True, False, True, None, None],
        "s": pa.array(["a", "b", "a", "a", None]).dictionary_encode(),
        "z": pa.nulls(5),
        "by": pa.array([b"\xff", b"\xff", b"", b"", None], pa.large_binary()),
    }
)
REPEATED = {"l": 1, "v": 1, "f": 1, "st": 1, "de": 2, "m": 2, "b": 1, "s": 2, "z": 0, "by": 2, "st.x": 2,
            "s,b": 1, "de,f": 1, "f,s": 0, "st.x,st.y": 1}  # fmt: skip


def bad(unique: list[str], path: Path, **more: Any) -> dict[str, int]:
    checks = Checks(unique=tuple(tuple(key.split(",")) for key in unique))
    found = answer(unit(path, checks, **more))["found"]
    return {name.removeprefix("unique:"): result["bad"] for name, result in found.items()}


@pytest.fixture
def meeting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes of which there are only two."""
    real = checksum.row_hashes
    monkeypatch.setattr(checksum, "row_hashes", lambda *given: real(*given) & np.uint64(1))


def test_keys_are_counted_by_value(tmp_path: Path, meeting: None) -> None:
    lance.write_dataset(KEYS, str(tmp_path / "t"), max_rows_per_file=2, data_storage_version="2.2")
    assert bad(list(REPEATED), tmp_path / "t") == REPEATED
    lance.write_dataset(pa.table({"k": [*range(1000), 7]}), str(tmp_path / "u"), max_rows_per_file=300)
    assert bad(["k"], tmp_path / "u") == {"k": 1}


def test_keys_of_two_numbers_are_distinct(tmp_path: Path) -> None:
    keys = [f"{a:08x}{b:08x}" for a in range(300) for b in range(300)]
    lance.write_dataset(pa.table({"k": keys}), str(tmp_path / "t"))
    assert bad(["k"], tmp_path / "t") == {"k": 0}


@pytest.mark.parametrize(("held", "scans"), [(1 << 30, 2), (1000, 26)])
def test_no_more_keys_are_compared_at_a_time_than_memory_is_meant_to_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int, scans: int
) -> None:
    monkeypatch.setattr(table_task, "KEY_BYTES", held)
    read = []
    real = table_task._scan
    monkeypatch.setattr(table_task, "_scan", lambda *given: read.append(1) or real(*given))
    lance.write_dataset(pa.table({"k": [n // 3 for n in range(300)]}), str(tmp_path / "t"))
    assert bad(["k"], tmp_path / "t") == {"k": 200}
    assert len(read) == scans


def test_a_key_is_counted_where_hashes_meet(tmp_path: Path, meeting: None) -> None:
    """What executors give of a large table: hashes first, then the keys of the rows that have one of some hashes."""
    lance.write_dataset(KEYS, str(tmp_path / "t"), max_rows_per_file=2, data_storage_version="2.2")
    for key, repeated in REPEATED.items():
        work = [{**unit(tmp_path / "t", fragments=[n]), "columns": key.split(",")} for n in range(3)]
        hashes = [h for w in work for b in table_task.keys(w) for h in b.column("hash").to_pylist()]
        assert set(hashes) <= {0, 1}
        for met in (None, [0, 1], [0], [1]):
            rows: Counter[bytes] = Counter()
            for w in work:
                for batch in table_task.key_values({**w, "met": met and np.array(met, np.uint64)}):
                    rows.update(dict(zip(*batch.to_pydict().values(), strict=True)))
            assert rows.total() == sum(h in (met or [0, 1]) for h in hashes)
            if met is None or len(met) == 2:
                assert rows.total() - len(rows) == repeated


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
