"""What a plain (unquoted) YAML 1.1 scalar means.

PyYAML's own resolver patterns decide, so a scalar that any YAML 1.1 tool would not read as a string is never taken for
one here. Dates, `.inf`, octal, hexadecimal, base 60 and numbers beyond 2**53 have no place in a manifest: they become
None, which no schema rule accepts, and the diagnostic shows what was written.
"""

from __future__ import annotations

import re
from typing import Final

import yaml

Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]
ScalarValue = None | bool | int | float | str

STR_TAG: Final = "tag:yaml.org,2002:str"
MERGE_TAG: Final = "tag:yaml.org,2002:merge"
_RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers
_TRUE = frozenset(["yes", "true", "on"])
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]{0,15})")
_DIGITS = re.compile(r"[-+]?[1-9][0-9]*")
_FLOAT = re.compile(r"[-+]?[0-9]+\.[0-9]*([eE][-+][0-9]+)?")
_CACHE_LIMIT = 20_000
LARGEST: Final = 2**53
"""The largest whole number that every JSON tool reads as it is written."""

_cache: dict[str, ScalarValue] = {}


def tag_of(text: str) -> str:
    """The YAML 1.1 tag of a plain scalar."""
    for tag, pattern in _RESOLVERS.get(text[:1], ()):
        if pattern.match(text):
            return str(tag)
    return STR_TAG


def resolve(text: str) -> ScalarValue:
    """The value of a plain scalar. Cached where patterns have to decide, because manifests repeat their words."""
    if text[:1] not in _RESOLVERS:
        return text
    if text in _cache:
        return _cache[text]
    value = _resolve(text)
    if len(text) < 200:
        if len(_cache) >= _CACHE_LIMIT:  # A file of numbers must not keep all later words out.
            _cache.clear()
        _cache[text] = value
    return value


def _resolve(text: str) -> ScalarValue:
    match tag_of(text).rpartition(":")[2]:
        case "str":
            return text
        case "bool":
            return text.lower() in _TRUE
        case "int" if _DECIMAL.fullmatch(text) and abs(int(text)) <= LARGEST:
            return int(text)
        case "float" if len(text) < 40 and _FLOAT.fullmatch(text):
            value = float(text)
            return value if abs(value) < 1e300 else None
        case _:
            return None


def describe(text: str) -> str:
    """In words, what YAML takes this plain scalar for."""
    words = {
        "bool": "a boolean",
        "int": "a number",
        "float": "a number",
        "null": "nothing (null)",
        "timestamp": "a date",
        "merge": "a merge key",
        "value": "a value key",
    }
    return words.get(tag_of(text).rpartition(":")[2], "a string")


def is_too_large(text: str) -> bool:
    """True for a whole number in decimal digits that is too large to be one here."""
    return resolve(text) is None and _DIGITS.fullmatch(text) is not None


def quoted(text: str) -> str:
    """The double-quoted form to show in a hint."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
