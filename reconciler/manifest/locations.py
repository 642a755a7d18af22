"""Table locations, compared as text: what is one place, and what is inside another."""

from __future__ import annotations

import posixpath
import re

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")


def normal(location: str, root: str | None) -> str:
    """One spelling per place. A relative location is below the catalog's root. The text of unresolved references is
    compared as it is written."""
    text = location
    if not _SCHEME.match(text) and not text.startswith("/") and root:
        text = root.rstrip("/") + "/" + text
    match = _SCHEME.match(text)
    scheme = match.group(1).lower() if match else "file"
    scheme = {"s3a": "s3", "s3n": "s3"}.get(scheme, scheme)
    path = text[match.end() :] if match else text
    path = posixpath.normpath(path) if path else path
    return path if scheme == "file" else f"{scheme}://{path.lstrip('/')}"


def contains(outer: str, inner: str) -> bool:
    return inner.startswith(outer.rstrip("/") + "/")
