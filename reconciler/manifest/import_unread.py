"""Parameters that cannot be read from a live index: a file keeps what it says of them, and a new one leaves them out.
That is reported, once for all objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reconciler.core.text import plural
from reconciler.model.ident import ObjectKey
from reconciler.model.state import DatasetState, Index, NamespaceState, TableState


@dataclass
class UnreadTold:
    _first: str = ""
    _count: int = 0

    def __len__(self) -> int:
        return self._count

    def add(self, key: ObjectKey, said: Sequence[Index], live: NamespaceState | TableState) -> None:
        """`said`: as the files have them after this import."""
        dataset = live.dataset if isinstance(live, TableState) else None
        for index, name in _unread(said, dataset) if isinstance(dataset, DatasetState) else ():
            self._first = self._first or f"{name} of the index {index} of {key}"
            self._count += 1

    def text(self) -> str:
        more = f" (nor can {plural(self._count - 1, 'other parameter')})" if self._count > 1 else ""
        return (
            f"{self._first} cannot be read from the live index{more}: files keep what they say of it, and new ones "
            "leave it out"
        )


def _unread(said: Sequence[Index], live: DatasetState) -> Iterator[tuple[str, str]]:
    there = {i.name: i for i in live.indexes}
    for index in said:
        found = there.get(index.name)
        if found is not None and found.type == index.type:
            unknown = {*found.unread, *(n for n in index.params if n not in found.params)}
            yield from ((index.name, name) for name in sorted(unknown))
