"""What a manifest says about a new column besides its type: its comment and metadata, and those of the fields in it.

A reviewer has to see them: they are what a policy asks for, and what others act on (`pii`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from reconciler.model.arrow import ArrowType, Field, ListOf, MapOf, Struct


class Note(NamedTuple):
    path: str
    key: str
    """`comment`, or a key of the metadata: as changes of them are told."""
    value: str


def notes_of(column: Field, path: str = "") -> Iterator[Note]:
    """In the order of the fields; of each the comment first."""
    here = f"{path}{column.name}"
    if column.comment is not None:
        yield Note(here, "comment", column.comment)
    yield from (Note(here, key, value) for key, value in column.metadata.items())
    yield from _inside(column.type, f"{here}.")


def _inside(type_: ArrowType, path: str) -> Iterator[Note]:
    """Maps too: what is in them cannot be changed later, but it is written once."""
    match type_:
        case Struct(fields):
            for child in fields:
                yield from notes_of(child, path)
        case ListOf():
            yield from _inside(type_.item, f"{path}item.")
        case MapOf():
            yield from _inside(type_.key, f"{path}key.")
            yield from _inside(type_.value, f"{path}value.")
