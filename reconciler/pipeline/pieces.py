"""A source in pieces that can be read side by side: files, row groups of a large Parquet file, fragments of a table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.model.errors import CatalogError, Code
from reconciler.pipeline import file_reader
from reconciler.pipeline.file_reader import FileError, is_local, local_path
from reconciler.pipeline.sources import Listing, SourceFile

LARGE = 64 * 2**20
"""Bytes: a Parquet file with more than this is read by several tasks."""


@dataclass(frozen=True)
class Piece:
    uri: str
    size: int
    file_size: int = 0
    stamp: str = ""
    """Of the file; of a Lance table, its version."""
    part: Any = None
    """Row groups, or a fragment; None for the whole."""
    inode: int | None = None

    def to_unit(self) -> dict[str, Any]:
        listed = {"size": self.file_size, "stamp": self.stamp, "inode": self.inode}
        return {"uri": self.uri, **listed, "part": self.part}


def pieces_of(listing: Listing, source: Mapping[str, Any], storage: Mapping[str, str]) -> list[Piece]:
    """In the order of the rows. Raises CatalogError when a file is not as it was listed."""
    if source["format"] == "lance":
        return _fragments(str(source["path"]), listing, storage)
    try:
        return [piece for file in listing.files for piece in _of_file(file, source, storage)]
    except FileError as error:
        raise CatalogError(Code.INVALID_INPUT, f"the source cannot be read: {error}") from error


def _of_file(file: SourceFile, source: Mapping[str, Any], storage: Mapping[str, str]) -> list[Piece]:
    if source["format"] != "parquet" or file.size <= LARGE:
        return [Piece(file.uri, file.size, file.size, file.stamp, inode=file.inode)]
    pieces: list[Piece] = []
    numbers: list[int] = []
    size = 0
    for number, bytes_ in enumerate(file_reader.row_group_sizes(file.uri, storage, file.listed)):
        numbers.append(number)
        size += bytes_
        if size >= LARGE:
            pieces.append(Piece(file.uri, size, file.size, file.stamp, list(numbers), file.inode))
            numbers, size = [], 0
    if numbers:
        pieces.append(Piece(file.uri, size, file.size, file.stamp, list(numbers), file.inode))
    return pieces


def _fragments(uri: str, listing: Listing, storage: Mapping[str, str]) -> list[Piece]:
    import lance

    uri = os.path.abspath(local_path(uri)) if is_local(uri) else uri  # Executors have folders of their own.
    dataset = lance.dataset(uri, version=listing.version, storage_options=dict(storage) or None)
    pieces: list[Piece] = []
    for fragment in dataset.get_fragments():
        known = [f.file_size_bytes or 0 for f in fragment.metadata.files]
        size = sum(known) if all(known) else int(fragment.metadata.physical_rows) * 100
        pieces.append(Piece(uri, size, stamp=str(dataset.version), part=fragment.fragment_id))
    return pieces
