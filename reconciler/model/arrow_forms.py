"""How each type is written, and what it is for: what hints, `explain types` and the reference are made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    spellings: tuple[str, ...]
    """Whole types that the grammar reads, the usual one first."""
    holds: str
    also: str = ""
    """A further way to write it that is no type by itself."""


FORMS: dict[str, Form] = {
    "bool": Form(("bool",), "true or false"),
    "int8": Form(("int8",), "whole numbers of 8 bits, -128 to 127"),
    "int16": Form(("int16",), "of 16 bits, -32768 to 32767"),
    "int32": Form(("int32",), "of 32 bits, up to about 2 billion"),
    "int64": Form(("int64",), "of 64 bits: identifiers, counts"),
    "uint8": Form(("uint8",), "whole numbers without a sign, 0 to 255"),
    "uint16": Form(("uint16",), "0 to 65535"),
    "uint32": Form(("uint32",), "0 to about 4 billion"),
    "uint64": Form(("uint64",), "of 64 bits, without a sign"),
    "float16": Form(("float16",), "numbers of 16 bits, about 3 digits"),
    "float32": Form(("float32",), "of 32 bits, about 7 digits"),
    "float64": Form(("float64",), "of 64 bits, about 15 digits"),
    "decimal128": Form(("decimal128(38, 10)",), "exact numbers: up to 38 digits, so many of them after the point"),
    "decimal256": Form(("decimal256(76, 10)",), "the same with up to 76 digits"),
    "string": Form(("string",), "text of any length, up to 2 GiB in one batch"),
    "large_string": Form(("large_string",), "the same with 64-bit offsets, for very long texts"),
    "binary": Form(("binary",), "bytes"),
    "large_binary": Form(("large_binary",), "bytes with 64-bit offsets, for very long values"),
    "fixed_size_binary": Form(("fixed_size_binary[16]",), "so many bytes in every row: a hash, a UUID"),
    "blob": Form(("blob",), "large files (images, video), kept aside and read on demand"),
    "date32": Form(("date32",), "a day"),
    "date64": Form(("date64",), "a day, kept as milliseconds"),
    "time32": Form(("time32[s]", "time32[ms]"), "a time of day"),
    "time64": Form(("time64[us]", "time64[ns]"), "a time of day, more precise"),
    "timestamp": Form(("timestamp[us]", "timestamp[us, tz=UTC]"), "a day and a time; with `tz`, a point in time"),
    "duration": Form(("duration[us]",), "how long something took"),
    "list": Form(("list<string>", "list<string not null>"), "any number of values"),
    "large_list": Form(("large_list<string>",), "the same with 64-bit offsets"),
    "fixed_size_list": Form(("fixed_size_list<float32>[768]",), "a vector: so many numbers in every row"),
    "struct": Form(
        ("struct<a: int64, b: string not null>",),
        "named fields in one column",
        "`type: struct` with `fields:` beside it",
    ),
    "map": Form(("map<string, int64>",), "any number of keys with a value each"),
    "dictionary": Form(("dictionary<int32, string>",), "few different values, kept once; the first type counts them"),
    "null": Form(("null",), 'nothing but missing values; in YAML `type: "null"`'),
}
"""By name, in the order in which people look for them."""


def written(name: str) -> str:
    """The right form of a known type, in words: `timestamp[us], or timestamp[us, tz=UTC]`."""
    form = FORMS[name]
    return ", or ".join((*form.spellings, *([form.also] if form.also else ())))
