"""The file of a version, read and renumbered: what lance itself makes of it."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from reconciler.model.errors import CatalogError
from reconciler.pipeline.manifest_file import (
    detached_name,
    detached_number,
    indexes_in,
    names_of,
    transactions_in,
    with_number,
)


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    made = lance.write_dataset(pa.table({"id": list(range(10))}), tmp_path / "t.lance", max_rows_per_file=4)
    made.create_scalar_index("id", "BTREE", name="by_id")
    made.delete("id = 3")
    return lance.dataset(tmp_path / "t.lance")


def manifest(dataset: lance.LanceDataset) -> bytes:
    (found,) = [p for n in names_of(dataset.version) if (p := Path(dataset.uri, "_versions", n)).exists()]
    return found.read_bytes()


def test_the_same_version_under_another_number(dataset: lance.LanceDataset) -> None:
    number = detached_number()
    Path(dataset.uri, "_versions", detached_name(number)).write_bytes(with_number(manifest(dataset), number))
    hidden = lance.dataset(dataset.uri, version=number)
    assert (hidden.version, hidden.to_table()) == (number, dataset.to_table())
    assert [i.name for i in hidden.describe_indices()] == ["by_id"]
    assert lance.dataset(dataset.uri).version == dataset.version, "nobody sees it who does not ask for it"
    assert with_number(with_number(manifest(dataset), number), dataset.version) == manifest(dataset)


@pytest.mark.parametrize("broken", [b"", b"LANC", b"x" * 100, b"\x00" * 12 + b"LANC"])
def test_another_kind_of_file_is_refused(broken: bytes) -> None:
    with pytest.raises(CatalogError, match="verify: none"):
        with_number(broken, detached_number())


def test_a_file_that_was_cut_is_refused(dataset: lance.LanceDataset) -> None:
    whole = manifest(dataset)
    for end in range(len(whole)):
        with pytest.raises(CatalogError):
            with_number(whole[:end], detached_number())


def test_what_it_names(dataset: lance.LanceDataset) -> None:
    folders = [p.name for p in Path(dataset.uri, "_indices").iterdir()]
    other = "00000000-0000-4000-8000-000000000000"
    assert indexes_in(manifest(dataset), [*folders, other, "not an id"]) == set(folders)
    (last,) = transactions_in(manifest(dataset))
    assert Path(dataset.uri, "_transactions", last).exists()
    assert last.startswith("2-")
