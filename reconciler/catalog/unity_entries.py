"""Unity's schemas and tables as entries, and entries as request bodies.

`spec.description` is Unity's native `comment`: a comment can be set, changed and, with an empty text, cleared, which is
read as none. A property `description` that somebody else set counts as the description where there never was a comment;
we write the comment only, and that property stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.catalog.entries import BrokenEntry, NamespaceEntry, TableEntry
from reconciler.catalog.marks import join, split
from reconciler.catalog.unity_capabilities import (
    LIMIT,
    LONG_COMMENT,
    LONGEST_LOCATION,
    MARKER,
    too_long,
    wire_location,
)
from reconciler.catalog.unity_client import Wire
from reconciler.catalog.unity_columns import shown_columns, wire_columns
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, dotted
from reconciler.model.state import DESCRIPTION_KEY, Column, Marks

LANCE = "lance"


def namespace_entry(ident: Ident, wire: Wire) -> NamespaceEntry | BrokenEntry:
    if (odd := _odd(wire)) is not None:
        return BrokenEntry("Namespace", ident, Code.INTERNAL, f"the server's answer for {dotted(ident)} has {odd}")
    return NamespaceEntry(ident, shown_properties(wire), wire)


def table_entry(ident: Ident, wire: Wire, marks: Marks | None = None) -> TableEntry | BrokenEntry:
    """Only an EXTERNAL table whose `table_type` property says lance is ours to read."""
    if (odd := _odd(wire)) is not None:
        return BrokenEntry("Table", ident, Code.INTERNAL, f"the server's answer for {dotted(ident)} has {odd}")
    properties = shown_properties(wire)
    marker = properties.pop(MARKER, "")
    if wire.get("table_type") != "EXTERNAL" or marker.lower() != LANCE:
        kind = " ".join(str(wire.get(k)) for k in ("table_type", "data_source_format") if wire.get(k))
        why = f"{dotted(ident)} is no Lance table ({kind or 'no type'})"
        return BrokenEntry("Table", ident, Code.INVALID_INPUT, why, foreign=True)
    location = wire.get("storage_location")
    if not isinstance(location, str) or not location:
        return BrokenEntry("Table", ident, Code.INVALID_TABLE_STATE, f"{dotted(ident)} has no storage location")
    return TableEntry(ident, location, properties, shown_columns(wire.get("columns")), marks, wire)


def schema_body(ident: Ident, properties: Mapping[str, str]) -> Wire:
    kept, comment = _divided(properties)
    body: Wire = {"name": ident[1], "catalog_name": ident[0], "properties": kept}
    return {**body, "comment": comment} if comment else body


def schema_update(entry: NamespaceEntry, properties: Mapping[str, str]) -> Wire:
    """The map replaces the whole map of the server. It always holds our owner: an empty one would change nothing."""
    kept, comment = _divided(properties)
    body: Wire = {"properties": {**kept, **_theirs(entry.raw)}}
    if comment != shown_properties(entry.raw).get(DESCRIPTION_KEY, ""):
        body["comment"] = comment
    return body


def table_body(ident: Ident, location: str, properties: Mapping[str, str], columns: tuple[Column, ...] | None) -> Wire:
    kept, comment = _divided(properties)
    body: Wire = {
        "name": ident[2],
        "catalog_name": ident[0],
        "schema_name": ident[1],
        "table_type": "EXTERNAL",
        "data_source_format": "TEXT",
        "columns": wire_columns(columns or ()),
        "storage_location": wire_location(location),
        "properties": {**kept, MARKER: LANCE},
    }
    return {**body, "comment": comment} if comment else body


def replacement(entry: TableEntry, properties: Mapping[str, str], columns: tuple[Column, ...] | None) -> Wire:
    """The entry with these changes. What else it has (its format, the spelling of its marker) stays."""
    old: Wire = entry.raw
    body = restored(old, None)
    kept, comment = _divided(properties)
    theirs = _theirs(old)
    body["properties"] = {**kept, **theirs, MARKER: (old.get("properties") or {}).get(MARKER, LANCE)}
    if comment != shown_properties(old).get(DESCRIPTION_KEY, ""):
        body["comment"] = comment
    if not body.get("comment") and not theirs:
        body.pop("comment", None)
    if columns is not None:
        body["columns"] = wire_columns(columns)
    return body


def brought_back(
    ident: Ident, old: Wire, marks: Marks, properties: Mapping[str, str], columns: tuple[Column, ...] | None
) -> tuple[Wire, frozenset[str]]:
    """A new entry in place of one that a cut replacement removed: what others had set on it stays. `marks`: those of
    the old entry. Also the keys that come from there and not from `properties`."""
    before = split(shown_properties(old))[0]
    theirs = {k: v for k, v in before.items() if k not in properties and k not in marks.applied and k != MARKER}
    entry = TableEntry(ident, str(old.get("storage_location")), raw=old)
    return replacement(entry, {**theirs, **properties}, columns), frozenset(theirs)


def restored(old: Wire, marks: Marks | None) -> Wire:
    """The body that makes an entry again as the server once answered it. `marks`: those that were kept beside it, under
    an id that it does not get back."""
    keys = ("name", "catalog_name", "schema_name", "table_type", "data_source_format", "storage_location", "comment")
    body: dict[str, Any] = {k: old[k] for k in keys if old.get(k) is not None}
    columns = [{k: v for k, v in c.items() if v is not None} for c in old.get("columns") or ()]
    properties = dict(old.get("properties") or {})
    return {**body, "columns": columns, "properties": properties if marks is None else join(properties, marks, LIMIT)}


def need_storable(ident: Ident, body: Wire) -> None:
    """The server fails with a 500 over what its database does not hold, and when it does the old entry is gone. Not all
    of a body is in a manifest: others' properties, columns of the data, the owner. Raises CatalogError."""
    longest = LONG_COMMENT if "storage_location" in body else LIMIT
    texts = [
        ("the description", body.get("comment"), longest),
        ("the location", body.get("storage_location"), LONGEST_LOCATION),
    ]
    for key, value in body["properties"].items():
        texts += [(f"the key of the property {key[:20]!r}", key, LIMIT), (f"the property {key[:20]!r}", value, LIMIT)]
    for column in body.get("columns", ()):
        name = column["name"]
        texts += [(f"the column name {name[:20]}…", name, LIMIT)]
        texts += [(f"the comment of column {name[:20]!r}", column.get("comment"), LONG_COMMENT)]
    problem = next((p for what, text, most in texts if text and (p := too_long(what, text, most))), None)
    if problem is not None:
        raise CatalogError(Code.INVALID_INPUT, f"{dotted(ident)}: {problem}: nothing was written")


def _odd(wire: Wire) -> str | None:
    """What the protocol does not know, in an answer with the status of a good one."""
    if not isinstance(wire.get("properties"), dict | None):
        return "properties that are no map"
    columns = wire.get("columns")
    if not isinstance(columns, list | None) or not all(isinstance(c, dict) for c in columns or ()):
        return "columns that are no list of columns"
    return None


def shown_properties(wire: Wire) -> dict[str, str]:
    properties = {str(k): str(v) for k, v in (wire.get("properties") or {}).items()}
    comment = wire.get("comment")
    if comment is not None:
        properties.pop(DESCRIPTION_KEY, None)
    if comment:
        properties[DESCRIPTION_KEY] = str(comment)
    return properties


def _theirs(wire: Wire) -> dict[str, str]:
    """The property `description`: never written by us, so somebody else's."""
    return {k: str(v) for k, v in (wire.get("properties") or {}).items() if k == DESCRIPTION_KEY}


def _divided(properties: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """The map of the server, and the comment."""
    return {k: v for k, v in properties.items() if k != DESCRIPTION_KEY}, properties.get(DESCRIPTION_KEY, "")
