"""Others write between the version that a step pinned and its commit: their rows never end up beside ours, no row is
lost or double, and what keeps the rows stops nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments

from reconciler.catalog.base import DataPlace, WriteContext
from reconciler.catalog.lance_data import CLAIM_KEY
from reconciler.model.data import DataRecord
from reconciler.model.errors import CatalogError, Code
from reconciler.pipeline import claims, row_commit
from reconciler.pipeline.claims import Held, claimed

SCHEMA = pa.schema([("id", pa.int64())])
RECORD = DataRecord("sha256:one", {"path": "stamp"})
CONTEXT = WriteContext("sha256:0123456789", "s1")
OLD, OURS, THEIRS = list(range(20)), list(range(1000, 1010)), list(range(100, 110))


def rows(ids: list[int]) -> pa.Table:
    return pa.table({"id": ids}, schema=SCHEMA)


def filled(uri: str, stable: bool) -> None:
    lance.write_dataset(rows(OLD[:10]), uri, enable_stable_row_ids=stable)
    lance.write_dataset(rows(OLD[10:]), uri, mode="append")


def empty(uri: str, stable: bool) -> None:
    lance.write_dataset([], uri, schema=SCHEMA, enable_stable_row_ids=stable)


def emptied(uri: str, stable: bool) -> None:
    """The highest fragment was there once: its number is in no fragment of today."""
    filled(uri, stable)
    lance.dataset(uri).delete("true")


def shortened(uri: str, stable: bool) -> None:
    filled(uri, stable)
    lance.dataset(uri).delete("id >= 10")


STARTS = {f.__name__: f for f in (filled, empty, emptied, shortened)}
HOW = {"adding": row_commit.adding, "replacing": row_commit.replacing}


def inserts(d: Any) -> None:
    d.merge_insert("id").when_not_matched_insert_all().execute(rows(THEIRS))


def inserts_twice(d: Any) -> None:
    inserts(d)
    lance.write_dataset(rows([7000]), d.uri, mode="append")


def upserts(d: Any) -> None:
    d.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows([3, *THEIRS]))


ADDS: dict[str, Callable[[Any], object]] = {
    "append": lambda d: lance.write_dataset(rows(THEIRS), d.uri, mode="append"),
    "insert": inserts,
    "insert-twice": inserts_twice,
    "upsert": upserts,
    "overwrite": lambda d: lance.write_dataset(rows(THEIRS), d.uri, mode="overwrite"),
    "append-and-compact": lambda d: (
        lance.write_dataset(rows(THEIRS), d.uri, mode="append"),
        lance.dataset(d.uri).optimize.compact_files(),
    ),
    "append-and-index": lambda d: (
        lance.write_dataset(rows(THEIRS), d.uri, mode="append"),
        lance.dataset(d.uri).create_scalar_index("id", "BTREE"),
    ),
}
KEEPS: dict[str, Callable[[Any], object]] = {
    "nothing": lambda d: None,
    "index": lambda d: d.create_scalar_index("id", "BTREE"),
    "configure": lambda d: d.update_config({"theirs": "1"}),
    "tag": lambda d: d.tags.create("theirs", d.version),
    "compact": lambda d: d.optimize.compact_files(),
    "delete": lambda d: d.delete("id < 5"),
}


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., DataPlace]:
    def made(start: str, stable: bool = False) -> DataPlace:
        uri = str(tmp_path / "t.lance")
        STARTS[start](uri, stable)
        return DataPlace(uri)

    return made


def now(place: DataPlace) -> Any:
    return lance.dataset(place.uri)


def ids(place: DataPlace) -> list[int]:
    found: list[int] = now(place).to_table().column("id").to_pylist()
    return sorted(found)


def files(place: DataPlace) -> list[Any]:
    """Two fragments."""
    made: list[Any] = write_fragments(rows(OURS), place.uri, schema=SCHEMA, mode="append", max_rows_per_file=5)
    return made


@pytest.mark.parametrize("theirs", ADDS)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("start", STARTS)
def test_rows_of_others_are_never_beside_ours(
    make: Callable[..., DataPlace], start: str, how: str, theirs: str
) -> None:
    place = make(start)
    with claimed(place, CONTEXT) as held:
        operation = HOW[how](held.dataset, files(place))
        ADDS[theirs](now(place))
        left = ids(place)
        with pytest.raises(CatalogError) as refused:
            held.commit(operation, RECORD)
    assert refused.value.code == Code.CONCURRENT_MODIFICATION
    assert not refused.value.unknown_outcome
    assert ids(place) == left, "theirs is as they left it, and nothing of ours is there"


def landed(held: Held, operation: Any) -> bool:
    try:
        held.commit(operation, RECORD)
    except CatalogError as error:
        if error.code != Code.CONCURRENT_MODIFICATION:
            raise
        return False
    return True


@pytest.mark.parametrize("theirs", KEEPS)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("start", STARTS)
def test_what_adds_no_row_costs_at_most_another_try(
    make: Callable[..., DataPlace], start: str, how: str, theirs: str
) -> None:
    stable = theirs in ("nothing", "delete", "index")
    place = make(start, stable)
    with claimed(place, CONTEXT) as held:
        made = files(place)
        operation = HOW[how](held.dataset, made)
        KEEPS[theirs](now(place))
        left = ids(place)
        if not landed(held, operation):
            assert ids(place) == left
            held.pin_again()
            held.commit(HOW[how](held.dataset, made), RECORD)
    assert Counter(ids(place)) == Counter([*(left if how == "adding" else []), *OURS])
    live = now(place)
    assert live.count_rows(filter="id = 1003") == 1, "an index does not count a fragment as one of its own"
    live.validate()
    lance.write_dataset(rows(THEIRS), place.uri, mode="append")
    numbers = [f.fragment_id for f in now(place).get_fragments()]
    assert len(set(numbers)) == len(numbers)
    assert set(THEIRS) <= set(ids(place))
    if stable:
        row_ids = now(place).scanner(with_row_id=True).to_table().column("_rowid").to_pylist()
        assert len(set(row_ids)) == len(row_ids)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("start", STARTS)
def test_an_append_that_others_began_before_comes_after(make: Callable[..., DataPlace], start: str, how: str) -> None:
    """Nobody who appends has to try again because of us."""
    place = make(start)
    stale = now(place)
    theirs = write_fragments(rows(THEIRS), place.uri, schema=SCHEMA, mode="append")
    with claimed(place, CONTEXT) as held:
        held.commit(HOW[how](held.dataset, files(place)), RECORD)
        left = ids(place)
        lance.LanceDataset.commit(place.uri, lance.LanceOperation.Append(theirs), read_version=stale.version)
    assert ids(place) == sorted([*left, *THEIRS])


def test_rows_that_are_welcome_stay_beside_ours(make: Callable[..., DataPlace]) -> None:
    place = make("filled")
    with claimed(place, CONTEXT) as held:
        made = files(place)
        row_commit.adding(held.dataset, made)  # It was refused once, say, before it was allowed.
        ADDS["append"](now(place))
        held.commit(row_commit.beside(made), RECORD)
    assert ids(place) == sorted([*OLD, *THEIRS, *OURS])


@pytest.mark.parametrize("start", STARTS)
def test_no_rows_are_rows_too(make: Callable[..., DataPlace], start: str) -> None:
    place = make(start)
    left = ids(place)
    with claimed(place, CONTEXT) as held:
        held.commit(row_commit.adding(held.dataset, []), RECORD)
    assert ids(place) == left
    with claimed(place, CONTEXT) as held:
        held.commit(row_commit.replacing(held.dataset, []), RECORD)
    assert ids(place) == []


@pytest.mark.parametrize("start", ["filled", "empty"])
def test_the_claim_is_renewed_beside_it(make: Callable[..., DataPlace], start: str) -> None:
    """Its version is not the pinned one then."""
    place = make(start)
    with claimed(place, CONTEXT) as held:
        operation = row_commit.adding(held.dataset, files(place))
        written = claims._written(place, now(place), {CLAIM_KEY: held.claim.dumped()}, held.claim)
        assert written is not None
        held.commit(operation, RECORD)
    assert set(OURS) <= set(ids(place))
