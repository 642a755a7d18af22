"""Our Arrow types as pyarrow's and back. A column's comment is its field metadata `comment`.

`blob` is pylance's blob extension type. Any other extension type is read as its storage type with the
`ARROW:extension:*` metadata kept, so that writing what was read gives the same column again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa

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

COMMENT_KEY = "comment"
_BLOB_NAME = "lance.blob.v2"
_BLOB_ENCODING = "lance-encoding:blob"
_EXTENSION = "ARROW:extension:name"
_EXTENSION_DATA = "ARROW:extension:metadata"

_SCALARS: dict[str, Any] = {
    "null": pa.null(), "bool": pa.bool_(),
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(),
    "uint8": pa.uint8(), "uint16": pa.uint16(), "uint32": pa.uint32(), "uint64": pa.uint64(),
    "float16": pa.float16(), "float32": pa.float32(), "float64": pa.float64(),
    "string": pa.string(), "large_string": pa.large_string(),
    "binary": pa.binary(), "large_binary": pa.large_binary(),
    "date32": pa.date32(), "date64": pa.date64(),
}  # fmt: skip
_SCALAR_OF: dict[Any, Scalar] = {arrow: Scalar(name) for name, arrow in _SCALARS.items()}


class UnknownArrowType(ValueError):
    """A live column has a type that a manifest cannot name."""


def to_arrow_type(type_: ArrowType) -> Any:
    match type_:
        case Scalar(name="blob"):
            return _blob_type()
        case Scalar():
            return _SCALARS[type_.name]
        case Temporal(name="timestamp"):
            return pa.timestamp(type_.unit, tz=type_.tz)
        case Temporal():
            return {"time32": pa.time32, "time64": pa.time64, "duration": pa.duration}[type_.name](type_.unit)
        case Decimal():
            make = pa.decimal128 if type_.bits == 128 else pa.decimal256
            return make(type_.precision, type_.scale)
        case FixedBinary():
            return pa.binary(type_.width)
        case ListOf():
            item = pa.field("item", to_arrow_type(type_.item), nullable=type_.item_nullable)
            if type_.name == "fixed_size_list":
                return pa.list_(item, type_.size)
            return pa.list_(item) if type_.name == "list" else pa.large_list(item)
        case Struct():
            return pa.struct([to_arrow_field(f) for f in type_.fields])
        case MapOf():
            value = pa.field("value", to_arrow_type(type_.value), nullable=type_.value_nullable)
            return pa.map_(pa.field("key", to_arrow_type(type_.key), nullable=False), value)
        case Dictionary():
            return pa.dictionary(_SCALARS[type_.index], to_arrow_type(type_.value))


def to_arrow_field(field: Field) -> Any:
    metadata = dict(field.metadata)
    if field.comment is not None:
        metadata[COMMENT_KEY] = field.comment
    return pa.field(field.name, to_arrow_type(field.type), nullable=field.nullable, metadata=metadata or None)


def to_arrow_schema(fields: Sequence[Field], metadata: Mapping[str, str] | None = None) -> Any:
    return pa.schema([to_arrow_field(f) for f in fields], metadata=dict(metadata) if metadata else None)


def from_arrow_type(type_: Any) -> ArrowType:
    """Raises UnknownArrowType."""
    if isinstance(type_, pa.BaseExtensionType):
        return Scalar("blob") if type_.extension_name == _BLOB_NAME else from_arrow_type(type_.storage_type)
    scalar = _SCALAR_OF.get(type_)
    if scalar is not None:
        return scalar
    types = pa.types
    if types.is_timestamp(type_):
        return Temporal("timestamp", type_.unit, type_.tz)
    if types.is_time32(type_):
        return Temporal("time32", type_.unit)
    if types.is_time64(type_):
        return Temporal("time64", type_.unit)
    if types.is_duration(type_):
        return Temporal("duration", type_.unit)
    if types.is_decimal128(type_) or types.is_decimal256(type_):
        return Decimal(type_.bit_width, type_.precision, type_.scale)
    if types.is_fixed_size_binary(type_):
        return FixedBinary(type_.byte_width)
    if types.is_dictionary(type_):
        return Dictionary(str(from_arrow_type(type_.index_type)), from_arrow_type(type_.value_type))
    return _from_nested(type_)


def _from_nested(type_: Any) -> ArrowType:
    types = pa.types
    if types.is_fixed_size_list(type_):
        item = type_.value_field
        return ListOf("fixed_size_list", _item(item), item.nullable, type_.list_size)
    if types.is_list(type_):
        return ListOf("list", _item(type_.value_field), type_.value_field.nullable)
    if types.is_large_list(type_):
        return ListOf("large_list", _item(type_.value_field), type_.value_field.nullable)
    if types.is_struct(type_):
        return Struct(tuple(from_arrow_field(f) for f in type_))
    if types.is_map(type_):
        return MapOf(_item(type_.key_field), _item(type_.item_field), type_.item_field.nullable)
    raise UnknownArrowType(f"the type {type_} has no name in a manifest")


def _item(field: Any) -> ArrowType:
    return Scalar("blob") if _is_blob(field) else from_arrow_type(field.type)


def _is_blob(field: Any) -> bool:
    """Files older than 2.2 hold a blob as large_binary with an encoding mark."""
    return bool(field.metadata) and field.metadata.get(_BLOB_ENCODING.encode()) == b"true"


def from_arrow_field(field: Any) -> Field:
    if field.metadata is None and not isinstance(field.type, pa.BaseExtensionType):
        return Field(field.name, from_arrow_type(field.type), field.nullable)
    metadata = {k.decode(): v.decode("utf-8", "replace") for k, v in (field.metadata or {}).items()}
    type_ = _item(field)
    if type_ == Scalar("blob"):
        for key in (_BLOB_ENCODING, _EXTENSION, _EXTENSION_DATA):
            metadata.pop(key, None)
    elif isinstance(field.type, pa.BaseExtensionType):
        metadata[_EXTENSION] = field.type.extension_name
        serialize = getattr(field.type, "__arrow_ext_serialize__", bytes)
        if data := serialize():
            metadata[_EXTENSION_DATA] = data.decode("utf-8", "replace")
    comment = metadata.pop(COMMENT_KEY, None)
    return Field(field.name, type_, field.nullable, comment, metadata)


_known: dict[bytes, tuple[tuple[Field, ...], Mapping[str, str]]] = {}
"""By the schema's bytes: a lake is read again and again, and equal schemas then share one tuple of fields."""


def from_arrow_schema(schema: Any) -> tuple[tuple[Field, ...], Mapping[str, str]]:
    """The fields and the schema metadata. Raises UnknownArrowType with the column's name."""
    key = schema.serialize().to_pybytes()
    known = _known.get(key)
    if known is not None:
        return known
    fields = []
    for field in schema:
        try:
            fields.append(from_arrow_field(field))
        except UnknownArrowType as error:
            raise UnknownArrowType(f"column {field.name!r}: {error}") from None
    metadata = {k.decode(): v.decode("utf-8", "replace") for k, v in (schema.metadata or {}).items()}
    if len(_known) > 10_000:
        _known.clear()
    _known[key] = tuple(fields), MappingProxyType(metadata)
    return _known[key]


def _blob_type() -> Any:
    import lance

    return lance.blob_field("blob").type
