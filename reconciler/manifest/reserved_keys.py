"""Keys that a manifest cannot set, because somebody reads a meaning into them: we, Arrow, or Lance."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.manifest.problem import Path, Problem
from reconciler.model.state import RESERVED_PREFIX

_INTERPRETED = (
    ("lance-encoding:blob", True, "Lance reads it as a blob column", "write `type: blob` instead"),
    ("ARROW:extension:", False, "Arrow reads it as an extension type", "remove it: `type` is the storage type"),
    (
        "lance-schema:",
        False,
        "Lance reads it as a rule about the table",
        "remove it: it is set by what writes the data",
    ),
)
"""Key or prefix, whether it is the whole key, what happens (measured: columns that cannot be read or written), hint."""


def check_reserved(keys: Iterable[str], path: Path, problems: list[Problem]) -> None:
    for key in keys:
        if key.startswith(RESERVED_PREFIX):
            message = f"keys that begin with {RESERVED_PREFIX!r} are our own marks"
            problems.append(Problem("M430", (*path, key), message, "choose another key", at_key=True))


def check_column_metadata(keys: Iterable[str], path: Path, problems: list[Problem]) -> None:
    """`path` is that of the column's `metadata`. Other `lance-encoding:` keys only say how the data is packed."""
    check_reserved(keys, path, problems)
    for key in keys:
        rule = _interpreted(key)
        if rule is not None:
            message = f"the metadata key {key!r} cannot be set: {rule[0]}"
            problems.append(Problem("M435", (*path, key), message, rule[1], at_key=True))


def settable(key: str) -> bool:
    """False for a key of a live column that a manifest cannot say, so that an import leaves it out."""
    return not key.startswith(RESERVED_PREFIX) and _interpreted(key) is None


def _interpreted(key: str) -> tuple[str, str] | None:
    for text, whole, why, hint in _INTERPRETED:
        if key == text if whole else key.startswith(text):
            return why, hint
    return None
