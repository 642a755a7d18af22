"""What others took away of what we had set is left to them in the files, by name. That is told, once for all objects;
and so is where it could not be written, because there the next plan has a step."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from reconciler.core.taken_away import TakenAway
from reconciler.core.text import listing
from reconciler.manifest.import_target import IGNORED
from reconciler.manifest.variables import escaped
from reconciler.manifest.yaml_edit import Append, Edit, Remove
from reconciler.model.ident import ObjectKey


def written_paths(edits: Sequence[Edit]) -> list[str]:
    """What `ignoreDifferences` has or gets by the edits, as it is written."""
    lists = [
        e.values if isinstance(e, Append) else e.value for e in edits if e.path == IGNORED and not isinstance(e, Remove)
    ]
    return [path for list_ in lists for path in list_]


def without_removed(paths: tuple[str, ...], edits: Sequence[Edit]) -> tuple[tuple[str, ...], list[str]]:
    """The paths of `ignoreDifferences` that stay, and those that the edits take out."""
    gone = {e.path[-1] for e in edits if isinstance(e, Remove) and e.path[:-1] == IGNORED}
    stays = tuple(path for number, path in enumerate(paths) if number not in gone)
    return stays, [path for number, path in enumerate(paths) if number in gone]


@dataclass
class TakenAwayTold:
    _left: dict[ObjectKey, list[str]] = field(default_factory=dict)
    _noted: dict[ObjectKey, list[str]] = field(default_factory=dict)

    def add(self, key: ObjectKey, gone: Sequence[TakenAway], written: Collection[str], known: tuple[str, ...]) -> int:
        """`written`: the paths that are new in `ignoreDifferences`; `known`: those of which nothing is to be told. How
        many the next plan has a step for."""
        left = [t.name for t in gone if escaped(t.path) in written]
        noted = [t.name for t in gone if escaped(t.path) not in written and not t.is_left(known)]
        if left:
            self._left[key] = left
        if noted:
            self._noted[key] = noted
        return len(noted)

    def texts(self) -> Iterator[str]:
        if self._left:
            yield (
                f"others took away what we had set: {_told(self._left)}; `ignoreDifferences` leaves it to them now: "
                "take a path out of it to look after that again"
            )
        if self._noted:
            yield (
                f"others took away what we had set: {_told(self._noted)}; `ignoreDifferences` could not be given that, "
                "and the next plan has a step that writes our own notes"
            )


def _told(found: dict[ObjectKey, list[str]]) -> str:
    (key, names), *more = found.items()
    return f"{listing(names)} of {key}" + (f", and of {len(more)} more" if more else "")
