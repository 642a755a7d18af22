"""Which document is meant: kind and identity. An overlay finds what it changes by it, and two versions of a file are
compared by it."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.manifest.yaml_scalars import Value
from reconciler.model.ident import dotted

Key = tuple[str, ...]
"""Kind, then the catalog and the identifier of an object, or the name."""
OBJECTS = frozenset({"Namespace", "Table"})
DEFAULTS, VARIABLES = "Defaults", "Variables"


def identity(value: Value, expand: Callable[[str], str] = str) -> Key | None:
    """None for a document that does not say what it is about. `expand` replaces references."""
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        return None
    kind = str(value["kind"])
    metadata = value.get("metadata") or {}
    if not isinstance(metadata, dict):
        return None
    name, catalog, ident = metadata.get("name"), metadata.get("catalog"), metadata.get("id")
    if kind in OBJECTS:
        if not isinstance(catalog, str) or not isinstance(ident, list) or not ident:
            return None
        if not all(isinstance(part, str) for part in ident):
            return None
        return (kind, expand(catalog), *(expand(str(part)) for part in ident))
    if kind == "Catalog" and not isinstance(name, str):
        return None
    if kind == DEFAULTS and not isinstance(catalog, str):
        return None
    parts = (catalog, name) if kind == DEFAULTS else (name,)
    return (kind, *(expand(part) if isinstance(part, str) else "" for part in parts))


def shown(key: Key) -> str:
    """`table lake:vision.images`, `catalog lake`, `defaults lake`."""
    kind = key[0].lower()
    if key[0] in OBJECTS:
        return f"{kind} {key[1]}:{dotted(key[2:])}"
    return " ".join([kind, *(part for part in key[1:] if part)])
