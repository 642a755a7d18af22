"""Which step may start when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.core.needs import depends
from reconciler.engine.chain import links_of
from reconciler.model.ident import ObjectKey
from reconciler.model.plan import Step
from reconciler.model.report import Status

GOOD: frozenset[Status] = frozenset({"done", "skipped"})


class Graph:
    """A step waits until what it needs is done and until the allowed step before it on the same object has ended. What
    needs a step that will not be done never starts; what only comes after one goes on, unless nobody knows how that one
    ended. Deletes also wait until every create and update has ended, and never start once one of those went wrong."""

    def __init__(self, steps: Sequence[Step]) -> None:
        allowed = [s for s in steps if s.verdict == "allowed"]
        self._steps = {s.id: s for s in allowed}
        self._waits: dict[str, set[str]] = {}
        self._after: dict[str, list[str]] = {}
        self._needs = {s.id: set(s.needs) for s in allowed}
        last: dict[ObjectKey, Step] = {}
        for step in allowed:
            waits = set(step.needs)
            for link in links_of(step):
                before = last.get(link.key)
                if before is not None:
                    waits.add(before.id)
                    if depends(step.change, before.change):
                        self._needs[step.id].add(before.id)
                last[link.key] = step
            self._waits[step.id] = waits
            for need in waits:
                self._after.setdefault(need, []).append(step.id)
        self._building = sum(1 for s in allowed if not s.deletes)
        self._deletes_allowed = True
        self._held: list[str] = []
        self._ready: list[str] = []
        self._offer(s.id for s in allowed if not self._waits[s.id])
        for step in steps:
            if step.verdict != "allowed":
                self._pass_on(step.id, doubt=False)
        self._release()

    def take_ready(self) -> list[Step]:
        """Steps that may start now, each given out once, in plan order."""
        ready, self._ready = self._ready, []
        return [self._steps[i] for i in ready if i in self._steps]

    def ended(self, step: Step, status: Status) -> None:
        if self._steps.pop(step.id, None) is None:
            return
        if status not in GOOD:
            if not step.deletes:
                self._deletes_allowed = False
            self._pass_on(step.id, doubt=status == "unknown")
        else:
            self._free(step.id)
        if not step.deletes:
            self._building -= 1
            self._release()

    def _offer(self, ids: Iterable[str]) -> None:
        for i in ids:
            (self._held if self._steps[i].deletes and self._building else self._ready).append(i)

    def _release(self) -> None:
        if self._building:
            return
        if not self._deletes_allowed:
            self._held.clear()
            self._steps = {i: s for i, s in self._steps.items() if not s.deletes}
        self._ready += self._held
        self._held = []

    def _free(self, step_id: str) -> None:
        """What waits for a step need not any more, but for what that one was waiting for itself: the steps of one
        object run one at a time, also when one between them never does."""
        still = {i for i in self._waits.get(step_id, ()) if i in self._steps}
        waiting = [i for i in self._after.get(step_id, ()) if i in self._steps]
        for i in waiting:
            for before in still - self._waits[i]:
                self._after[before].append(i)
            self._waits[i] = (self._waits[i] | still) - {step_id}
        self._offer(i for i in waiting if not self._waits[i])

    def _pass_on(self, step_id: str, doubt: bool) -> None:
        """After a step that was not done. `doubt`: nobody knows what its object is now."""
        todo = [step_id]
        while todo:
            ended = todo.pop()
            follow = self._after.get(ended, ())
            lost = [i for i in follow if i in self._steps and (doubt or ended in self._needs[i])]
            for i in lost:
                self._building -= not self._steps.pop(i).deletes
            todo += lost
            self._free(ended)
