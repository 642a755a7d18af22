"""What to say of a --target that nothing matches."""

from __future__ import annotations

from collections.abc import Collection


def of_catalog(target: str, catalogs: Collection[str]) -> str:
    """Plans and reports name objects `catalog:identifier`; a target is the identifier alone. "" for any other."""
    catalog, colon, ident = target.partition(":")
    if not colon or not ident or catalog not in catalogs:
        return ""
    return f"; a target has no catalog in it: write --catalog {catalog} --target '{ident}'"
