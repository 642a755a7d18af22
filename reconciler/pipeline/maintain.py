"""The maintenance of many tables: measured in threads, worked on by Spark part by part, committed by the driver."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.catalog import lance_tags
from reconciler.catalog.base import DataPlace, WriteContext
from reconciler.catalog.fence import Asked, fenced
from reconciler.catalog.lance_dataset import Datasets
from reconciler.catalog.lance_errors import translated
from reconciler.catalog.lance_files import check_rows
from reconciler.catalog.lance_remains import dataset_inside
from reconciler.catalog.lance_write import carry_over_builds, record_builds
from reconciler.catalog.storage import open_storage
from reconciler.catalog.store_clock import need_right_clock
from reconciler.core.diff_index import index_differences
from reconciler.core.maintenance import decide, due_indexes, due_tags, due_versions, expired_tags, why_rebuild
from reconciler.core.text import speed
from reconciler.model.errors import CatalogError
from reconciler.model.maintained import CLEANUP, COMPACT, INDEXES, TAGS, Decision, Result
from reconciler.model.maintenance import Facts, Fragment, Maintenance
from reconciler.model.state import Index
from reconciler.pipeline import claims, maintain_task
from reconciler.pipeline.jobs import TASKS_PER_CORE, answers, cores
from reconciler.pipeline.maintain_task import ATTEMPTS, CLAIM_KEY, CLAIMED, is_conflict, open_latest
from reconciler.pipeline.session import GaveUp, SparkError
from reconciler.pipeline.table_task import Unit, _told

THREADS = 16
"""Measuring is waiting for storage."""
FEW = 16
"""So many units make one job of as many tasks: nobody needs to ask Spark, by a job, how many cores it has."""

EACH = 10
"""Tables for one task that changes them one by one."""


@dataclass(frozen=True)
class Subject:
    """A table to maintain."""

    place: DataPlace
    want: Maintenance
    now: float
    retention: int | None = None
    """Seconds for which tags of apply are kept; None for ever."""
    untrained: frozenset[str] = frozenset()
    """Indexes that Lance cannot train on the rows that are there."""
    builds: Mapping[str, tuple[Index, Index]] = field(default_factory=dict)
    """Declared indexes that are not left to Lance, by name: as declared, and as they were read."""

    def unit(self, **more: Any) -> Unit:
        return {"uri": self.place.uri, "options": dict(self.place.storage_options), **more}


@dataclass(frozen=True)
class Assessed:
    facts: Facts
    decisions: tuple[Decision, ...]
    left: bool = False
    """A data step of a run that is gone has to be ended first: `settled`. The decisions foresee that."""

    def runs(self, part: str) -> bool:
        return any(d.part == part and d.run for d in self.decisions)


def assess(subjects: Sequence[Subject]) -> Iterator[Assessed | str]:
    """In their order; a text says why nothing is known. Reads only, and needs no Spark: a run that finds nothing to do
    does not start it, and a dry run decides as a run does."""
    with ThreadPoolExecutor(THREADS, thread_name_prefix="measure") as pool:
        yield from pool.map(_assessed, subjects)


def settled(subjects: Sequence[Subject], may_write: Asked) -> Iterator[Assessed | str]:
    """Ends what data steps left behind whose runs are gone, and measures again."""

    def one(subject: Subject) -> Assessed | str:
        try:
            with fenced(may_write):
                stopped = claims.Clock(stopped=lambda: may_write() is not None)
                claims.settle(subject.place, WriteContext(), stopped)
        except CatalogError as error:
            return error.message
        return _assessed(subject)

    with ThreadPoolExecutor(THREADS, thread_name_prefix="settle") as pool:
        yield from pool.map(one, subjects)


def _assessed(subject: Subject) -> Assessed | str:
    want = subject.want
    asked = {COMPACT: want.compact, INDEXES: want.refresh, CLEANUP: want.cleanup}
    unit = subject.unit(parts=[part for part, wanted in asked.items() if wanted], compaction=_compaction(want))
    found = maintain_task.measure(unit)
    if "error" in found:
        return str(found["error"])
    left = claims.is_left(found["claim"])
    try:
        check_rows(subject.place.uri)
        expired = _expired(subject)
    except CatalogError as error:
        return error.message
    facts = Facts(
        version=found["version"],
        fragments=tuple(Fragment(*f) for f in found["fragments"]),
        groups=tuple(tuple(g) for g in found.get("groups", ())),
        unindexed=found.get("unindexed", {}),
        rebuild=_rebuild(subject, found.get("segments", {})),
        differing=frozenset(n for n, pair in subject.builds.items() if index_differences(*pair)),
        forgetful=frozenset(found.get("forgetful", ())),
        untrained=subject.untrained & found.get("unindexed", {}).keys(),
        versions=tuple(found.get("versions", ())),
        tags={name: version for name, version in found.get("tags", {}).items() if name not in expired},
        expired=tuple(expired),
        branches=found.get("branches", {}),
        claimed=found["claim"] is not None and not left,
    )
    try:
        return Assessed(facts, _safe(decide(want, facts, subject.now), subject.place), left)
    except CatalogError as error:
        return error.message


def _safe(decisions: tuple[Decision, ...], place: DataPlace) -> tuple[Decision, ...]:
    """Lance cleans up every old file in a dataset's folder that it does not know, also those of somebody's dataset in
    there. Looked for only when a clean-up is due, because it lists all files, as the clean-up does. Raises
    CatalogError."""
    if not any(d.part == CLEANUP and d.run for d in decisions):
        return decisions
    inner = dataset_inside(open_storage(place.uri, place.storage_options))
    if inner is None:
        return decisions
    why = f"there is another dataset inside its folder, at {place.uri}/{inner}, whose files would go: move it away"
    return tuple(replace(d, run=False, reason=why) if d.part == CLEANUP else d for d in decisions)


def _expired(subject: Subject) -> list[str]:
    """Raises CatalogError."""
    if subject.retention is None:
        return []
    with translated(f"list the tags of {subject.place.uri}", write=False):
        return expired_tags(lance_tags.our_tags(lance_tags.opened(subject.place)), subject.retention, subject.now)


def _rebuild(subject: Subject, segments: Mapping[str, Sequence[int]]) -> dict[str, str]:
    why = {n: why_rebuild(want, live, segments.get(n, ())) for n, (want, live) in subject.builds.items()}
    return {name: reason for name, reason in why.items() if reason is not None}


def _compaction(want: Maintenance) -> dict[str, Any]:
    if want.compact is None:
        return {}
    percent = want.compact.max_deleted_percent / 100
    return {"target_rows_per_fragment": want.compact.target_rows, "materialize_deletions_threshold": percent}


@dataclass(frozen=True)
class Pace:
    """How far a part is, for a progress line."""

    part: str
    tables: int
    of: int
    tasks: int = 0
    of_tasks: int = 0
    rows: int = 0
    bytes: int = 0

    def line(self, seconds: float) -> str:
        tasks = f", {self.tasks}/{self.of_tasks} tasks, {self.rows} rows" if self.of_tasks else ""
        return f"{self.part}: {self.tables}/{self.of} tables{tasks}{speed(self.bytes, seconds)}, {seconds:.0f} s"


@dataclass
class Run:
    """All parts, one after the other: compact, indexes, cleanup. `results` fills as they end, so that it says what has
    happened also when the run is cut off."""

    spark: Any
    subjects: Sequence[Subject]
    assessed: Sequence[Assessed]
    show: Callable[[Pace], None] = lambda pace: None
    results: list[dict[str, Result]] = field(default_factory=list)
    under_way: str | None = None
    """The part whose tables without a result may be worked on."""
    may_write: Asked = lambda: None

    _cores: int | None = None

    def __post_init__(self) -> None:
        self.results = [{} for _ in self.subjects]

    def run(self) -> None:
        """Raises SparkError."""
        parts = ((TAGS, self._tags), (COMPACT, self._compact), (INDEXES, self._indexes), (CLEANUP, self._cleanup))
        for part, action in parts:
            self.under_way = None
            if (problem := self.may_write()) is not None:
                raise SparkError(problem)
            self.under_way = part
            chosen = [n for n, found in enumerate(self.assessed) if found.runs(part)]
            failed = {n for n in chosen if any(r.outcome != "done" for r in self.results[n].values())}
            for n in failed:
                self.results[n][part] = Result("not_run", "an earlier part was not done")
            action([n for n in chosen if n not in failed])
        self.under_way = None

    def _tags(self, chosen: Sequence[int]) -> None:
        """Here, not in executors: a few small files."""

        def one(n: int) -> Result:
            subject, names = self.subjects[n], self.assessed[n].facts.expired
            assert subject.retention is not None
            try:
                with fenced(self.may_write):
                    removed = lance_tags.expire_known(subject.place, names, subject.retention, subject.now)
            except CatalogError as error:
                return Result("failed", error.message)
            return Result("failed", CLAIMED) if removed is None else Result("done", "", {"removed": removed})

        with ThreadPoolExecutor(THREADS, thread_name_prefix="tags") as pool:
            for n, result in zip(chosen, pool.map(one, chosen), strict=True):
                self.results[n][TAGS] = result

    def _slots(self, units: Sequence[Unit]) -> int:
        if len(units) <= FEW:
            return FEW // TASKS_PER_CORE
        if self._cores is None:
            self._cores = cores(self.spark)
        return self._cores

    def _compact(self, chosen: Sequence[int]) -> None:
        """Whoever loses against another commit is measured, decided and planned again, on the table as it is then."""
        pending: dict[int, Assessed] = {n: self.assessed[n] for n in chosen}
        for attempt in range(ATTEMPTS):
            if not pending:
                return
            lost = self._round(pending)
            pending = {}
            for n, found in zip(lost, assess([self.subjects[n] for n in lost]), strict=True):
                told = f"conflicts with other writers, {ATTEMPTS} times: {lost[n]}" if attempt == ATTEMPTS - 1 else None
                again = Result("failed", told) if told else _again(found)
                if isinstance(again, Result):
                    self.results[n][COMPACT] = again
                else:
                    pending[n] = again

    def _round(self, pending: Mapping[int, Assessed]) -> dict[int, str]:
        """The tables that lost against another commit, with its words."""
        with ThreadPoolExecutor(THREADS) as pool:
            planned = pool.map(lambda n: _planned(self.subjects[n], n, pending[n].facts), pending)
            plans = dict(zip(pending, planned, strict=True))
        units = [unit for plan in plans.values() if not isinstance(plan, Result) for unit in plan]
        waiting = {n: len(plan) for n, plan in plans.items() if not isinstance(plan, Result)}
        rewritten: dict[int, list[str]] = {n: [] for n in waiting}
        lost: dict[int, str] = {}
        pace = Pace(COMPACT, 0, len(pending), 0, len(units))
        for n, plan in plans.items():
            if isinstance(plan, Result):
                self.results[n][COMPACT] = plan
        for answer in answers(self.spark, units, self._slots(units), maintain_task.rewrite, per_task=1):
            n, (rows, size) = answer["key"]
            pace = replace(pace, tasks=pace.tasks + 1, rows=pace.rows + rows, bytes=pace.bytes + size)
            waiting[n] -= 1
            if "error" in answer:
                self.results[n].setdefault(COMPACT, Result("failed", str(answer["error"])))
            else:
                rewritten[n].append(answer["result"])
            if not waiting[n] and COMPACT not in self.results[n]:
                problem = self.may_write()
                done = Result("failed", problem) if problem is not None else self._commit(n, pending, rewritten)
                if isinstance(done, str):
                    lost[n] = done
                else:
                    self.results[n][COMPACT] = done
            self.show(replace(pace, tables=sum(1 for left in waiting.values() if not left)))
        return lost

    def _commit(self, n: int, pending: Mapping[int, Assessed], rewritten: dict[int, list[str]]) -> Result | str:
        done = _committed(self.subjects[n], pending[n].facts.version, rewritten.pop(n))
        if isinstance(done, Result) and done.outcome == "done":
            self._renew_record(n)  # What cannot be noted now is still known from the history.
        return done

    def _before_cleanup(self, n: int) -> str | None:
        """Why nothing may be removed."""
        try:
            with fenced(self.may_write):
                need_right_clock(open_storage(self.subjects[n].place.uri, self.subjects[n].place.storage_options))
        except CatalogError as error:
            return error.message
        return self._renew_record(n)

    def _renew_record(self, n: int) -> str | None:
        """Why it could not be done."""
        try:
            with fenced(self.may_write):
                claims.renew_record(self.subjects[n].place)
        except CatalogError as error:
            return error.message
        return None

    def _indexes(self, chosen: Sequence[int]) -> None:
        units = []
        for n in chosen:
            subject, facts, due = self.subjects[n], self.assessed[n].facts, self._due_indexes(n)
            anew = {name: subject.builds[name][0] for name in due if name in facts.rebuild}
            deltas = [name for name in due if name in subject.builds and name not in anew]
            rest = [name for name in due if name not in subject.builds]
            rebuild = {name: (i.column, i.type.upper(), i.built_with) for name, i in anew.items()}
            units.append(subject.unit(key=n, indexes=rest, deltas=deltas, rebuild=rebuild))
        self._each(INDEXES, units, maintain_task.refresh, self._refreshed)

    def _due_indexes(self, n: int) -> list[str]:
        return due_indexes(self.subjects[n].want, self.assessed[n].facts, self.assessed[n].runs(COMPACT))

    def _refreshed(self, n: int, answer: Mapping[str, Any]) -> Result:
        before = self.assessed[n].facts
        self._record(n, answer.get("built", {}))
        left = answer["after"]["unindexed_rows"]
        due = self._due_indexes(n)
        gone = [name for name in due if name not in left]
        if gone:
            return Result("failed", f"{', '.join(gone)}: it is not there any more", answer["after"])
        same = [name for name in due if left[name] and left[name] >= before.unindexed[name]]
        if same:
            return Result("failed", f"Lance took no row into {', '.join(same)}", answer["after"])
        return Result("done", "", answer["after"])

    def _record(self, n: int, built: Mapping[str, Sequence[str]]) -> None:
        """Which indexes are ours now. They are as declared whether this is written or not."""
        subject = self.subjects[n]
        builds = {name: (subject.builds[name][0], live) for name, live in built.items()}
        with contextlib.suppress(CatalogError), fenced(self.may_write):
            record_builds(_datasets(subject), subject.place.uri, builds)

    def _cleanup(self, chosen: Sequence[int]) -> None:
        units = []
        with ThreadPoolExecutor(THREADS, thread_name_prefix="note") as pool:
            problems = dict(zip(chosen, pool.map(self._before_cleanup, chosen), strict=True))
        for n in chosen:
            if (problem := problems[n]) is not None:  # The history would go that tells whose the rows are.
                self.results[n][CLEANUP] = Result("failed", problem)
                continue
            want, facts, now = self.subjects[n].want.cleanup, self.assessed[n].facts, self.subjects[n].now
            assert want is not None
            versions, tags = due_versions(want, facts, now), due_tags(want, facts, now)
            units.append(self.subjects[n].unit(key=n, versions=versions, tags=tags))
        self._each(CLEANUP, units, maintain_task.clean, lambda n, answer: Result("done", "", answer["after"]))

    def _each(
        self,
        part: str,
        units: Sequence[Unit],
        work: Callable[[Unit], Iterator[Any]],
        judge: Callable[[int, Mapping[str, Any]], Result],
    ) -> None:
        """A unit is a table. Executors commit by themselves here, so jobs are small: none is begun once nothing may be
        written any more, and those under way end with the session."""
        jobs = answers(self.spark, units, self._slots(units), work, EACH, lambda: self.may_write() is not None)
        for done, answer in enumerate(self._in_turn(jobs), 1):
            n, error = answer["key"], answer.get("error")
            self.results[n][part] = (
                judge(n, answer) if error is None else Result("failed", error, answer.get("after", {}))
            )
            self.show(Pace(part, done, len(units)))

    def _in_turn(self, jobs: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        try:
            yield from jobs
        except GaveUp as error:
            raise SparkError(self.may_write() or str(error)) from error


def _datasets(subject: Subject) -> Datasets:
    return Datasets(subject.place.storage_options)


def _again(found: Assessed | str) -> Assessed | Result:
    """To be compacted still, or why not."""
    if isinstance(found, str):
        return Result("failed", found)
    if found.facts.claimed:
        return Result("failed", CLAIMED)
    if found.runs(COMPACT):
        return found
    after = {"fragments": len(found.facts.fragments), "version": found.facts.version}
    return Result("done", "another writer left nothing to do", after)


def _planned(subject: Subject, n: int, facts: Facts) -> list[Unit] | Result:
    """At the version that was measured. The key has the rows and bytes too."""
    known = {f.ident: f for f in facts.fragments}
    try:
        dataset = open_latest(subject.unit(), facts.version)
        tasks = maintain_task.compaction_plan(dataset, _compaction(subject.want)).tasks
    except Exception as error:
        return Result("failed", _told(error))
    if not tasks:
        return Result("done", "Lance sees nothing to do")
    units = []
    for task in tasks:
        fragments = [known[f.id] for f in task.fragments]
        size = sum(f.rows - f.deleted for f in fragments), sum(f.bytes for f in fragments)
        units.append(subject.unit(key=(n, size), version=facts.version, task=task.json()))
    return units


def _committed(subject: Subject, version: int, rewritten: Sequence[str]) -> Result | str:
    """All rewrites of a table in one commit. A text: what it lost against. The table is as it was if it failed; the new
    files stay for a later cleanup. An answer that was lost is found again in the table."""
    from lance.optimize import Compaction, RewriteResult

    results = [RewriteResult.from_json(text) for text in rewritten]  # type: ignore[attr-defined]
    files = {file.path for result in results for fragment in result.new_fragments for file in fragment.files}
    try:
        before = open_latest(subject.unit())
        if CLAIM_KEY in before.metadata:
            return Result("failed", CLAIMED)
        Compaction.commit(open_latest(subject.unit(), version), results)
        with contextlib.suppress(CatalogError):
            carry_over_builds(_datasets(subject), subject.place.uri, before)
        problem = None
    except Exception as error:
        problem = error
    try:
        after = open_latest(subject.unit())
        fragments = [fragment.metadata for fragment in after.get_fragments()]
    except Exception as error:
        return Result("unknown", _told(problem)) if problem else Result("done", f"and not read again: {_told(error)}")
    if problem is None or (files and files <= {file.path for f in fragments for file in f.files}):
        return Result("done", "", {"fragments": len(fragments), "version": after.version})
    return _told(problem) if is_conflict(problem) else Result("failed", _told(problem))
