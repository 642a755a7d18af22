"""The published JSON Schemas: `schemas/` at the top of the repository, `reconciler/schemas/` once installed."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from importlib.resources import files
from typing import Any


@lru_cache(maxsize=8)
def schema(name: str) -> dict[str, Any]:
    """`manifest` gives `schemas/manifest.schema.json`."""
    text = (files("reconciler") / "schemas" / f"{name}.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@lru_cache(maxsize=1)
def catalog_types() -> tuple[str, ...]:
    kinds: list[str] = schema("manifest")["$defs"]["Catalog"]["properties"]["spec"]["properties"]["type"]["enum"]
    return tuple(kinds)


@lru_cache(maxsize=1)
def _secret_rules() -> tuple[frozenset[str], tuple[re.Pattern[str], ...]]:
    names: set[str] = set()
    patterns: list[re.Pattern[str]] = []
    for name, definition in schema("manifest")["$defs"].items():
        if not name.startswith("catalog."):
            continue
        names.update(k for k, v in definition.get("properties", {}).items() if v.get("x-secret"))
        patterns += [re.compile(k) for k, v in definition.get("patternProperties", {}).items() if v.get("x-secret")]
    return frozenset(names), tuple(patterns)


def is_secret(key: str) -> bool:
    """True for a catalog option that the schema marks `x-secret`, in any catalog type. There is no second list."""
    names, patterns = _secret_rules()
    return key in names or any(p.search(key) for p in patterns)
