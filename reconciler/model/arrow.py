"""Arrow types as plain data, with one grammar that parses and prints: `parse_type(str(t)) == t`.

    int64  string  timestamp[us, tz=UTC]  decimal128(38, 10)  fixed_size_binary[16]
    list<T>  list<T not null>  fixed_size_list<float32>[768]  struct<a: T, "b c": T not null>
    map<K, V>  dictionary<int32, string>  blob

pyarrow's own spellings (`float`, `date32[day]`, `list<item: T>`, `dictionary<values=T, indices=I, ordered=0>`) are
read too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

SCALARS = frozenset(
    [
        "null",
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "string",
        "large_string",
        "binary",
        "large_binary",
        "date32",
        "date64",
        "blob",
    ]
)


@dataclass(frozen=True, slots=True)
class Scalar:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Temporal:
    """timestamp, time32, time64 and duration."""

    name: Literal["timestamp", "time32", "time64", "duration"]
    unit: str
    tz: str | None = None

    def __str__(self) -> str:
        return f"{self.name}[{self.unit}, tz={self.tz}]" if self.tz else f"{self.name}[{self.unit}]"


@dataclass(frozen=True, slots=True)
class Decimal:
    bits: int
    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal{self.bits}({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class FixedBinary:
    width: int

    def __str__(self) -> str:
        return f"fixed_size_binary[{self.width}]"


@dataclass(frozen=True, slots=True)
class ListOf:
    """list, large_list and, with a size, fixed_size_list. The item's name is never compared."""

    name: Literal["list", "large_list", "fixed_size_list"]
    item: ArrowType
    item_nullable: bool = True
    size: int | None = None

    def __str__(self) -> str:
        inner = f"{self.item}{'' if self.item_nullable else ' not null'}"
        return f"{self.name}<{inner}>" + (f"[{self.size}]" if self.size is not None else "")


@dataclass(frozen=True, slots=True)
class Struct:
    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return (
            "struct<"
            + ", ".join(f"{_quote(f.name)}: {f.type}{'' if f.nullable else ' not null'}" for f in self.fields)
            + ">"
        )


@dataclass(frozen=True, slots=True)
class MapOf:
    key: ArrowType
    value: ArrowType
    value_nullable: bool = True

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}{'' if self.value_nullable else ' not null'}>"


_ENOUGH_BITS = 31


@dataclass(frozen=True, slots=True)
class Dictionary:
    index: str
    value: ArrowType

    def __str__(self) -> str:
        return f"dictionary<{self.index}, {self.value}>"

    @property
    def room(self) -> int | None:
        """How many different values it can hold; None: as many as there are."""
        bits = int(self.index.removeprefix("uint").removeprefix("int")) - (not self.index.startswith("uint"))
        return 2**bits if bits < _ENOUGH_BITS else None


ArrowType = Scalar | Temporal | Decimal | FixedBinary | ListOf | Struct | MapOf | Dictionary


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a child of a struct. The last three say how to get there and are None on live fields."""

    name: str
    type: ArrowType
    nullable: bool = True
    comment: str | None = None
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    renamed_from: str | None = None
    default: str | None = None
    """SQL expression for the rows that exist already."""
    function: str | None = None
    """Name of a registered Python function that gives the values for the rows that exist already."""

    @property
    def filled(self) -> bool:
        """The rows that exist already get values."""
        return self.default is not None or self.function is not None


def is_speakable(name: str) -> bool:
    """Can a path hold this name? Lance separates names by dots and quotes them by backticks."""
    return "." not in name and "`" not in name


def names_inside(type_: ArrowType) -> Iterator[str]:
    """The name of every field of every struct in it."""
    match type_:
        case Struct(fields):
            for f in fields:
                yield f.name
                yield from names_inside(f.type)
        case ListOf(item=inner) | Dictionary(value=inner):
            yield from names_inside(inner)
        case MapOf(key=key, value=value):
            yield from names_inside(key)
            yield from names_inside(value)


class TypeSyntaxError(ValueError):
    """`position` counts characters from 0 in the text. `inside` is the type that was being read there, "" when none is
    known; `starts` are the places where types begin that may have to be written otherwise, the likeliest first."""

    def __init__(self, message: str, position: int, inside: str = "", starts: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.position = position
        self.inside = inside
        self.starts = starts


@lru_cache(maxsize=4096)
def parse_type(text: str) -> ArrowType:
    """Raises TypeSyntaxError. Cached: a lake has few distinct types and many columns."""
    from reconciler.model.arrow_grammar import Parser  # It makes the types of this module.

    parser = Parser(text)
    result = parser.type(0)
    parser.skip()
    if parser.at < len(text):
        parser.fail(f"unexpected {text[parser.at : parser.at + 12]!r} after the type")
    return result


def _quote(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")
