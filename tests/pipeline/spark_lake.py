"""Tables that are verified on every kind of Spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

LARGE = 40


def only_progress(text: str) -> bool:
    """Of stderr: whether there are any such lines depends on how busy the machine is."""
    return all(re.fullmatch(r"starting Spark|(\w+: )?\d+/\d+ tables, .* s", line) for line in text.splitlines())


def rows(count: int = LARGE, repeat: int | None = None) -> pa.Table:
    """`repeat`: the last row has the id of this one, which is in another fragment."""
    ids = list(range(count))
    if repeat is not None:
        ids[-1] = repeat
    return pa.table({"id": ids, "text": [f"row {n}" for n in range(count)], "vector": vectors(count)})


def vectors(count: int) -> pa.Array:
    return pa.array([[n, n + 0.5] for n in range(count)], pa.list_(pa.float32(), 2))


def write(path: Path | str, table: pa.Table, per_file: int = 10, options: dict[str, str] | None = None) -> str:
    lance.write_dataset(table, str(path), max_rows_per_file=per_file, storage_options=options)
    return str(path)


def two_tables(folder: Path) -> list[str]:
    """The same rows, once with a key that stands in two fragments."""
    return [write(folder / "good.lance", rows()), write(folder / "twice.lance", rows(repeat=0))]


def expected(readings: list[dict[str, Any]]) -> None:
    good, twice = readings
    none, one = {"bad": 0}, {"bad": 1}
    assert (good["rows"], twice["rows"]) == (LARGE, LARGE)
    assert good["error"] is None
    assert good["found"] == {"notNull:id": none, "unique:id": none}
    assert twice["found"] == {"notNull:id": none, "unique:id": one}
    assert good["checksum"] != twice["checksum"]
