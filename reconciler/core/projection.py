"""A schema as a catalog is to show it, worked out once for each schema: it is asked for several times in a plan."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.core.fields import Fields
from reconciler.model.capabilities import Capabilities
from reconciler.model.state import Column

Columns = tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Projection:
    problem: str | None
    """Why the catalog cannot show these columns."""
    columns: Columns | None
    """None: the catalog shows none, or cannot show these."""


_known: dict[tuple[int, int], tuple[Capabilities, Fields, Projection]] = {}
"""By identity, with both kept alive."""


def projection(capabilities: Capabilities, fields: Fields) -> Projection:
    key = id(capabilities), id(fields)
    known = _known.get(key)
    if known is not None:
        return known[2]
    problem = capabilities.schema_problem(fields)
    found = Projection(problem, capabilities.columns_of(fields) if problem is None else None)
    if len(_known) > 10_000:
        _known.clear()
    _known[key] = (capabilities, fields, found)
    return found
