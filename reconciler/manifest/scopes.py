"""A service of many parts is read only where the manifests can touch it: something has to name a part."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.desired import Desired
from reconciler.model.diagnostic import Diagnostic


def scope_problems(desired: Desired, names: Sequence[str]) -> list[Diagnostic]:
    """Catalogs of which nothing would be read, so that no orphan could be found and nothing imported: an Iceberg
    catalog without `warehouse`, of which no manifest names one either."""
    found = []
    for name in names:
        spec = desired.catalogs[name]
        named = desired.namespaces.get(name) or desired.tables.get(name) or spec.options.get("warehouse")
        if spec.type == "iceberg" and not named:
            message = f"catalog {name}: no manifest names a warehouse, and `spec.warehouse` is not set"
            found.append(Diagnostic(spec.source, "M441", "error", message, "set spec.warehouse"))
    return found
