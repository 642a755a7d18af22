"""Which step may start when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler.engine.chain import links_of
from reconciler.model.ident import ObjectKey
from reconciler.model.plan import Step
from reconciler.model.report import Status

GOOD: frozenset[Status] = frozenset({"done", "skipped"})


class Graph:
    """A step waits for what it needs and for the allowed steps before it on the same object (it was planned on their
    result). Deletes also wait until every create and update has ended, and never start once one of those went wrong.
    What waits for a step that will not be done never starts."""

    def __init__(self, steps: Sequence[Step]) -> None:
        allowed = [s for s in steps if s.verdict == "allowed"]
        self._steps = {s.id: s for s in allowed}
        self._waits: dict[str, set[str]] = {}
        self._after: dict[str, list[str]] = {}
        last: dict[ObjectKey, str] = {}
        for step in allowed:
            waits = set(step.needs)
            for link in links_of(step):
                if link.key in last:
                    waits.add(last[link.key])
                last[link.key] = step.id
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
                self._give_up_after(step.id)
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
            self._give_up_after(step.id)
        else:
            for later in self._after.get(step.id, ()):
                self._waits[later].discard(step.id)
            self._offer(i for i in self._after.get(step.id, ()) if i in self._steps and not self._waits[i])
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

    def _give_up_after(self, step_id: str) -> None:
        todo = [step_id]
        while todo:
            for later in self._after.get(todo.pop(), ()):
                gone = self._steps.pop(later, None)
                if gone is None:
                    continue
                self._building -= not gone.deletes
                todo.append(later)
