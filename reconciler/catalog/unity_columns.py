"""The columns that Unity shows for a table: Arrow fields as Spark types, and back from what the server stores.

A projection, and a lossy one: Spark has no unsigned, no half floats, no fixed sizes, no time of day. The schema of
record is the dataset's. `Column.type` is the Spark type as text: a word (`long`, `decimal(20,0)`) or, for a nested
type, its JSON with sorted keys and without metadata.

| Arrow | Spark |
|---|---|
| uint8, uint16, uint32, uint64 | short, integer, long, decimal(20,0) |
| float16 | float |
| timestamp without / with a zone | timestamp_ntz / timestamp |
| time32, time64, duration | long |
| decimal of more than 38 digits | string |
| fixed_size_binary, large_binary, blob | binary |
| every list | array |
| dictionary | the type of its values |
| null | void |
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.model.arrow import (
    ArrowType,
    Decimal,
    Dictionary,
    Field,
    FixedBinary,
    ListOf,
    MapOf,
    Scalar,
    Struct,
    Temporal,
)
from reconciler.model.state import Column

_MOST_DIGITS = 38
_SCALARS = {
    "null": "void", "bool": "boolean", "int8": "byte", "int16": "short", "int32": "integer", "int64": "long",
    "uint8": "short", "uint16": "integer", "uint32": "long", "uint64": "decimal(20,0)", "float16": "float",
    "float32": "float", "float64": "double", "string": "string", "large_string": "string", "binary": "binary",
    "large_binary": "binary", "date32": "date", "date64": "date", "blob": "binary",
}  # fmt: skip
_TEXTS = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_NAMES = {"integer": "INT", "void": "NULL"}


def columns_of(fields: Sequence[Field]) -> tuple[Column, ...]:
    return tuple(Column(f.name, _text(_spark(f.type)), f.nullable, f.comment or None) for f in fields)


def wire_columns(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """As `POST /tables` takes them: `type_json` is a Spark StructField whose name and nullability are the column's."""
    return [_wire(column, position) for position, column in enumerate(columns)]


def shown_columns(wire: object) -> tuple[Column, ...]:
    """The columns of a table as the server answers them: in any order, with `type_text` in lower case."""
    columns = [c for c in wire if isinstance(c, dict)] if isinstance(wire, list) else []
    columns.sort(key=lambda c: c["position"] if isinstance(c.get("position"), int) else len(columns))
    return tuple(
        Column(str(c.get("name")), _shown_type(c), c.get("nullable") is not False, c.get("comment") or None)
        for c in columns
    )


def _spark(type_: ArrowType) -> Any:
    match type_:
        case Scalar():
            return _SCALARS[type_.name]
        case Temporal():
            if type_.name != "timestamp":
                return "long"
            return "timestamp" if type_.tz else "timestamp_ntz"
        case Decimal():
            return _decimal(type_)
        case FixedBinary():
            return "binary"
        case ListOf():
            return {"type": "array", "elementType": _spark(type_.item), "containsNull": type_.item_nullable}
        case Struct():
            fields = [{"name": f.name, "type": _spark(f.type), "nullable": f.nullable} for f in type_.fields]
            return {"type": "struct", "fields": fields}
        case MapOf():
            key, value = _spark(type_.key), _spark(type_.value)
            return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": type_.value_nullable}
        case Dictionary():
            return _spark(type_.value)


def _decimal(type_: Decimal) -> str:
    """Spark has neither a negative scale nor more than 38 digits."""
    scale = max(type_.scale, 0)
    digits = type_.precision - min(type_.scale, 0)
    return f"decimal({digits},{scale})" if digits <= _MOST_DIGITS else "string"


def _text(spark: Any) -> str:
    return spark if isinstance(spark, str) else json.dumps(spark, sort_keys=True, separators=(",", ":"))


def _parsed(text: str) -> Any:
    return json.loads(text) if text.startswith("{") else text


def _wire(column: Column, position: int) -> dict[str, Any]:
    spark = _parsed(column.type)
    field = {"name": column.name, "type": _with_metadata(spark), "nullable": column.nullable, "metadata": {}}
    wire: dict[str, Any] = {
        "name": column.name,
        "type_text": _ddl(spark),
        "type_json": json.dumps(field, ensure_ascii=False),
        "type_name": _type_name(spark),
        "position": position,
        "nullable": column.nullable,
    }
    if isinstance(spark, str) and spark.startswith("decimal("):
        digits, _, scale = spark[8:-1].partition(",")
        wire["type_precision"], wire["type_scale"] = int(digits), int(scale)
    if column.comment is not None:
        wire["comment"] = column.comment
    return wire


def _with_metadata(spark: Any) -> Any:
    """Every field of a struct has all four keys on the wire."""
    if isinstance(spark, dict):
        inner = {k: _with_metadata(v) for k, v in spark.items()}
        return {**inner, "metadata": {}} if "nullable" in spark else inner
    return [_with_metadata(s) for s in spark] if isinstance(spark, list) else spark


def _without_metadata(spark: Any) -> Any:
    if isinstance(spark, dict):
        drop = "metadata" if "nullable" in spark else None
        return {k: _without_metadata(v) for k, v in spark.items() if k != drop}
    return [_without_metadata(s) for s in spark] if isinstance(spark, list) else spark


def _type_name(spark: Any) -> str:
    word = str(spark["type"] if isinstance(spark, dict) else spark.partition("(")[0])
    return _NAMES.get(word, word.upper())


def _ddl(spark: Any) -> str:
    """The type as SQL writes it."""
    if isinstance(spark, str):
        return _TEXTS.get(spark, spark)
    if spark["type"] == "array":
        return f"array<{_ddl(spark['elementType'])}>"
    if spark["type"] == "map":
        return f"map<{_ddl(spark['keyType'])},{_ddl(spark['valueType'])}>"
    return "struct<" + ",".join(f"{f['name']}:{_ddl(f['type'])}" for f in spark["fields"]) + ">"


def _shown_type(column: Mapping[str, Any]) -> str:
    """From `type_json`: a StructField, or, from servers before 0.5 and other clients, the bare type."""
    try:
        value = json.loads(column.get("type_json") or "")
    except (TypeError, ValueError):
        return str(column.get("type_text") or "")
    bare = isinstance(value, dict) and not {"elementType", "fields", "keyType"}.isdisjoint(value)
    spark = value.get("type") if isinstance(value, dict) and not bare else value
    return _text(_without_metadata(spark))
