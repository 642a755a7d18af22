"""Indexes of a Lance dataset: how they are described by pylance, recorded by us, and created.

Not every parameter can be read back (the partitions of an empty vector index, the zone size), so the declared
definition is kept in the dataset's metadata. What can be read always wins over what was recorded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.model.errors import CatalogError, Code
from reconciler.model.state import VECTOR_INDEXES, Index, Param

INDEXES_KEY = "reconciler.indexes"

_TYPES = {"btree", "bitmap", "label_list", "inverted", "ngram", "zonemap", "bloomfilter"} | VECTOR_INDEXES
_DESCRIBED = {"labellist": "label_list", "fts": "inverted"}
_RENAMED = {"max_connections": "m", "construction_ef": "ef_construction"}
_GROUPS = ("compression", "hnsw")
_NOT_PARAMS = frozenset({"type", "runtime_hints", "metric_type"})


def read_indexes(descriptions: Iterable[Any], recorded: Mapping[str, Index]) -> tuple[Index, ...]:
    """The live indexes by name. Our record fills the gaps while it is about the same kind of index."""
    found = []
    for description in descriptions:
        name = description.name
        if name.startswith("__lance"):  # lance's own bookkeeping
            continue
        lowered = str(description.index_type).lower()
        kind = _DESCRIBED.get(lowered, lowered)
        record = recorded.get(name)
        noted = record.params if record is not None and record.type == kind else {}
        read = _readable(description.details or {})
        unread = frozenset(noted.keys() - read.keys())
        column = ".".join(description.field_names[:1])
        found.append(Index(name, column, kind, {**noted, **read}, tuple(sorted(noted)), unread))
    return tuple(sorted(found, key=lambda index: index.name))


def _readable(details: Mapping[str, Any]) -> dict[str, Param]:
    params: dict[str, Param] = {}
    for group in (details, *(details.get(g) or {} for g in _GROUPS)):
        for key, value in group.items():
            if key not in _NOT_PARAMS and isinstance(value, (str, int, float, bool)):
                params[_RENAMED.get(key, key)] = value
    if isinstance(metric := details.get("metric_type"), str):
        params["metric"] = metric.lower()
    return params


def load_record(text: str | None) -> dict[str, Index]:
    """A record that cannot be read counts as none: parameters are then unknown, never different."""
    try:
        entries = json.loads(text or "{}")
        return {n: Index(n, str(e["column"]), str(e["type"]), dict(e["params"])) for n, e in entries.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


def dump_record(indexes: Iterable[Index]) -> str:
    entries = {i.name: {"column": i.column, "type": i.type, "params": dict(i.params)} for i in indexes}
    return json.dumps(entries, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def create_index(dataset: Any, index: Index) -> None:
    """Never replaces an index of that name."""
    if index.type not in _TYPES:
        raise CatalogError(Code.INVALID_INPUT, f"unknown index type {index.type!r}: one of {', '.join(sorted(_TYPES))}")
    params: dict[str, Any] = dict(index.params)
    if index.type in VECTOR_INDEXES:
        # lance wants a partition count when there is no data to derive one from
        params.setdefault("num_partitions", 1 if dataset.count_rows() == 0 else None)
        dataset.create_index(index.column, index.type.upper(), name=index.name, replace=False, **params)
    else:
        dataset.create_scalar_index(index.column, index.type.upper(), name=index.name, replace=False, **params)
