"""Where live indexes differ from the declared ones."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.state import Index, Param


def index_differences(want: Index, live: Index) -> dict[str, tuple[Param | None, Param]]:
    """What differs, as name -> (live, wanted). A parameter that cannot be read and was never recorded is unknown."""
    out: dict[str, tuple[Param | None, Param]] = {}
    if want.column != live.column:
        out["column"] = (live.column, want.column)
    if want.type != live.type:
        out["type"] = (live.type, want.type)
    for key, value in want.params.items():
        if key in live.params and not _equal(live.params[key], value):
            out[key] = (live.params[key], value)
    return out


def needs_record(want: Index, live: Index) -> bool:
    """A declared parameter can neither be read back nor was it noted (the index was adopted, or declared differently).
    What can be read needs no note: manifests made from the live catalog name it, and must plan empty."""
    return any(key not in live.params for key in want.params)


def _equal(a: Param, b: Param) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return a.lower() == b.lower()
    return a == b


def by_name(indexes: tuple[Index, ...]) -> Mapping[str, Index]:
    return {i.name: i for i in indexes}
