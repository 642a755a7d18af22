"""Names that look alike and differ: one accented letter is one character in one, letter and accent in the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.core.look_alikes import composed
from reconciler.manifest.problem import Path, Problem
from reconciler.manifest.registry import Entry
from reconciler.model.ident import Ident, dotted

_HINT = "write both alike; the composed form (NFC) is what most keyboards and editors write"


def check_ids(entries: Iterable[Entry]) -> None:
    """Of the objects of one catalog, the namespaces that they are in included. A disk may even take both for one
    folder. An object that is to go is not told: its successor may be the one that is spelled well."""
    stay = [e for e in entries if not e.declared.absent]
    if all(name.isascii() for e in stay for name in e.declared.ident):
        return
    first: dict[Ident, tuple[Ident, Entry]] = {}
    for entry in sorted(stay, key=lambda e: (e.declared.ident, e.kind)):
        ident = entry.declared.ident
        for length in range(1, len(ident) + 1):
            name = ident[:length]
            other, where = first.setdefault(tuple(map(composed, name)), (name, entry))
            if other != name:
                message = (
                    f"{dotted(name)} ({dotted(name)!a}) looks like {dotted(other)!a} of "
                    f"{where.declared.source}, and is another name"
                )
                entry.warning("M438", ("metadata", "id"), message, _HINT)
                break


def column_look_alikes(names: Sequence[str], path: Path) -> list[Problem]:
    """Of the columns of one level."""
    if all(map(str.isascii, names)):
        return []
    first: dict[str, str] = {}
    found = []
    for index, name in enumerate(names):
        other = first.setdefault(composed(name), name)
        if other != name:
            message = f"the column {name} ({name!a}) looks like {other!a}, and is another one"
            found.append(Problem("M438", (*path, index, "name"), message, _HINT, severity="warning"))
    return found
