"""A run that has lost its turn sends nothing more, in the middle of a step too: every write of every kind of step."""

from __future__ import annotations

import pytest

from contract.scenario import Day
from reconciler.engine.chain import chains_of, links_of
from reconciler.engine.reader import Reader
from reconciler.engine.retry import Retry
from reconciler.engine.run_step import Ended, Tools, run_step
from reconciler.model.observed import Scope
from reconciler.model.plan import Plan

LOST = "the lease was lost"


class Closing:
    """Lets some questions pass, and none after them."""

    def __init__(self, day: Day, passes: int) -> None:
        self.day = day
        self.left = passes
        self.found: object = None

    def __call__(self) -> str | None:
        if self.left > 0:
            self.left -= 1
            return None
        self.found = self.found or self.day.lake.outsider.raw()
        return LOST


def run(day: Day, plan: Plan, passes: int) -> Ended:
    """The first step. Nothing is written after the fence has closed."""
    catalog, step, closing = day.lake.site.open(), plan.steps[0], Closing(day, passes)
    touched = frozenset(link.key.ident for link in links_of(step) if link.key.kind == "Table" and not step.deletes)
    reader, retry = Reader(catalog, Scope(detail=touched)), Retry(0, lambda seconds: None, lambda: False)
    ended = run_step(step, Tools(catalog, reader, retry, plan.plan_id, chains_of(plan.steps), guard=closing))
    if closing.found is not None:
        assert day.lake.outsider.raw() == closing.found, f"{step.action}, closed after {passes} questions"
    catalog.close()
    return ended


@pytest.mark.slow
def test_nothing_is_written_once_the_fence_is_closed(day: Day) -> None:
    """One question is asked before a step is tried, one more before each of its writes. The next run goes on."""
    if day.lake.backend.name in ("memory", "iceberg-nessie"):
        return  # The one has no writes but the step itself, the other is one more server for the same ones.
    passes, last, in_the_middle = 0, "", 0
    while (plan := day.plan()).steps:
        step = plan.steps[0]
        name = f"{step.action} {step.key}"
        passes, last = (passes + 1 if name == last else 1), name
        assert passes < 30, f"{name} never ends"
        ended = run(day, plan, passes)
        if passes == 1:
            assert (ended.result.status, ended.landed) == ("failed", False), f"{name} has no fence"
        if ended.result.status != "done":
            assert ended.gave_up or ended.result.status == "unknown", ended.result.error
            assert ended.result.error is not None
            assert LOST in ended.result.error.message
            assert ended.landed == (passes > 1), "what may be in the catalog has to be told"
            in_the_middle += passes > 1
    assert in_the_middle > 0
    day.ended_well()
