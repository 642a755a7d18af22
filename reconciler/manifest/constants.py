"""Which constants a column of a type can have: what `default` writes into the rows that exist already."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time
from decimal import Decimal as Number

from reconciler.model.arrow import ArrowType, Decimal, Dictionary, Scalar, Temporal

Constant = str | int | float | bool
_TEXT = frozenset({"string", "large_string"})
_BYTES = frozenset({"binary", "large_binary"})
_FLOATS = {"float16": 65504.0, "float32": 3.4028235e38, "float64": math.inf}
_DIGITS = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def constant_problem(value: Constant, type_: ArrowType) -> str | None:
    """What the type takes instead, or None when it takes the value."""
    if isinstance(type_, Dictionary):
        return constant_problem(value, type_.value)
    if isinstance(type_, Decimal):
        return _decimal(value, type_)
    if isinstance(type_, Temporal):
        return _temporal(value, type_)
    name = type_.name if isinstance(type_, Scalar) else ""
    if name in _TEXT or name in _BYTES:
        return None if isinstance(value, str) else "it takes a text, in quotes"
    if name == "bool":
        return None if isinstance(value, bool) else "it takes true or false"
    if name.startswith(("int", "uint")):
        return _integer(value, name)
    if name in _FLOATS:
        number = not isinstance(value, bool | str) and abs(value) <= _FLOATS[name] and abs(value) < math.inf
        return None if number else "it takes a finite number in its range"
    if name in ("date32", "date64"):
        return None if _reads(date, value) and _DATE.fullmatch(str(value)) else "it takes a date such as '2024-12-31'"
    return "it takes no constant: write it as `backfill: {sql: …}`, or give it none"


def _integer(value: Constant, name: str) -> str | None:
    bits = int(name.removeprefix("u").removeprefix("int"))
    low, high = (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    fits = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    return None if fits else f"it takes a whole number from {low} to {high}"


def _decimal(value: Constant, type_: Decimal) -> str | None:
    wrong = f"it takes a number of up to {type_.precision} digits, {type_.scale} of them after the point"
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        return wrong
    text = str(value)
    if len(text) > 200 or (isinstance(value, str) and not _DIGITS.fullmatch(value)):
        return wrong
    number = Number(text)
    _, digits, exponent = number.as_tuple()
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    after = max(0, -int(exponent) - zeros) if number else 0
    before = max(0, len(digits) + int(exponent)) if number else 0
    return None if after <= type_.scale and before <= type_.precision - type_.scale else wrong


def _temporal(value: Constant, type_: Temporal) -> str | None:
    if type_.name == "timestamp":
        zoned = _zone(value)
        if zoned is None:
            return "it takes a time such as '2024-12-31T23:59:59'" + ("Z" if type_.tz else "")
        return (
            None
            if zoned is (type_.tz is not None)
            else ("its times have a zone, such as '2024-12-31T23:59:59Z'" if type_.tz else "its times have no zone")
        )
    if type_.name == "duration":
        return _integer(value, "int64")
    read = _reads(time, value) and time.fromisoformat(str(value)).tzinfo is None
    return None if read else "it takes a time of the day such as '23:59:59'"


def _zone(value: Constant) -> bool | None:
    """Whether a time has a zone; None when it is no time."""
    if not _reads(datetime, value) or not _DATE.match(str(value)):
        return None
    return datetime.fromisoformat(str(value)).tzinfo is not None


def _reads(kind: type[date] | type[time], value: Constant) -> bool:
    if not isinstance(value, str):
        return False
    try:
        kind.fromisoformat(value)
    except ValueError:
        return False
    return True
