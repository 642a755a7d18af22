"""Addresses of services that paths are put after. A query or a fragment in one would not be sent: an option that does
nothing, and likely a token in the wrong place. So the message does not repeat it."""

from __future__ import annotations

import re

from reconciler.manifest.problem import Problem
from reconciler.manifest.registry import Registry
from reconciler.manifest.schema_files import catalog_types

_KEYS = ("uri", "endpoint", "api_path")
_REFERENCE = re.compile(r"\$\{[^}]*\}")
"""What one stands for is looked at when the catalog is opened."""


def check_addresses(registry: Registry) -> None:
    """A plug-in knows best what its keys hold."""
    for entry in registry.catalogs.values():
        if entry.spec.type not in catalog_types():
            continue
        for key in _KEYS:
            value = entry.spec.options.get(key)
            written = _REFERENCE.sub("", value) if isinstance(value, str) else ""
            if "?" in written or "#" in written:
                message = f"`spec.{key}` has a query (?) or a fragment (#), and neither would be sent"
                hint = "end the address before it; what identifies the caller goes into the keys made for it"
                entry.report(Problem("M207", ("spec", key), message, hint))
