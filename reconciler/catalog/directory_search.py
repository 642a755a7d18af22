"""Lance datasets below the root of a directory catalog that are none of its tables: in subfolders, or in folders whose
name lacks the suffix. `import` reports them.

The search is bounded in depth, in folders and in requests, and says when it was cut. It never goes into the folder of a
table or of a dataset that it found, and follows no link: what one leads to inside the root is found by its own name.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from reconciler.catalog.directory_capabilities import SUFFIX, hidden
from reconciler.catalog.directory_places import escaped
from reconciler.catalog.storage import Storage
from reconciler.model.errors import CatalogError
from reconciler.model.missed import Unlisted, UnlistedData

DEPTH = 5
"""Levels of folders below the root."""
MOST_FOLDERS = 2000
MOST_FOUND = 1000


def search(storage: Storage, known: Collection[str]) -> Unlisted:
    """`known`: the folders of tables, live or deregistered, below the root, and those that links among them lead to."""
    found: list[UnlistedData] = []
    problems: list[str] = []
    waiting = deque([("", 0)])
    looked = 0
    while waiting:
        path, depth = waiting.popleft()
        try:
            names, whole = storage.subfolders(path)
        except CatalogError as error:
            problems.append(f"{escaped(storage.shown(path))} could not be searched: {error.message}")
            continue
        if not whole:
            problems.append(f"{escaped(storage.shown(path))} has too many entries and was searched in part")
        for name in sorted(names):
            folder = f"{path}/{name}" if path else name
            if folder in known or name.startswith(".") or (not path and hidden(name)):
                continue
            if looked >= MOST_FOLDERS or len(found) >= MOST_FOUND:
                problems.append(f"the search stopped after {looked} folders: there may be more")
                return Unlisted(tuple(found), tuple(problems))
            looked += 1
            shown = escaped(storage.shown(folder))
            try:
                if storage.resolved(folder) != folder:
                    continue
                if storage.is_dataset(folder):
                    found.append(UnlistedData(shown, _kind(folder)))
                elif depth + 1 < DEPTH:
                    waiting.append((folder, depth + 1))
                else:
                    problems.append(f"{shown} is too deep and was not searched")
            except CatalogError as error:
                problems.append(f"{shown} could not be searched: {error.message}")
    return Unlisted(tuple(found), tuple(problems))


def _kind(folder: str) -> str:
    if "/" in folder:
        return "subfolder"
    return "unregistered" if folder.endswith(SUFFIX) else "no_suffix"
