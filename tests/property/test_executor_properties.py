"""The planner and the real executor together, on a catalog that fails on demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from prop_cases import Case, cases
from prop_dice import Dice
from prop_run import (
    ListingCatalog,
    allowed,
    assert_ends_alike,
    catalog_of,
    may_change,
    plan_on,
    recorded_and_gone,
    state_of,
)

from reconciler.core.errors import PlanError
from reconciler.engine.execute import execute
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Absent, Present
from reconciler.model.plan import TWO_APPLIES, Plan
from reconciler.model.report import Report
from reconciler.model.state import Marks, NamespaceState, TableState

TAPES = st.binary(min_size=60, max_size=60)


def run(plan: Plan, catalog: ListingCatalog, parallelism: int = 1) -> Report:
    return execute(plan, {"lake": catalog}, parallelism=parallelism, sleep=lambda _: None)


def started(case: Case) -> tuple[Plan, ListingCatalog]:
    catalog = catalog_of(case)
    try:
        plan = plan_on(case, catalog)
    except PlanError:
        assume(False)
        raise
    assume(plan.refused is None and not any(s.blocked_by == TWO_APPLIES for s in plan.steps))
    return plan, catalog


def undisturbed(case: Case) -> dict[tuple[str, tuple[str, ...]], str]:
    plan, catalog = started(case)
    run(plan, catalog)
    return state_of(catalog)


class Faults:
    """Fails one call in `n` at each of the given points, but at most four times for one step: it is tried six times."""

    def __init__(self, dice: Dice, n: int, points: tuple[str, ...], error: Callable[[], CatalogError]) -> None:
        self.dice, self.n, self.points, self.error = dice, n, points, error
        self.failed: Counter[int] = Counter()

    def __call__(self, point: str, subject: object) -> None:
        if point in self.points and self.failed[id(subject)] < 4 and self.dice.one_in(self.n):
            self.failed[id(subject)] += 1
            raise self.error()


def lost_answer() -> CatalogError:
    return CatalogError(Code.SERVICE_UNAVAILABLE, "the connection was cut", unknown_outcome=True)


def denied() -> CatalogError:
    return CatalogError(Code.PERMISSION_DENIED, "no")


@given(cases(data_plane=False), st.sampled_from([1, 4]))
@settings(max_examples=settings().max_examples // 2)
def test_the_executor_ends_where_the_plan_says(case: Case, parallelism: int) -> None:
    """[1, 2] Applied, then nothing left to do; the same plan again writes nothing."""
    plan, catalog = started(case)
    report = run(plan, catalog, parallelism)
    held = any(s.verdict != "allowed" for s in plan.steps)
    assert report.outcome == ("refused" if held else "applied" if plan.steps else "no_changes")
    after = state_of(catalog)
    writes = catalog.calls.writes
    assert writes >= len(allowed(plan))
    assert allowed(plan_on(case, catalog)) == []
    again = run(plan, catalog, parallelism)
    assert {s.status for s in again.steps if s.step.verdict == "allowed"} <= {"skipped"}
    assert catalog.calls.writes == writes
    assert state_of(catalog) == after


@given(cases(data_plane=False), TAPES)
@settings(max_examples=settings().max_examples // 2)
def test_lost_answers_converge(case: Case, tape: bytes) -> None:
    """[6] The write landed, or did not; nobody was told. The run ends as if nothing had happened."""
    goal = undisturbed(case)
    plan, catalog = started(case)
    catalog.fault = Faults(Dice(tape), 3, ("before", "after"), lost_answer)
    report = run(plan, catalog)
    assert state_of(catalog) == goal
    assert report.count("failed") == report.count("unknown") == 0


@given(cases(data_plane=False), TAPES)
@settings(max_examples=settings().max_examples // 2)
def test_errors_and_kills_then_a_new_plan(case: Case, tape: bytes) -> None:
    """[5] Writes are refused here and there; a new plan and a quiet run end where an undisturbed run ends, but for
    records that may wait."""
    goal = undisturbed(case)
    plan, catalog = started(case)
    catalog.fault = Faults(Dice(tape), 3, ("before", "after"), denied)
    report = run(plan, catalog)
    assert report.outcome in ("partial", "failed") or report.count("not_run") == len(plan.steps) - len(allowed(plan))
    done = {r.step.id for r in report.steps if r.status in ("done", "skipped")}
    built = all(s.id in done for s in allowed(plan) if not s.deletes)
    assert built or not any(r.step.deletes and r.status == "done" for r in report.steps)
    catalog.fault = None
    gone = recorded_and_gone(catalog)
    rest = plan_on(case, catalog)
    assume(rest.refused is None)
    run(rest, catalog)
    assert_ends_alike(state_of(catalog), goal, gone)


@given(cases(data_plane=False), TAPES)
@settings(max_examples=settings().max_examples // 2)
def test_what_is_not_ours_survives_any_fault(case: Case, tape: bytes) -> None:
    """[3]"""
    plan, catalog = started(case)
    before = state_of(catalog)
    dice = Dice(tape)
    catalog.fault = Faults(dice, 3, ("before", "after", "read"), dice.pick([denied, lost_answer]))
    run(plan, catalog)
    after = state_of(catalog)
    changed = {k for k in before if before[k] != after.get(k)}
    assert {k for k in changed if not may_change(case, k)} == set()


@given(cases(data_plane=False), st.data())
@settings(max_examples=settings().max_examples // 2)
def test_a_change_by_somebody_else_makes_the_plan_stale(case: Case, data: st.DataObject) -> None:
    """[11] Zero writes, and the object is named."""
    plan, catalog = started(case)
    steps = allowed(plan)
    assume(steps)
    step = data.draw(st.sampled_from(steps))
    kind, ident = step.change.kind, step.change.ident
    first = next(s for s in steps if s.key == step.key)
    found = catalog.world.find(kind, ident)
    assume(isinstance(found, Present) or first.expect.state == "absent")
    assume(isinstance(found, (Present, Absent)))
    stranger = Marks("a stranger")
    if kind == "Namespace":
        old = found.state if isinstance(found, Present) and isinstance(found.state, NamespaceState) else None
        catalog.world.namespaces[ident] = Present(NamespaceState({"by": "stranger"}, old.marks if old else stranger))
    else:
        table = found.state if isinstance(found, Present) and isinstance(found.state, TableState) else None
        new = replace(table or TableState("memory/new", marks=stranger, dataset=None), properties={"by": "stranger"})
        catalog.world.tables[ident] = Present(new)
    report = run(plan, catalog)
    assert report.outcome == "stale"
    assert catalog.calls.writes == 0
    assert str(step.key) in report.message or "more" in report.message


@given(cases(data_plane=False))
@settings(max_examples=settings().max_examples // 2)
def test_nothing_to_do_writes_nothing_and_reads_little(case: Case) -> None:
    """[14] One scan for a plan, and one more where ignored tables may hold the data of one that is to be attached; a
    plan without allowed steps is not even read for."""
    plan, catalog = started(case)
    run(plan, catalog)
    catalog.calls.scans = catalog.calls.reads = catalog.calls.writes = 0
    again = plan_on(case, catalog)
    run(again, catalog)
    assert (catalog.calls.reads, catalog.calls.writes) == (0, 0)
    assert catalog.calls.scans in ((1, 2) if case.management.ignore else (1,))
