"""What to do after a run that did not end with 0: by its exit code, and by what its plan holds."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.plan import INCOMPLETE, PARENT_BLOCKED, UNREADABLE, Plan, Step
from reconciler.model.run import CHECK_FAILED, Run

_AGAIN = "run again: what holds already is skipped"
_BY_CODE = {
    1: "nothing was written; fix what is named below, then run again",
    2: "review the differences in the log",
    3: "a rule stands against it; what is named below says which, and what lets it through",
    4: "nothing was written; run again, which plans anew; for a saved or reviewed plan make a new one",
    5: _AGAIN,
    6: "nothing was written; another run holds the lease: wait for it",
    130: _AGAIN,
}
ROWS = "the rows break a check that the result names: look at who wrote them, no apply repairs rows"
WHOLE_RUN = "nothing was written: the whole run is refused, for the reason below"
REVIEW = "review the differences in the log, then apply"
ACCESS = "something could not be read: repair the access to what is named below, then run again"
CANNOT = "the catalog cannot do what is unsupported below: change the manifest"
HELD_BACK = "what is blocked below waits for a decision: its line in the plan names what lets it through"
ORPHANS = "the orphans in the log are ours and in no manifest: declare them again, or remove them with apply --prune"


def what_to_do(run: Run) -> str:
    """Empty when there is nothing to do. Of several things each is said: who acts on the first alone would get the same
    exit code again."""
    if run.outcome == CHECK_FAILED:
        return ROWS
    found: list[str] = []
    if run.plan is not None and run.exit_code == 2:
        found = [*_to_apply(run.plan), *_in_the_way(run.plan), *([ORPHANS] if run.plan.orphans else ())]
    elif run.plan is not None and run.exit_code == 3:
        found = [WHOLE_RUN] if run.plan.refused is not None else [*_in_the_way(run.plan)]
    return "; ".join(found) or _BY_CODE.get(run.exit_code, "")


def _to_apply(plan: Plan) -> Iterator[str]:
    if any(step.verdict == "allowed" for step in plan.steps):
        yield REVIEW


def _in_the_way(plan: Plan) -> Iterator[str]:
    """A step that only waits for a blocked one is no reason of its own."""
    kept = [s for s in plan.steps if s.verdict != "allowed" and s.blocked_by != PARENT_BLOCKED]
    unread = [s for s in kept if s.blocked_by in (UNREADABLE, INCOMPLETE)]
    if unread or not all(catalog.complete for catalog in plan.catalogs.values()):
        yield ACCESS
    if any(s.verdict == "unsupported" for s in kept):
        yield CANNOT
    if any(_decidable(s) for s in kept):
        yield HELD_BACK


def _decidable(step: Step) -> bool:
    return step.verdict == "blocked" and step.blocked_by not in (UNREADABLE, INCOMPLETE)
