"""`management.expect`: is this the catalog that the manifests mean? Asked before anything in it is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from reconciler.model.desired import NOT_OPTIONS


class Unmet(NamedTuple):
    what: str
    message: str


def possible(schema: Mapping[str, Any], is_secret: Callable[[str], bool], told: Collection[str]) -> list[str]:
    """What may be expected: the options that are no secret, and what the catalog says of itself."""
    named = (key for key in schema.get("properties", {}) if not is_secret(key))
    return sorted({*named, *told} - {*NOT_OPTIONS})


def unmet(expect: Mapping[str, str], found: Mapping[str, str]) -> list[Unmet]:
    """`found`: what is there, of what could be looked at so far."""
    out = []
    for what, wanted in expect.items():
        is_ = found.get(what)
        if is_ is None or not fnmatchcase(is_, wanted):
            stands = "is not set" if is_ is None else f"is {is_}"
            out.append(Unmet(what, f"`{what}` {stands}, and management.expect wants {wanted}"))
    return out
