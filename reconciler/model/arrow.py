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
from typing import Literal, NoReturn

MAX_DEPTH = 64

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
_ALIASES = {
    "float": "float32", "double": "float64", "halffloat": "float16", "boolean": "bool", "utf8": "string",
    "large_utf8": "large_string",
}  # fmt: skip
_DATE_UNITS = {"date32": "day", "date64": "ms"}
_INTEGERS = frozenset(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
_UNITS = {
    "timestamp": ("s", "ms", "us", "ns"), "duration": ("s", "ms", "us", "ns"), "time32": ("s", "ms"),
    "time64": ("us", "ns"),
}  # fmt: skip
_PARAMETRIC = (*_UNITS, "decimal128", "decimal256", "fixed_size_binary", "list", "large_list", "fixed_size_list",
               "struct", "map", "dictionary")  # fmt: skip
KNOWN_NAMES: tuple[str, ...] = tuple(sorted(SCALARS | set(_PARAMETRIC)))


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


@dataclass(frozen=True, slots=True)
class Dictionary:
    index: str
    value: ArrowType

    def __str__(self) -> str:
        return f"dictionary<{self.index}, {self.value}>"


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
    """`position` counts characters from 0 in the text."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


@lru_cache(maxsize=4096)
def parse_type(text: str) -> ArrowType:
    """Raises TypeSyntaxError. Cached: a lake has few distinct types and many columns."""
    parser = _Parser(text)
    result = parser.type(0)
    parser.skip()
    if parser.at < len(text):
        parser.fail(f"unexpected {text[parser.at : parser.at + 12]!r} after the type")
    return result


def _quote(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"-?[0-9]{1,10}")
_SPACE = re.compile(r"[ \t\r\n]*")
_ITEM_NAME = re.compile(r"(item|element|array)\s*:\s*")


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, message: str) -> NoReturn:
        raise TypeSyntaxError(message, self.at)

    def skip(self) -> None:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]

    def peek(self, token: str) -> bool:
        self.skip()
        return self.text.startswith(token, self.at)

    def take(self, token: str) -> None:
        if not self.peek(token):
            found = self.text[self.at : self.at + 12]
            self.fail(f"expected {token!r}" + (f", found {found!r}" if found else " before the end"))
        self.at += len(token)

    def word(self) -> str:
        self.skip()
        match = _WORD.match(self.text, self.at)
        if match is None:
            self.fail("expected a type name")
        self.at = match.end()
        return match.group()

    def number(self, low: int, high: int, what: str) -> int:
        self.skip()
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            self.fail(f"expected {what}")
        value = int(match.group())
        if not low <= value <= high:
            self.fail(f"{what} must be between {low} and {high}, not {value}")
        self.at = match.end()
        return value

    def not_null(self) -> bool:
        """Consumes `not null`; True when the value is nullable."""
        if not self.peek("not null"):
            return True
        self.at += len("not null")
        return False

    def type(self, depth: int) -> ArrowType:
        if depth > MAX_DEPTH:
            self.fail(f"types may be nested {MAX_DEPTH} levels deep at most")
        self.skip()
        start = self.at
        name = self.word()
        name = _ALIASES.get(name, name)
        if name in SCALARS:
            if name in _DATE_UNITS and self.peek("["):
                self.take("[")
                self.take(_DATE_UNITS[name])
                self.take("]")
            return Scalar(name)
        if name in _UNITS:
            return self.temporal(name)
        match name:
            case "decimal128" | "decimal256":
                self.take("(")
                precision = self.number(1, 38 if name == "decimal128" else 76, "the precision")
                self.take(",")
                scale = self.number(-precision, precision, "the scale")
                self.take(")")
                return Decimal(int(name[7:]), precision, scale)
            case "fixed_size_binary":
                self.take("[")
                width = self.number(1, 2**31 - 1, "the width")
                self.take("]")
                return FixedBinary(width)
            case "list" | "large_list" | "fixed_size_list":
                return self.list_of(name, depth)
            case "struct":
                return self.struct(depth)
            case "map":
                self.take("<")
                key = self.type(depth + 1)
                self.take(",")
                value = self.type(depth + 1)
                nullable = self.not_null()
                self.take(">")
                return MapOf(key, value, nullable)
            case "dictionary":
                return self.dictionary(depth)
            case _:
                self.at = start
                self.fail(f"unknown type {name!r}")

    def temporal(self, name: str) -> Temporal:
        units = _UNITS[name]
        self.take("[")
        self.skip()
        unit = self.word()
        if unit not in units:
            self.fail(f"the unit of {name} is one of {', '.join(units)}, not {unit!r}")
        tz = None
        if name == "timestamp" and self.peek(","):
            self.take(",")
            self.take("tz=")
            end = self.text.find("]", self.at)
            tz = self.text[self.at : end if end >= 0 else len(self.text)].strip()
            if not tz:
                self.fail("expected a time zone after tz=")
            self.at = end if end >= 0 else len(self.text)
        self.take("]")
        return Temporal(name, unit, tz)  # type: ignore[arg-type]

    def list_of(self, name: str, depth: int) -> ListOf:
        self.take("<")
        self.skip()
        prefix = _ITEM_NAME.match(self.text, self.at)
        if prefix:
            self.at = prefix.end()
        item = self.type(depth + 1)
        nullable = self.not_null()
        self.take(">")
        size = None
        if name == "fixed_size_list":
            self.take("[")
            size = self.number(1, 2**31 - 1, "the list size")
            self.take("]")
        return ListOf(name, item, nullable, size)  # type: ignore[arg-type]

    def struct(self, depth: int) -> Struct:
        self.take("<")
        fields: list[Field] = []
        seen: set[str] = set()
        while not self.peek(">"):
            if fields:
                self.take(",")
            start = self.at
            name = self.field_name()
            if name in seen:
                self.at = start
                self.fail(f"the struct has two fields named {name!r}")
            seen.add(name)
            self.take(":")
            type_ = self.type(depth + 1)
            fields.append(Field(name, type_, self.not_null()))
        self.take(">")
        if not fields:
            self.fail("a struct needs at least one field")
        return Struct(tuple(fields))

    def field_name(self) -> str:
        self.skip()
        if self.peek('"'):
            end = self.at + 1
            while True:
                end = self.text.find('"', end)
                if end < 0:
                    self.fail("the quoted field name is not closed")
                if self.text.startswith('""', end):
                    end += 2
                    continue
                break
            name = self.text[self.at + 1 : end].replace('""', '"')
            if not name:
                self.fail("a field name must not be empty")
            self.at = end + 1
            return name
        match = re.compile(r"[^\s:,<>\"]+").match(self.text, self.at)
        if match is None:
            self.fail("expected a field name")
        self.at = match.end()
        return match.group()

    def dictionary(self, depth: int) -> Dictionary:
        self.take("<")
        if self.peek("values="):
            self.take("values=")
            value = self.type(depth + 1)
            self.take(",")
            self.take("indices=")
            index = self.word()
            self.take(",")
            self.take("ordered=0")
        else:
            index = self.word()
            self.take(",")
            value = self.type(depth + 1)
        if index not in _INTEGERS:
            self.fail(f"the index of a dictionary is an integer type, not {index!r}")
        self.take(">")
        return Dictionary(index, value)
