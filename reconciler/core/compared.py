"""What the planner compared of an object, as readable JSON: a saved plan keeps it beside the fingerprint, so that a
stale plan can say field by field what changed.

It holds what a fingerprint covers and nothing else. Values that are credentials, by their name, their form or because
this run knows them, are kept as a mask; long values are cut, with a hash that still tells two of them apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reconciler.core.fingerprint import index_compared
from reconciler.core.secret_names import names_credential
from reconciler.core.secret_values import MASK, credential_in
from reconciler.core.uris import canonical_location
from reconciler.model.codec import column_from, column_json, dataset_from, field_json, marks_from
from reconciler.model.observed import Absent, Detached, Finding, Present, Unreadable
from reconciler.model.plan import Json
from reconciler.model.state import UNKNOWN, DatasetState, Marks, NamespaceState, TableState

HIDDEN = MASK
LONGEST = 300
_CUT = 200
Clean = Callable[[str], str]


def compared(finding: Finding, children: Sequence[str] | None = None, clean: Clean = str) -> dict[str, Json] | None:
    """None when there is nothing to compare. `clean` takes out secrets that the run knows."""
    match finding:
        case Present(NamespaceState() as state):
            out: dict[str, Json] = {"properties": _values(state.properties, clean), **_marks(state.marks)}
        case Present(TableState() as state):
            out = {"properties": _values(state.properties, clean), **_marks(state.marks)}
            if isinstance(state.location, str):
                out["location"] = _text(canonical_location(state.location), clean)
            if state.columns is not None:
                columns = sorted(state.columns, key=lambda c: c.name)
                out["shown_columns"] = {c.name: _rest(column_json(c), clean) for c in columns}
            if state.dataset is None:
                out["dataset"] = None
            elif isinstance(state.dataset, DatasetState):
                out["dataset"] = _dataset(state.dataset, clean)
        case Detached(location, dataset):
            out = {"location": _text(canonical_location(location), clean), "dataset": _dataset(dataset, clean)}
        case Absent() | Unreadable():
            return None
    if children is not None:
        out["children"] = dict.fromkeys(sorted(children), True)
    return out


def finding_of(value: Mapping[str, Any], state: str, kind: str) -> Present | Detached:
    """Back from `compared`, as far as it goes: for the simulation of steps on it."""
    dataset = UNKNOWN if "dataset" not in value else value["dataset"] and _dataset_of(value["dataset"])
    if state == "detached":
        assert isinstance(dataset, DatasetState)
        return Detached(value["location"], dataset)
    marks = marks_from({**value, "applied": tuple(value.get("managed_keys", ()))})
    if kind == "Namespace":
        return Present(NamespaceState(value["properties"], marks))
    shown = value.get("shown_columns")
    columns = None if shown is None else tuple(column_from({"name": n, **c}) for n, c in shown.items())
    return Present(TableState(value.get("location", UNKNOWN), value["properties"], marks, dataset or None, columns))


def _marks(marks: Marks) -> dict[str, Json]:
    out: dict[str, Json] = {"owner": marks.owner, "protect": marks.protect}
    return out | {"managed_keys": dict.fromkeys(marks.applied, True)} if marks.applied else out


def _dataset(state: DatasetState, clean: Clean) -> dict[str, Json]:
    out: dict[str, Json] = {
        "schema": {f.name: _rest(field_json(f), clean) for f in sorted(state.fields, key=lambda f: f.name)}
    }
    if state.indexes:
        out["indexes"] = {
            i.name: _cleaned(index_compared(i), clean) for i in sorted(state.indexes, key=lambda i: i.name)
        }
    for name, values in (("config", state.config), ("schema_metadata", state.schema_metadata)):
        if values:
            out[name] = _values(values, clean)
    if state.owner is not None:
        out["owner"] = state.owner
    if state.applied:
        out["managed_keys"] = dict.fromkeys(state.applied, True)
    if state.data is not None:
        out["rows_from"] = state.data.digest if state.data.noted else f"{state.data.digest} (not noted)"
    return out


def _dataset_of(value: Mapping[str, Any]) -> DatasetState:
    indexes = [{"name": n, **i} for n, i in value.get("indexes", {}).items()]
    return dataset_from(
        {
            "fields": [{"name": name, **rest} for name, rest in value["schema"].items()],
            "indexes": indexes,
            "applied": tuple(value.get("managed_keys", ())),
            **{key: value[key] for key in ("config", "schema_metadata", "owner") if key in value},
        }
    )


def _rest(value: dict[str, Json], clean: Clean) -> Json:
    return _cleaned({k: v for k, v in value.items() if k != "name"}, clean)


def _values(values: Mapping[str, str], clean: Clean) -> dict[str, Json]:
    return {key: HIDDEN if names_credential(key) else _text(value, clean) for key, value in sorted(values.items())}


def _cleaned(value: Json, clean: Clean) -> Json:
    if isinstance(value, dict):
        return {k: HIDDEN if names_credential(k) else _cleaned(v, clean) for k, v in value.items()}
    if isinstance(value, list):
        return [_cleaned(v, clean) for v in value]
    return _text(value, clean) if isinstance(value, str) else value


def _text(value: str, clean: Clean) -> str:
    if credential_in(value) is not None or clean(value) != value:
        return HIDDEN
    if len(value) <= LONGEST:
        return value
    return f"{value[:_CUT]}… ({len(value)} characters, sha256 {hashlib.sha256(value.encode()).hexdigest()[:16]})"
