"""Steps in the making: one object at a time, each change judged and simulated as soon as it is proposed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.core.fields import walk
from reconciler.core.fingerprint import columns_of
from reconciler.core.options import PlanOptions
from reconciler.core.world import after_table_change
from reconciler.model import change as c
from reconciler.model.capabilities import Capabilities
from reconciler.model.coverage import IndexRefresh
from reconciler.model.desired import DesiredObject
from reconciler.model.diagnostic import Source
from reconciler.model.errors import ReadError
from reconciler.model.observed import Absent, Detached, Finding, Gap, Present, Snapshot, Unreadable
from reconciler.model.plan import (
    ALLOW,
    DATA_PLANE_MISSING,
    INCOMPLETE,
    PARENT_BLOCKED,
    UNREADABLE,
    Json,
    Permission,
    Risk,
    Verdict,
)
from reconciler.model.spark import InProcess, Runner
from reconciler.model.state import UNKNOWN, DatasetState, NamespaceState, TableState
from reconciler.model.values import KeptColumn


@dataclass(frozen=True, slots=True)
class Block:
    """Why an object as a whole may not be changed."""

    word: str
    reason: str
    verdict: Verdict = "blocked"
    error: ReadError | None = None
    """What could not be read, when that is the reason."""


_WHERE: Mapping[Runner, str] = {"local": "it runs in process, without Spark", "spark": "it runs on Spark"}
"""Of the steps that may run on either."""


@dataclass(slots=True)
class Draft:
    change: c.Change
    risk: Risk
    reason: str
    verdict: Verdict
    blocked_by: str | None
    before: Json
    expect: Finding
    yields: Finding
    via: tuple[Finding, ...]
    source: Source | None
    purpose: str = ""
    """What a step that may not run would be for; `reason` names what blocks it, then this."""
    runner: Runner | None = None
    """Of a data-plane change."""
    children: tuple[str, ...] | None = None
    """For a drop: what is left inside at that point, which is part of the fingerprint."""
    error: ReadError | None = None
    """What could not be read, when that blocks it."""
    counted: set[str] | None = None
    """With `schemaMode: at_least`: the columns that any state of the object has. Others may come at any time."""
    permissions: tuple[Permission, ...] = ()
    kept: tuple[KeptColumn, ...] = ()


@dataclass(slots=True)
class Context:
    """What every planning function of one catalog needs to know."""

    catalog: str
    capabilities: Capabilities
    options: PlanOptions
    owner: str
    adopt: bool
    snapshot: Snapshot
    index_refresh: IndexRefresh = field(default_factory=IndexRefresh)
    in_process: InProcess = field(default_factory=InProcess)

    def runner(self, change: c.Change, now: Finding) -> Runner | None:
        """What runs the tasks of a data-plane change: columns of a small table need no JVM."""
        if not isinstance(change, c.DATA_PLANE):
            return None
        if not isinstance(change, c.COLUMN_TASKS) or self.options.runner == "spark":
            return "spark"
        small = self.in_process.holds(*_size(now))
        return "local" if small or self.options.runner == "local" else "spark"

    def refuses(self, change: c.Change) -> str | None:
        """Why it cannot be done: by the type of the catalog, or by what this one says of itself."""
        return self.capabilities.refuses(change) or self.snapshot.refuses(change)


@dataclass(slots=True)
class Drafter:
    """Collects the drafts of one object. `now` is the object after the drafts that will run; under a block it is the
    object as it would be, so that the plan can show what is blocked."""

    context: Context
    source: Source | None
    start: Finding
    allow: Mapping[str, Source | None] = field(default_factory=dict)
    """The allow words that count for it, as `allow_words` gives them."""
    block: Block | None = None
    unread: bool = False
    """Its data is looked after through another catalog."""
    counted: set[str] | None = None
    """Shared by the drafts, so that each counts the columns of all."""
    drafts: list[Draft] = field(default_factory=list)
    now: Finding = field(init=False)

    def __post_init__(self) -> None:
        self.now = self.start

    def propose(
        self, change: c.Change, risk: Risk, reason: str, before: Json = None, allow_word: str | None = None,
        also: Sequence[str] = (),
    ) -> bool:  # fmt: skip
        """Judges the change and, when it may run, applies it to `now`. True when later proposals may build on it.
        `also`: further allow words without which the step would not be as it is."""
        remark = self.context.capabilities.remark(change)
        runner = self.context.runner(change, self.now)
        where = _WHERE[runner] if runner is not None and isinstance(change, c.COLUMN_TASKS) else None
        kept = self._kept(change)
        purpose = "; ".join(filter(None, (reason, remark, where, *map(str, kept))))
        verdict, word, why = self._judge(change, allow_word)
        moves = isinstance(change, (c.RenameTable, c.RenameNamespace))
        expected: Finding = Absent() if moves else self.now
        goes_on = verdict == "allowed" or self.block is not None
        states = _after(self.now, change, self.unread) if goes_on else (self.now,)
        if self.counted is not None:
            self.counted.update(f.name for state in (self.now, *states) for f in columns_of(state))
        self.now = states[-1]
        running = verdict == "allowed"
        self.drafts.append(
            Draft(
                change,
                risk,
                purpose if running else f"{why}; {purpose}",
                verdict,
                word,
                before,
                expected if running else self.start,
                self.now if running else self.start,
                states[:-1] if running else (),
                self.source,
                "" if running else purpose,
                runner=runner,
                error=None if self.block is None else self.block.error,
                counted=self.counted,
                permissions=self._permissions(allow_word, *also) if running else (),
                kept=kept,
            )
        )
        return goes_on

    def _kept(self, change: c.Change) -> tuple[KeptColumn, ...]:
        if not isinstance(change, c.CREATES_COLUMNS):
            return ()
        found = self.context.snapshot.kept
        return tuple(found[change.ident, path] for path, _ in walk(change.fields) if (change.ident, path) in found)

    def _permissions(self, *words: str | None) -> tuple[Permission, ...]:
        return tuple(Permission(word, self.allow[word]) for word in words if word is not None and word in self.allow)

    def refuse(self, change: c.Change, risk: Risk, block: Block, before: Json = None) -> None:
        """A step that cannot run, for a reason of its own."""
        word = block.word if block.verdict == "blocked" else None
        runner = self.context.runner(change, self.now)
        kept = self._kept(change)
        self.drafts.append(
            Draft(
                change,
                risk,
                "; ".join((block.reason, *map(str, kept))),
                block.verdict,
                word,
                before,
                self.now,
                self.now,
                (),
                self.source,
                runner=runner,
                error=block.error,
                kept=kept,
            )
        )

    def _judge(self, change: c.Change, allow_word: str | None) -> tuple[Verdict, str | None, str]:
        """The verdict, its word, and why the step may not run."""
        if self.block is not None:
            word = self.block.word if self.block.verdict == "blocked" else None
            return self.block.verdict, word, self.block.reason
        refusal = self.context.refuses(change)
        if refusal is not None:
            return "unsupported", None, refusal
        if (lacking := self._lacks_function(change)) is not None:
            return "blocked", DATA_PLANE_MISSING, lacking
        if self.context.runner(change, self.now) == "spark" and self.context.options.data_plane is not None:
            return "blocked", DATA_PLANE_MISSING, self.context.options.data_plane
        if allow_word is not None and allow_word not in self.allow:
            block = allow_block(self, allow_word)
            return "blocked", block.word, block.reason
        return "allowed", None, ""

    def _lacks_function(self, change: c.Change) -> str | None:
        """Why a step that runs functions of packages cannot run here."""
        fields = change.fields if isinstance(change, c.BackfillColumns | c.MaterializeTable) else ()
        why = {f.name: self.context.options.functions.get(f.function or "") for f in fields}
        return next((f"column {name} cannot be filled: {problem}" for name, problem in why.items() if problem), None)

    def may(self, change: c.Change, allow_word: str | None = None) -> bool:
        """Would this one run? Under a block everything is proposed, to be shown as blocked."""
        return self.block is not None or self._judge(change, allow_word)[0] == "allowed"

    @property
    def table(self) -> TableState:
        assert isinstance(self.now, Present)
        assert isinstance(self.now.state, TableState)
        return self.now.state

    @property
    def dataset(self) -> DatasetState:
        assert isinstance(self.table.dataset, DatasetState)
        return self.table.dataset

    @property
    def namespace(self) -> NamespaceState:
        assert isinstance(self.now, Present)
        assert isinstance(self.now.state, NamespaceState)
        return self.now.state


def _size(now: Finding) -> tuple[int | None, int | None]:
    state = now.state if isinstance(now, Present) else None
    dataset = state.dataset if isinstance(state, TableState) else None
    return (dataset.rows, dataset.bytes) if isinstance(dataset, DatasetState) else (None, None)


def allow_words(want: DesiredObject, options: PlanOptions) -> dict[str, Source | None]:
    """Those of the manifest with their places, and those of the command line."""
    return dict.fromkeys(options.allow) | {word: want.allow_sources.get(word, want.source) for word in want.allow}


def allow_block(d: Drafter, word: str) -> Block:
    where = f"add `allow: [{word}]` to the manifest or " if d.source is not None else ""
    return Block(ALLOW + word, f"needs `{word}`: {where}pass --allow {word}")


def unread_block(found: Unreadable, what: str = "it exists but") -> Block:
    reason = f"{what} cannot be read: {found.message}"
    return Block(UNREADABLE, reason, error=ReadError(found.code, found.message))


def gap_block(gap: Gap, reason: str) -> Block:
    return Block(INCOMPLETE, reason, error=ReadError(gap.code, gap.message))


def parent_block(what: str) -> Block:
    return Block(PARENT_BLOCKED, f"needs {what}, which is blocked")


def _after(now: Finding, change: c.Change, unread: bool) -> tuple[Finding, ...]:
    """The object after each write of the change, without the rest of the catalog (the World checks that later)."""
    match change:
        case c.CreateNamespace():
            return (Present(NamespaceState(change.properties, change.marks, level=change.level)),)
        case c.UpdateNamespace() | c.AdoptNamespace():
            assert isinstance(now, Present)
            assert isinstance(now.state, NamespaceState)
            properties = now.state.properties
            if isinstance(change, c.UpdateNamespace):
                properties = {k: v for k, v in {**properties, **change.set}.items() if k not in change.unset}
            return (Present(replace(now.state, properties=properties, marks=change.marks)),)
        case c.RenameNamespace() | c.RenameTable():
            return (now,)
        case c.DropNamespace():
            return (Absent(),)
        case c.DeregisterTable():
            assert isinstance(now, Present)
            state = now.state
            assert isinstance(state, TableState)
            if isinstance(state.dataset, DatasetState) and isinstance(state.location, str):
                return (Detached(state.location, state.dataset),)
            return (Absent(),)
        case c.DeclareTable():
            dataset = UNKNOWN if unread else now.dataset if isinstance(now, Detached) else None
            location = UNKNOWN if change.location is None else change.location
            return (Present(TableState(location, change.properties, change.marks, dataset, change.columns)),)
        case _:
            assert isinstance(now, Present)
            assert isinstance(now.state, TableState)
            return tuple(Present(s) for s in after_table_change(now.state, change))
