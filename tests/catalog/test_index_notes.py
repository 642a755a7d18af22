"""What is noted about an index, when another run is at work on the same one."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from reconciler.catalog.base import WriteContext
from reconciler.catalog.lance_dataset import Datasets
from reconciler.catalog.lance_index import INDEXES_KEY, load_record
from reconciler.catalog.lance_write import DatasetChange, apply_to_dataset
from reconciler.model.change import CreateIndex, DropIndex
from reconciler.model.state import Index

T = ("t",)
OLD, NEW = Index("id_idx", "id", "btree"), Index("id_idx", "id", "zonemap")


def write(uri: str, change: DatasetChange) -> None:
    apply_to_dataset(Datasets(), uri, change, WriteContext("sha256:p", "s1"))


def noted(uri: str) -> dict[str, Index]:
    return load_record(lance.dataset(uri).metadata.get(INDEXES_KEY))


@pytest.fixture
def uri(tmp_path: Path) -> str:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"id": [1, 2]}), uri)
    write(uri, CreateIndex(T, OLD))
    return uri


def test_a_dropped_index_is_forgotten(uri: str) -> None:
    write(uri, CreateIndex(T, Index("other", "id", "bitmap")))
    write(uri, DropIndex(T, "id_idx"))
    assert [*noted(uri)] == ["other"]


def test_what_another_run_notes_meanwhile_stays(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It found the index dropped, and makes it anew before this run has taken its own note back."""
    drop = lance.LanceDataset.drop_index

    def slow(self: lance.LanceDataset, name: str) -> None:
        drop(self, name)
        write(uri, CreateIndex(T, NEW))

    monkeypatch.setattr(lance.LanceDataset, "drop_index", slow)
    write(uri, DropIndex(T, "id_idx"))
    assert noted(uri) == {"id_idx": NEW}
    assert [i.name for i in lance.dataset(uri).describe_indices()] == ["id_idx"]
