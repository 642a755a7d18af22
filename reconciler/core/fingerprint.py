"""What the planner compared, as one hash per object: how a saved plan knows that the world moved on.

A fingerprint covers location, properties, marks, schema, config and index definitions, never the dataset version,
rows or times. Namespaces that are to be dropped are hashed with their children.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from reconciler.model.codec import canonical, finding_json
from reconciler.model.observed import Absent, Detached, Finding, Present, Unreadable
from reconciler.model.plan import Expect, Json
from reconciler.model.state import UNKNOWN, DatasetState, Index, TableState


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
    value: dict[str, Json] = dict(finding_json(_comparable(finding)))
    if children is not None:
        value["children"] = [*sorted(children)]
    return "sha256:" + hashlib.sha256(canonical(value).encode()).hexdigest()


def same(expect: Expect, finding: Finding, children: Sequence[str] | None = None) -> bool:
    """True when the object is as expected. A location that only the server could choose was unknown when the plan was
    made, so a live table also matches without its location."""
    if isinstance(finding, Absent):
        return expect.state == "absent"
    if isinstance(finding, Unreadable) or expect.fingerprint is None:
        return False
    return expect.fingerprint in prints_of(finding, children)


def prints_of(finding: Finding, children: Sequence[str] | None = None) -> tuple[str, ...]:
    """The fingerprints a live object answers to: with its location and, for tables, with the location unknown."""
    prints = [fingerprint(finding, children)]
    if isinstance(finding, Present) and isinstance(finding.state, TableState):
        prints.append(fingerprint(Present(replace(finding.state, location=UNKNOWN))))
    return tuple(prints)


def _comparable(finding: Finding) -> Finding:
    match finding:
        case Present(TableState(dataset=DatasetState() as dataset) as state):
            return Present(replace(state, dataset=_foretold(dataset)))
        case Detached(location, dataset):
            return Detached(location, _foretold(dataset))
        case _:
            return finding


def _foretold(dataset: DatasetState) -> DatasetState:
    """Column order is never compared, and of index parameters only those we recorded."""
    return replace(
        dataset,
        fields=tuple(sorted(dataset.fields, key=lambda f: f.name)),
        indexes=tuple(_recorded(i) for i in dataset.indexes),
    )


def _recorded(index: Index) -> Index:
    return replace(index, params={k: v for k, v in index.params.items() if k in index.recorded})
