"""Which words of a name say that the value is a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping

from reconciler.core.secret_forms import LONG

CREDENTIAL = "credential"
"""The key of OAuth2 client credentials."""

_SECRET = re.compile(
    r"secret|passw|passphrase|token|credential"
    r"|(access|account|api|customer|encryption|master|private|shared|signing)[._-]?key|[._-]key$"
    r"|(^|[._-])(pwd|sas)([._-]|$)",
    re.IGNORECASE,
)

_HARMLESS = re.compile(
    r"(^|[._])(region|endpoint|endpoint_url|bucket|bucket_name|container_name|account_name|project|timeout)$",
    re.IGNORECASE,
)

_COUNTS = re.compile(
    r"tokeni[sz]|(^|[._-])(avg|context|max|mean|min|n|num|total)[._-]?tokens?([._-]|$)|tokens?[._-](budget|count|length|limit)|"
    r"secretar(y|iat)",
    re.IGNORECASE,
)


def names_credential(key: str) -> bool:
    """Of a property that others named. `primary_key` and `max_tokens` are none; when in doubt, it is one."""
    return names_secret(f"{key}_of") and _COUNTS.search(key) is None


def harmless_values(options: Mapping[str, str]) -> frozenset[str]:
    """Of storage options: those that say where something is, and stand in names and paths too. Not when another key
    has the same value, nor with a user in an address. A client id of letters only (`reconciler`) is in names too."""
    where = {key for key in options if _HARMLESS.search(key) and "@" not in options[key]}
    words = {word for word in client_id(options) if word.isalpha()}
    return frozenset(({options[key] for key in where} | words) - {options[key] for key in options.keys() - where})


def client_id(options: Mapping[str, str]) -> tuple[str, ...]:
    """The OAuth2 client in `client_id:client_secret`; empty when only the secret was given, or for a short word such as
    `root`, which every other message holds."""
    client, colon, _ = options.get(CREDENTIAL, "").partition(":")
    return (client,) if colon and (len(client) >= LONG or not client.isalpha()) else ()


def names_secret(key: str) -> bool:
    """True for `storage.aws_secret_access_key`, `sasToken`, `ssl.key-password` and the like. Rather too often: then a
    value has to be written as a reference, which it can always be."""
    return _SECRET.search(key) is not None
