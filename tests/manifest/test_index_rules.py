"""Our rules on which index fits which column are those of the pylance that is installed, in both directions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.catalog.arrow_convert import to_arrow_type
from reconciler.manifest.index_rules import unsuitable
from reconciler.model.arrow import SCALARS, parse_type
from reconciler.model.state import Index

SCALAR_INDEXES = ["btree", "bitmap", "zonemap", "bloomfilter", "ngram", "label_list", "inverted"]
TYPES = [
    *sorted(SCALARS),
    *("timestamp[s]", "timestamp[us, tz=UTC]", "time32[s]", "time64[ns]", "duration[ms]"),
    *("decimal128(10, 2)", "decimal256(50, 2)", "fixed_size_binary[4]"),
    *("list<string>", "large_list<large_string>", "list<int32>", "list<bool>", "list<decimal128(10, 2)>"),
    *("list<list<string>>", "list<struct<a: int32>>", "list<map<string, int8>>", "list<dictionary<int32, string>>"),
    *("fixed_size_list<float32>[4]", "struct<a: int32>", "map<string, int32>"),
    *("dictionary<int32, string>", "dictionary<int8, int64>"),
]


def refused(dataset: Any, kind: str) -> bool:
    try:
        dataset.create_scalar_index("c", kind.upper(), name=kind, replace=False)
    except (ValueError, TypeError, OSError, RuntimeError, NotImplementedError):
        return True
    dataset.describe_indices()
    dataset.drop_index(kind)
    return False


def compare(folder: Path, text: str, rows: int) -> None:
    import lance
    import pyarrow as pa

    type_ = parse_type(text)
    field = pa.field("c", to_arrow_type(type_))
    array = pa.array([None] * rows, field.type) if text != "blob" else lance.blob_array([b"x"] * rows)
    uri = str(folder / "t.lance")
    lance.write_dataset(pa.table([array], schema=pa.schema([field])), uri, data_storage_version="2.2")
    found = {kind: refused(lance.dataset(uri), kind) for kind in SCALAR_INDEXES}
    ours = {kind: unsuitable(Index(kind, "c", kind), type_) is not None for kind in SCALAR_INDEXES}
    assert ours == found


@pytest.mark.parametrize("text", TYPES)
def test_empty_table(tmp_path: Path, text: str) -> None:
    compare(tmp_path, text, 0)


@pytest.mark.slow
@pytest.mark.parametrize("text", TYPES)
def test_filled_table(tmp_path: Path, text: str) -> None:
    compare(tmp_path, text, 5)
