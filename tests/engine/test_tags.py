"""Tags of lance datasets: one for every change that can lose something, none for a change that was not made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from reconciler.catalog.base import WriteContext
from reconciler.catalog.lance_dataset import Datasets
from reconciler.catalog.lance_write import apply_to_dataset
from reconciler.model import change as c
from reconciler.model.arrow import parse_type
from reconciler.model.errors import CatalogError

TAG = "reconciler-abc-s1"
T = ("a", "t")
NARROW = c.AlterColumns(T, (c.ColumnAlteration("id", type=parse_type("int32")),))


def dataset(path: Path, *values: int) -> Any:
    uri = str(path / "t.lance")
    for value in values:
        lance.write_dataset(pa.table({"id": pa.array([value], pa.int64())}), uri, mode="append")
    return lance.dataset(uri)


def write(path: Path, change: Any) -> None:
    apply_to_dataset(Datasets(), str(path / "t.lance"), change, WriteContext("sha256:abc", "s1", TAG))


def tags(path: Path) -> dict[str, int]:
    return {name: tag["version"] for name, tag in lance.dataset(str(path / "t.lance")).tags.list().items()}


def test_a_change_that_was_made_keeps_its_tag(tmp_path: Path) -> None:
    dataset(tmp_path, 1, 2)
    write(tmp_path, NARROW)
    assert tags(tmp_path) == {TAG: 2}


@pytest.mark.parametrize("left_by_a_killed_run", [False, True])
def test_a_change_that_failed_leaves_no_tag(tmp_path: Path, left_by_a_killed_run: bool) -> None:
    live = dataset(tmp_path, 1, 2**40)
    live.tags.create("theirs", 2)
    if left_by_a_killed_run:
        live.tags.create(TAG, 2)
    with pytest.raises(CatalogError, match="1099511627776"):
        write(tmp_path, NARROW)
    assert tags(tmp_path) == {"theirs": 2}
    assert lance.dataset(live.uri).version == 2


def test_a_tag_that_holds_an_older_version_stays(tmp_path: Path) -> None:
    """An earlier attempt may have got somewhere: what was before it is worth keeping."""
    live = dataset(tmp_path, 1, 2**40)
    live.tags.create(TAG, 1)
    with pytest.raises(CatalogError):
        write(tmp_path, NARROW)
    assert tags(tmp_path) == {TAG: 1}


def test_a_change_whose_outcome_is_not_known_keeps_its_tag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset(tmp_path, 1)

    def lost(self: Any, *columns: Any) -> None:
        raise OSError("error sending request: connection reset")

    monkeypatch.setattr(lance.LanceDataset, "alter_columns", lost)
    with pytest.raises(CatalogError) as caught:
        write(tmp_path, NARROW)
    assert caught.value.unknown_outcome
    assert tags(tmp_path) == {TAG: 1}
