"""What Defaults do to imported objects. They are for all that match, so also for one that is imported without what they
give: it is not contradicted there, and the next plan gives it. That is told, once for all objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.core.taken_away import TakenAway
from reconciler.core.text import plural
from reconciler.manifest.columns import Columns
from reconciler.manifest.convert import convert
from reconciler.manifest.defaults import Defaults, Together
from reconciler.manifest.emit import Part
from reconciler.manifest.emit_columns import Doc
from reconciler.manifest.import_edits import edits_for
from reconciler.manifest.import_target import LEFT, Given, value_path
from reconciler.manifest.layers import Layered, filled
from reconciler.manifest.problem import Path, Problem
from reconciler.manifest.sink import place_in
from reconciler.model.desired import DesiredNamespace, DesiredTable
from reconciler.model.diagnostic import Source
from reconciler.model.ident import ObjectKey
from reconciler.model.state import NamespaceState, TableState


class Conflict(Exception):
    """Why an object cannot be declared under these Defaults."""


def under_defaults(
    part: Part, catalog: str, defaults: Defaults, live: NamespaceState | TableState, columns: Columns
) -> tuple[Part, Sequence[Given]]:
    """A new document without what Defaults give already, and what they give that is not live. Raises Conflict."""
    assert part.document is not None
    together = defaults.given_to(part.kind, catalog, part.ident)
    if together is None:
        return part, ()
    own = _with_theirs(part.document.get("spec") or {}, together, part.taken_away)
    _check(own, together)
    contested = {c.path for c in together.conflicts}
    spec = _without(own, together.value, contested, ("spec",))
    short = {**part.document, "spec": spec}
    if not spec and part.kind == "Namespace":
        del short["spec"]
    whole: Doc = {
        **part.document,
        "spec": filled(spec, together.value, together.written, Layered(None, None, ""), ("spec",)),  # type: ignore[arg-type]
    }
    nowhere = Source("-")
    problems: list[Problem] = []
    means, wanted = convert(whole, nowhere, columns, problems), convert(part.document, nowhere, columns, [])
    wrong = next((p.message for p in problems if p.severity == "error"), None)
    if wrong is not None:
        raise Conflict(f"with what Defaults give it would be wrong: {wrong}")
    assert isinstance(means, DesiredNamespace | DesiredTable)
    assert isinstance(wanted, DesiredNamespace | DesiredTable)
    changes = {edit.path for edit in edits_for(means, live, wanted, part.document, whole)}
    given = [(p, together.written[p]) for p in sorted(changes & together.written.keys())]
    return replace(part, document=short), [Given(p, place_in(w.sink.file, w.document, p)) for p, w in given]


def _with_theirs(own: Mapping[str, Any], together: Together, gone: Sequence[TakenAway]) -> Mapping[str, Any]:
    """The object's own `ignoreDifferences` are all that counts, so they have those of the Defaults too. What Defaults
    give is wanted, and is not left to others."""
    if LEFT not in own:
        return own
    theirs = together.value.get(LEFT, ())
    left = {*theirs, *(t.path for t in gone if t.is_left(tuple(theirs)))}
    kept = [p for p in own[LEFT] if value_path(p) not in together.written and p not in left]
    rest = {k: v for k, v in own.items() if k != LEFT}
    return {**rest, LEFT: [*theirs, *kept]} if kept else rest


def check_defaults(part: Part, catalog: str, defaults: Defaults) -> None:
    """Raises Conflict when Defaults would make the document invalid as it is."""
    assert part.document is not None
    together = defaults.given_to(part.kind, catalog, part.ident)
    if together is not None:
        _check(part.document.get("spec") or {}, together)


def _check(own: Mapping[str, Any], together: Together) -> None:
    for conflict in together.conflicts:
        value: Any = {"spec": own}
        for key in conflict.path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            name = ".".join(map(str, conflict.path))
            places = f"{conflict.first.place} and {conflict.second.place}"
            raise Conflict(f"the Defaults at {places} both give it `{name}`, with different values")


def _without(own: Mapping[str, Any], given: Mapping[str, Any], contested: set[Path], path: Path) -> Doc:
    out: Doc = {}
    for key, value in own.items():
        here = (*path, key)
        if key not in given or here in contested:
            out[key] = value
        elif isinstance(value, dict) and isinstance(given[key], dict):
            if rest := _without(value, given[key], contested, here):
                out[key] = rest
        elif value != given[key]:
            out[key] = value
    return out


@dataclass
class DefaultsTold:
    """What Defaults give to objects that do not have it live."""

    _objects: list[ObjectKey] = field(default_factory=list)
    _given: dict[tuple[Path, Source, bool], list[Given]] = field(default_factory=dict)
    """By what it is, where Defaults give it, and whether the object has a value of its own."""

    def __len__(self) -> int:
        return len(self._objects)

    def add(self, key: ObjectKey, given: Sequence[Given]) -> None:
        if given:
            self._objects.append(key)
        for one in given:
            self._given.setdefault((one.path, one.place, one.own is not None), []).append(one)

    def text(self) -> str:
        more = len(self._objects) - 1
        who = f"{self._objects[0]} and {more} more do" if more else f"{self._objects[0]} does"
        keys = ", ".join(
            _told(same) + (f" ({plural(len(same), 'object')})" if more else "")
            for _, same in sorted(self._given.items(), key=lambda item: item[0])
        )
        return f"{who} not have live what Defaults give, and the next apply sets it: {keys}"


def _told(same: Sequence[Given]) -> str:
    name, own = same[0].name, same[0].own
    if own is None:
        return f"{name} comes from Defaults at {same[0].place}"
    where = f"{own} and {plural(len(same) - 1, 'more place')}" if same[1:] else own
    return f"{name} comes from {where}, and without that from Defaults at {same[0].place}"
