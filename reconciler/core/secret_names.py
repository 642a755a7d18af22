"""Which words of a name say that the value is a secret."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"secret|passw|passphrase|token|credential"
    r"|(access|account|api|customer|encryption|master|private|shared|signing)[._-]?key|[._-]key$"
    r"|(^|[._-])(pwd|sas)([._-]|$)",
    re.IGNORECASE,
)


def names_secret(key: str) -> bool:
    """True for `storage.aws_secret_access_key`, `sasToken`, `ssl.key-password` and the like. Rather too often: then a
    value has to be written as a reference, which it can always be."""
    return _SECRET.search(key) is not None
