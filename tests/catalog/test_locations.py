"""A table of a service without a dataset: not made yet, or lost? The folder tells."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from servers.moto import Moto

from reconciler.catalog.locations import (
    RESERVED,
    OccupiedLocation,
    Places,
    Surroundings,
    canonical,
    lance_uri,
    same_location,
)
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


def around(location: str | Path, options: dict[str, str] | None = None) -> str | None:
    looked = Surroundings(options or {})
    return looked.dataset_around(canonical(str(location)))


def test_a_folder_inside_a_dataset(folder: Path) -> None:
    for inner in ("data/t3", "x", "_versions/y", "a/b/c/d"):
        assert around(folder / inner) == str(folder)
    assert around(folder) is None
    assert around(f"{folder}2") is None
    (folder.parent / "link").symlink_to(folder / "data")
    assert around(folder.parent / "link" / "t") == str(folder)


def test_a_declared_table_counts_as_one(tmp_path: Path) -> None:
    PLACES.reserve(str(tmp_path / "d"))
    assert around(tmp_path / "d" / "x") == str(tmp_path / "d")


@pytest.mark.parametrize("inner", ["data", "_indices", "_versions", "_deletions", "_transactions"])
def test_a_dataset_inside_the_folders_of_lance_is_not_overlooked(inner: str, tmp_path: Path) -> None:
    """An interrupted create leaves such folders, but never folders inside them."""
    lance.write_dataset(pa.table({"x": [1]}), str(tmp_path / "t" / inner / "theirs"))
    with pytest.raises(OccupiedLocation, match=f"{inner}/theirs"):
        is_declared_only(tmp_path / "t", ours=False)


def test_links_are_one_location(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "again").symlink_to("link/t")
    for spelling in (f"{tmp_path}/link/t", f"file://{tmp_path}/link/./t", f"{tmp_path}/again"):
        assert same_location(spelling, f"{tmp_path}/real/t")
    assert not same_location(f"{tmp_path}/link/t", f"{tmp_path}/real/t2")


@pytest.mark.slow
def test_what_lance_opens_is_what_is_compared(moto: Moto, tmp_path: Path) -> None:
    """Every spelling that lance takes for a dataset is that dataset's location."""
    bucket, options = moto.make_bucket("spellings"), dict(moto.storage_options)
    rest, local = bucket.partition("://")[2], str(tmp_path / "t")
    spellings = {
        f"{bucket}/a/t": [
            f"{bucket}/a/t?v=1", f"{bucket}/a/t#v", f"{bucket}/a/t\t", f" {bucket}/a/t ", f"{bucket}:80/a/t",
            f"{bucket}/a%2Ft", f"{bucket}/a/%2e/t", f"{bucket}/a/x/../t", f"S3A://{rest}/a/t",
        ],
        local: [f"file-object-store://{local}", f"file+uring://{local}", f"File://localhost{local}", f"file:{local}"],
    }  # fmt: skip
    for location, others in spellings.items():
        lance.write_dataset(pa.table({"x": [1]}), location, storage_options=options)
        for other in others:
            assert lance.dataset(lance_uri(other), storage_options=options).count_rows() == 1, other
            assert same_location(other, location), other


@pytest.mark.slow
def test_inside_a_dataset_of_a_bucket(moto: Moto) -> None:
    bucket, options = moto.make_bucket("surroundings"), dict(moto.storage_options)
    lance.write_dataset(pa.table({"x": [1]}), f"{bucket}/a b/t%25".replace(" ", "%20"), storage_options=options)
    assert around(f"{bucket}/a b/t%25/data/x", options) == f"{bucket}/a b/t%"
    assert around(f"{bucket}/a%20b/./t%25/x", options) == f"{bucket}/a b/t%"
    assert around(f"{bucket}/a%20b/t%25", options) is None
    assert around(f"{bucket}/a%20b/t%252/x", options) is None
    Places(options).reserve(f"{bucket}/d")
    assert around(f"{bucket}/d/x", options) == f"{bucket}/d"


@pytest.mark.slow
def test_many_tables_cost_one_look_at_each_folder(moto: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    from reconciler.catalog.storage_objects import ObjectStorage

    asked: list[str] = []
    real = ObjectStorage.is_dataset
    monkeypatch.setattr(ObjectStorage, "is_dataset", lambda self, path: asked.append(path) or real(self, path))
    bucket = moto.make_bucket("many")
    looked = Surroundings(dict(moto.storage_options))
    assert [looked.dataset_around(f"{bucket}/lake/n/t{n}") for n in range(50)] == [None] * 50
    assert asked == ["lake/n", "lake", ""]
