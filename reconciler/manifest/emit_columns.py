"""A live column as a manifest writes it."""

from __future__ import annotations

from typing import Any

from reconciler.manifest.reserved_keys import settable
from reconciler.model.arrow import ArrowType, Dictionary, Field, ListOf, MapOf, Struct

Doc = dict[str, Any]


def column(field: Field, left_out: list[str]) -> Doc:
    """Nested fields that carry a comment or metadata are written out; a type string cannot hold those. Metadata keys
    that a manifest cannot set are not managed: they go to `left_out`."""
    doc: Doc = {"name": field.name}
    inner = _struct_to_write(field.type)
    if inner is None:
        doc["type"] = str(field.type)
    else:
        text = type_around(field.type, inner)
        if text != "struct":
            doc["type"] = text
    if not field.nullable:
        doc["nullable"] = False
    if field.comment is not None:
        doc["comment"] = field.comment
    left_out += sorted(k for k in field.metadata if not settable(k))
    if kept := {k: v for k, v in sorted(field.metadata.items()) if settable(k)}:
        doc["metadata"] = kept
    if inner is not None:
        doc["fields"] = [column(f, left_out) for f in inner.fields]
    return doc


def _annotated(field: Field) -> bool:
    return field.comment is not None or any(settable(k) for k in field.metadata)


def _struct_to_write(type_: ArrowType) -> Struct | None:
    """The struct to write out: the outermost one on the way to a nested comment or metadata."""
    match type_:
        case Struct(fields):
            return type_ if any(_annotated(f) or _struct_to_write(f.type) for f in fields) else None
        case ListOf(item=item):
            return _struct_to_write(item)
        case MapOf(key=key, value=value):
            return _struct_to_write(value) or _struct_to_write(key)
        case Dictionary(value=value):
            return _struct_to_write(value)
        case _:
            return None


def type_around(type_: ArrowType, hole: Struct) -> str:
    """The type with the word `struct` in the place of the struct that is written out."""
    if type_ is hole:
        return "struct"
    match type_:
        case ListOf():
            inner = type_around(type_.item, hole) + ("" if type_.item_nullable else " not null")
            return f"{type_.name}<{inner}>" + (f"[{type_.size}]" if type_.size is not None else "")
        case MapOf():
            value = type_around(type_.value, hole) + ("" if type_.value_nullable else " not null")
            return f"map<{type_around(type_.key, hole)}, {value}>"
        case _:
            return str(type_)
