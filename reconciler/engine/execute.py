"""Runs a plan and nothing else: every object is checked before the first write, then the steps run as a DAG.

A failing step fails only what needs it. Deletes start after all creates and updates have ended well. Once the run is
to stop, running steps finish and none starts; the same holds for a catalog whose service does not answer any more.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from reconciler.catalog.base import Catalog, DataPlace, DataPlane, Recorded
from reconciler.catalog.fence import fenced
from reconciler.core.plan_renames import earlier_names
from reconciler.engine.chain import Live, chains_of, links_of, locations_of, rebased, storage_of
from reconciler.engine.graph import GOOD, Graph
from reconciler.engine.journal import Journal, JournalError, NoJournal, short_id
from reconciler.engine.outcome import JOURNAL, LEASE, SIGNAL, TIMEOUT, Halt, nothing_ran, report_of
from reconciler.engine.progress import Progress, Silent
from reconciler.engine.reader import Reader
from reconciler.engine.retry import Retry
from reconciler.engine.run_step import Ended, Lives, Tools, run_step, unharmed
from reconciler.engine.stale import check, renames_of
from reconciler.model.change import DATA_PLANE, DropNamespace, MaterializeTable
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import ObjectKey
from reconciler.model.observed import Finding, Present, Scope
from reconciler.model.plan import Plan, Step
from reconciler.model.report import ExpiredTags, Report, StepError, StepResult
from reconciler.model.state import DatasetState, TableState

Expire = Callable[[str, DataPlace, str], Sequence[str]]
"""Catalog, dataset, short id of the plan whose run this is -> the tags that were deleted."""
TICK = 0.1
MAX_RETRIES = 5
FRESH = 1.0
"""Seconds for which the read that verified a step also serves as the read before the next step on that object."""


def execute(
    plan: Plan,
    catalogs: Mapping[str, Catalog],
    *,
    parallelism: int = 8,
    timeout: float | None = None,
    journal: Journal | None = None,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
    max_retries: int | Mapping[str, int] = MAX_RETRIES,
    sleep: Callable[[float], object] | None = None,
    data: DataPlane | None = None,
    guard: Callable[[], str | None] = lambda: None,
    lost: Callable[[], str | None] = lambda: None,
    applied_by: str = "",
    expire: Expire | None = None,
) -> Report:
    """`max_retries`: for all catalogs, or for those named. `stop` is set by a signal. `sleep` is for tests; by default
    a wait ends early when the run is to stop. `data` runs the steps that move rows. `guard` is asked before every
    write: why there may be none any more, because the lease was lost; `lost` is the same as far as it is known, and
    takes no time. `applied_by` is the run, noted on what it writes. `expire` deletes tags of earlier runs that are too
    old, on a table that this one changed."""
    journal = journal or NoJournal()
    _note_held_back(plan, journal)
    if plan.refused is not None:
        return _finished(nothing_ran(plan, "refused", f"nothing was written: {plan.refused}"), journal)
    run = _Run(plan, catalogs, parallelism, timeout, journal, progress or Silent(), stop or threading.Event())
    given = max_retries if isinstance(max_retries, Mapping) else dict.fromkeys(catalogs, max_retries)
    waiting = (sleep or run.pause, run.stopped)
    run.data = data
    run.guard = guard
    run.lost = lost
    run.applied_by = applied_by
    run.expire = expire
    _settle_records(catalogs)
    run.retries = {name: Retry(given.get(name, MAX_RETRIES), *waiting) for name in catalogs}
    return _finished(run.report(), journal)


def _settle_records(catalogs: Mapping[str, Catalog]) -> None:
    """Of earlier runs. What cannot be settled now is left to the next run: nothing of this one rests on it."""
    for catalog in catalogs.values():
        if isinstance(catalog, Recorded):
            with contextlib.suppress(CatalogError):
                catalog.settle_records()


def _note_held_back(plan: Plan, journal: Journal) -> None:
    """First of all, so that it is there however the run ends. A journal that fails here fails at the first step too."""
    held = [StepResult(s, "not_run") for s in plan.steps if s.verdict != "allowed"]
    with contextlib.suppress(JournalError):
        if held:
            journal.end(*held)


def _finished(report: Report, journal: Journal) -> Report:
    """A journal that failed earlier is in the message already, when it kept steps from starting."""
    with contextlib.suppress(JournalError):
        journal.finish(report.outcome)
    return report


class _Run:
    retries: Mapping[str, Retry]
    data: DataPlane | None
    guard: Callable[[], str | None]
    lost: Callable[[], str | None]
    applied_by: str
    expire: Expire | None = None

    def __init__(
        self,
        plan: Plan,
        catalogs: Mapping[str, Catalog],
        parallelism: int,
        timeout: float | None,
        journal: Journal,
        progress: Progress,
        stop: threading.Event,
    ) -> None:
        self.plan = plan
        self.catalogs = catalogs
        self.journal = journal
        self.progress = progress
        self.stop = stop
        self.parallelism = max(1, parallelism)
        self.limits = {n: max(1, min(self.parallelism, c.capabilities.max_parallelism)) for n, c in catalogs.items()}
        self.timeout = timeout
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.lock = threading.Lock()
        self.ended: dict[str, Ended] = {}
        self.running: dict[str, Step] = {}
        self.halt: Halt | None = None
        self.why = ""
        self.journal_failed = False
        self.unstarted = False
        self.fresh: dict[ObjectKey, tuple[Live, float]] = {}
        self.unreachable: set[str] = set()
        """Catalogs whose service answers nobody any more: no further step of theirs is started."""
        self.left: dict[ObjectKey, Finding] = {}
        """Objects of which a step was not done, as the steps that did not need it have to find them."""
        self.answers: queue.SimpleQueue[tuple[Step, Ended | None, JournalError | None]] = queue.SimpleQueue()

    def stopped(self) -> bool:
        return self.stop.is_set() or self.journal_failed or self._late()

    def pause(self, seconds: float) -> None:
        left = seconds if self.deadline is None else min(seconds, max(0.0, self.deadline - time.monotonic()))
        self.stop.wait(left)

    def _late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def report(self) -> Report:
        allowed = [s for s in self.plan.steps if s.verdict == "allowed"]
        self.tools = {name: self._tools(name, allowed) for name in {s.catalog for s in allowed}}
        found = check(chains_of(allowed), {n: t.reader for n, t in self.tools.items()}, self.retries)
        if found.changed:
            return replace(nothing_ran(self.plan, "stale", found.stale_message), stale=tuple(found.changed))
        if found.unreadable:
            return nothing_ran(self.plan, "failed", found.unreadable_message)
        if moved := self._moved([s for s in allowed if s.id not in found.holds], found.tables):
            return nothing_ran(self.plan, "stale", moved)
        self._run(Graph(self.plan.steps), found.holds)
        report = report_of(self.plan, self.ended, self.halt, self.why, self.unreachable)
        return replace(report, expired=self._expired())

    def _expired(self) -> tuple[ExpiredTags, ...]:
        """Of tables with a step that was done and none that was not. A table without a step is not looked at: a run
        without changes writes nothing."""
        tables: dict[ObjectKey, TableState] = {}
        for ended in self.ended.values():
            key, status = ended.result.step.key, ended.result.status
            live = ended.lives.get(key)
            state = live.finding.state if live is not None and isinstance(live.finding, Present) else None
            if key.catalog in self.unreachable:
                continue
            if status == "done" and isinstance(state, TableState) and isinstance(state.dataset, DatasetState):
                tables[key] = state
        for ended in self.ended.values():
            if ended.result.status not in ("done", "skipped"):
                tables.pop(ended.result.step.key, None)
        if self.expire is None or self.stopped() or not tables:
            return ()
        with ThreadPoolExecutor(self.parallelism, thread_name_prefix="tags") as pool:
            found = pool.map(lambda key: self._expire(key, tables[key]), sorted(tables))
            return tuple(e for e in found if e.tags or e.problem is not None)

    def _expire(self, key: ObjectKey, state: TableState) -> ExpiredTags:
        """The steps are done: that old tags stay is told, and no failure."""
        assert self.expire is not None
        try:
            with fenced(self.guard):
                place = self.catalogs[key.catalog].data_place(key.ident, state)
                return ExpiredTags(key, tuple(self.expire(key.catalog, place, short_id(self.plan.plan_id))))
        except CatalogError as error:
            return ExpiredTags(key, problem=f"old tags were not deleted: {error.message}")
        except Exception as error:
            return ExpiredTags(key, problem=f"old tags were not deleted: {type(error).__name__}: {error}")

    def _moved(self, steps: Sequence[Step], tables: Mapping[ObjectKey, TableState]) -> str | None:
        """What data steps would read is part of what the plan was made on, and so are rows that they would change."""
        for step in steps:
            if self.data is not None and isinstance(step.change, DATA_PLANE):
                problem = self.data.moved(step.catalog, step.change) or self._rows_changed(step, tables.get(step.key))
                if problem is not None:
                    return f"{step.id} {step.action} {step.key}: {problem}; nothing was written"
        return None

    def _rows_changed(self, step: Step, table: TableState | None) -> str | None:
        change = step.change
        if not isinstance(change, MaterializeTable) or change.seen_rows is None or self.data is None:
            return None
        if table is None or not isinstance(table.dataset, DatasetState):
            return None
        return self.data.rows_changed(self.catalogs[step.catalog], change, table)

    def _tools(self, name: str, allowed: list[Step]) -> Tools:
        steps = [s for s in allowed if s.catalog == name]
        # What is only to be deregistered was not opened for the plan either: it may be past opening.
        built = [link.key for s in steps if not s.deletes for link in links_of(s)]
        touched = frozenset(key.ident for key in built if key.kind == "Table")
        if renames := renames_of(steps):
            touched |= {name for ident in touched for name in earlier_names(ident, renames)}
        upper = frozenset(s.change.ident for s in steps if getattr(s.change, "level", None))
        scope = Scope(detail=touched, locations=locations_of(steps), storage=storage_of(steps), catalogs=upper)
        catalog = self.catalogs[name]
        tools = Tools(catalog, Reader(catalog, scope), self.retries[name], self.plan.plan_id, chains_of(steps))
        tools.data = self.data
        tools.guard = self.guard
        tools.applied_by = self.applied_by
        return tools

    def _run(self, graph: Graph, holds: set[str]) -> None:
        skipped = [Ended(StepResult(s, "skipped")) for s in self.plan.steps if s.id in holds]
        self._note(lambda: self.journal.end(*(e.result for e in skipped)) if skipped else None)
        for ended in skipped:
            self.ended[ended.result.step.id] = ended
            graph.ended(ended.result.step, "skipped")
        total = sum(1 for s in self.plan.steps if s.verdict == "allowed")
        ready: deque[Step] = deque(graph.take_ready())
        with ThreadPoolExecutor(self.parallelism, thread_name_prefix="step") as pool:
            while True:
                self._start(ready, pool)
                if not self.running:
                    break
                self.progress.update(len(self.ended), total, [str(s.key) for s in self.running.values()])
                self._collect(graph, ready)
        self.progress.close()
        if not ready and not self.unstarted:
            self.halt = None  # It came too late to keep anything from running.

    def _start(self, ready: deque[Step], pool: ThreadPoolExecutor) -> None:
        """As many as the limits allow, in order; a full catalog does not hold up the others."""
        if not ready or self._halted():
            return
        busy: dict[str, int] = {}
        for step in self.running.values():
            busy[step.catalog] = busy.get(step.catalog, 0) + 1
        for _ in range(len(ready)):
            if len(self.running) >= self.parallelism:
                break
            step = ready.popleft()
            if step.catalog in self.unreachable:
                continue
            if busy.get(step.catalog, 0) >= self.limits[step.catalog]:
                ready.append(step)
                continue
            busy[step.catalog] = busy.get(step.catalog, 0) + 1
            self.running[step.id] = step
            pool.submit(self._work, step, self._known(step))

    def _collect(self, graph: Graph, ready: deque[Step]) -> None:
        try:
            step, ended, broken = self.answers.get(timeout=TICK)
        except queue.Empty:
            return
        del self.running[step.id]
        if broken is not None:
            self._halt_for(JOURNAL, f"no further step was started: {broken}")
        if ended is None:
            self.unstarted = True
            return
        if ended.gave_up and self._halted():
            self.unstarted = True
        now = time.monotonic()
        self.fresh.update({key: (live, now) for key, live in ended.lives.items()})
        self.ended[step.id] = ended
        graph.ended(step, ended.result.status)
        for next_step in graph.take_ready():
            # The same object first: what was just read about it is still fresh.
            (ready.appendleft if next_step.key == step.key else ready.append)(next_step)

    def _work(self, step: Step, known: Lives | None) -> None:
        """In a thread of the pool. Always answers."""
        broken = self._note(lambda: self.journal.start(step))
        if broken is not None:
            self.answers.put((step, None, broken))
            return
        try:
            ended = self._run_step(step, known)
        except Exception as error:
            message = f"internal error: {type(error).__name__}: {error}. What the catalog holds is not known."
            ended = Ended(StepResult(step, "unknown", StepError(18, Code.INTERNAL.title, message)), landed=True)
        if ended.unreachable:
            ended = self._noticed(ended)
        broken = self._note(lambda: self.journal.end(ended.result))
        self.answers.put((step, ended, broken))

    def _noticed(self, ended: Ended) -> Ended:
        """Of the steps that were under way when the service went, one tells it. Another that wrote nothing did not
        run; one that did is unknown."""
        result = ended.result
        with self.lock:
            first = result.step.catalog not in self.unreachable
            self.unreachable.add(result.step.catalog)
        if first or ended.landed or result.status != "failed":
            return ended
        return replace(ended, result=StepResult(result.step, "not_run"))

    def _run_step(self, step: Step, known: Lives | None) -> Ended:
        """Steps on one object run one after the other: nobody else has a word about what it is left as."""
        found = self.left.get(step.key)
        try:
            planned = step if found is None else rebased(step, found)
        except CatalogError as error:
            result = StepResult(step, "failed", StepError(int(error.code), error.code.title, error.message))
            return Ended(result)
        ended = run_step(planned, self.tools[step.catalog], known)
        if unharmed(planned, ended) or (found is not None and ended.result.status in GOOD):
            self.left[step.key] = ended.lives[step.key].finding
        return replace(ended, result=replace(ended.result, step=step))

    def _note(self, write: Callable[[], None]) -> JournalError | None:
        try:
            write()
        except JournalError as error:
            self.journal_failed = True
            return error
        return None

    def _known(self, step: Step) -> Lives | None:
        """The objects of a step as the step right before it left them, if that is all the step needs to know."""
        last = [(link.key, self.fresh.pop(link.key, None)) for link in links_of(step)]
        oldest = time.monotonic() - FRESH
        if isinstance(step.change, DropNamespace) or any(found is None or found[1] < oldest for _, found in last):
            return None
        return {key: found[0] for key, found in last if found is not None}

    def _halted(self) -> bool:
        if self.halt is None:
            if self.stop.is_set():
                self._halt_for(SIGNAL, "interrupted by a signal: running steps were finished, no other was started")
            elif self._late():
                self._halt_for(TIMEOUT, "the time-out is over: no further step was started")
            elif (lost := self.lost()) is not None:
                self._halt_for(LEASE, f"no further step was started: {lost}; apply again")
        return self.halt is not None

    def _halt_for(self, halt: Halt, why: str) -> None:
        self.halt = self.halt or halt
        self.why = self.why or why
