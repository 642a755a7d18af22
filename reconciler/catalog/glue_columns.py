"""A Lance schema as Glue shows it: Hive types, one column for each top-level field. Pure.

It is a projection for people and query engines that look at the catalog. It loses what Hive has no word for (unsigned
numbers, vector lengths, units, nullability); the schema of record is the dataset's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

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

MAX_COMMENT = 255
MAX_NAME = 255
MAX_TYPE = 131_072
_MAX_PRECISION = 38
_SCALARS = {
    "null": "string", "bool": "boolean", "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint",
    "uint8": "smallint", "uint16": "int", "uint32": "bigint", "uint64": "decimal(20,0)", "float16": "float",
    "float32": "float", "float64": "double", "string": "string", "large_string": "string", "binary": "binary",
    "large_binary": "binary", "date32": "date", "date64": "date", "blob": "binary",
}  # fmt: skip
_TEMPORAL = {"timestamp": "timestamp", "time32": "string", "time64": "string", "duration": "bigint"}
_PLAIN = re.compile(r"\w+")


def hive_type(type_: ArrowType) -> str:
    """The narrowest Hive type that holds every value. Names inside a struct keep their case, as Glue keeps them."""
    match type_:
        case Scalar():
            return _SCALARS[type_.name]
        case Temporal():
            return _TEMPORAL[type_.name]
        case Decimal():
            return _decimal(type_)
        case FixedBinary():
            return "binary"
        case ListOf():
            return f"array<{hive_type(type_.item)}>"
        case Struct():
            return "struct<" + ",".join(f"{_quoted(f.name)}:{hive_type(f.type)}" for f in type_.fields) + ">"
        case MapOf():
            return f"map<{hive_type(type_.key)},{hive_type(type_.value)}>"
        case Dictionary():
            return hive_type(type_.value)


def columns_of(fields: Sequence[Field]) -> tuple[Column, ...]:
    """Names are folded as Glue folds them. A comment is shown as one line, and one that is too long (a live dataset may
    have it) is cut."""
    return tuple(Column(f.name.lower(), hive_type(f.type), True, _comment(f.comment)) for f in fields)


def schema_problem(fields: Sequence[Field]) -> str | None:
    """Why Glue cannot show these columns, or None."""
    if (twice := _folded_twice([f.name for f in fields])) is not None:
        return twice
    for f in fields:
        if len(f.name) > MAX_NAME or not printable(f.name):
            return f"the column name {f.name[:40]!r} cannot be shown by Glue: at most {MAX_NAME} printable characters"
        if f.comment is not None and len(f.comment) > MAX_COMMENT:
            return f"the comment of column {f.name!r} is longer than the {MAX_COMMENT} characters that Glue takes"
        if len(hive_type(f.type)) > MAX_TYPE:
            return f"the type of column {f.name!r} is longer than the {MAX_TYPE} characters that Glue takes"
    return None


def columns_problem(columns: Sequence[Column]) -> str | None:
    """The same for a projection that is about to be written: a live dataset was never validated."""
    return _folded_twice([c.name for c in columns])


def printable(text: str) -> bool:
    """Glue's pattern for one line of text."""
    return all(c >= " " and c != "\x7f" and c not in "\ufffe\uffff" and not "\ud800" <= c <= "\udfff" for c in text)


def _folded_twice(names: Sequence[str]) -> str | None:
    counts = Counter(n.lower() for n in names)
    clash = [n for n in names if counts[n.lower()] > 1]
    if not clash:
        return None
    return (
        f"Glue folds the names of columns to lower case, so {' and '.join(repr(n) for n in clash[:2])} cannot stand "
        "in one table: rename one of them"
    )


def _decimal(type_: Decimal) -> str:
    precision, scale = type_.precision, type_.scale
    if scale < 0:  # Hive counts digits after the point only
        precision, scale = precision - scale, 0
    return f"decimal({precision},{scale})" if precision <= _MAX_PRECISION else "string"


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _comment(comment: str | None) -> str | None:
    if not comment:
        return None
    return "".join(c if printable(c) else " " for c in comment)[:MAX_COMMENT]
