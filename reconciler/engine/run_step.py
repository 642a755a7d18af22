"""One step: read, write, verify. On any doubt re-read and converge; never conclude from an error. Where no write was
sent there is no doubt: a read that failed for good before it is the end of the step."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.catalog.base import Catalog, DataPlane, WriteContext, Written
from reconciler.catalog.fence import fenced
from reconciler.engine.chain import Link, Live, Place, describe, links_of, position
from reconciler.engine.changed import changes, said
from reconciler.engine.explain import mismatch
from reconciler.engine.holders import unsuitable
from reconciler.engine.journal import short_id
from reconciler.engine.reader import Key, Reader, bug
from reconciler.engine.retry import Retry
from reconciler.model.change import DATA_PLANE, Change, DropNamespace, ReplaceTable
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import ObjectKey
from reconciler.model.observed import Detached, Finding, Present, Scope, Unreadable, what_is_left
from reconciler.model.plan import Step
from reconciler.model.report import Status, StepError, StepResult
from reconciler.model.state import DatasetState, TableState

Lives = Mapping[ObjectKey, Live]
PATIENCE = (0.05, 0.1, 0.2, 0.4)
"""Seconds between the reads of an object that another run may be changing right now."""
_MOST_CALLS = 16
"""Calls of one step that may all fail until their last sending. More than any step makes: bounds a server on which
every re-read leads to another call."""
MOST_FIELDS = 4
_RACED = frozenset({Code.NAMESPACE_ALREADY_EXISTS, Code.TABLE_ALREADY_EXISTS, Code.CONCURRENT_MODIFICATION})


@dataclass
class Tools:
    """What a step needs to run on one catalog."""

    catalog: Catalog
    reader: Reader
    retry: Retry
    plan_id: str
    chains: Mapping[ObjectKey, Sequence[Link]] = field(default_factory=dict)
    """Per object, all steps of the plan on it."""
    data: DataPlane | None = None
    """For the steps that move rows."""
    guard: Callable[[], str | None] = lambda: None
    """Why nothing may be written any more, or None."""
    applied_by: str = ""
    """The run, for what it writes."""


@dataclass
class Ended:
    """`landed`: at least one write of this step is known, or must be feared, to be in the catalog."""

    result: StepResult
    landed: bool = False
    lives: Lives = field(default_factory=dict)
    """The objects as they were read last, for the next step on them."""
    gave_up: bool = False
    """The step ended early because the run is to stop."""
    unreachable: bool = False
    """The service answered nobody any more, until all sendings of a call were spent."""


@dataclass
class _Attempts:
    """What is collected while a step is tried."""

    step: Step
    started: float
    before: Finding
    tag: str | None
    count: int = 0
    version_before: int | None = None
    version_after: int | None = None
    doubt: bool = False
    """The last write may yet land."""
    wrote: bool = False
    """Something was let through the fence."""
    tagged: bool | None = None
    """What the write said of the tag."""
    begun: bool = True
    """Something of the step may have been written before this write."""
    sent: Counter[Hashable] = field(default_factory=Counter)
    """The sendings of each call of this step."""
    uncounted: int = 0
    """Failures that no call counts."""

    def failed(self, error: CatalogError) -> int:
        """Which failure of its call this is: each call has its own budget."""
        if error.sendings:
            return error.sendings
        self.uncounted += 1
        return self.uncounted

    def end(self, status: Status, lives: Lives, error: StepError | None = None, landed: bool = False) -> Ended:
        live = lives.get(self.step.key)
        after = self.version_after
        if after is None and live is not None and status != "unknown":
            after = _version(live.finding)
        before = self.version_before if self.version_before is not None else _version(self.before)
        # A catalog takes the tag away again when the write failed and nothing has changed.
        tagged = self.tagged
        if tagged is None:  # Claims alone make versions too: a data step says itself what it did.
            changed = not isinstance(self.step.change, DATA_PLANE) and (landed or after != before)
            tagged = bool(self.count) and (changed or self.doubt)
        result = StepResult(
            self.step,
            status,
            error,
            self.count,
            time.monotonic() - self.started,
            before,
            after,
            self.tag if tagged else None,
            _location(self.before) if tagged and self.tag is not None else None,
        )
        return Ended(result, landed, lives)


def run_step(step: Step, tools: Tools, known: Lives | None = None) -> Ended:
    """`known`: the objects as this run itself has just read them. Raises nothing that a catalog did."""
    started = time.monotonic()
    links = links_of(step)
    try:
        lives = known if known is not None else read_live(links, tools)
    except CatalogError as error:
        result = StepResult(step, "failed", _step_error(error), seconds=time.monotonic() - started)
        return Ended(result, unreachable=error.unreachable)
    attempts = _Attempts(step, started, lives[links[-1].key].finding, None)
    try:
        place, lives = _settled(step, links, lives, tools)
    except CatalogError as error:
        return replace(attempts.end("failed", lives, _step_error(error)), unreachable=error.unreachable)
    if place == "after":
        return attempts.end("skipped", lives)
    if place == "elsewhere":
        if (unreadable := _unreadable(lives)) is not None:
            return attempts.end("failed", lives, _step_error(unreadable))
        return attempts.end("failed", lives, _moved_on(step, lives, tools))
    if (problem := unsuitable(lives[step.key], links)) is not None:
        return attempts.end("failed", lives, _error(Code.CONCURRENT_MODIFICATION, f"{step.key}: {problem}"))
    attempts.begun = place != "before"
    if (unread := _look_before_harm(step, tools, attempts)) is not None:
        return attempts.end("failed", lives, _step_error(unread))
    return _write_until_it_holds(step, links, tools, attempts)


def read_live(links: Sequence[Link], tools: Tools) -> dict[ObjectKey, Live]:
    """The objects of a step now. The children of a namespace that is to be dropped come from the raw listing."""
    found = tools.retry.call(lambda: tools.reader.read([(link.key.kind, link.key.ident) for link in links]))
    lives: dict[ObjectKey, Live] = {}
    for link in links:
        finding = found[link.key.kind, link.key.ident]
        children = None
        if isinstance(link.step.change, DropNamespace) and isinstance(finding, Present):
            children = tools.retry.call(lambda ident=link.key.ident: tools.reader.children(ident))  # type: ignore[misc]
        lives[link.key] = Live(finding, children)
    return lives


def places(links: Sequence[Link], lives: Lives) -> Place:
    """One answer for the step. A rename whose old object is gone and whose new one is not there is lost."""
    each = [link.place(lives[link.key]) for link in links]
    if all(p == "after" for p in each):
        return "after"
    if "elsewhere" in each or (len(each) > 1 and each[0] == "before" and each[1] == "after"):
        return "elsewhere"
    return "between" if "between" in each or "after" in each else "before"


def unharmed(step: Step, ended: Ended) -> bool:
    """It failed, and a read says that its object is as it was."""
    links = links_of(step)
    read = all(link.key in ended.lives for link in links)
    return ended.result.status == "failed" and not ended.landed and read and places(links, ended.lives) == "before"


def _place(step: Step, links: Sequence[Link], lives: Lives, tools: Tools) -> Place:
    """Another run of the same plan may be a few steps ahead on this object: then this step holds."""
    place = places(links, lives)
    if place == "elsewhere" and len(links) == 1:
        chain = tools.chains.get(step.key, ())
        at = position(chain, lives[step.key])
        if at is not None and any(link.step.id == step.id for link in chain[:at]):
            return "after"
    return place


def _settled(
    step: Step, links: Sequence[Link], lives: Lives, tools: Tools, patience: Sequence[float] = PATIENCE
) -> tuple[Place, Lives]:
    """Where the objects are. One that is nowhere, or whose entry is being replaced, may be in the middle of another
    run's write: it is read again, for a short while, before that is believed. Raises CatalogError."""
    place = _place(step, links, lives, tools)
    for wait in patience:
        if (place != "elsewhere" and not _any_cut(lives)) or tools.retry.stopped():
            break
        tools.retry.sleep(wait)
        lives = read_live(links, tools)
        place = _place(step, links, lives, tools)
    return place, lives


def _any_cut(lives: Lives) -> bool:
    return any(isinstance(live.finding, Detached) and live.finding.cut is not None for live in lives.values())


def _write_until_it_holds(step: Step, links: Sequence[Link], tools: Tools, attempts: _Attempts) -> Ended:
    landed = False
    lives: Lives = {}
    while True:
        if (lost := tools.guard()) is not None:
            message = f"it was not written{' again' if attempts.count else ''}: {lost}"
            return replace(attempts.end("failed", lives, _error(Code.INTERNAL, message), landed), gave_up=True)
        attempts.count += 1
        error = _write(step, tools, attempts)
        attempts.doubt = error is not None and error.unknown_outcome
        landed = landed or error is None or error.landed
        if error is not None and error.spent and not error.unknown_outcome and not attempts.wrote:
            return replace(attempts.end("failed", {}, _step_error(error)), unreachable=error.unreachable)
        try:
            lives = read_live(links, tools)
            raced = error is not None and error.code in _RACED
            place, lives = _settled(step, links, lives, tools, PATIENCE if raced else ())
            if place == "elsewhere" and (unreadable := _unreadable(lives)) is not None:
                raise unreadable
        except CatalogError as unread:
            ended = attempts.end("unknown", {}, _unread(unread, error), landed=True)
            return replace(ended, unreachable=unread.unreachable)
        landed = landed or place in ("after", "between")
        written = error is None and all(link.shows_result(lives[link.key].finding) for link in links)
        if place == "after" or written:
            return attempts.end("done", lives, landed=True)
        if error is None:
            message = mismatch(attempts.before, step.change, lives[step.key].finding)
            return attempts.end("failed", lives, _error(Code.INVALID_TABLE_STATE, message), landed)
        if place == "elsewhere" and not error.gave_up:
            if error.unknown_outcome:
                return attempts.end("unknown", lives, _in_doubt(step, lives, error), landed=True)
            return attempts.end("failed", lives, _moved_on(step, lives, tools, error), landed)
        passes = error.retryable or error.unknown_outcome
        endless = attempts.count >= _MOST_CALLS * (tools.retry.max_retries + 1)
        if not passes or endless or not tools.retry.wait(attempts.failed(error), error):
            return replace(attempts.end("failed", lives, _step_error(error), landed), gave_up=error.gave_up)


def _write(step: Step, tools: Tools, attempts: _Attempts) -> CatalogError | None:
    before = what_is_left(attempts.before)
    table = before.state if isinstance(before, Present) and isinstance(before.state, TableState) else None
    context = WriteContext(
        tools.plan_id, step.id, attempts.tag, tools.applied_by, table, step.runner or "spark", attempts.begun
    )
    attempts.begun = True
    with fenced(tools.guard, attempts.sent) as fence:
        try:
            written = _applied(step.change, tools, attempts.before, context)
        except CatalogError as error:
            return error
        except Exception as error:
            return bug(error)
        finally:
            attempts.wrote = attempts.wrote or fence.passed
    if attempts.version_before is None:
        attempts.version_before = written.version_before
    attempts.version_after = written.version_after
    attempts.tagged = written.tagged
    return None


def _applied(change: Change, tools: Tools, before: Finding, context: WriteContext) -> Written:
    if not isinstance(change, DATA_PLANE):
        return tools.catalog.apply(change, context)
    if tools.data is None or not isinstance(before, Present) or not isinstance(before.state, TableState):
        raise CatalogError(Code.UNSUPPORTED, "it moves table data, and nothing that can was started")
    return tools.data.apply(tools.catalog, change, before.state, context)


def _look_before_harm(step: Step, tools: Tools, attempts: _Attempts) -> CatalogError | None:
    """Before anything destructive or rewriting, the dataset's version gets a name to come back to. A table whose entry
    alone is removed or replaced keeps its versions and needs no such name; one that is to be deregistered is opened
    here for the version in the report. When that cannot be done, it goes without if a manifest names it; --prune does
    not take it, and the error is returned."""
    harms = step.risk in ("destructive", "rewrite") and not isinstance(step.change, ReplaceTable)
    if step.change.kind != "Table" or not (harms or step.deletes):
        return None
    if step.deletes:
        key: Key = (step.change.kind, step.change.ident)
        try:
            found = Reader(tools.catalog, Scope(detail=frozenset({key[1]}))).read([key])[key]
            if isinstance(found, Unreadable):
                raise CatalogError(found.code, f"it cannot be read: {found.message}")
            attempts.before = found
        except CatalogError as error:
            return error if step.source is None else None
    elif _dataset(attempts.before) is not None:
        attempts.tag = f"reconciler-{short_id(tools.plan_id)}-{step.id}"
    return None


def _dataset(finding: Finding) -> DatasetState | None:
    state = finding.state if isinstance(finding, Present) else None
    return state.dataset if isinstance(state, TableState) and isinstance(state.dataset, DatasetState) else None


def _location(finding: Finding) -> str | None:
    state = finding.state if isinstance(finding, Present) else None
    return state.location if isinstance(state, TableState) and isinstance(state.location, str) else None


def _version(finding: Finding) -> int | None:
    dataset = _dataset(finding)
    return dataset.version if dataset is not None else None


def _moved_on(step: Step, lives: Lives, tools: Tools, cause: CatalogError | None = None) -> StepError:
    for key, live in lives.items():
        if live.children:
            names = ", ".join(live.children[:5])
            return _error(Code.NAMESPACE_NOT_EMPTY, f"{key} holds {names}: it was not dropped")
    live = lives[step.key]
    fields = [said(d) for d in changes(tools.chains.get(step.key, ()), live) if d.field != "state"]
    what = describe(live.finding) + (f" ({', '.join(fields[:MOST_FIELDS])})" if fields else "")
    because = f" (the write was refused: {cause.message})" if cause is not None else ""
    return _error(
        Code.CONCURRENT_MODIFICATION,
        f"{step.key} changed since the plan was made: {what}{because}. Make a new plan.",
    )


def _in_doubt(step: Step, lives: Lives, cause: CatalogError) -> StepError:
    """The write may have landed, and what is there is not all that it makes; or somebody else was there."""
    return _error(
        cause.code,
        f"whether {step.key} was written is not known ({cause.message}), and now {describe(lives[step.key].finding)}: "
        "that is of this run, or of somebody else. Make a new plan.",
    )


def _unreadable(lives: Lives) -> CatalogError | None:
    """An object that cannot be read has not changed, as far as anybody knows: the reason is what matters."""
    for live in lives.values():
        if isinstance(live.finding, Unreadable) and not live.finding.foreign:
            return CatalogError(live.finding.code, live.finding.message)
    return None


def _unread(unread: CatalogError, error: CatalogError | None) -> StepError:
    first = f"the write failed with: {error.message}; " if error is not None else "the write was accepted; "
    return _error(
        unread.code,
        f"{first}reading it back failed: {unread.message}. What the catalog holds is not known; apply again.",
    )


def _step_error(error: CatalogError) -> StepError:
    return _error(error.code, error.message)


def _error(code: Code, message: str) -> StepError:
    return StepError(int(code), code.title, message)
