"""What a `${env:}` or `${file:}` became, against the rule that a written value has to keep too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from reconciler.manifest.problem import ManifestError, Path, Problem
from reconciler.manifest.schema_files import schema as published
from reconciler.manifest.variables import Expanded

_REF = "#/$defs/"
_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
_PLACES = frozenset({"path", "root", "uri", "endpoint", "api_path", "oauth2_server_uri", "warehouse", "prefix",
                     "catalog", "catalog_id"})  # fmt: skip
"""Keys of a Catalog that say where it is."""


def empty_parts(path: Path, expanded: Expanded) -> list[Problem]:
    """A place without one of its parts is another place: `${env:BUCKET}/lake` must not become `/lake`."""
    if path[:1] != ("spec",) or len(path) != 2 or path[1] not in _PLACES:
        return []
    hint = "it is part of where the catalog is: give it a value"
    return [
        Problem("M210", path, f"`spec.{path[1]}`: {name} is empty, or only white space", hint, offset=offset)
        for offset, name in expanded.empty
    ]


def check_resolved(key: str, text: str, schema: Mapping[str, Any]) -> None:
    """Raises ManifestError. The value may be a secret in the wrong place, so it is never repeated."""
    rule = _rule(key, schema)
    types = rule.get("type")
    types = [types] if isinstance(types, str) else types or []
    if "integer" in types:
        _check_number(key, text, rule)
    elif "boolean" in types:
        if text.strip().lower() not in ("true", "false"):
            raise ManifestError("M205", f"`spec.{key}`: the value of the reference is neither true nor false")
    elif "string" in types:
        if not text and rule.get("minLength"):
            raise ManifestError("M210", f"`spec.{key}`: the value of the reference is empty")
        pattern = rule.get("pattern")
        if pattern and not re.search(pattern, text):
            raise ManifestError("M207", f"`spec.{key}`: {rule.get('x-message', 'the value has a form not allowed')}")


def _check_number(key: str, text: str, rule: Mapping[str, Any]) -> None:
    low, high = rule.get("minimum"), rule.get("maximum")
    if not _WHOLE.fullmatch(text.strip()):
        raise ManifestError("M205", f"`spec.{key}`: the value of the reference is not a whole number")
    value = int(text)
    if (low is not None and value < low) or (high is not None and value > high):
        limits = " ".join(f"{word} {n}" for word, n in (("from", low), ("to", high)) if n is not None)
        raise ManifestError("M208", f"`spec.{key}`: the value of the reference is out of range", limits)


def _rule(key: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    rule = dict(schema.get("properties", {})).get(key)
    if isinstance(rule, Mapping) and str(rule.get("$ref", "")).startswith(_REF):
        rule = published("manifest")["$defs"].get(rule["$ref"].removeprefix(_REF))
    return rule if isinstance(rule, Mapping) else {}
