"""Which class serves which `type`. Classes are imported when they are asked for: `validate` never loads lance."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.catalog.base import Catalog
from reconciler.catalog.directory_capabilities import directory_capabilities
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import CatalogSpec
from reconciler.model.errors import CatalogError, Code


def capabilities_of(spec: CatalogSpec) -> Capabilities | None:
    """Offline and pure. None for a type that is not known here."""
    return directory_capabilities(spec.options) if spec.type == "dir" else None


def connect(spec: CatalogSpec, options: Mapping[str, str]) -> Catalog:
    """`options` are the spec's keys resolved to strings (booleans as "true"/"false"). Raises CatalogError."""
    if spec.type == "dir":
        from reconciler.catalog.directory import DirectoryCatalog

        return DirectoryCatalog(options)
    raise CatalogError(Code.UNSUPPORTED, f"catalog {spec.name!r}: the type {spec.type!r} is not supported")
