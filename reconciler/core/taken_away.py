"""What others took away of what we had set on an object of ours.

Manifests made from what is live do not have it any more, and our record still does: were it set again by others, we
would remove it. So such manifests leave it to others by name (`ignoreDifferences`), and then nothing has to be noted
at once: see notes.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.core.applied import entries_left_to_others, ignore_path, live_entries, named
from reconciler.core.diff_properties import left_to_others, with_description
from reconciler.core.fields import find
from reconciler.model.state import DESCRIPTION_KEY, DatasetState, NamespaceState, TableState


@dataclass(frozen=True, slots=True)
class TakenAway:
    name: str
    """For people."""
    path: str
    """Of `ignoreDifferences`."""
    entry: str
    """Of the record: a property's key, or what `applied.py` has for a dataset."""
    of_data: bool = False
    ambiguous: bool = False
    """The path also means a column that is there."""

    def is_left(self, ignored: tuple[str, ...]) -> bool:
        """To others already."""
        rule = entries_left_to_others(ignored) if self.of_data else left_to_others(with_description(ignored))
        return rule(self.entry)


def taken_away(us: str, live: NamespaceState | TableState) -> list[TakenAway]:
    if live.marks.owner != us:
        return []
    gone = [key for key in live.marks.applied if key not in live.properties]
    out = [TakenAway(_line(f"property {key}"), _property_path(key), key) for key in gone]
    data = live.dataset if isinstance(live, TableState) else None
    return [*out, *_of_data(data)] if isinstance(data, DatasetState) and data.owner in (None, us) else out


def given_over(us: str, live: NamespaceState | TableState, ignored: tuple[str, ...]) -> list[str]:
    """What is live and in our record, and left to others: the next plan takes it off the record. For people."""
    if live.marks.owner != us:
        return []
    left = left_to_others(with_description(ignored))
    out = [f"property {key}" for key in live.marks.applied if key in live.properties and left(key)]
    data = live.dataset if isinstance(live, TableState) else None
    if isinstance(data, DatasetState) and data.owner in (None, us):
        noted, there = entries_left_to_others(ignored), live_entries(data)
        out += named(entry for entry in data.applied if entry in there and noted(entry))
    return [_line(text) for text in out]


def lost_our_mark(us: str, live: NamespaceState | TableState) -> bool:
    """The data of a table of ours says no longer whose it is."""
    data = live.dataset if isinstance(live, TableState) else None
    return live.marks.owner == us and isinstance(data, DatasetState) and data.owner is None


def _property_path(key: str) -> str:
    return "description" if key == DESCRIPTION_KEY else f"properties.{key}"


def _of_data(data: DatasetState) -> Iterator[TakenAway]:
    there = live_entries(data)
    for entry in data.applied:
        path = ignore_path(entry)
        if entry not in there and path is not None:
            is_column = ".metadata." in path and find(data.fields, path.removeprefix("schema.")) is not None
            yield TakenAway(_line(named([entry])[0]), path, entry, True, is_column)


def _line(text: str) -> str:
    """Keys are somebody else's: on one line, and harmless on a terminal."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
