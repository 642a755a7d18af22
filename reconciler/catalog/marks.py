"""How our marks share one map of strings with the user's properties, on every backend that has such a map."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

from reconciler.catalog.lance_dataset import dump_keys, load_keys
from reconciler.core.text import utf16_parts
from reconciler.model.change import Change
from reconciler.model.state import (
    APPLIED_BY_KEY,
    APPLIED_KEY,
    OWNER_KEY,
    PROTECT_KEY,
    RESERVED_PREFIX,
    DatasetState,
    Marks,
)


def split(properties: Mapping[str, str]) -> tuple[dict[str, str], Marks]:
    """The user's properties and our marks. The list of applied keys may be spread over numbered keys."""
    applied = properties.get(APPLIED_KEY)
    if applied is not None:
        parts = itertools.takewhile(lambda p: p is not None, (properties.get(_part(n)) for n in itertools.count(1)))
        applied += "".join(p for p in parts if p is not None)
    marks = Marks(
        owner=properties.get(OWNER_KEY),
        protect=properties.get(PROTECT_KEY) == "true",
        applied=load_keys(applied),
        applied_by=properties.get(APPLIED_BY_KEY),
    )
    return {k: v for k, v in properties.items() if not k.startswith(RESERVED_PREFIX)}, marks


def join(properties: Mapping[str, str], marks: Marks, limit: int | None = None) -> dict[str, str]:
    """The opposite of `split`. Marks that say nothing take no key; no value is longer than `limit` UTF-16
    units."""
    joined = {k: v for k, v in properties.items() if not _is_mark(k)}
    if marks.owner is not None:
        joined[OWNER_KEY] = marks.owner
    if marks.protect:
        joined[PROTECT_KEY] = "true"
    if marks.applied_by is not None:
        joined[APPLIED_BY_KEY] = marks.applied_by
    if marks.applied:
        text = dump_keys(marks.applied)
        for number, part in enumerate(utf16_parts(text, limit or 2 * len(text))):
            joined[_part(number) if number else APPLIED_KEY] = part
    return joined


def is_marked(data: DatasetState, owner: str) -> bool:
    """The data carries this owner's mark, or was made by a run of theirs that was cut before it wrote the mark."""
    return data.owner == owner or (data.owner is None and data.begun_by in ("", owner))


def signed(change: Change, applied_by: str) -> Change:
    """The change with the run that makes it in its marks, if it has marks: so it is only ever written with them."""
    marks: Marks | None = getattr(change, "marks", None)
    if marks is None or not applied_by:
        return change
    return replace(change, marks=replace(marks, applied_by=applied_by))  # type: ignore[arg-type]


def says_more(properties: Mapping[str, str], than: Mapping[str, str]) -> bool:
    """True when they differ in anything but the run that wrote them: that alone is no reason to write."""
    return {**properties, APPLIED_BY_KEY: ""} != {**than, APPLIED_BY_KEY: ""}


def updated(properties: Mapping[str, str], set_: Mapping[str, str], unset: tuple[str, ...]) -> dict[str, str]:
    return {k: v for k, v in {**properties, **set_}.items() if k in set_ or k not in unset}


def _part(number: int) -> str:
    return f"{APPLIED_KEY}.{number}"


def _is_mark(key: str) -> bool:
    return key in (OWNER_KEY, PROTECT_KEY, APPLIED_KEY, APPLIED_BY_KEY) or key.startswith(APPLIED_KEY + ".")
