"""What Unity Catalog 0.6.0 checks in a request, with its own words. Each check raises `Refused`."""

from __future__ import annotations

import json
import posixpath
import re
from typing import Any
from urllib.parse import urlsplit

FORMATS = ("DELTA", "CSV", "JSON", "AVRO", "PARQUET", "ORC", "TEXT")
TABLE_TYPES = ("MANAGED", "EXTERNAL", "STREAMING_TABLE", "MATERIALIZED_VIEW", "METRIC_VIEW", "VIEW")
TYPE_NAMES = (
    "BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "STRING",
    "BINARY", "DECIMAL", "INTERVAL", "ARRAY", "STRUCT", "MAP", "VARIANT", "CHAR", "NULL", "USER_DEFINED_TYPE",
    "TABLE_TYPE",
)  # fmt: skip
_NAME = re.compile(r"[a-zA-Z0-9_@-]+")
_SCHEMES = ("s3", "gs", "abfs", "abfss", "file")
_NOT_IN_A_URI = re.compile(r"[\x00-\x20\x7f\"<>\\^`{|}]|%(?![0-9A-Fa-f]{2})")
_PARSE = "failed to parse a JSON document: com.fasterxml.jackson."
_SOURCE = "\n at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1"


class Refused(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def invalid(message: str) -> Refused:
    return Refused(400, "INVALID_ARGUMENT", message)


def broken(message: str) -> Refused:
    return Refused(500, "INTERNAL", message)


def parsed(raw: bytes, model: str) -> dict[str, Any]:
    """The body, with the complaints of the server's JSON reader."""
    text = raw.decode()
    if not text:
        raise invalid(f"{_PARSE}databind.exc.MismatchedInputException: No content to map due to end-of-input{_SOURCE}]")
    try:
        body = json.loads(text)
    except json.JSONDecodeError as error:
        at = min(error.pos, len(text) - 1)
        raise invalid(
            f"{_PARSE}core.JsonParseException: Unexpected character ({text[at]!r} (code {ord(text[at])})): was "
            f"expecting double-quote to start field name{_SOURCE}, column: {at + 1}]"
        ) from None
    _check_enums(text, body, model)
    properties = body.get("properties")
    for key, value in (properties or {}).items():
        if isinstance(value, (dict, list)):
            token = "START_OBJECT" if isinstance(value, dict) else "START_ARRAY"
            kind = "Object" if isinstance(value, dict) else "Array"
            raise invalid(
                f"{_PARSE}databind.exc.MismatchedInputException: Cannot deserialize value of type `java.lang.String` "
                f"from {kind} value (token `JsonToken.{token}`){_SOURCE}, column: {_column(text, key)}] (through "
                f'reference chain: io.unitycatalog.server.model.{model}["properties"]->'
                f'java.util.LinkedHashMap["{key}"])'
            )
    if properties is not None:
        body["properties"] = {k: v if v is None or isinstance(v, str) else json.dumps(v) for k, v in properties.items()}
    assert isinstance(body, dict)
    return body


def _check_enums(text: str, body: dict[str, Any], model: str) -> None:
    chain = f"io.unitycatalog.server.model.{model}"
    for key, known, name in (
        ("data_source_format", FORMATS, "DataSourceFormat"),
        ("table_type", TABLE_TYPES, "TableType"),
    ):
        value = body.get(key)
        if value is not None and value not in known:
            raise _unexpected(name, value, _column(text, key), f'{chain}["{key}"]')
    for number, column in enumerate(body.get("columns") or ()):
        value = column.get("type_name")
        if value is not None and value not in TYPE_NAMES:
            info = 'io.unitycatalog.server.model.ColumnInfo["type_name"]'
            where = f'{chain}["columns"]->java.util.ArrayList[{number}]->{info}'
            raise _unexpected("ColumnTypeName", value, _column(text, "type_name", number), where)


def _unexpected(name: str, value: str, column: int, chain: str) -> Refused:
    return invalid(
        f"{_PARSE}databind.exc.ValueInstantiationException: Cannot construct instance of "
        f"`io.unitycatalog.server.model.{name}`, problem: Unexpected value '{value}'{_SOURCE}, column: {column}] "
        f"(through reference chain: {chain})"
    )


def _column(text: str, key: str, number: int = 0) -> int:
    """Where the value of a key begins, from 1."""
    found = list(re.finditer(rf'"{re.escape(key)}":\s*', text))
    return found[min(number, len(found) - 1)].end() + 1


def check_name(name: str | None) -> str:
    if not name:
        raise invalid("Name cannot be empty")
    if len(name) > 255:
        raise invalid("Name cannot be longer than 255 characters")
    if not _NAME.fullmatch(name):
        raise invalid("Name cannot contain a period, space, forward-slash, or control characters")
    return name


def check_stored(
    what: str, properties: dict[str, Any] | None, comment: str | None, comment_limit: int, sql: str
) -> None:
    """What the database refuses; `what` is how the message begins."""
    insert = "insert into uc_properties (entity_id,entity_type,property_key,property_value,id) values (?,?,?,?,?)"
    check_length(what, "COMMENT", comment, comment_limit, sql)
    for key, value in (properties or {}).items():
        if value is None:
            raise broken(
                f"{what}: not-null property references a null or transient value : "
                "io.unitycatalog.server.persist.dao.PropertyDAO.value"
            )
        for column, text in (("PROPERTY_KEY", key), ("PROPERTY_VALUE", value)):
            check_length(what, column, text, 255, insert)


def check_length(what: str, column: str, text: str | None, most: int, sql: str) -> None:
    """As the database counts, which is in Java: a character beyond U+FFFF is two."""
    units = (text or "").encode("utf-16-le", "surrogatepass")
    if len(units) // 2 <= most:
        return
    start = units[: 2 * 79].decode("utf-16-le", "ignore")
    raise broken(
        f'{what}: could not execute statement [Value too long for column "{column} CHARACTER VARYING({most})": '
        f'"\'{start}... ({len(units) // 2})"; SQL statement:\n{sql} [22001-224]] [{sql}]'
    )


def check_columns(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Before anything is looked up: `type_json` of every column, then `type_text`."""
    if "columns" in body and body["columns"] is None:
        raise broken(
            'Cannot invoke "java.util.List.stream()" because the return value of '
            '"io.unitycatalog.server.model.CreateTable.getColumns()" is null'
        )
    columns = body.get("columns") or []
    for column in columns:
        _check_type_json(column)
    for column in columns:
        if column.get("type_text") is None:
            raise broken(
                'Cannot invoke "String.toLowerCase(java.util.Locale)" because the return value of '
                '"io.unitycatalog.server.model.ColumnInfo.getTypeText()" is null'
            )
    return list(columns)


def _check_type_json(column: dict[str, Any]) -> None:
    name, text = column.get("name"), column.get("type_json")
    start = f"Invalid type_json for column {name}"
    if not text:
        raise invalid(f"{start}: Column {name} has null/empty typeJson")
    try:
        field = json.loads(text)
        if not isinstance(field, dict):
            raise ValueError
        _check_type(field.get("type"))
    except ValueError:
        raise invalid(f"{start}: Failed to parse typeJson for column {name}: {text}") from None
    for key in ("name", "type", "nullable", "metadata"):
        if field.get(key) is None:
            raise invalid(f"type_json.{key} is required.")
    if field["name"] != name:
        raise invalid(f"{start}: field name {field['name']} does not match column name {name}")
    nullable = column.get("nullable", True)
    if field["nullable"] is not nullable:
        shown = f"{json.dumps(field['nullable'])} does not match column nullable {json.dumps(nullable)}"
        raise invalid(f"{start}: field nullable {shown}")


def _check_type(type_: Any) -> None:
    """Any word is a primitive type; arrays, maps and structs must have all their parts."""
    if type_ is None or isinstance(type_, str):
        return
    kind = type_.get("type") if isinstance(type_, dict) else None
    if kind == "array":
        _check_parts(type_, "elementType", "containsNull")
        _check_type(type_["elementType"])
    elif kind == "map":
        _check_parts(type_, "keyType", "valueType", "valueContainsNull")
        _check_type(type_["keyType"])
        _check_type(type_["valueType"])
    elif kind == "struct":
        _check_parts(type_, "fields")
        for field in type_["fields"]:
            _check_parts(field, "name", "type", "nullable", "metadata")
            _check_type(field["type"])
    else:
        raise ValueError


def _check_parts(value: dict[str, Any], *names: str) -> None:
    if any(value.get(n) is None for n in names):
        raise ValueError


def stored_location(location: str, folder: str) -> str:
    """As the server keeps it. `folder` is its working directory."""
    if not location.strip():
        raise invalid("Path cannot be null or empty")
    if "/" not in location:
        raise invalid(f"Ambiguous path: {location}")
    if _NOT_IN_A_URI.search(location):
        raise invalid(f"Unsupported path: {location}")
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        return "file://" + posixpath.normpath(posixpath.join(folder, location))
    if scheme not in _SCHEMES:
        raise invalid(f"Unsupported URI scheme: {scheme}")
    if scheme == "file":
        return "file://" + posixpath.normpath("/" + rest.lstrip("/"))
    parts = urlsplit(location)
    path = posixpath.normpath(parts.path).rstrip("/") if parts.path else ""
    if path in ("", "."):
        raise invalid(f"External table storage location must include a non-empty path prefix: {location}")
    return f"{scheme}://{parts.netloc}{path}"
