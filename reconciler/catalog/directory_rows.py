"""Rows of `__manifest`. How marks and properties share a row's metadata is in `marks`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.catalog.directory_capabilities import DELIMITER
from reconciler.model.ident import Ident

NAMESPACE = "namespace"
TABLE = "table"


class BadRow(ValueError):
    """The metadata of a row is not a JSON object."""


@dataclass(frozen=True, slots=True)
class Row:
    object_id: str
    object_type: str
    location: str | None = None
    metadata: str | None = None
    origin: str | None = field(default=None, compare=False, repr=False)
    """The id it was read under: values of columns we do not know follow it through a rename."""

    @property
    def ident(self) -> Ident:
        return tuple(self.object_id.split(DELIMITER))

    def with_properties(self, properties: Mapping[str, str]) -> Row:
        return replace(self, metadata=dump_properties(properties))


Rows = Mapping[str, Row]


def object_id(ident: Ident) -> str:
    return DELIMITER.join(ident)


def load_properties(row: Row) -> dict[str, str]:
    """Raises BadRow. Values that are not strings are shown as JSON."""
    if not row.metadata:
        return {}
    try:
        values: Any = json.loads(row.metadata)
    except ValueError as error:
        raise BadRow(f"the metadata of {row.object_id!r} in __manifest is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise BadRow(f"the metadata of {row.object_id!r} in __manifest is not a JSON object")
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in values.items()}


def dump_properties(properties: Mapping[str, str]) -> str | None:
    if not properties:
        return None
    return json.dumps(dict(sorted(properties.items())), separators=(",", ":"), ensure_ascii=False)
