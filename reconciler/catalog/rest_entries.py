"""What a describe answer says, as an entry of ours."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from reconciler.catalog.directory_capabilities import SUFFIX
from reconciler.catalog.entries import BrokenEntry, NamespaceEntry, TableEntry
from reconciler.catalog.marks import split
from reconciler.catalog.rest_api import text_map
from reconciler.catalog.rest_inventory import Record
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind, dotted

_ADOPTED = (
    "it was adopted, and the Lance REST protocol shows nothing by which it could be told from one that somebody else "
    "created since under the same name: drop it with the server's own client, if it is to go"
)


def namespace_entry(ident: Ident, properties: Mapping[str, str], record: Record | None) -> NamespaceEntry:
    """`raw` is what the server shows, without the inventory's marks."""
    if record is None:
        return NamespaceEntry(ident, properties, properties)
    shown = record.applied_to(properties)
    adopted = split(shown)[1].owner != split(properties)[1].owner
    return NamespaceEntry(ident, shown, properties, lasting=_ADOPTED if adopted else None)


def table_entry(ident: Ident, answer: Mapping[str, Any], record: Record | None) -> TableEntry | BrokenEntry:
    """`raw` is the user's properties that only our inventory holds."""
    location = answer.get("location") or answer.get("table_uri")
    if answer.get("managed_versioning") is True:
        return BrokenEntry(
            "Table",
            ident,
            Code.UNSUPPORTED,
            f"the server itself manages the versions of {dotted(ident)} (managed_versioning): changes of its dataset "
            "would go past the server. Leave it out of the manifests, or list it under management.ignore",
        )
    if not isinstance(location, str) or not location:
        return BrokenEntry("Table", ident, Code.INTERNAL, f"the server shows no location of {dotted(ident)}")
    try:
        properties = text_map(answer.get("properties"), f"describe table {dotted(ident)}")
        storage = text_map(answer.get("storage_options"), f"describe table {dotted(ident)}") or None
    except CatalogError as error:
        return broken("Table", ident, error)
    if record is None:
        return TableEntry(ident, location, properties, storage=storage)
    shown, kept = record.applied_to(properties, location), record.kept_for(location)
    only_noted = record.owns(location) and split(properties)[1].owner != record.marks.owner
    unrecorded = record.in_doubt(properties) if only_noted else None
    return TableEntry(ident, location, shown, unrecorded=unrecorded, raw=kept, storage=storage)


def staying(ident: Ident, answer: Mapping[str, Any], record: Record | None) -> str | None:
    """Why it would still be shown after it was deregistered, where that can be told beforehand. A server that finds its
    root tables by their folders (pylance's, on its defaults) shows them without the properties they were declared with,
    in folders of their names, for as long as the folders are there; of any other, our record says so once it was
    tried."""
    location = str(answer.get("location") or answer.get("table_uri") or "")
    if record is None or not record.owns(location):
        return None
    folder = posixpath.basename(location.rstrip("/"))
    named = f"{ident[-1]}{SUFFIX}" in (folder, unquote(folder))
    by_folder = len(ident) == 1 and named and not answer.get("properties")
    return stays(ident) if by_folder or record.stays else None


def stays(ident: Ident) -> str:
    return (
        f"the server goes on showing {dotted(ident)} after it was deregistered, and it stays ours: drop it with the "
        "server's own client, if it is to go"
    )


def broken(kind: Kind, ident: Ident, error: CatalogError) -> BrokenEntry:
    return BrokenEntry(kind, ident, error.code, error.message)
