"""The file of one version of a Lance dataset, `_versions/<n>.manifest`, as bytes: what it names, and how to look at a
copy before the table shows it.

Lance lists a version under its number, and that is what readers see. A detached one has a number with the highest bit
set: nobody sees it who does not ask for it by that number. The file holds its number, so a copy of it that is to be
opened as a detached version needs another one in there; such a copy is for reading alone, and goes away again.
"""

from __future__ import annotations

import re
import secrets
import struct
import uuid
from collections.abc import Iterable, Iterator

from reconciler.model.errors import CatalogError, Code

_MAGIC = b"LANC"
_TAIL = struct.Struct("<QHH4s")
"""Where the message starts, the format's version, the magic."""
_LENGTH = struct.Struct("<I")
_NUMBER_FIELD = 3
_TRANSACTION = re.compile(rb"\d+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.txn")
DETACHED = 1 << 63


def names_of(version: int) -> tuple[str, str]:
    """Under both rules that lance has for the names."""
    return f"{2**64 - 1 - version:020}.manifest", f"{version}.manifest"


def detached_name(version: int) -> str:
    return f"d{version}.manifest"


def detached_number() -> int:
    """One that no other run has."""
    return DETACHED | secrets.randbits(62)


def transactions_in(manifest: bytes) -> set[str]:
    return {found.decode() for found in _TRANSACTION.findall(manifest)}


def indexes_in(manifest: bytes, folders: Iterable[str]) -> set[str]:
    """Of the folders of `_indices`, which have ids for names: those that this version uses."""
    return {name for name in folders if _id(name) in manifest}


def _id(name: str) -> bytes:
    try:
        return uuid.UUID(name).bytes
    except ValueError:
        return name.encode()


def with_number(manifest: bytes, number: int) -> bytes:
    """The same version under another number. Raises CatalogError when the file is not as this version knows it."""
    try:
        start, _, _, magic = _TAIL.unpack(manifest[-_TAIL.size :])
        (length,) = _LENGTH.unpack_from(manifest, start)
        message, rest = manifest[start + _LENGTH.size :][:length], manifest[start + _LENGTH.size + length :]
        new = b"".join(_renumbered(message, number))
    except (struct.error, IndexError, OverflowError, ValueError) as error:
        raise _unknown() from error
    if magic != _MAGIC or len(rest) != _TAIL.size or len(message) != length:
        raise _unknown()
    return manifest[:start] + _LENGTH.pack(len(new)) + new + rest


def _unknown() -> CatalogError:
    return CatalogError(
        Code.UNSUPPORTED,
        "the copy cannot be looked at before the table shows it, because this version of Lance writes its versions in "
        "another way; `verify: none` copies without a look",
    )


def _renumbered(message: bytes, number: int) -> Iterator[bytes]:
    at, seen = 0, 0
    while at < len(message):
        start = at
        tag, at = _varint(message, at)
        field, wire = tag >> 3, tag & 7
        if wire == 0:
            _, at = _varint(message, at)
        elif wire == 2:
            length, at = _varint(message, at)
            at += length
        else:
            at += {1: 8, 5: 4}.get(wire, len(message))
        if field == _NUMBER_FIELD and wire == 0:
            seen += 1
            yield _as_varint(tag) + _as_varint(number)
        else:
            yield message[start:at]
    if seen != 1 or at != len(message):
        raise ValueError


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if byte < 0x80:
            return number, at


def _as_varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
