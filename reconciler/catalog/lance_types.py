"""Which Arrow types the Lance file format 2.2 can hold. Pure: `validate` asks without importing lance.

Every rule was measured by writing and reading rows with pylance 14: the schema alone is accepted for several types
whose data then cannot be written (a crash in the writer) or read.
"""

from __future__ import annotations

from reconciler.model.arrow import (
    ArrowType,
    Decimal,
    Dictionary,
    FixedBinary,
    ListOf,
    MapOf,
    Scalar,
    Struct,
    Temporal,
)

_VARIABLE_WIDTH = frozenset({"string", "large_string", "binary", "large_binary", "blob"})
_NO_DICTIONARY_OF = frozenset({"date32", "date64", "blob"})


def type_problem(type_: ArrowType) -> str | None:
    """Why a column of this type cannot be stored, or None."""
    match type_:
        case ListOf():
            if type_.name == "fixed_size_list" and not _fixed_width(type_.item):
                return f"fixed_size_list holds only fixed-width items, not {type_.item}: use list<{type_.item}>"
            if type_.name == "fixed_size_list" and not type_.item_nullable:
                return "the items of a fixed_size_list cannot be `not null`: leave that out"
            return type_problem(type_.item)
        case Struct():
            if not type_.fields:
                return "a struct needs at least one field"
            return next((p for f in type_.fields if (p := type_problem(f.type))), None)
        case MapOf():
            return _map_problem(type_)
        case Dictionary():
            value = type_.value
            if not isinstance(value, Scalar) or value.name in _NO_DICTIONARY_OF:
                return f"a dictionary of {value} cannot be stored: use {value} itself"
            return None
        case _:
            return None


def _map_problem(type_: MapOf) -> str | None:
    if type_.key == Scalar("null"):
        return "the key of a map cannot be null"
    if Scalar("blob") in (type_.key, type_.value):
        return "a map cannot hold blobs: use large_binary"
    return type_problem(type_.key) or type_problem(type_.value)


def _fixed_width(type_: ArrowType) -> bool:
    match type_:
        case Scalar():
            return type_.name not in _VARIABLE_WIDTH
        case Temporal() | Decimal() | FixedBinary():
            return True
        case ListOf():
            return type_.name == "fixed_size_list" and _fixed_width(type_.item)
        case _:
            return False
