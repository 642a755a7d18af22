"""The published JSON Schemas: `schemas/` at the top of the repository, `reconciler/schemas/` once installed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

_CATALOG = "catalog."
_SOURCE = "source."
_DEFINITION = "#/$defs/"
_DEEPEST = 10
OTHER = "other"
"""The definition of a type that is not built in: a plug-in's own schema says what its keys are."""

IsSecret = Callable[[str], bool]


@lru_cache(maxsize=8)
def schema(name: str) -> dict[str, Any]:
    """`manifest` gives `schemas/manifest.schema.json`."""
    text = (files("reconciler") / "schemas" / f"{name}.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@lru_cache(maxsize=1)
def catalog_types() -> tuple[str, ...]:
    """The built-in ones."""
    names = (n.removeprefix(_CATALOG) for n in schema("manifest")["$defs"] if n.startswith(_CATALOG))
    return tuple(name for name in names if name != OTHER)


def options_of(type_: str) -> Mapping[str, Any] | None:
    """The JSON Schema of the keys of a built-in type; None for any other word."""
    found: Mapping[str, Any] | None = schema("manifest")["$defs"].get(_CATALOG + type_) if type_ != OTHER else None
    return found


def secret_keys(options: Mapping[str, Any]) -> IsSecret:
    """Which keys an options schema marks `x-secret`. There is no second list."""
    names = frozenset(k for k, v in _mapping(options, "properties").items() if _marked(v, options))
    patterns = [re.compile(k) for k, v in _mapping(options, "patternProperties").items() if _marked(v, options)]
    return lambda key: key in names or any(p.search(key) for p in patterns)


def _mapping(options: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = options.get(key)
    return found if isinstance(found, Mapping) else {}


def _marked(rule: object, options: Mapping[str, Any], depth: int = 0) -> bool:
    """Also by way of a definition: a plug-in's author may write the mark once for several keys."""
    if not isinstance(rule, Mapping) or depth > _DEEPEST:
        return False
    if rule.get("x-secret"):
        return True
    inner = [r for word in ("allOf", "anyOf", "oneOf") for r in rule.get(word) or ()]
    if str(rule.get("$ref", "")).startswith(_DEFINITION):
        inner.append(_mapping(options, "$defs").get(rule["$ref"].removeprefix(_DEFINITION)))
    return any(_marked(r, options, depth + 1) for r in inner)


@lru_cache(maxsize=32)
def _built_in(type_: str) -> IsSecret:
    return secret_keys(options_of(type_) or {})


def is_secret(key: str, type_: str | None = None) -> bool:
    """True for an option that the schema marks `x-secret` for this built-in type; without a type, for any of them."""
    return any(_built_in(name)(key) for name in (catalog_types() if type_ is None else (type_,)))


@lru_cache(maxsize=1)
def _of_sources() -> tuple[IsSecret, ...]:
    return tuple(secret_keys(rule) for name, rule in schema("manifest")["$defs"].items() if name.startswith(_SOURCE))


def is_secret_of_source(path: Sequence[str | int]) -> bool:
    """True for a place inside `spec.data.source` that the schema of any format marks `x-secret`: `password`,
    `storage.*`, a value of `options`; also inside `views`."""
    if len(path) > 1 and path[0] == "views":
        path = path[2:]
    if not path or not isinstance(path[0], str):
        return False
    return path[0] == "options" or any(secret(path[0]) for secret in _of_sources())
