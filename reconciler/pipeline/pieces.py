"""A source in pieces that can be read side by side: files, row groups of a large Parquet file, fragments of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.pipeline import file_reader
from reconciler.pipeline.sources import Listing, SourceFile

LARGE = 64 * 2**20
"""Bytes: a Parquet file with more than this is read by several tasks."""


@dataclass(frozen=True)
class Piece:
    file: SourceFile
    size: int
    part: Any = None
    """Row groups, or a fragment; None for the whole."""

    def to_unit(self) -> dict[str, Any]:
        return {"uri": self.file.uri, "size": self.file.size, "stamp": self.file.stamp, "part": self.part}


def pieces_of(listing: Listing, source: Mapping[str, Any], storage: Mapping[str, str]) -> list[Piece]:
    """In the order of the rows."""
    if source["format"] == "lance":
        return _fragments(listing, storage)
    return [piece for file in listing.files for piece in _of_file(file, source, storage)]


def _of_file(file: SourceFile, source: Mapping[str, Any], storage: Mapping[str, str]) -> list[Piece]:
    if source["format"] != "parquet" or file.size <= LARGE:
        return [Piece(file, file.size)]
    pieces: list[Piece] = []
    numbers: list[int] = []
    size = 0
    for number, bytes_ in enumerate(file_reader.row_group_sizes(file.uri, storage, file.size)):
        numbers.append(number)
        size += bytes_
        if size >= LARGE:
            pieces.append(Piece(file, size, list(numbers)))
            numbers, size = [], 0
    return [*pieces, *([Piece(file, size, list(numbers))] if numbers else [])]


def _fragments(listing: Listing, storage: Mapping[str, str]) -> list[Piece]:
    import lance

    (table,) = listing.files
    dataset = lance.dataset(table.uri, version=int(table.stamp), storage_options=dict(storage) or None)
    pieces: list[Piece] = []
    for fragment in dataset.get_fragments():
        known = [f.file_size_bytes or 0 for f in fragment.metadata.files]
        size = sum(known) if all(known) else int(fragment.metadata.physical_rows) * 100
        pieces.append(Piece(table, size, fragment.fragment_id))
    return pieces
