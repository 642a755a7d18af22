"""What changing a column's type means, measured on pylance 14.

`widen`: every value survives, done in place. `narrow`: done in place, values may be lost or the cast may fail.
`rewrite`: pylance refuses; only the data plane can do it.
"""

from __future__ import annotations

import re
from typing import Literal

from reconciler.core.fields import bare
from reconciler.model.arrow import ArrowType, Decimal, Dictionary, ListOf, Scalar, Temporal

Cast = Literal["same", "widen", "narrow", "rewrite"]

_FLOATS = {"float16": 1, "float32": 2, "float64": 3}
_PAIRS = ({"string", "large_string"}, {"binary", "large_binary"})
_UNITS = {"s": 0, "ms": 1, "us": 2, "ns": 3}
_OFFSET = re.compile(r"[+-]\d\d:?\d\d")
_RANK: tuple[Cast, ...] = ("same", "widen", "narrow", "rewrite")


def classify(old: ArrowType, new: ArrowType) -> Cast:
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
    inner = classify(*values)
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
    item = classify(old.item, new.item)
    stricter: Cast = "narrow" if old.item_nullable and not new.item_nullable else "widen"
    return worst(item, stricter)
