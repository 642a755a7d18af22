"""A column in another type: what came between plan and apply is neither written over nor lost."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from reconciler.catalog.base import WriteContext
from reconciler.catalog.lance_cast import merge_of_cast
from reconciler.catalog.lance_dataset import Datasets
from reconciler.catalog.lance_write import apply_to_dataset
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


def narrow(folder: Path, values: Any, path: str, type_: str, indexed: bool = False) -> Any:
    """The values after the step. Each row has a file of its own."""
    rows = pa.table({"id": range(len(values)), "c": values})
    uri = str(folder / "t.lance")
    live = lance.write_dataset(rows, uri, data_storage_version="2.2", max_rows_per_file=1)
    if indexed:
        live.create_scalar_index("c", "BTREE", name="i")
    change = AlterColumns(("t",), (ColumnAlteration(path, type=parse_type(type_)),), ("i",) if indexed else ())
    apply_to_dataset(Datasets({}), uri, change, WriteContext())
    return lance.dataset(uri).to_table()["c"].to_pylist()


def refused(folder: Path, *what: Any, indexed: bool = False) -> str:
    """Nothing is changed then."""
    with pytest.raises(CatalogError) as caught:
        narrow(folder, *what, indexed)
    assert caught.value.code == Code.TABLE_SCHEMA_VALIDATION_ERROR
    left = lance.dataset(str(folder / "t.lance"))
    assert left.version == left.latest_version == (2 if indexed else 1)
    return caught.value.message


HALF = "fixed_size_list<float16>[2]"


@pytest.mark.parametrize(
    ("values", "path", "type_", "told"),
    [
        ([1.0, 1e300], "c", "float32", "column c of .* has 1e[+]300, which is too large for float"),
        (pa.array([1.0, -7e4], pa.float32()), "c", "float16", "-70000.0"),
        (pa.array([1.0, 65519.99999]), "c", "float16", "65519.99999"),
        (pa.array([[1, 2], [1, 1e6]], pa.list_(pa.float32(), 2)), "c", HALF, "1000000.0"),
        ([[1.0], [2.0, None, 1e39]], "c", "list<float32>", "1e[+]39"),
        ([[1.0], [2.0, 1e39]], "c", "large_list<float32>", "1e[+]39"),
        (pa.array([1.0, 1e39]).dictionary_encode(), "c", "float32", "1e[+]39"),
        (pa.array([1.0, 1e39]).dictionary_encode(), "c", "dictionary<int32, float32>", "1e[+]39"),
        ([{"a": {"b": 1.0}}, {"a": {"b": 1e39}}], "c.a.b", "float32", "column c.a.b of .* 1e[+]39"),
        ([[{"a": 1.0}], [{"a": 1e39}]], "c.item.a", "float32", "column c.item.a of .* 1e[+]39"),
    ],
    ids=str,
)
def test_no_number_becomes_infinite(tmp_path: Path, values: Any, path: str, type_: str, told: str) -> None:
    """Also when a plan has not read all rows, or they came after it."""
    assert re.search(told, refused(tmp_path, values, path, type_))


def test_no_indexed_number_becomes_infinite(tmp_path: Path) -> None:
    assert "1e+300" in refused(tmp_path, [1.0, 1e300], "c", "float32", indexed=True)


@pytest.mark.parametrize("indexed", [False, True])
def test_what_is_infinite_already_may_stay_so(tmp_path: Path, indexed: bool) -> None:
    made = narrow(tmp_path, [1.0, np.inf, -np.inf, None, 3e38], "c", "float32", indexed)
    assert made == [1.0, np.inf, -np.inf, None, pytest.approx(3e38)]
