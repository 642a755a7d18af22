"""What the planner compared, as one hash per object: how a saved plan knows that the world moved on.

A fingerprint covers location, properties, marks, schema, config, index definitions, the columns a catalog shows and
what we noted about the source of its rows, but never the dataset version, rows or times. Namespaces that are to be
dropped are hashed with their children.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from reconciler.core.kept_params import chosen
from reconciler.core.uris import canonical_location
from reconciler.model.arrow import Field
from reconciler.model.codec import canonical, column_json, field_json, finding_json, marks_json
from reconciler.model.observed import Absent, Detached, Finding, Present, Unreadable
from reconciler.model.plan import Expect, Json
from reconciler.model.state import UNKNOWN, Column, DatasetState, Index, Param, TableState, Unknown


def expect_of(finding: Finding, children: Sequence[str] | None = None) -> Expect:
    """`children` is given for a namespace that is to be dropped."""
    match finding:
        case Present():
            return Expect("present", fingerprint(finding, children))
        case Detached():
            return Expect("detached", fingerprint(finding))
        case Absent():
            return Expect("absent")
        case Unreadable():
            return Expect("present", None)


def fingerprint(finding: Finding, children: Sequence[str] | None = None) -> str:
    value = _compared(finding)
    if children is not None:
        value["children"] = [*sorted(children)]
    return _sha256(canonical(value))


def _compared(finding: Finding) -> dict[str, Json]:
    match finding:
        case Present(TableState() as state):
            value: dict[str, Json] = {
                "location": canonical_location(state.location) if isinstance(state.location, str) else None,
                "properties": dict(state.properties),
                "marks": marks_json(state.marks),
                "dataset": _dataset(state.dataset),
            }
            if state.columns is not None:
                value["columns"] = _columns_print(state.columns)
            if state.gone:
                value["gone"] = True
            return value
        case Detached(location, dataset):
            return {"detached": canonical_location(location), "dataset": _dataset(dataset)}
        case _:
            return finding_json(finding)


def _dataset(dataset: DatasetState | Unknown | None) -> Json:
    if dataset is None or isinstance(dataset, Unknown):
        return None if dataset is None else "unknown"
    filled: dict[str, Json] = {"data": dataset.data.digest} if dataset.data is not None else {}
    if dataset.data is not None and not dataset.data.noted:
        filled["noted"] = False
    if dataset.data is not None and dataset.data.purged is not None:
        filled["purged"] = dataset.data.purged
    return {
        **filled,
        "schema": _schema_print(dataset.fields),
        "schema_metadata": dict(dataset.schema_metadata),
        "config": dict(dataset.config),
        "indexes": [_index(i) for i in sorted(dataset.indexes, key=lambda i: i.name)],
        "owner": dataset.owner,
        "applied": [*dataset.applied],
    }


def _index(index: Index) -> list[Json]:
    """Of an index that we built: the parameters that were declared, and those that somebody chose besides: a build in
    its place keeps them. What Lance makes of the rows cannot be foretold. While it is the one that we built, they count
    as declared: where Lance built something else, it is what Lance made of them. Of any other index: everything that
    can be read."""
    record = index.record
    if record is None:
        return [index.name, index.column, index.type, _alike(index.params)]
    live = {} if record.current else index.params
    params = _alike({**chosen(index, record.params), **{k: live.get(k, v) for k, v in record.params.items()}})
    again: list[Json] = [record.again] if record.current and record.again else []
    return [index.name, index.column, index.type, params, *again]


def _alike(params: Mapping[str, Param]) -> dict[str, Json]:
    """Lance spells some words in its own case."""
    return {k: v.lower() if isinstance(v, str) else v for k, v in params.items()}


def index_compared(index: Index) -> dict[str, Json]:
    """What is compared of an index besides its name, by name."""
    _, column, type_, params, *again = _index(index)
    return {"column": column, "type": type_, "params": params, **({"built again": again[0]} if again else {})}


def schema_print(fields: tuple[Field, ...]) -> str:
    """Of a schema alone."""
    return _schema_print(fields)


def _sha256(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


_prints: dict[int, tuple[tuple[object, ...], str]] = {}
"""By identity, with the columns kept alive: a plan hashes the same ones several times, and it is the costly part."""


def _schema_print(fields: tuple[Field, ...]) -> str:
    """Column order is never compared."""
    known = _prints.get(id(fields))
    if known is not None:
        return known[1]
    return _kept(fields, [field_json(f) for f in sorted(fields, key=lambda f: f.name)])


def _columns_print(columns: tuple[Column, ...]) -> str:
    known = _prints.get(id(columns))
    if known is not None:
        return known[1]
    return _kept(columns, [column_json(c) for c in sorted(columns, key=lambda c: c.name)])


def _kept(columns: tuple[object, ...], value: list[Json]) -> str:
    print_ = _sha256(canonical(value))
    if len(_prints) > 10_000:
        _prints.clear()
    _prints[id(columns)] = (columns, print_)
    return print_


def without_others(finding: Finding, columns: tuple[str, ...] | None) -> Finding:
    """The table without the columns of its dataset that do not count."""
    state = finding.state if isinstance(finding, Present) else None
    if columns is None or not isinstance(state, TableState) or not isinstance(state.dataset, DatasetState):
        return finding
    if all(f.name in columns for f in state.dataset.fields):
        return finding
    kept = tuple(f for f in state.dataset.fields if f.name in columns)
    return Present(replace(state, dataset=replace(state.dataset, fields=kept)))


def columns_of(finding: Finding) -> tuple[Field, ...]:
    state = finding.state if isinstance(finding, Present) else None
    dataset = state.dataset if isinstance(state, TableState) else None
    return dataset.fields if isinstance(dataset, DatasetState) else ()


def same(expect: Expect, finding: Finding, children: Sequence[str] | None = None) -> bool:
    """True when the object is as expected. A location that only the server could choose was unknown when the plan was
    made, so a live table also matches without its location."""
    if isinstance(finding, Absent):
        return expect.state == "absent"
    if isinstance(finding, Unreadable) or expect.fingerprint is None:
        return False
    return expect.fingerprint in prints_of(without_others(finding, expect.columns), children)


def prints_of(finding: Finding, children: Sequence[str] | None = None) -> tuple[str, ...]:
    """The fingerprints a live object answers to: with its location and, for tables, with the location unknown."""
    prints = [fingerprint(finding, children)]
    if isinstance(finding, Present) and isinstance(finding.state, TableState):
        prints.append(fingerprint(Present(replace(finding.state, location=UNKNOWN))))
    return tuple(prints)
