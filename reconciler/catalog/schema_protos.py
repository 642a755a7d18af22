"""A LanceSchema with a column in the place of another. pylance offers no way to say that, but a schema consists of the
protobuf messages of its fields, which it takes back: they are cut and joined here, byte for byte otherwise.

Field ids are what counts in Lance: data files and indexes name columns by them. Ids of columns that stay never change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_NAME, _ID, _PARENT = 2, 3, 4
_VARINT, _BYTES = 0, 2
_NONE = (1 << 64) - 1
"""The parent of a top-level field: -1 as protobuf writes it."""


@dataclass(frozen=True)
class Node:
    """One field message of a schema. Fields follow their parents."""

    parts: tuple[tuple[int, int | bytes, bytes], ...]
    """Number, value and the bytes of both."""

    @property
    def name(self) -> str:
        value = self._value(_NAME, b"")
        assert isinstance(value, bytes)
        return value.decode()

    @property
    def id(self) -> int:
        return self._int(_ID)

    @property
    def parent(self) -> int:
        return self._int(_PARENT)

    def _int(self, number: int) -> int:
        value = self._value(number, 0)
        assert isinstance(value, int)
        return value

    def _value(self, number: int, default: int | bytes) -> int | bytes:
        return next((value for n, value, _ in self.parts if n == number), default)

    def having(self, number: int, value: int | bytes) -> Node:
        raw = _encoded(number, value)
        kept = [part for part in self.parts if part[0] != number]
        return replace(self, parts=tuple(sorted([*kept, (number, value, raw)], key=lambda part: part[0])))

    def dumped(self) -> bytes:
        return b"".join(raw for _, _, raw in self.parts)


def nodes_of(schema: Any) -> list[Node]:
    _, (_, *fields) = schema.__reduce__()
    return [Node(tuple(_parts(field))) for field in fields]


def replaced(schema: Any, names: Mapping[str, str]) -> Any:
    """The schema with each column of `names` (temporary name -> final name) under its final name: in the place of the
    column that has it so far, or at the end."""
    make, (metadata, *_) = schema.__reduce__()
    trees = {tree[0].name: tree for tree in _trees(nodes_of(schema))}
    new = {final: _renamed(trees.pop(name), final) for name, final in names.items()}
    out = [*(new.pop(name, tree) for name, tree in trees.items()), *new.values()]
    return make(metadata, *(node.dumped() for tree in out for node in tree))


def _renamed(tree: list[Node], name: str) -> list[Node]:
    return [tree[0].having(_NAME, name.encode()), *tree[1:]]


def extended(schema: Any, fields: Any) -> Any:
    """The schema with these Arrow fields at the end, under ids that it has not had."""
    from lance.schema import LanceSchema

    make, (metadata, *kept) = schema.__reduce__()
    first = 1 + max((node.id for node in nodes_of(schema)), default=-1)
    added = []
    for node in nodes_of(LanceSchema.from_pyarrow(fields)):
        moved = node.having(_ID, node.id + first)
        added.append(moved if node.parent == _NONE else moved.having(_PARENT, node.parent + first))
    return make(metadata, *kept, *(node.dumped() for node in added))


def _trees(nodes: Sequence[Node]) -> Iterator[list[Node]]:
    """Each top-level field with everything below it."""
    roots: dict[int, int] = {}
    trees: dict[int, list[Node]] = {}
    for node in nodes:
        root = node.id if node.parent == _NONE else roots[node.parent]
        roots[node.id] = root
        trees.setdefault(root, []).append(node)
    yield from trees.values()


def _parts(message: bytes) -> Iterator[tuple[int, int | bytes, bytes]]:
    at = 0
    while at < len(message):
        start = at
        key, at = _varint(message, at)
        value: int | bytes
        if key & 7 == _VARINT:
            value, at = _varint(message, at)
        elif key & 7 == _BYTES:
            length, at = _varint(message, at)
            value, at = message[at : at + length], at + length
        else:
            raise ValueError(f"a field of a Lance schema has a part of wire type {key & 7}, which is not known here")
        yield key >> 3, value, message[start:at]


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def _encoded(number: int, value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return _number(number << 3 | _BYTES) + _number(len(value)) + value
    return _number(number << 3 | _VARINT) + _number(value)


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
