"""Glue's databases and tables as entries, and entries as Glue's inputs. Nothing here calls anything."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

from reconciler.catalog.entries import BrokenEntry, NamespaceEntry, TableEntry
from reconciler.catalog.glue_capabilities import CATALOG, DATABASE, LOCATION_KEY, TABLE_TYPE
from reconciler.model.errors import Code
from reconciler.model.ident import Ident, dotted
from reconciler.model.state import DESCRIPTION_KEY, Column

LANCE = "lance"
EXTERNAL = "EXTERNAL_TABLE"
_OF_A_DATABASE = {DESCRIPTION_KEY: "Description", LOCATION_KEY: "LocationUri"}
_OF_A_TABLE = {DESCRIPTION_KEY: "Description"}
"""Properties that are fields of their own."""
_OF_A_CATALOG = {DESCRIPTION_KEY: "Description"}
_DATA_OF_OTHERS = ("FederatedCatalog", "TargetRedshiftCatalog")


def namespace_entry(ident: Ident, database: Mapping[str, Any]) -> NamespaceEntry | BrokenEntry:
    """`description` and `location` are the native fields; a parameter of that name shows where there is no field."""
    if (odd := _odd(database, _OF_A_DATABASE.values())) is not None:
        return BrokenEntry("Namespace", ident, Code.INTERNAL, f"Glue's answer for {dotted(ident)} has {odd}")
    for key, what in (("TargetDatabase", "a resource link"), ("FederatedDatabase", "a federated database")):
        if database.get(key):
            message = f"{dotted(ident)} is {what}: what is behind it belongs to another catalog and is left alone"
            return BrokenEntry("Namespace", ident, Code.INVALID_INPUT, message, foreign=True)
    return NamespaceEntry(ident, _joined(database, _OF_A_DATABASE), database, level=DATABASE)


def catalog_entry(ident: Ident, catalog: Mapping[str, Any]) -> NamespaceEntry | BrokenEntry:
    """A child catalog. One that shows or holds the data of another service is that service's: deleting it would take
    that data. So is one inside another catalog, which only AWS makes."""
    if (odd := _odd(catalog, _OF_A_CATALOG.values())) is not None:
        return BrokenEntry("Namespace", ident, Code.INTERNAL, f"Glue's answer for catalog {dotted(ident)} has {odd}")
    lake = (catalog.get("CatalogProperties") or {}).get("DataLakeAccessProperties")
    container = len(ident) > 1 or bool(lake) or any(catalog.get(key) for key in _DATA_OF_OTHERS)
    properties = {} if container else _joined(catalog, _OF_A_CATALOG)
    return NamespaceEntry(ident, properties, catalog, container, level=CATALOG)


def catalog_input(properties: Mapping[str, str], live: Mapping[str, Any], shape: Any) -> dict[str, Any]:
    """The whole new catalog, as `database_input`. `shape`: Glue's own description of what an input may hold, in which
    parts have fewer members than the answer has."""
    kept = _fitted(shape, {k: v for k, v in live.items() if k not in ("Description", "Parameters")})
    return {**kept, **_divided(properties, live, _OF_A_CATALOG)}


def _fitted(shape: Any, value: Any) -> Any:
    if shape.type_name == "structure" and isinstance(value, dict):
        return {k: _fitted(shape.members[k], v) for k, v in value.items() if k in shape.members and v is not None}
    return value


def database_input(
    name: str, properties: Mapping[str, str], live: Mapping[str, Any], members: Collection[str]
) -> dict[str, Any]:
    """The whole new database: an update replaces everything, so what we do not manage goes back as it was read."""
    kept = {k: v for k, v in live.items() if k in members and k not in ("Description", "LocationUri", "Parameters")}
    return {**kept, **_divided(properties, live, _OF_A_DATABASE), "Name": name}


def table_entry(ident: Ident, table: Mapping[str, Any], *, keep: bool = True) -> TableEntry | BrokenEntry:
    """A Lance table, or why it is none. `keep` holds on to the answer, for an update that follows."""
    if (odd := _odd(table, ("Description", "TableType")) or _odd_storage(table)) is not None:
        return BrokenEntry("Table", ident, Code.INTERNAL, f"Glue's answer for {dotted(ident)} has {odd}")
    if (strange := _strange(table)) is not None:
        return BrokenEntry("Table", ident, Code.INVALID_INPUT, f"{dotted(ident)} is {strange}", foreign=True)
    storage = table.get("StorageDescriptor") or {}
    location = storage.get("Location")
    if not location:
        message = f"{dotted(ident)} is a Lance table without a location: set StorageDescriptor.Location"
        return BrokenEntry("Table", ident, Code.INVALID_TABLE_STATE, message)
    properties = _joined(table, _OF_A_TABLE)
    properties.pop(TABLE_TYPE, None)
    columns = tuple(_column(c["Name"], c.get("Type"), c.get("Comment")) for c in storage.get("Columns") or ())
    return TableEntry(ident, location, properties, columns, raw=table if keep else None)


def _odd(live: Mapping[str, Any], texts: Iterable[str]) -> str | None:
    """What the API does not know: botocore takes any JSON for a text."""
    if not all(isinstance(v, str) for v in (live.get("Parameters") or {}).values()):
        return "Parameters that are no text"
    return next((f"a {key} that is no text" for key in texts if not isinstance(live.get(key), str | None)), None)


def _odd_storage(table: Mapping[str, Any]) -> str | None:
    storage = table.get("StorageDescriptor") or {}
    if not isinstance(storage.get("Location"), str | None):
        return "a Location that is no text"
    for column in storage.get("Columns") or ():
        if not isinstance(column, dict) or not isinstance(column.get("Name"), str):
            return "a column without a Name"
        if not all(isinstance(column.get(key), str | None) for key in ("Type", "Comment")):
            return f"a column {column['Name']} whose Type or Comment is no text"
    return None


@lru_cache(maxsize=8192)
def _column(name: str, type_: str | None, comment: str | None) -> Column:
    """Shared: a lake has few distinct columns and many tables."""
    return Column(name, type_ or "", True, comment or None)


def _strange(table: Mapping[str, Any]) -> str | None:
    if table.get("TargetTable"):
        return "a resource link: what is behind it belongs to another catalog and is left alone"
    if table.get("FederatedTable"):
        return "a federated table: it belongs to another catalog and is left alone"
    format_ = (table.get("Parameters") or {}).get(TABLE_TYPE) or ""
    type_ = table.get("TableType")
    if format_.lower() != LANCE:
        return f"not a Lance table ({format_ or type_ or 'no table_type'})"
    if type_ != EXTERNAL:
        return (
            f"not a Lance table: its TableType is {type_ or 'not set'}; Glue's Lance tables have {EXTERNAL}, set that"
        )
    return None


def new_table_input(
    name: str, location: str, properties: Mapping[str, str], columns: tuple[Column, ...] | None
) -> dict[str, Any]:
    """No input format and no SerDe: with those of text files other engines would read the data as text."""
    storage: dict[str, Any] = {"Location": location}
    if columns is not None:
        storage["Columns"] = _columns(columns, {})
    return {
        "Name": name,
        "TableType": EXTERNAL,
        "StorageDescriptor": storage,
        **_divided({**properties, TABLE_TYPE: LANCE}, {}, _OF_A_TABLE),
    }


def changed_table_input(
    live: Mapping[str, Any],
    properties: Mapping[str, str] | None,
    columns: tuple[Column, ...] | None,
    members: Collection[str],
) -> dict[str, Any]:
    """The whole new table. What we do not manage goes back as it was read: an update replaces everything."""
    table = {k: v for k, v in live.items() if k in members}
    if properties is not None:
        table.pop("Description", None)
        mark = (live.get("Parameters") or {}).get(TABLE_TYPE, LANCE)
        table |= _divided({**properties, TABLE_TYPE: mark}, live, _OF_A_TABLE)
    if columns is not None:
        storage = dict(live.get("StorageDescriptor") or {})
        storage["Columns"] = _columns(columns, {c["Name"]: c for c in storage.get("Columns") or ()})
        table["StorageDescriptor"] = storage
    return table


def _joined(live: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, str]:
    """The opposite of `_divided`. An empty field is none, and yet it covers a parameter of its name."""
    properties: dict[str, str] = dict(live.get("Parameters") or {})
    for key, native in fields.items():
        value = live.get(native)
        if value is not None:
            properties.pop(key, None)
        if value:
            properties[key] = value
    return properties


def _divided(properties: Mapping[str, str], live: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    """The properties as fields and parameters. A parameter that has the name of a field is another tool's: beside a
    field that is set it is not shown and stays, and without one it is what is shown and stays while its value does.
    A description that we remove from above such a parameter is left empty, so that theirs does not come out under it
    (Glue takes no empty LocationUri)."""
    held = live.get("Parameters") or {}
    parameters = {k: v for k, v in properties.items() if k not in fields}
    made: dict[str, Any] = {"Parameters": parameters}
    for key, native in fields.items():
        value, hidden = properties.get(key), live.get(native) is not None
        if key in held and (hidden or held[key] == value):
            parameters[key] = held[key]
        if value is not None and (hidden or held.get(key) != value):
            made[native] = value
        elif value is None and hidden and key in held and key == DESCRIPTION_KEY:
            made[native] = ""
    return made


def _columns(columns: tuple[Column, ...], live: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Parameters that other tools have put on a column stay on it."""
    made = []
    for column in columns:
        one: dict[str, Any] = {"Name": column.name, "Type": column.type}
        if column.comment:
            one["Comment"] = column.comment
        if extra := live.get(column.name, {}).get("Parameters"):
            one["Parameters"] = extra
        made.append(one)
    return made
