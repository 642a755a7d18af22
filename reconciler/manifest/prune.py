"""A refused document without the parts that were refused, when these stand alone: so that one unknown key or one
unquoted value does not hide what else is wrong."""

from __future__ import annotations

import copy
from itertools import islice
from typing import Any

from reconciler.manifest.schema_check import MAX_ERRORS, accepts, validator

_MAPS = frozenset({"properties", "config", "schemaMetadata", "metadata"})


def without_refused(value: Any) -> Any | None:
    """None when something was refused that the rest depends on: then nothing more can be said."""
    pruned = copy.deepcopy(value)
    for error in islice(validator().iter_errors(value), MAX_ERRORS):
        path = tuple(error.instance_path)
        if error.kind.name == "additionalProperties":
            for key in error.kind.unexpected:
                _remove(pruned, (*path, key))
        elif error.kind.name == "type" and len(path) >= 3 and path[-2] in _MAPS and path[0] == "spec":
            _remove(pruned, path)
        else:
            return None
    return pruned if accepts(pruned) else None


def _remove(value: Any, path: tuple[Any, ...]) -> None:
    for part in path[:-1]:
        value = value[part]
    value.pop(path[-1], None)
