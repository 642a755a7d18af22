"""Secrets that stand in a manifest, and `storage.*` keys that no object store takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from reconciler.core.secret_names import CREDENTIAL, names_secret
from reconciler.core.secret_values import credential_in
from reconciler.core.storage_keys import KNOWN, STORAGE, credentials_in, is_known
from reconciler.core.uris import holds_userinfo
from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import Problem
from reconciler.manifest.registry import CatalogEntry
from reconciler.manifest.schema_files import catalog_types, is_secret

_REFERENCE = re.compile(r"(?<!\$)\$\{(?:env|file):[^}]*?(?::-([^}]*))?\}")
_BETWEEN = re.compile(r"[\s:;,=&/@]+")
_SHORT = 8
"""Below, what stands beside a reference is a word (`Bearer`, `id=`) and no secret."""
_FLAGS = frozenset({"", "true", "false"})
_ANY_NAME = ("storage.", "header.")
"""All of it is marked secret, because some of it is; the name of a key says which."""


def check_options(catalogs: Iterable[CatalogEntry]) -> None:
    """Warnings: what works is not refused, but whoever reads the repository reads the secret too."""
    for entry in catalogs:
        for key, value in entry.spec.options.items():
            if _written_out(key, value, entry.spec.type):
                message = f"`spec.{key}` is a secret and stands in the manifest, for all who can read it"
                hint = "write ${env:NAME} or ${file:PATH}, and change the secret: it has been seen"
                entry.report(Problem("M447", ("spec", key), message, hint, severity="warning"))
            if key.startswith(STORAGE) and not is_known(key[len(STORAGE) :]):
                entry.report(_unknown(key[len(STORAGE) :]))


def check_storage_properties(properties: Mapping[str, str], problems: list[Problem]) -> None:
    """Everybody who may list the catalog reads them, and they are never used to open a table."""
    for key in credentials_in(properties):
        message = f"the property {key!r} is a credential, and properties are readable for all who read the catalog"
        option = STORAGE + key[len(STORAGE) :]
        hint = f"give it as `{option}` of the Catalog document, as ${{env:NAME}} or ${{file:PATH}}"
        problems.append(Problem("M446", ("spec", "properties", key), message, hint, at_key=True))


def _written_out(key: str, value: object, type_: str) -> bool:
    if not isinstance(value, str) or not any(map(_counts, _literals(key, value))):
        return False
    if not is_secret(key, type_ if type_ in catalog_types() else None):
        return False
    if not key.startswith(_ANY_NAME) or names_secret(key) or _authorizes(key):
        return True
    return holds_userinfo(value) or credential_in(value) is not None


def _counts(text: str) -> bool:
    return text.lower() not in _FLAGS


def _literals(key: str, value: str) -> list[str]:
    """What of a secret value everybody reads: all of it, or beside references their defaults, and what is too long for
    a word. A part between separators is that when it has a digit, or stands right at a reference. The client id before
    the colon of `credential` is no secret."""
    defaults = [default or "" for default in _REFERENCE.findall(value)]
    if not defaults:
        return [value]
    rest = _REFERENCE.sub("\0", value)
    if key == CREDENTIAL and "\0" in rest.partition(":")[2]:
        rest = rest.partition(":")[2]
    parts = ((part, part.replace("\0", "")) for part in _BETWEEN.split(rest))
    return defaults + [text for part, text in parts if len(text) >= _SHORT and (text != part or not text.isalpha())]


def _authorizes(key: str) -> bool:
    return key.lower() in ("header.authorization", "header.cookie", "header.proxy-authorization")


def _unknown(key: str) -> Problem:
    near = nearest(key, KNOWN, 0.7) or nearest(key.lower().partition("_")[2], KNOWN, 0.7)
    message = f"`{STORAGE}{key}` is no option that a built-in object store takes: it has no effect there"
    hint = f"did you mean {STORAGE}{near}?" if near else "docs/catalogs.md lists the options of object stores"
    return Problem("M448", ("spec", f"{STORAGE}{key}"), message, hint, severity="warning")
