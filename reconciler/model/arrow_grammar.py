"""The grammar of Arrow types: reads what `str` of a type writes, and pyarrow's own spellings. The way in is
`arrow.parse_type`."""

from __future__ import annotations

import re
from typing import NoReturn

from reconciler.model.arrow import (
    SCALARS,
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
    TypeSyntaxError,
)

MAX_DEPTH = 64
ALIASES = {
    "float": "float32", "double": "float64", "halffloat": "float16", "boolean": "bool", "utf8": "string",
    "large_utf8": "large_string",
}  # fmt: skip
_DATE_UNITS = {"date32": "day", "date64": "ms"}
_INTEGERS = frozenset(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
UNITS = {
    "timestamp": ("s", "ms", "us", "ns"), "duration": ("s", "ms", "us", "ns"), "time32": ("s", "ms"),
    "time64": ("us", "ns"),
}  # fmt: skip
_PARAMETRIC = (*UNITS, "decimal128", "decimal256", "fixed_size_binary", "list", "large_list", "fixed_size_list",
               "struct", "map", "dictionary")  # fmt: skip
KNOWN = SCALARS | set(_PARAMETRIC)
KNOWN_NAMES: tuple[str, ...] = tuple(sorted(KNOWN))

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"-?[0-9]{1,10}")
_SPACE = re.compile(r"[ \t\r\n]*")
_ITEM_NAME = re.compile(r"(item|element|array)\s*:\s*")


class Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.open: list[tuple[str, int]] = []
        """The types that are being read and where each begins, the innermost last."""
        self.last = ("", 0, -1)
        """The type that was read last, where it begins and where it ends."""

    def fail(self, message: str) -> NoReturn:
        name, start, end = self.last
        before = end >= 0 and not self.text[end : self.at].strip()
        inside = self.open[-1][0] if self.open else name if before else ""
        starts = ([start] if before else []) + [at for _, at in reversed(self.open)]
        raise TypeSyntaxError(message, self.at, inside, tuple(starts))

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
        name = ALIASES.get(name, name)
        if name not in KNOWN:
            self.at = start
            self.fail(f"unknown type {name!r}")
        self.open.append((name, start))
        found = self.known(name, depth)
        self.open.pop()
        self.last = (name, start, self.at)
        return found

    def known(self, name: str, depth: int) -> ArrowType:
        if name in SCALARS:
            if name in _DATE_UNITS and self.peek("["):
                self.take("[")
                self.take(_DATE_UNITS[name])
                self.take("]")
            return Scalar(name)
        if name in UNITS:
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
            case _:
                return self.dictionary(depth)

    def temporal(self, name: str) -> Temporal:
        units = UNITS[name]
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
