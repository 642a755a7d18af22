"""Integer arithmetic of an expression, calculated once more with a check: pylance's own wraps.

The module stands alone: Spark carries it to executors that do not have this program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Operation = dict[str, Any]
"""`sign` (+, -, *, neg), `sql`, and the SQL of its `parts`. Of integers also their `type`."""
_AT = "operand:"
_CHECKED: dict[str, Callable[..., Any]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "neg": pc.negate_checked,
}


class Overflow(ValueError):
    """A result that its type does not have."""


def of_integers(dataset: Any, operations: Sequence[Operation]) -> list[Operation]:
    """Those that can wrap. What pylance does not evaluate by itself is none of them: an interval, a text."""
    found = []
    for operation in operations:
        try:
            schema = dataset.scanner(columns={"value": operation["sql"]}, with_row_id=True).projected_schema
            type_ = schema.field("value").type
        except (ValueError, NotImplementedError):
            continue
        if pa.types.is_integer(type_):
            found.append({**operation, "type": str(type_)})
    return found


def columns_of(operations: Sequence[Operation], prefix: str) -> dict[str, str]:
    """What a scan has to compute beside the expression."""
    parts = [(n, m, sql) for n, operation in enumerate(operations) for m, sql in enumerate(operation["parts"])]
    return {f"{_AT}{prefix}:{n}:{m}": sql for n, m, sql in parts}


def need_room(batch: Any, operations: Sequence[Operation], prefix: str) -> None:
    """Raises Overflow."""
    for n, operation in enumerate(operations):
        type_ = pa.type_for_alias(operation["type"])
        parts = [batch.column(f"{_AT}{prefix}:{n}:{m}") for m in range(len(operation["parts"]))]
        try:
            numbers = [part.cast(type_) for part in parts]
            _CHECKED[operation["sign"]](*numbers)
        except pa.ArrowInvalid as error:
            raise Overflow(
                f"{operation['sql']} is too large for {type_}: cast what it is made of, as in cast(x as bigint)"
            ) from error
