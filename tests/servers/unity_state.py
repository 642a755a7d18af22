"""What a Unity Catalog server holds, and what its requests do to it: catalogs, schemas, and what is in them."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from servers import unity_checks as checks
from servers.unity_checks import Refused, broken, invalid

Object = dict[str, Any]
LEAVES = {"tables": "tables", "volumes": "volumes", "functions": "functions", "models": "registered_models"}
"""Path -> the key of its list."""
_PAGE = 100
_SCHEMA_SQL = (
    "insert into uc_schemas (catalog_id,comment,created_at,created_by,name,owner,storage_location,storage_root,"
    "updated_at,updated_by,id) values (?,?,?,?,?,?,?,?,?,?,?)"
)
_COLUMN_SQL = (
    "insert into uc_columns (comment,name,nullable,ordinal_position,partition_index,table_id,type_interval_type,"
    "type_json,type_name,type_precision,type_scale,type_text,id) values (?,?,?,?,?,?,?,?,?,?,?,?,?)"
)


@dataclass
class Schema:
    info: Object
    leaves: dict[str, list[Object]] = field(default_factory=lambda: {kind: [] for kind in LEAVES})
    """Lists, because this server can hold two tables of one name."""


@dataclass
class Catalog:
    info: Object
    schemas: dict[str, Schema] = field(default_factory=dict)


class State:
    """`race`: what happens between the look for an existing table and its insert. With it, creates of one name that
    meet there all succeed, as they do on the real server. `lenient`: columns are not checked, as before 0.5."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.race: Callable[[], object] | None = None
        self.only_delta = False
        self.lenient = False
        self.visible: Callable[[Object], bool] = lambda _: True
        self.lock = threading.RLock()
        self.catalogs: dict[str, Catalog] = {}
        self._columns = 0

    # catalogs and schemas

    def create_catalog(self, body: Object) -> Object:
        name = checks.check_name(body.get("name"))
        with self.lock:
            if name in self.catalogs:
                raise Refused(400, "CATALOG_ALREADY_EXISTS", f"Catalog already exists: {name}")
            info = {
                "name": name,
                **_about(body),
                **_times(),
                "id": _id(),
                "storage_root": None,
                "storage_location": None,
            }
            self.catalogs[name] = Catalog(info)
            return info

    def create_schema(self, body: Object) -> Object:
        name, catalog_name = checks.check_name(body.get("name")), body["catalog_name"]
        with self.lock:
            catalog = self.catalog(catalog_name)
            if name in catalog.schemas:
                raise Refused(400, "SCHEMA_ALREADY_EXISTS", f"Schema already exists: {name}")
            checks.check_stored(
                "Failed to create schema", body.get("properties"), body.get("comment"), 255, _SCHEMA_SQL
            )
            info = {
                "name": name, "catalog_name": catalog_name, **_about(body), "full_name": f"{catalog_name}.{name}",
                **_times(), "schema_id": _id(), "storage_root": None, "storage_location": None,
            }  # fmt: skip
            catalog.schemas[name] = Schema(info)
            return info

    def update(self, info: Object, body: Object) -> Object:
        """A map replaces the whole map, and an empty one changes nothing."""
        if body.get("comment") is not None:
            info["comment"] = body["comment"]
        if body.get("properties"):
            info["properties"] = dict(body["properties"])
        info["updated_at"] = _now()
        return info

    def update_schema(self, catalog_name: str, name: str, body: Object) -> Object:
        with self.lock:
            catalog, schema = self.catalog(catalog_name), self.schema(catalog_name, name)
            new = body.get("new_name")
            if new is not None:
                checks.check_name(new)
                if new in catalog.schemas:
                    raise Refused(400, "SCHEMA_ALREADY_EXISTS", f"Schema already exists: {new}")
                catalog.schemas[new] = catalog.schemas.pop(name)
                schema.info.update(name=new, full_name=f"{catalog_name}.{new}")
                for leaf in (x for leaves in schema.leaves.values() for x in leaves):
                    leaf["schema_name"] = new
            checks.check_stored(
                "Failed to update schema", body.get("properties"), body.get("comment"), 255, _SCHEMA_SQL
            )
            return self.update(schema.info, body)

    def delete_catalog(self, name: str, force: bool) -> None:
        with self.lock:
            if self.catalog(name).schemas and not force:
                raise Refused(
                    400, "FAILED_PRECONDITION", "Cannot delete catalog with schemas. Use force=true to force deletion."
                )
            del self.catalogs[name]

    def delete_schema(self, catalog_name: str, name: str, force: bool) -> None:
        with self.lock:
            schema = self.schema(catalog_name, name)
            for kind, leaves in schema.leaves.items():
                if leaves and not force:
                    raise Refused(400, "FAILED_PRECONDITION", f"Cannot delete schema with {kind}")
                for leaf in leaves:
                    self.one(leaves, leaf["name"], "")
            del self.catalog(catalog_name).schemas[name]

    def catalog(self, name: str) -> Catalog:
        if name not in self.catalogs:
            raise Refused(404, "CATALOG_NOT_FOUND", f"Catalog not found: {name}")
        return self.catalogs[name]

    def schema(self, catalog: str, name: str) -> Schema:
        schemas = self.catalog(catalog).schemas
        if name not in schemas:
            raise Refused(404, "SCHEMA_NOT_FOUND", f"Schema not found: {catalog}.{name}")
        return schemas[name]

    # what is in a schema

    def create_table(self, body: Object) -> Object:
        columns = list(body.get("columns") or ()) if self.lenient else checks.check_columns(body)
        name = checks.check_name(body.get("name"))
        full = f"{body['catalog_name']}.{body['schema_name']}.{name}"
        if self.only_delta and body.get("data_source_format") != "DELTA":
            raise Refused(
                400, "INVALID_PARAMETER_VALUE", "Only EXTERNAL tables with data source format DELTA are allowed"
            )
        with self.lock:
            self._check_new(body, name, full)
        if self.race:
            self.race()
        with self.lock:
            schema = self.schema(body["catalog_name"], body["schema_name"])
            if not self.race:
                self._check_new(body, name, full)
            info = self._table(body, name, full, columns)
            schema.leaves["tables"].append(info)
            return info

    def rename_table(self, catalog: str, schema: str, name: str, new: str | None) -> None:
        """Metadata only: the id and the location stay."""
        if not new or not new.strip():
            raise invalid("New table name is required.")
        checks.check_name(new)
        with self.lock:
            tables = self.schema(catalog, schema).leaves["tables"]
            table = self.one(tables, name, name)
            if new == name:
                return
            if any(t["name"] == new for t in tables):
                raise Refused(400, "TABLE_ALREADY_EXISTS", f"Table already exists: {new}")
            table.update(name=new, updated_at=_now())

    def _check_new(self, body: Object, name: str, full: str) -> None:
        schema = self.schema(body["catalog_name"], body["schema_name"])
        if any(t["name"] == name for t in schema.leaves["tables"]):
            raise Refused(400, "TABLE_ALREADY_EXISTS", f"Table already exists: {full}")

    def _table(self, body: Object, name: str, full: str, columns: list[Object]) -> Object:
        start = f"Error creating table: {full}"
        if body.get("table_type") is None:
            raise broken(f"{start}: null")
        if body["table_type"] == "MANAGED" and body.get("data_source_format") != "DELTA":
            raise invalid("Managed table creation is only supported for Delta format.")
        location = body.get("storage_location")
        if location is None:
            raise broken(
                f'{start}: Cannot invoke "io.unitycatalog.server.utils.NormalizedURL.isCloudStorageRoot()" because '
                '"storageLocation" is null'
            )
        location = checks.stored_location(location, self.folder)
        table_id = _id()
        kept = [self._column(c, start) for c in columns]
        self._check_unique(columns, start, table_id)
        checks.check_stored(start, body.get("properties"), body.get("comment"), 65535, "insert into uc_tables")
        checks.check_length(start, "URL", location, 2048, "insert into uc_tables")
        for column in kept:
            checks.check_length(start, "NAME", column["name"], 255, _COLUMN_SQL)
            checks.check_length(start, "COMMENT", column["comment"], 65535, _COLUMN_SQL)
        return {
            "name": name, "catalog_name": body["catalog_name"], "schema_name": body["schema_name"],
            "table_type": body["table_type"], "data_source_format": body.get("data_source_format"), "columns": kept,
            "storage_location": location, **_about(body), **_times(), "table_id": table_id, "view_definition": None,
            "view_dependencies": None,
        }  # fmt: skip

    def _column(self, column: Object, start: str) -> Object:
        for key, getter in (("type_name", "ColumnTypeName.toString"), ("position", "Integer.shortValue")):
            if column.get(key) is None:
                owner = "io.unitycatalog.server.model." if key == "type_name" else "java.lang."
                asked = "getTypeName" if key == "type_name" else "getPosition"
                raise broken(
                    f'{start}: Cannot invoke "{owner}{getter}()" because the return value of '
                    f'"io.unitycatalog.server.model.ColumnInfo.{asked}()" is null'
                )
        self._columns += 1
        return {
            "name": column["name"], "type_text": column["type_text"].lower(), "type_json": column["type_json"],
            "type_name": column["type_name"], "type_precision": column.get("type_precision"),
            "type_scale": column.get("type_scale"), "type_interval_type": column.get("type_interval_type"),
            "position": column["position"], "comment": column.get("comment"),
            "nullable": column.get("nullable", True), "partition_index": column.get("partition_index"),
        }  # fmt: skip

    def _check_unique(self, columns: list[Object], start: str, table_id: str) -> None:
        seen: set[tuple[int, str]] = set()
        for number, column in enumerate(columns):
            key = column["position"], column["name"]
            if key in seen:
                row = self._columns - len(columns) + number
                raise broken(
                    f'{start}: could not execute statement [Unique index or primary key violation: "PUBLIC.'
                    "CONSTRAINT_INDEX_D ON PUBLIC.UC_COLUMNS(TABLE_ID NULLS FIRST, ORDINAL_POSITION NULLS FIRST, NAME "
                    f"NULLS FIRST) VALUES ( /* key:{row} */ UUID '{table_id}', CAST({key[0]} AS SMALLINT), "
                    f"'{key[1]}')\"; SQL statement:\n{_COLUMN_SQL} [23505-224]] [{_COLUMN_SQL}]"
                )
            seen.add(key)

    def create_leaf(self, kind: str, body: Object) -> Object:
        """Volumes as recorded; functions and models as far as they make a schema hold something."""
        name = checks.check_name(body.get("name"))
        with self.lock:
            schema = self.schema(body["catalog_name"], body["schema_name"])
            info: Object = {
                "catalog_name": body["catalog_name"], "schema_name": body["schema_name"], "name": name,
                "comment": body.get("comment"), **_times(), "volume_id": _id(), "volume_type": body.get("volume_type"),
                "storage_location": body.get("storage_location"),
                "full_name": f"{body['catalog_name']}.{body['schema_name']}.{name}",
            }  # fmt: skip
            schema.leaves[kind].append(info)
            return info

    def one(self, leaves: list[Object], name: str, missing: str) -> Object:
        found = [x for x in leaves if x["name"] == name]
        if len(found) > 1:
            raise broken(f"Query did not return a unique result: {len(found)} results were returned")
        if not found:
            raise Refused(404, "TABLE_NOT_FOUND", f"Table not found: {missing}")
        return found[0]

    def page(self, items: list[Object], size: int, token: str) -> tuple[list[Object], str | None]:
        """The name of the last one is the token, whenever the page is full. Rows are hidden after paging."""
        if size < 0:
            raise invalid("maxResults must be greater than or equal to 0")
        size = min(size or _PAGE, _PAGE)
        with self.lock:
            rest = sorted((i for i in items if not token or i["name"] > token), key=lambda i: i["name"])[:size]
        return [i for i in rest if self.visible(i)], rest[-1]["name"] if len(rest) == size else None


def _about(body: Object) -> Object:
    return {"comment": body.get("comment"), "properties": dict(body.get("properties") or {})}


def _times() -> Object:
    now = _now()
    return {"owner": None, "created_at": now, "created_by": None, "updated_at": now, "updated_by": None}


def _now() -> int:
    return int(time.time() * 1000)


def _id() -> str:
    return str(uuid.uuid4())
