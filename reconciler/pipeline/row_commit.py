"""Commits of rows that Lance refuses when another writer has added rows since the pinned version.

Lance lets an Append, and an Update that removes all fragments, pass over every Append and insert of others: their rows
would end up beside ours. `max_retries=0` does not help, but for an Overwrite, which would drop the indexes. What Lance
does refuse is a commit in which two fragments have one number. New fragments get theirs when they are committed, unless
they have one already. So ours are numbered before: they are the next ones after the pinned version, and who adds rows,
updates some or joins fragments in between takes these numbers first. Where there never was a fragment, the next number
would be 0, which means "give it one": there the rows come as a Merge, which Lance refuses after every change of rows.

What still passes takes rows away from the fragments that were there, or keeps them all: a delete, an index, a setting.
That gives the same table as it does after our commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconciler.catalog.lance_rows import highest_fragment


def adding(dataset: Any, rows: Sequence[Any]) -> Any:
    """The operation that adds these fragments to the rows of the dataset, and to no others."""
    from lance import LanceOperation

    highest = highest_fragment(dataset)
    if highest is None:
        return LanceOperation.Merge(_unnumbered(rows), dataset.lance_schema, preserves_nullability=True)
    return LanceOperation.Append(_numbered(rows, highest))


def beside(rows: Sequence[Any]) -> Any:
    """The operation that adds these fragments to whatever rows there are."""
    from lance import LanceOperation

    return LanceOperation.Append(_unnumbered(rows))


def replacing(dataset: Any, rows: Sequence[Any]) -> Any:
    """The operation that puts these fragments in the place of the rows of the dataset, and of no others."""
    from lance import LanceOperation

    gone = [f.fragment_id for f in dataset.get_fragments()]
    if not gone:
        return adding(dataset, rows)
    highest = highest_fragment(dataset)
    assert highest is not None
    return LanceOperation.Update(removed_fragment_ids=gone, new_fragments=_numbered(rows, highest))


def _numbered(rows: Sequence[Any], highest: int) -> list[Any]:
    for number, fragment in enumerate(rows, highest + 1):
        fragment.id = number
    return list(rows)


def _unnumbered(rows: Sequence[Any]) -> list[Any]:
    for fragment in rows:
        fragment.id = 0
    return list(rows)
