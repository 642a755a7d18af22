"""Types as other systems write them -> ours, for the hint of a type that cannot be read. Never accepted by themselves:
an `integer` has 32 bits in one system and 64 in another."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reconciler.model.arrow_forms import FORMS

VECTOR = "fixed_size_list<float32>[768]"
_UNIT_OF_DIGITS = {"0": "s", "3": "ms", "6": "us", "9": "ns"}
_NUMBER = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class Written:
    """A type as it stands in the text: its word, what brackets it has and what is in them."""

    word: str
    bracket: str = ""
    arguments: tuple[str, ...] = ()

    @property
    def numbers(self) -> bool:
        return all(_NUMBER.fullmatch(a) for a in self.arguments)


@dataclass(frozen=True, slots=True)
class Ours:
    text: str
    note: str = ""
    """What to choose, where their word says less than ours."""


SIZES = "or int32, for numbers up to 2 billion"
PLAIN: dict[str, Ours] = {
    **dict.fromkeys(("int", "integer"), Ours("int64", SIZES)),
    **dict.fromkeys(("long", "bigint", "biginteger"), Ours("int64")),
    **dict.fromkeys(("short", "smallint"), Ours("int16")),
    **dict.fromkeys(("byte", "tinyint"), Ours("int8", "or uint8, without a sign")),
    **dict.fromkeys(("uint", "unsigned"), Ours("uint64", "or uint32, for numbers up to 4 billion")),
    "ubigint": Ours("uint64"),
    "uinteger": Ours("uint32"),
    "usmallint": Ours("uint16"),
    "utinyint": Ours("uint8"),
    **dict.fromkeys(("int128", "hugeint"), Ours("decimal128(38, 0)")),
    **dict.fromkeys(("real", "float4", "single"), Ours("float32")),
    **dict.fromkeys(("float8", "float128"), Ours("float64")),
    "half": Ours("float16"),
    "number": Ours("float64", "or int64 for whole numbers, decimal128(38, 10) for exact ones"),
    **dict.fromkeys(
        (
            "varchar",
            "char",
            "text",
            "str",
            "nvarchar",
            "nchar",
            "bpchar",
            "character",
            "clob",
            "string_view",
            "utf8_view",
        ),
        Ours("string"),
    ),
    "uuid": Ours("string", "or fixed_size_binary[16] for its 16 bytes"),
    **dict.fromkeys(
        ("json", "jsonb", "variant", "object"),
        Ours("string", "or struct<a: int64, b: string>, with its own fields"),
    ),
    **dict.fromkeys(("enum", "category", "categorical"), Ours("dictionary<int32, string>")),
    **dict.fromkeys(
        ("bytes", "bytea", "varbinary", "bytearray", "binary_view"), Ours("binary", "or blob for large files")
    ),
    "date": Ours("date32"),
    "time": Ours("time64[us]"),
    **dict.fromkeys(
        ("datetime", "datetime64", "timestamp_ntz", "datetime2"),
        Ours("timestamp[us]", "or timestamp[us, tz=UTC] for points in time"),
    ),
    **dict.fromkeys(("timestamptz", "timestamp_ltz", "timestamp_tz"), Ours("timestamp[us, tz=UTC]")),
    **dict.fromkeys(("interval", "timedelta", "timedelta64"), Ours("duration[us]")),
    **dict.fromkeys(("vector", "embedding", "float_vector"), Ours(VECTOR, "write the size of yours for 768")),
    **dict.fromkeys(("array", "set", "repeated", "list_view"), Ours("list<string>", "write the type of its items")),
    **dict.fromkeys(("row", "record"), Ours(FORMS["struct"].spellings[0], "write its own fields")),
    **dict.fromkeys(("dict", "hashmap"), Ours("map<string, string>", "write its own types")),
    "bit": Ours("bool"),
}
"""Their word alone, or with a length that ours does not have: `varchar(20)`."""
DECIMALS = frozenset({"decimal", "numeric", "number", "dec", "decimal32", "decimal64", "decimal128", "decimal256"})
_VECTORS = {"vector": "float32", "embedding": "float32", "float_vector": "float32", "halfvec": "float16"}
_LISTS = {"array": "list", "list": "list", "set": "list", "repeated": "list", "list_view": "list",
          "large_list": "large_list", "fixed_size_list": "list", "fixedsizelist": "list", "vector": "list"}  # fmt: skip
_VARIABLE_WIDTH = frozenset({"string", "large_string", "binary", "large_binary", "blob", "utf8", "large_utf8"})
_MAPS = frozenset({"map", "dict", "hashmap"})
_STRUCTS = frozenset({"struct", "row", "record"})
_BYTES = frozenset({"binary", "fixed", "fixed_size_binary", "fixedsizebinary"})
_TIMES = {"timestamp": "timestamp[{}]", "datetime": "timestamp[{}]", "datetime64": "timestamp[{}]",
          "datetime2": "timestamp[{}]", "timestamp_ntz": "timestamp[{}]", "timestamptz": "timestamp[{}, tz=UTC]",
          "timestamp_ltz": "timestamp[{}, tz=UTC]", "timestamp_tz": "timestamp[{}, tz=UTC]", "duration": "duration[{}]",
          "timedelta64": "duration[{}]", "timedelta": "duration[{}]"}  # fmt: skip


def ours(theirs: Written) -> Ours | None:
    """The same as one of our types; what is inside of it is left as it is. None when nothing is known about it."""
    word = theirs.word.lower()
    for rule in _RULES:
        found = rule(word, theirs)
        if found is not None:
            return Ours(found)
    if word in PLAIN and (not theirs.bracket or theirs.numbers):
        return PLAIN[word]
    if word in FORMS and word != theirs.word:
        return Ours(_joined(word, theirs))
    return None


def _decimal(word: str, theirs: Written) -> str | None:
    if word not in DECIMALS or not theirs.numbers:
        return None
    match theirs.arguments:
        case ():
            return (
                None if word == "number" else FORMS["decimal256" if word == "decimal256" else "decimal128"].spellings[0]
            )
        case (precision,):
            digits = (precision, "0")
        case (precision, scale):
            digits = (precision, scale)
        case _:
            return None
    bits = 256 if word == "decimal256" or int(digits[0][:9]) > 38 else 128
    return f"decimal{bits}({digits[0]}, {digits[1]})"


def _vector(word: str, theirs: Written) -> str | None:
    """`vector(16)`, `vector<float, 16>`, `float32[16]`."""
    match theirs.arguments:
        case (size,) if word in _VECTORS and _NUMBER.fullmatch(size):
            return f"fixed_size_list<{_VECTORS[word]}>[{size}]"
        case (size,) if theirs.bracket == "[" and _is_item(word) and word not in _BYTES and _NUMBER.fullmatch(size):
            return _sized(word, size)
        case () if theirs.bracket == "[" and _is_item(word):
            return f"list<{word}>"
    return None


def _is_item(word: str) -> bool:
    """`text[]` and `float32[16]` are lists of it; the brackets of `datetime64[ns]` say something else."""
    if word in PLAIN:
        return word not in _LISTS and word not in _VECTORS and word not in _TIMES
    return word in FORMS and FORMS[word].spellings == (word,)


def _list(word: str, theirs: Written) -> str | None:
    kind = _LISTS.get(word)
    match theirs.arguments:
        case (item,) if kind is not None and item and not _NUMBER.fullmatch(item) and word != "fixed_size_list":
            return f"{kind}<{item}>"
        case (item, size) if kind is not None and _NUMBER.fullmatch(size):
            return _sized(item, size)
        case (size, item) if kind is not None and _NUMBER.fullmatch(size):
            return _sized(item, size)
    return None


def _sized(item: str, size: str) -> str:
    """Lance keeps only items of one width in lists of one size."""
    name = PLAIN[item.lower()].text if item.lower() in PLAIN else item.lower()
    return f"list<{item}>" if name in _VARIABLE_WIDTH else f"fixed_size_list<{item}>[{size}]"


def _nested(word: str, theirs: Written) -> str | None:
    """`map(K, V)`, `row(a int, b text)`: our brackets, and a colon between a field and its type."""
    if word in _MAPS and len(theirs.arguments) == 2:
        return f"map<{', '.join(theirs.arguments)}>"
    if word in _STRUCTS and theirs.arguments and all(theirs.arguments):
        return f"struct<{', '.join(_field(a) for a in theirs.arguments)}>"
    return None


def _field(text: str) -> str:
    match = re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*)(?:\s*=\s*|\s+)([^:].*)", text, re.DOTALL)
    return f"{match[1]}: {match[2]}" if match else text


def _bytes(word: str, theirs: Written) -> str | None:
    sized = word in _BYTES and len(theirs.arguments) == 1 and theirs.numbers
    return f"fixed_size_binary[{theirs.arguments[0]}]" if sized else None


def _time(word: str, theirs: Written) -> str | None:
    """`timestamp(3)`, `datetime64[ns]`, `timestamp[us, UTC]`."""
    form = _TIMES.get(word)
    match theirs.arguments:
        case (unit,) if form is not None and _UNIT_OF_DIGITS.get(unit, unit) in ("s", "ms", "us", "ns"):
            return form.format(_UNIT_OF_DIGITS.get(unit, unit))
        case (unit, zone) if word == "timestamp" and zone and not zone.startswith("tz"):
            return f"timestamp[{unit}, tz={zone}]"
    return None


def _joined(word: str, theirs: Written) -> str:
    closing = {"<": ">", "(": ")", "[": "]"}.get(theirs.bracket, "")
    return word + theirs.bracket + ", ".join(theirs.arguments) + closing


_RULES: Sequence[Callable[[str, Written], str | None]] = (_decimal, _vector, _list, _nested, _bytes, _time)
