"""URIs as text."""

from __future__ import annotations

import re
from urllib.parse import unquote

_SPELLINGS = {"s3a": "s3", "s3n": "s3"}
_CONTAINER_FIRST = frozenset({"abfs", "abfss", "wasb", "wasbs"})
"""Schemes in which `container@account` is the name of the place."""


def place_of(location: str) -> str:
    """One text for one place, however it is spelled: servers add a slash, a `file://`, or say `s3a`."""
    if location.startswith("file:"):
        return _without_dots(unquote(_local(location)))
    scheme, separator, rest = location.partition("://")
    if not separator:
        return location.rstrip("/") or location
    scheme = scheme.lower()
    return f"{_SPELLINGS.get(scheme, scheme)}://{rest.rstrip('/')}"


def _local(uri: str) -> str:
    """The path of a `file:` URI. A place has no query and no fragment: `#` and `?` are part of a name."""
    path = uri[len("file:") :]
    return "".join(path[2:].partition("/")[1:]) if path.startswith("//") else path


def _without_dots(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


_SIGNED = re.compile(
    r"[?&](sig|signature|access_token|token|awsaccesskeyid|x-(amz|goog)-(signature|credential|security-token))=[^&#]",
    re.IGNORECASE,
)


def is_signed(uri: str) -> bool:
    """True for an address whose query lets in whoever has it, as the signed ones of S3, Google Cloud and Azure do."""
    return "://" in uri and _SIGNED.search(uri) is not None


def holds_userinfo(uri: str) -> bool:
    """True for `scheme://user:password@host/...` and `scheme://user@host/...`. A password may hold anything, also a
    slash: then it looks like a port that is no number, with an @ further on."""
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return False
    host, _, path = rest.partition("/")
    if "@" in host:
        return ":" in host.rpartition("@")[0] or scheme.lower() not in _CONTAINER_FIRST
    port = host.rpartition(":")[2]
    return ":" in host and not host.endswith("]") and not port.isdecimal() and "@" in path


def inside(folder: str, location: str) -> bool | None:
    """Is the location the folder or below it? None when that cannot be told: it is relative, or not resolved yet."""
    if "${" in location or "${" in folder:
        return None
    outer, inner = _whole(folder), _whole(location)
    if not inner.startswith("/") and ":/" not in inner:
        return None
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def _whole(location: str) -> str:
    scheme, separator, rest = place_of(location).partition("://")
    if not separator:
        return _without_dots(scheme) if scheme.startswith("/") else scheme
    return f"{scheme}:/{_without_dots(rest)}"
