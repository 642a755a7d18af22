"""What changing a column's type means, measured on pylance 14.

`widen`: every value survives, done in place. `narrow`: done in place, values may be lost or the cast may fail.
`rewrite`: pylance refuses; the data plane can do it, if the values fit. `never`: no value of the one type has a
counterpart in the other, so a table with rows cannot be changed that way.
"""

from __future__ import annotations

import re
from typing import Literal

from reconciler.core.fields import bare
from reconciler.model.arrow import ArrowType, Decimal, Dictionary, FixedBinary, ListOf, MapOf, Scalar, Struct, Temporal

Cast = Literal["same", "widen", "narrow", "rewrite", "never"]
Family = Literal["null", "bool", "number", "text", "bytes", "time", "blob", "nested"]

_FLOATS = {"float16": 1, "float32": 2, "float64": 3}
_DIGITS = {"float16": 3, "float32": 6, "float64": 15}
"""Decimal digits that come back from it as they were."""
_PAIRS = ({"string", "large_string"}, {"binary", "large_binary"})
_UNITS = {"s": 0, "ms": 1, "us": 2, "ns": 3}
_OFFSET = re.compile(r"[+-]\d\d:?\d\d")
_RANK: tuple[Cast, ...] = ("same", "widen", "narrow", "rewrite", "never")
_SCALARS: frozenset[Family] = frozenset({"bool", "number", "text", "bytes", "time", "blob"})
_REWRITES: dict[Family, frozenset[Family]] = {
    "text": _SCALARS,
    "bytes": _SCALARS,
    "number": frozenset({"bool", "number", "text", "time"}),
    "blob": _SCALARS - {"blob"},
    "bool": frozenset({"number", "text"}),
    "time": frozenset({"number", "text"}),
}
"""What the data plane can make of values of one family, as `pipeline.column_casts` does."""


def classify(old: ArrowType, new: ArrowType) -> Cast:
    cast = _in_place(old, new)
    return "never" if cast == "rewrite" and not _can_be_rewritten(old, new) else cast


def rounds(old: ArrowType, new: ArrowType) -> bool:
    """Is there a decimal, at any depth, that becomes a float with fewer digits? A rewrite makes it the nearest one."""
    old, new = _value(old), _value(new)
    match old, new:
        case Decimal(), Scalar(name):
            return name in _DIGITS and old.precision > _DIGITS[name]
        case ListOf(), ListOf():
            return rounds(old.item, new.item)
        case MapOf(), MapOf():
            return rounds(old.key, new.key) or rounds(old.value, new.value)
        case Struct(), Struct():
            there = {f.name: f.type for f in old.fields}
            return any(rounds(there[f.name], f.type) for f in new.fields if f.name in there)
    return False


def _in_place(old: ArrowType, new: ArrowType) -> Cast:
    if old == new or bare(old) == bare(new):
        return "same"
    match old, new:
        case Scalar(a), Scalar(b):
            return _scalars(a, b)
        case Temporal(), Temporal():
            return _temporals(old, new)
        case (Scalar("date32"), Temporal("timestamp")):
            return "narrow" if new.unit == "ns" or _has_gaps(new.tz) else "widen"
        case (Scalar("date64"), Temporal("timestamp")):
            return "widen" if new.unit in ("ms", "us") and not _has_gaps(new.tz) else "narrow"
        case (Temporal("timestamp"), Scalar("date32" | "date64")):
            return "narrow"
        case Decimal(), Decimal():
            digits = new.precision - new.scale >= old.precision - old.scale
            return "widen" if digits and new.scale >= old.scale else "narrow"
        case (Dictionary(), Dictionary() | Scalar()) | (Scalar(), Dictionary()):
            return _dictionaries(old, new)
        case ListOf(), ListOf():
            return _lists(old, new)
        case _:
            return "rewrite"


def worst(*casts: Cast) -> Cast:
    return max(casts, key=_RANK.index)


def _scalars(a: str, b: str) -> Cast:
    old, new = _integer(a), _integer(b)
    if old and new:
        return "widen" if new[0] <= old[0] and old[1] <= new[1] else "narrow"
    if a in _FLOATS and b in _FLOATS:
        return "widen" if _FLOATS[b] > _FLOATS[a] else "narrow"
    if {a, b} in _PAIRS or (a, b) == ("date32", "date64"):
        return "widen"
    if (a, b) == ("date64", "date32"):
        return "narrow"
    return "rewrite"


def _integer(name: str) -> tuple[int, int] | None:
    """The range as powers of two, lowest and highest."""
    if name.startswith("uint"):
        return 0, int(name[4:])
    if name.startswith("int"):
        return -int(name[3:]) + 1, int(name[3:]) - 1
    return None


def _temporals(old: Temporal, new: Temporal) -> Cast:
    """Nanoseconds of an instant end in 2262: common far dates (9999-12-31) do not survive them. The coarser units end
    beyond any date; a duration is any number, and a finer unit cannot hold all of them."""
    times = {"time32", "time64"}
    if old.name == new.name or {old.name, new.name} == times:
        finer = _UNITS[new.unit] >= _UNITS[old.unit]
        short = new.name != "time64" and new.unit == "ns" and old.unit != "ns"
        zone_lost = old.tz is not None and new.tz is None
        zone_put = old.tz is None and _has_gaps(new.tz)
        any_number = new.name == "duration"
        return "widen" if finer and not (short or zone_lost or zone_put or any_number) else "narrow"
    return "narrow" if old.name == "timestamp" and new.name in times else "rewrite"


def _has_gaps(zone: str | None) -> bool:
    """Does this zone change its clocks? Then there are local times that it does not have, or has twice, and a value
    without a zone that is one of those cannot be cast. Zones with a name may have done so at any time."""
    return zone is not None and zone not in ("UTC", "Etc/UTC", "GMT") and not _OFFSET.fullmatch(zone)


def _dictionaries(old: ArrowType, new: ArrowType) -> Cast:
    """The values decide, and whether the index can count as many different ones."""
    values = [t.value if isinstance(t, Dictionary) else t for t in (old, new)]
    inner = _in_place(*values)
    if inner == "rewrite" or (isinstance(new, Dictionary) and values[1] == Scalar("bool")):
        return "rewrite"
    if not isinstance(new, Dictionary):
        return worst(inner, "widen")
    before = _integer(old.index) if isinstance(old, Dictionary) else None
    counts = _integer(new.index)
    assert counts is not None
    enough = counts[1] >= 31 or (before is not None and before[1] <= counts[1])
    return worst(inner, "widen" if enough else "narrow")


def _lists(old: ListOf, new: ListOf) -> Cast:
    if new.name == "fixed_size_list" and (old.name != "fixed_size_list" or old.size != new.size):
        return "rewrite"
    if not isinstance(old.item, (Scalar, Temporal, Decimal)) and bare(old.item) != bare(new.item):
        return "rewrite"
    item = _in_place(old.item, new.item)
    stricter: Cast = "narrow" if old.item_nullable and not new.item_nullable else "widen"
    return worst(item, stricter)


def _can_be_rewritten(old: ArrowType, new: ArrowType) -> bool:
    old, new = _value(old), _value(new)
    if old == new or old == Scalar("null"):
        return True
    match old, new:
        case ListOf(), ListOf():
            sizes = {old.size, new.size} - {None}
            return len(sizes) < 2 and _can_be_made(old.item, new.item)
        case MapOf(), MapOf():
            return _can_be_made(old.key, new.key) and _can_be_made(old.value, new.value)
        case Struct(), Struct():
            there = {f.name: f for f in old.fields}
            return all(_can_be_made(there[f.name].type, f.type) for f in new.fields if f.name in there)
        case FixedBinary(), FixedBinary():
            return False
        case _, Temporal() if _family(old) == "number":
            return False  # Nothing says what the numbers count.
        case _:
            return _family(new) in _REWRITES.get(_family(old), frozenset())


def _can_be_made(old: ArrowType, new: ArrowType) -> bool:
    return classify(old, new) != "never"


def _value(type_: ArrowType) -> ArrowType:
    return type_.value if isinstance(type_, Dictionary) else type_


def _family(type_: ArrowType) -> Family:
    match type_:
        case Scalar("null" | "bool" | "blob" as name):
            return name
        case Scalar("string" | "large_string"):
            return "text"
        case Scalar("binary" | "large_binary") | FixedBinary():
            return "bytes"
        case Scalar("date32" | "date64") | Temporal():
            return "time"
        case Scalar() | Decimal():
            return "number"
        case _:
            return "nested"
