"""A table of a service without a dataset: not made yet, or lost? The folder tells."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from reconciler.catalog.locations import RESERVED, Places
from reconciler.model.errors import CatalogError, Code

PLACES = Places({})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a table that was created, and then got rows."""
    where = tmp_path / "t"
    PLACES.reserve(str(where))
    lance.write_dataset([], str(where), schema=pa.schema([("x", pa.int64())]))
    lance.write_dataset(pa.table({"x": [1]}), str(where), mode="append")
    return where


def is_declared_only(folder: Path, *, ours: bool = True) -> bool:
    return PLACES.is_declared_only(str(folder), "n.t", ours=ours)


@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("gone", ["_versions", "_versions and data", "_versions and _transactions"])
def test_what_was_lost_is_not_made_anew(gone: str, ours: bool, folder: Path) -> None:
    for name in gone.split(" and "):
        shutil.rmtree(folder / name)
    with pytest.raises(CatalogError, match="Bring the folder back") as refused:
        is_declared_only(folder, ours=ours)
    assert refused.value.code is Code.INVALID_TABLE_STATE


def test_a_dataset_is_there(folder: Path) -> None:
    assert not is_declared_only(folder)


def test_what_a_create_that_was_cut_short_leaves(tmp_path: Path) -> None:
    where = tmp_path / "t"
    lance.write_dataset([], str(where), schema=pa.schema([("x", pa.int64())]))
    shutil.rmtree(where / "_versions")
    assert [file.name[:2] for file in (where / "_transactions").iterdir()] == ["0-"]
    (where / RESERVED).touch()
    assert is_declared_only(where)
