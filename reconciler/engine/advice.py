"""What to look at when the way to a catalog is broken, rather than what is at its end."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reconciler.model.desired import CatalogSpec
from reconciler.model.errors import Code

NO_WAY = frozenset({Code.SERVICE_UNAVAILABLE, Code.THROTTLING, Code.PERMISSION_DENIED, Code.UNAUTHENTICATED})
_CREDENTIAL = re.compile(r"key|secret|token|password|credential|sas|header\.|assume_role_arn")


def way_to(spec: CatalogSpec, code: Code) -> str:
    """Empty for any other error, and for a folder on this machine. Options are named and never shown: all of
    `storage.*` is secret, so that the error itself has `***` where the endpoint stood. A service has options of its own
    for both; its `storage.*` is about the tables."""
    if code not in NO_WAY or not any("://" in v for v in spec.options.values() if isinstance(v, str)):
        return ""
    storage = sorted(key for key in spec.options if key.startswith("storage."))
    own = sorted(key for key in spec.options if not key.startswith("storage."))
    asked = storage if spec.type == "dir" else own
    endpoints = [key for key in asked if "endpoint" in key or key == "uri"]
    credentials = [key for key in asked if _CREDENTIAL.search(key)]
    none = f"none in {'storage.*' if spec.type == 'dir' else 'the options'}"
    none += ": the environment decides" if spec.type in ("dir", "glue") else ""
    return f". Check the endpoint{_in(endpoints, none)}, the network, and the credentials{_in(credentials, none)}"


def _in(keys: Iterable[str], none: str) -> str:
    names = ", ".join(keys)
    return f" in {names}" if names else f" ({none})"
