"""What is to be done follows from what is in the plan, not from the exit code alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from plans import plan, step

from reconciler.model.change import CreateNamespace, RenameNamespace
from reconciler.model.errors import Code, ReadError
from reconciler.model.finding import Finding
from reconciler.model.plan import ADOPT, INCOMPLETE, PARENT_BLOCKED, THRESHOLD, UNREADABLE, CatalogSummary, Plan, Step
from reconciler.model.run import CHECK_FAILED, Run
from reconciler.model.state import Marks
from reconciler.render import what_to_do as w
from reconciler.render.termination import termination_text


def create(number: int, **more: object) -> Step:
    return step(number, CreateNamespace((f"n{number}",), {}, Marks("team")), **more)  # type: ignore[arg-type]


def blocked(number: int, word: str) -> Step:
    return create(number, verdict="blocked", blocked_by=word)


UNSUPPORTED = step(9, RenameNamespace(("new",), ("old",)), verdict="unsupported", reason="cannot")
HALF_READ = {"lake": CatalogSummary("dir", False, 0, 0, {}, (ReadError(Code.INTERNAL, "the listing broke off"),))}


def said(made: Plan | None, code: int, command: str = "drift") -> str:
    return w.what_to_do(Run(command, 0, 1, code, made))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((UNSUPPORTED,), [w.CANNOT]),
        ((blocked(1, UNREADABLE),), [w.ACCESS]),
        ((blocked(1, INCOMPLETE),), [w.ACCESS]),
        ((blocked(1, ADOPT),), [w.HELD_BACK]),
        ((blocked(1, UNREADABLE), blocked(2, PARENT_BLOCKED)), [w.ACCESS]),
        ((blocked(1, UNREADABLE), blocked(2, ADOPT), UNSUPPORTED), [w.ACCESS, w.CANNOT, w.HELD_BACK]),
    ],
)
def test_apply_and_drift_say_the_same_of_what_is_held_back(steps: tuple[Step, ...], expected: list[str]) -> None:
    made = plan(steps)
    assert said(made, 3, "apply") == said(made, 2) == "; ".join(expected)
    with_more = plan((*steps, create(7)))
    assert said(with_more, 3, "apply") == "; ".join(expected), "that one is done"
    assert said(with_more, 2) == "; ".join([w.REVIEW, *expected])


def test_a_catalog_that_was_read_in_part() -> None:
    made = plan((), catalogs=HALF_READ)
    assert said(made, 2) == w.ACCESS
    assert [Run("plan", 0, 1, 0, p).outcome for p in (made, plan(()))] == ["drift", "no_changes"]


def test_a_run_that_is_refused_as_a_whole_says_why() -> None:
    over = plan((replace(blocked(1, THRESHOLD), reason="too many deletes"), create(2)))
    finding = Finding("P001", "error", None, "the name is odd")
    for made in (over, plan((create(1),), findings=(finding,))):
        run = Run("plan", 0, 1, 3, made)
        assert w.what_to_do(run) == w.WHOLE_RUN
        assert made.refused is not None
        assert made.refused in termination_text(run)


def test_rows_that_break_a_check_are_not_repaired_by_apply() -> None:
    run = Run("pipeline verify", 0, 1, 2)
    assert (run.outcome, w.what_to_do(run)) == (CHECK_FAILED, w.ROWS)
    assert Run("pipeline inventory", 0, 1, 2).outcome == "drift"


@pytest.mark.parametrize("code", [1, 2, 3, 4, 5, 6, 130])
def test_without_a_plan_there_is_something_to_do_too(code: int) -> None:
    assert said(None, code)
    assert said(None, 0) == ""


def test_a_stale_plan_is_made_anew_by_the_next_run_unless_it_was_saved() -> None:
    assert "run again" in said(None, 4, "apply")
    assert "saved" in said(None, 4, "apply")
