"""Tables to maintain, and a stand-in for Spark that runs the same tasks in this process, one after the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli.cli_runs import Run, catalog, reconciler, table, write
from pipeline.test_checksum import of_dataset

from reconciler.catalog.base import DataPlace, WriteContext
from reconciler.catalog.lance_data import CLAIM_KEY, load_claim
from reconciler.model.data import DataRecord
from reconciler.pipeline import claims
from reconciler.pipeline import maintain as driver
from reconciler.pipeline.session import GaveUp
from reconciler.pipeline.table_task import Unit
from reconciler.verbs import maintain as verb

SCHEMA = "[{name: id, type: int64}, {name: text, type: string}]"
INDEX = "indexes: [{column: id, type: btree}]\n  "
ALL = (
    "maintenance: {compact: {targetRowsPerFragment: 1000, minSmallFragments: 4}, indexes: {maxUnindexedRows: 10}, "
    "cleanup: {olderThan: 14d}}"
)


def rows(start: int, count: int = 10) -> pa.Table:
    return pa.table({"id": range(start, start + count), "text": [f"row {n}" for n in range(start, start + count)]})


def append(path: Path | str, times: int, start: int = 0, options: dict[str, str] | None = None) -> None:
    """So many fragments and versions of ten rows."""
    for n in range(times):
        lance.write_dataset(rows(start + n * 10), str(path), mode="append", storage_options=options)


def lake(folder: Path, *names: str, spec: str = INDEX + ALL, owner: str = "team", fragments: int = 6) -> None:
    """Tables that `apply` made and others have appended to: 60 rows in 6 fragments, in no index."""
    write(folder, catalog(owner), *(table(name, schema=SCHEMA, spec=spec) for name in names))
    done = reconciler(folder, "apply", "m.yaml", "--yes")
    assert done.code == 0, done.err
    for name in names:
        append(path(folder, name), fragments)


def path(folder: Path, name: str = "t") -> Path:
    return folder / "lake" / f"{name}.lance"


def maintain(folder: Path, *more: str) -> Run:
    return reconciler(folder, "pipeline", "maintain", "m.yaml", *more)


def parts(run: Run, name: str = "t") -> dict[str, dict[str, Any]]:
    """Of one table, by the name of the part."""
    (row,) = (row for row in run.json["tables"] if row["id"][-1] == name)
    assert list(row) == ["catalog", "id", "version", "rows", "bytes", "error", "parts"]
    return {part["part"]: part for part in row["parts"]}


def outcomes(run: Run, name: str = "t") -> list[str | None]:
    return [part["outcome"] for part in parts(run, name).values()]


def decided(run: Run) -> list[Any]:
    """Without what was done about it."""
    taken = ("part", "decision", "reason", "before")
    return [
        (t["id"], t["version"], t["error"], [[p[k] for k in taken] for p in t["parts"]]) for t in run.json["tables"]
    ]


def state(dataset_path: Path | str) -> tuple[int, int, str, list[int]]:
    """What must not change when a run fails: versions do not count, what they hold does."""
    dataset = lance.dataset(str(dataset_path))
    return (
        dataset.count_rows(),
        len(dataset.get_fragments()),
        of_dataset(Path(dataset_path)),
        sorted(f.fragment_id for f in dataset.get_fragments()),
    )


def left_behind(folder: Path) -> tuple[DataPlace, DataRecord]:
    """Rows of a data step whose run was killed right after it committed them."""
    place = DataPlace(str(path(folder)))
    loaded = DataRecord("sha256:source", {"path": "stamp"})
    with pytest.MonkeyPatch.context() as killed:
        killed.setattr(claims, "_give_back", lambda held: None)
        with claims.claimed(place, WriteContext("sha256:plan", "s1")) as held:
            held.commit(lance.LanceOperation.Append([]), loaded)
    dataset = lance.dataset(place.uri)
    claim = load_claim(dataset.metadata[CLAIM_KEY])
    assert claim is not None
    dataset.update_metadata({CLAIM_KEY: replace(claim, born="of another process").dumped()})
    return place, loaded


def later(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """The run thinks that so many days have passed."""
    import time

    now = time.time() + timedelta(days=days).total_seconds()
    monkeypatch.setattr(verb, "time", SimpleNamespace(time=lambda: now))


Answers = Callable[..., Iterator[dict[str, Any]]]


def in_process(
    _spark: Any,
    units: Sequence[Unit],
    _slots: int,
    work: Any,
    per_task: int = 0,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[dict[str, Any]]:
    for unit in units:
        if stopped():
            raise GaveUp("to stop")
        for batch in work(unit):
            for text in batch.column(0).to_pylist():
                yield json.loads(text)


def without_spark(monkeypatch: pytest.MonkeyPatch, answers: Answers = in_process) -> None:
    from contextlib import contextmanager

    from reconciler.verbs import tables

    @contextmanager
    def none(_options: Any) -> Iterator[None]:
        yield None

    monkeypatch.setattr(verb, "missing", lambda options: None)
    monkeypatch.setattr(tables, "session", none)
    monkeypatch.setattr(driver, "cores", lambda spark: 2)
    monkeypatch.setattr(driver, "answers", answers)
