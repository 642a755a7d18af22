"""Which columns of two tables have different types of values. Types are part of the content, their layout is not.

The same rules as those of the checksum (`pipeline.checksum.spelled`), which counts types too. Beyond them an extension
is another type than what it is stored as.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.fields import Fields
from reconciler.model.arrow import ArrowType, Dictionary, Field, ListOf, MapOf, Scalar, Struct

_STORED_AS = {"large_string": "string", "large_binary": "binary", "blob": "binary"}
_EXTENSION = "ARROW:extension:"


def content_differences(here: Fields, there: Fields) -> list[str]:
    """A text for each column that differs. The order of columns, nullability, comments and metadata do not count."""
    ours, theirs = {f.name: f for f in here}, {f.name: f for f in there}
    found = []
    for name in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get(name), theirs.get(name)
        if one is None or other is None:
            found.append(f"column {name} is only {'here' if other is None else 'there'}")
        elif _content(one) != _content(other):
            found.append(f"column {name} is {_told(one)} here, {_told(other)} there")
    return found


def _content(field: Field) -> Field:
    extension = {k: v for k, v in field.metadata.items() if k.startswith(_EXTENSION)}
    return Field(field.name, content_type(field.type), metadata=extension)


def content_type(type_: ArrowType) -> ArrowType:
    """One spelling for types whose values are the same."""
    match type_:
        case Dictionary(value=value):
            return content_type(value)
        case Scalar(name) if name in _STORED_AS:
            return Scalar(_STORED_AS[name])
        case ListOf(item=item):
            name = "list" if type_.name == "large_list" else type_.name
            return replace(type_, name=name, item=content_type(item), item_nullable=True)
        case Struct(fields):
            return Struct(tuple(sorted((_content(f) for f in fields), key=lambda f: f.name)))
        case MapOf(key, value):
            return MapOf(content_type(key), content_type(value))
        case _:
            return type_


def _told(field: Field) -> str:
    name = field.metadata.get(f"{_EXTENSION}name")
    return f"{field.type} ({name})" if name else str(field.type)
