"""Rows of `__manifest`, and how marks and properties share a row's metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.catalog.directory_capabilities import DELIMITER
from reconciler.catalog.lance_dataset import dump_keys, load_keys
from reconciler.model.ident import Ident
from reconciler.model.state import APPLIED_BY_KEY, APPLIED_KEY, OWNER_KEY, PROTECT_KEY, RESERVED_PREFIX, Marks

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


def split(properties: Mapping[str, str]) -> tuple[dict[str, str], Marks]:
    """The user's properties and our marks."""
    marks = Marks(
        owner=properties.get(OWNER_KEY),
        protect=properties.get(PROTECT_KEY) == "true",
        applied=load_keys(properties.get(APPLIED_KEY)),
        applied_by=properties.get(APPLIED_BY_KEY),
    )
    return {k: v for k, v in properties.items() if not k.startswith(RESERVED_PREFIX)}, marks


def join(properties: Mapping[str, str], marks: Marks) -> dict[str, str]:
    """The opposite of `split`. Marks that say nothing take no key."""
    joined = {k: v for k, v in properties.items() if k not in (OWNER_KEY, PROTECT_KEY, APPLIED_KEY)}
    if marks.owner is not None:
        joined[OWNER_KEY] = marks.owner
    if marks.protect:
        joined[PROTECT_KEY] = "true"
    if marks.applied_by is not None:
        joined[APPLIED_BY_KEY] = marks.applied_by
    if marks.applied:
        joined[APPLIED_KEY] = dump_keys(marks.applied)
    return joined


def updated(properties: Mapping[str, str], set_: Mapping[str, str], unset: tuple[str, ...]) -> dict[str, str]:
    return {k: v for k, v in {**properties, **set_}.items() if k in set_ or k not in unset}
