"""Plans built by hand for the executor: each change simulated on a copy of the world, as the planner does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.catalog.memory import MemoryCatalog, place
from reconciler.core.fingerprint import expect_of, fingerprint
from reconciler.core.world import World
from reconciler.model import change as c
from reconciler.model.arrow import Field, parse_type
from reconciler.model.ident import Ident
from reconciler.model.plan import Expect, Plan, Step, Summary, Verdict
from reconciler.model.state import Marks

OURS = Marks("us")


def ns(*ident: str, **properties: str) -> c.CreateNamespace:
    return c.CreateNamespace(ident, properties, OURS)


def declare(*ident: str, **properties: str) -> c.DeclareTable:
    return c.DeclareTable(ident, properties, OURS)


def columns(**types: str) -> tuple[Field, ...]:
    return tuple(Field(name, parse_type(text)) for name, text in types.items())


def dataset(*ident: str, **types: str) -> c.CreateDataset:
    return c.CreateDataset(ident, columns(**(types or {"id": "int64"})), {}, {"k": "v"}, "us", ())


def table(*ident: str) -> list[c.Change]:
    return [declare(*ident), dataset(*ident)]


def set_properties(*ident: str, **properties: str) -> c.UpdateTable:
    return c.UpdateTable(ident, properties, (), OURS)


def copy_of(world: World) -> World:
    return World(world.snapshot(), place)


def step(
    world: World,
    number: int,
    change: c.Change,
    needs: Sequence[str] = (),
    verdict: Verdict = "allowed",
    risk: Any = "safe",
    catalog: str = "lake",
) -> Step:
    """Applies the change to `world` when it is allowed."""
    before = world.find(change.kind, change.ident)
    inside = world.children(change.ident) if isinstance(change, c.DropNamespace) else None
    states = world.apply(change) if verdict == "allowed" else (before,)
    return Step(
        id=f"s{number}",
        catalog=catalog,
        change=change,
        risk=risk,
        reason="because",
        verdict=verdict,
        blocked_by=None if verdict == "allowed" else "adopt",
        needs=tuple(needs),
        expect=expect_of(before, inside),
        yields=expect_of(states[-1]),
        via=tuple(fingerprint(s) for s in states[:-1]),
        before=None,
        after=None,
        source=None,
    )


def plan(
    world: World,
    changes: Sequence[c.Change],
    needs: Mapping[int, Sequence[int]] | None = None,
    blocked: Sequence[int] = (),
    risks: Mapping[int, str] | None = None,
) -> Plan:
    """Steps s1, s2, … on `lake`. Tables need their parent's step and their own declare, as planned ones do."""
    simulated = copy_of(world)
    steps: list[Step] = []
    made: dict[Ident, str] = {}
    for i, change in enumerate(changes, 1):
        wanted = [f"s{n}" for n in (needs or {}).get(i, ())]
        wanted += [
            made[p] for p in (change.ident, change.ident[:-1]) if p in made and not isinstance(change, c.DELETES)
        ]
        verdict: Verdict = "blocked" if i in blocked else "allowed"
        steps.append(step(simulated, i, change, wanted, verdict, (risks or {}).get(i, "safe")))
        if isinstance(change, (c.CreateNamespace, c.DeclareTable)):
            made[change.ident] = f"s{i}"
    return Plan("sha256:" + "ab" * 32, "0", "", {}, tuple(steps), (), (), Summary())


def lake(*changes: c.Change) -> MemoryCatalog:
    """A catalog that already went through these changes."""
    catalog = MemoryCatalog()
    for change in changes:
        catalog.world.apply(change)
    return catalog


def unreadable(step_: Step) -> Step:
    return replace(step_, expect=Expect("present", None))
