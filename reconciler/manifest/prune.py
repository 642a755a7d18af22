"""A refused document without the parts that were refused, when these stand alone: so that one unknown key or one
unquoted value does not hide what else is wrong."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from itertools import islice
from typing import Any

from reconciler.manifest.identity import OBJECTS
from reconciler.manifest.problem import Path
from reconciler.manifest.schema_check import MAX_ERRORS, accepts, validator

_MAPS = frozenset({"properties", "config", "schemaMetadata", "metadata"})
_ALONE = {"description", "properties", "protect", "renamedFrom", "ignoreDifferences", "allow", "waivers"} | {
    "schemaMode", "schemaMetadata", "config", "indexes", "checks", "data", "migration", "maintenance"
}  # fmt: skip
"""Keys of a namespace's or table's spec of which nothing else is wrong when they are not there."""
_COLUMNS = frozenset({"schema", "fields"})
_NEEDED = frozenset({"name", "type", "fields", "default", "backfill"})


@dataclass(slots=True)
class Rest:
    value: Any
    unknown: frozenset[Path]
    """Places that got a value of no meaning, because their own was refused: nothing more is said about them."""


def without_refused(value: Any) -> Rest | None:
    """None when something was refused that the rest depends on: then nothing more can be said."""
    pruned = copy.deepcopy(value)
    unknown: set[Path] = set()
    refused: set[Path] = set()
    for error in islice(validator().iter_errors(value), MAX_ERRORS):
        path = tuple(error.instance_path)
        kind = error.kind.name
        if kind == "additionalProperties":
            for key in error.kind.unexpected:
                _remove(pruned, (*path, key))
        elif kind == "type" and _optional(path):
            _remove(pruned, path)
        elif kind == "type" and path[-1:] == ("type",) and _in_column(path):
            unknown.add(path)
        elif kind == "required" and error.kind.property == "type" and _in_column((*path, "type")):
            unknown.add((*path, "type"))
        elif path[:1] == ("spec",) and path[1:2] and path[1] in _ALONE and value.get("kind") in OBJECTS:
            refused.add(path[:2])
        else:
            return None
    for path in unknown:
        _put(pruned, path, "?")
    for path in refused:
        _remove(pruned, path)
    return Rest(pruned, frozenset(unknown | refused)) if accepts(pruned) else None


def _optional(path: Path) -> bool:
    """A value of a mapping of strings, or a key that a column can do without."""
    if path[:1] != ("spec",) or len(path) < 3:
        return False
    return path[-2] in _MAPS or (_in_column(path) and path[-1] not in _NEEDED)


def _in_column(path: Path) -> bool:
    """The place of a key of a column, or of a nested field."""
    return len(path) >= 4 and path[:2] == ("spec", "schema") and path[-3] in _COLUMNS and isinstance(path[-2], int)


def _remove(value: Any, path: Path) -> None:
    _parent(value, path).pop(path[-1], None)


def _put(value: Any, path: Path, new: str) -> None:
    _parent(value, path)[path[-1]] = new


def _parent(value: Any, path: Path) -> Any:
    for part in path[:-1]:
        value = value[part]
    return value
