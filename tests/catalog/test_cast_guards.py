"""A column in another type: what came between plan and apply is neither written over nor lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from reconciler.catalog.lance_cast import merge_of_cast
from reconciler.model.arrow import parse_type
from reconciler.model.change import AlterColumns, ColumnAlteration
from reconciler.model.errors import CatalogError, Code


def dataset(folder: Path, rows: int) -> Any:
    table = pa.table({"id": pa.array(range(rows), pa.int64()), "n": pa.array(range(rows), pa.int64())})
    return lance.write_dataset(table, str(folder / "t.lance"), data_storage_version="2.2")


def change(type_: str, *loses: str, empty: bool) -> AlterColumns:
    return AlterColumns(("t",), (ColumnAlteration("n", type=parse_type(type_)),), loses, empty=empty)


def test_rows_that_came_after_the_plan_stop_a_change_for_tables_without_rows(tmp_path: Path) -> None:
    """Such a change writes no values: these rows would be null."""
    with pytest.raises(CatalogError, match="has some now: plan again") as caught:
        merge_of_cast(dataset(tmp_path, 3), change("list<int64>", empty=True))
    assert caught.value.code == Code.INVALID_TABLE_STATE


def test_an_index_that_came_after_the_plan_is_not_lost(tmp_path: Path) -> None:
    live = dataset(tmp_path, 3)
    live.create_scalar_index("n", "BTREE", name="new")
    with pytest.raises(CatalogError, match="has the index new on a column"):
        merge_of_cast(live, change("int32", empty=False))
    assert merge_of_cast(live, change("int32", "new", empty=False)) is not None
