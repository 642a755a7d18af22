"""What each object must look like before, between and after the steps of a plan.

The allowed steps of one object form a chain of links, in plan order. A live object that is at the start of its chain,
between two links, or between the writes of one link can go on from there; anything else is a change by someone else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from reconciler.core.coverage import refresh_due
from reconciler.core.fingerprint import expect_of, fingerprint, prints_of, same, without_others
from reconciler.core.storage_keys import storage_properties
from reconciler.core.world import after_table_change
from reconciler.model.change import (
    CreateNamespace,
    DeclareTable,
    DeregisterTable,
    DropNamespace,
    RefreshIndex,
    RenameNamespace,
    RenameTable,
    ReplaceTable,
)
from reconciler.model.ident import Ident, ObjectKey, parent
from reconciler.model.observed import Absent, Detached, Finding, Present, Unreadable, what_is_left
from reconciler.model.plan import Expect, Step
from reconciler.model.state import UNKNOWN, TableState

Place = Literal["before", "between", "after", "elsewhere"]

RENAMES = (RenameTable, RenameNamespace)
GONE = Expect("absent")


@dataclass(frozen=True, slots=True)
class Live:
    """An object as read. `children` only for a namespace that is to be dropped."""

    finding: Finding
    children: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """One step as seen from one object. A rename is a link of two objects: it fills the new identifier and empties
    the old one, whose content it leaves as it was."""

    step: Step
    key: ObjectKey
    expect: Expect
    yields: Expect
    via: tuple[str, ...] = ()
    leaves: bool = False
    """The object is no longer in the catalog afterwards; its data may be (detached)."""

    def place(self, live: Live) -> Place:
        """Where the live object is, seen from this link. `after` wins: what already holds is not done again."""
        if self.holds_after(live.finding):
            return "after"
        if _is(self.expect, live.finding, live.children):
            return "before"
        if self._was_cut(live.finding):
            return "between"
        counted = without_others(live.finding, self.yields.columns)
        if any(f in self.via for v in _views(counted) for f in prints_of(v, None)):
            return "between"
        return "elsewhere"

    def _was_cut(self, finding: Finding) -> bool:
        """An entry that is replaced is gone for a moment. Only a record of what it was tells that from a table that
        somebody took out of the catalog."""
        cut = finding.cut if isinstance(finding, Detached) and isinstance(self.step.change, ReplaceTable) else None
        return cut is not None and _is(self.expect, Present(cut), None)

    def holds_after(self, finding: Finding) -> bool:
        """A refresh changes nothing that a fingerprint covers: the live coverage says whether it is done."""
        change = self.step.change
        due = isinstance(change, RefreshIndex) and refresh_due(change, finding)
        return not due and self.shows_result(finding)

    def shows_result(self, finding: Finding) -> bool:
        """By what is compared: after a refresh that was just done, rows may have come that it could not cover."""
        return (self.leaves and isinstance(finding, (Absent, Detached))) or _is(self.yields, finding, None)


def links_of(step: Step) -> tuple[Link, ...]:
    change = step.change
    leaves = isinstance(change, (DeregisterTable, DropNamespace))
    link = Link(step, step.key, step.expect, step.yields, step.via, leaves)
    if not isinstance(change, RENAMES):
        return (link,)
    old = ObjectKey(step.catalog, change.source, change.kind)
    return link, Link(step, old, step.yields, GONE, leaves=True)


def rebased(step: Step, found: Finding) -> Step:
    """The step as it would have been planned on `found`: the object after its earlier steps, of which one was not done
    that this one does not need."""
    columns = step.yields.columns
    found = without_others(what_is_left(found), columns)
    if not isinstance(found, Present) or not isinstance(found.state, TableState):
        return step
    states = [Present(state) for state in after_table_change(found.state, step.change)]
    via = tuple(fingerprint(state) for state in states[:-1])
    expect, yields = (replace(expect_of(state), columns=columns) for state in (found, states[-1]))
    return replace(step, expect=expect, yields=yields, via=via)


def chains_of(steps: Iterable[Step]) -> dict[ObjectKey, list[Link]]:
    chains: dict[ObjectKey, list[Link]] = {}
    for step in steps:
        for link in links_of(step):
            chains.setdefault(link.key, []).append(link)
    return chains


def position(chain: Sequence[Link], live: Live) -> int | None:
    """How many links of the chain hold already, or None when the object is nowhere on it. The furthest place wins, but
    refreshes, which look alike before and after, hold only when the index is not due."""
    for i in range(len(chain) - 1, -1, -1):
        place = chain[i].place(live)
        if place != "elsewhere":
            reached = i + 1 if place == "after" else i
            return next((n for n in range(reached) if _is_due(chain[n], live)), reached)
    return None


def _is_due(link: Link, live: Live) -> bool:
    return isinstance(link.step.change, RefreshIndex) and refresh_due(link.step.change, live.finding)


def drops(chain: Sequence[Link]) -> bool:
    """True when the children of this object are part of what was compared."""
    return any(isinstance(link.step.change, DropNamespace) for link in chain)


def children_at_the_drop(
    live: Iterable[str], namespace: ObjectKey, chains: Mapping[ObjectKey, Sequence[Link]]
) -> tuple[str, ...]:
    """The children that will be left when the plan comes to drop this namespace: those that are there now, without
    those the plan takes away before, with those it puts there."""
    gone: set[str] = set()
    made: set[str] = set()
    for key, chain in chains.items():
        if key.catalog != namespace.catalog or parent(key.ident) != namespace.ident or not key.ident:
            continue
        if chain[-1].leaves:
            gone.add(key.ident[-1])
        elif any(isinstance(link.step.change, (CreateNamespace, DeclareTable, *RENAMES)) for link in chain):
            made.add(key.ident[-1])
    return tuple(sorted((set(live) - gone) | made))


def locations_of(steps: Iterable[Step]) -> dict[Ident, str]:
    """Data that the plan attaches a table to: it has to be looked for where there is no table yet."""
    return {
        s.change.ident: s.change.location
        for s in steps
        if isinstance(s.change, DeclareTable) and s.change.location is not None
    }


def storage_of(steps: Iterable[Step]) -> dict[Ident, dict[str, str]]:
    """The `storage.*` properties that new tables get: their places are looked at before they have an entry."""
    new = (s.change for s in steps if isinstance(s.change, DeclareTable))
    return {change.ident: found for change in new if (found := storage_properties(change.properties))}


def describe(finding: Finding) -> str:
    match finding:
        case Absent():
            return "it does not exist"
        case Detached():
            return "it is not in the catalog, only its data is"
        case Unreadable(_, message):
            return f"it cannot be read: {message}"
        case Present():
            return "it exists and differs from what the plan was made on"


def _is(expect: Expect, finding: Finding, children: Sequence[str] | None) -> bool:
    return any(same(expect, view, children) for view in _views(finding))


def _views(finding: Finding) -> Iterable[Finding]:
    """A table that was only listed when the plan was made was fingerprinted without its dataset; one whose data was
    gone as its entry shows it."""
    finding = what_is_left(finding)
    yield finding
    if isinstance(finding, Present) and isinstance(finding.state, TableState) and finding.state.gone:
        return  # A plan that did not know it is not carried out.
    if isinstance(finding, Present) and isinstance(finding.state, TableState) and finding.state.dataset is not UNKNOWN:
        yield Present(replace(finding.state, dataset=UNKNOWN))
