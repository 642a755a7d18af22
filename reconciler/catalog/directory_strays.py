"""Table folders that no row of `__manifest` names any more: somebody deregistered the table without us.

Such a folder is called `<8 hex digits>_<object id>`, by pylance and by us. When its dataset carries an owner mark it is
the data of that table, and the table is attached to it again instead of being made anew, empty, beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_FOLDER = re.compile(r"[0-9a-f]{8}_(.+)", re.DOTALL)
_UNSAFE = re.compile(r"[^A-Za-z0-9._$-]")


def folder_name(random: str, object_id: str) -> str:
    """The folder of a new table. Characters that stores or URIs treat specially are left out of it."""
    return f"{random[:8]}_{_UNSAFE.sub('_', object_id)}"


def is_made(folder: str) -> bool:
    """Named as a table of `__manifest` is: of a live one, or of one that was taken out and whose data is kept."""
    return _FOLDER.fullmatch(folder) is not None


def strays(folders: Iterable[str], used: set[str | None]) -> Mapping[str, list[str]]:
    """The folders that no table has, by the object id in their name."""
    found: dict[str, list[str]] = {}
    for folder in folders:
        match = _FOLDER.fullmatch(folder)
        if match is not None and folder not in used:
            found.setdefault(match.group(1), []).append(folder)
    return found


def stray_folders(found: Mapping[str, list[str]], object_id: str) -> list[str]:
    """Those that may be the data of this table, as pylance and as we would have named them."""
    return sorted({*found.get(object_id, ()), *found.get(_UNSAFE.sub("_", object_id), ())})
