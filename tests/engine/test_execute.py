"""The executor on the reference catalog, with faults on demand."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from engine_plans import OURS, copy_of, dataset, declare, lake, ns, plan, set_properties, table

from reconciler.catalog.base import WriteContext, Written
from reconciler.catalog.memory import MemoryCapabilities, MemoryCatalog
from reconciler.engine.execute import execute
from reconciler.model import change as c
from reconciler.model.arrow import Field, parse_type
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Detached, Present
from reconciler.model.plan import THRESHOLD, Plan
from reconciler.model.report import EXIT_CODES, Report


def run(the_plan: Plan, catalog: MemoryCatalog, **options: object) -> Report:
    options.setdefault("sleep", lambda seconds: None)
    return execute(the_plan, {"lake": catalog}, **options)  # type: ignore[arg-type]


def statuses(report: Report) -> list[str]:
    return [s.status for s in report.steps]


def small_plan(catalog: MemoryCatalog) -> Plan:
    return plan(catalog.world, [ns("a"), *table("a", "t"), *table("a", "u")])


def wanted(catalog: MemoryCatalog, the_plan: Plan) -> object:
    world = copy_of(catalog.world)
    for step in the_plan.steps:
        world.apply(step.change)
    return world.snapshot()


class Faults:
    """Raises `error` at the nth calls (from 1) of one point; `when` narrows the subject."""

    def __init__(self, point: str, error: Callable[[], Exception], *calls: int, when: object = None) -> None:
        self.point, self.error, self.calls, self.when = point, error, set(calls), when
        self.seen = 0
        self.lock = threading.Lock()

    def __call__(self, point: str, subject: object) -> None:
        if point != self.point or (self.when is not None and subject != self.when):
            return
        with self.lock:
            self.seen += 1
            hit = self.seen in self.calls or not self.calls
        if hit:
            raise self.error()


def lost_answer() -> CatalogError:
    return CatalogError(Code.SERVICE_UNAVAILABLE, "the connection was cut", unknown_outcome=True)


def broken() -> CatalogError:
    """A 500: no word about another try, and none that it was not carried out."""
    return CatalogError(Code.INTERNAL, "the service has a bug", unknown_outcome=True)


def busy() -> CatalogError:
    return CatalogError(Code.THROTTLING, "slow down", retry_after=7)


def denied() -> CatalogError:
    return CatalogError(Code.PERMISSION_DENIED, "no")


def test_a_plan_is_applied_and_verified() -> None:
    catalog = lake()
    the_plan = small_plan(catalog)
    goal = wanted(catalog, the_plan)
    report = run(the_plan, catalog)
    assert report.outcome == "applied"
    assert statuses(report) == ["done"] * 5
    assert catalog.world.snapshot() == goal
    assert catalog.calls.writes == 5


def test_the_same_plan_again_skips_everything_and_writes_nothing() -> None:
    catalog = lake()
    the_plan = small_plan(catalog)
    run(the_plan, catalog)
    report = run(the_plan, catalog)
    assert report.outcome == "applied"
    assert statuses(report) == ["skipped"] * 5
    assert catalog.calls.writes == 5


def test_a_plan_without_steps_has_no_changes() -> None:
    catalog = lake()
    report = run(plan(catalog.world, []), catalog)
    assert (report.outcome, report.steps) == ("no_changes", ())
    assert catalog.calls.reads == 0


@pytest.mark.parametrize("k", range(6))
def test_resumes_after_any_prefix(k: int) -> None:
    catalog = lake()
    the_plan = small_plan(catalog)
    goal = wanted(catalog, the_plan)
    for step in the_plan.steps[:k]:
        catalog.world.apply(step.change)
    report = run(the_plan, catalog)
    assert report.outcome == "applied"
    assert statuses(report) == ["skipped"] * k + ["done"] * (5 - k)
    assert catalog.world.snapshot() == goal


def test_resumes_between_the_writes_of_one_step() -> None:
    catalog = lake(ns("a"), declare("a", "t"))
    the_plan = plan(catalog.world, [dataset("a", "t"), set_properties("a", "t", x="1")])
    first, done = the_plan.steps[0].via, the_plan.steps[0].yields.fingerprint
    assert first
    assert done not in first
    world = copy_of(catalog.world)
    half = world.apply(dataset("a", "t"))[0]
    assert isinstance(half, Present)
    catalog.world.tables["a", "t"] = half
    wrote: list[c.Change] = []

    def finish(point: str, subject: object) -> None:
        # The reference catalog refuses a second create; a real one goes on from the half-made dataset.
        if point == "before" and isinstance(subject, c.CreateDataset):
            wrote.append(subject)
            catalog.world.tables["a", "t"] = replace_dataset(catalog, None)

    catalog.fault = finish
    report = run(the_plan, catalog)
    assert statuses(report) == ["done", "done"]
    assert wrote == [dataset("a", "t")]


def replace_dataset(catalog: MemoryCatalog, value: None) -> Present:
    found = catalog.world.tables["a", "t"]
    assert isinstance(found, Present)
    return Present(replace(found.state, dataset=value))  # type: ignore[call-arg]


def test_each_write_costs_one_verifying_read_and_reads_are_shared_between_steps_of_an_object() -> None:
    catalog = lake()
    the_plan = small_plan(catalog)
    run(the_plan, catalog, parallelism=1)
    upfront = 3 + 3  # each object, and whether one of the other kind has the name that is to be filled
    before_each_object = 3
    after_each_write = 5
    assert catalog.calls.reads == upfront + before_each_object + after_each_write


@pytest.mark.parametrize("outside", [set_properties("a", "t", by="someone else"), c.DeregisterTable(("a", "t"))])
def test_an_object_that_changed_makes_the_plan_stale_and_nothing_is_written(outside: c.Change) -> None:
    catalog = lake(ns("a"), *table("a", "t"))
    the_plan = plan(catalog.world, [ns("b"), set_properties("a", "t", x="1")])
    catalog.world.apply(outside)
    report = run(the_plan, catalog)
    assert report.outcome == "stale"
    assert statuses(report) == ["not_run", "not_run"]
    assert catalog.calls.writes == 0
    assert "lake:a.t" in report.message
    assert "new plan" in report.message


def test_something_new_under_a_planned_name_is_stale() -> None:
    catalog = lake(ns("a"))
    the_plan = plan(catalog.world, table("a", "t"))
    catalog.world.apply(c.DeclareTable(("a", "t"), {}, replace(OURS, owner="them")))
    assert run(the_plan, catalog).outcome == "stale"
    assert catalog.calls.writes == 0


def test_an_object_that_cannot_be_read_is_an_error_before_any_write() -> None:
    catalog = lake(ns("a"), *table("a", "t"))
    the_plan = plan(catalog.world, [ns("b"), set_properties("a", "t", x="1")])
    catalog.fault = Faults("read", denied)
    report = run(the_plan, catalog)
    assert (report.outcome, EXIT_CODES[report.outcome]) == ("failed", 1)
    assert catalog.calls.writes == 0
    assert "lake" in report.message


def test_a_threshold_refuses_the_whole_run() -> None:
    catalog = lake(ns("a"))
    the_plan = plan(catalog.world, [ns("b"), c.DropNamespace(("a",))], blocked=[2])
    steps = (the_plan.steps[0], replace(the_plan.steps[1], blocked_by=THRESHOLD, reason="11 deletes, 10 allowed"))
    report = run(replace(the_plan, steps=steps), catalog)
    assert report.outcome == "refused"
    assert statuses(report) == ["not_run", "not_run"]
    assert "11 deletes" in report.message
    assert catalog.calls.writes == catalog.calls.reads == 0


def test_blocked_steps_and_what_needs_them_do_not_run_and_the_others_do() -> None:
    catalog = lake(ns("a"), declare("a", "t"))
    changes = [set_properties("a", "t", x="1"), dataset("a", "t"), ns("b")]
    report = run(plan(catalog.world, changes, needs={2: [1]}, blocked=[1]), catalog)
    assert statuses(report) == ["not_run", "not_run", "done"]
    assert (report.outcome, EXIT_CODES[report.outcome]) == ("refused", 3)


@pytest.mark.parametrize("point", ["before", "after"])
@pytest.mark.parametrize("error", [lost_answer, busy, broken])
def test_passing_faults_converge(point: str, error: Callable[[], CatalogError]) -> None:
    """Before: the write did not happen. After: it landed and the answer was lost. Either way the result holds."""
    catalog = lake()
    the_plan = small_plan(catalog)
    goal = wanted(catalog, the_plan)
    catalog.fault = Faults(point, error, 1, 3, 4)
    report = run(the_plan, catalog)
    assert report.outcome == "applied", report.message
    assert statuses(report) == ["done"] * 5
    assert catalog.world.snapshot() == goal
    assert catalog.calls.writes == 5, "a write that landed is not sent again"


def test_retry_after_is_honoured_and_back_off_is_bounded() -> None:
    catalog = lake()
    waits: list[float] = []
    catalog.fault = Faults("before", busy, 1)
    assert run(plan(catalog.world, [ns("a")]), catalog, sleep=waits.append).outcome == "applied"
    assert waits == [7]
    waits.clear()
    catalog.fault = Faults("before", lost_answer)
    report = run(plan(catalog.world, [ns("b")]), catalog, sleep=waits.append, max_retries=12)
    assert statuses(report) == ["failed"]
    assert report.steps[0].attempts == 13
    assert len(waits) == 12
    assert all(0 <= w <= 20 for w in waits)


def test_retries_end_and_an_unchanged_object_is_failed_not_unknown() -> None:
    catalog = lake()
    catalog.fault = Faults("before", lost_answer)
    report = run(plan(catalog.world, [ns("a")]), catalog, max_retries=2)
    assert statuses(report) == ["failed"]
    assert report.steps[0].attempts == 3
    assert report.steps[0].error is not None
    assert report.steps[0].error.code == Code.SERVICE_UNAVAILABLE
    assert (report.outcome, EXIT_CODES[report.outcome]) == ("failed", 1)


def test_a_definite_error_is_not_tried_again() -> None:
    catalog = lake()
    catalog.fault = Faults("before", denied)
    report = run(plan(catalog.world, [ns("a")]), catalog)
    assert (statuses(report), report.steps[0].attempts) == (["failed"], 1)
    assert report.steps[0].error is not None
    assert report.steps[0].error.to_json() == {"code": 15, "name": "PermissionDenied", "message": "no"}


def test_unknown_is_reported_when_reading_back_fails() -> None:
    catalog = lake()

    def cut_off_after_the_write(point: str, subject: object) -> None:
        if point == "after" or (point == "read" and catalog.calls.writes):
            raise lost_answer()

    catalog.fault = cut_off_after_the_write
    report = run(plan(catalog.world, [ns("a"), *table("a", "t")]), catalog)
    assert statuses(report) == ["unknown", "not_run", "not_run"]
    assert (report.outcome, EXIT_CODES[report.outcome]) == ("partial", 5)
    assert "not known" in report.message


@pytest.mark.parametrize("others", ["none", "done", "blocked"])
def test_one_unknown_step_makes_the_run_partial(others: str) -> None:
    """Also the only one or the last one, and whatever else there is: it is neither applied nor refused."""
    catalog = lake()

    def cut_off_after_the_write(point: str, subject: object) -> None:
        if point == "after" and getattr(subject, "ident", ()) == ("z",):
            catalog.fault = cut_off

    def cut_off(point: str, subject: object) -> None:
        raise lost_answer()

    catalog.fault = cut_off_after_the_write
    changes = [ns("z")] if others == "none" else [ns("a"), ns("z")]
    made = plan(catalog.world, changes, blocked=[1] if others == "blocked" else [])
    report = run(made, catalog, parallelism=1)
    before = {"none": [], "done": ["done"], "blocked": ["not_run"]}[others]
    assert statuses(report) == [*before, "unknown"]
    assert (report.outcome, report.exit_code) == ("partial", 5)


def test_a_read_that_fails_once_is_repeated() -> None:
    catalog = lake()
    the_plan = small_plan(catalog)
    catalog.fault = Faults("read", lost_answer, 1, 2, 6, 9)
    assert run(the_plan, catalog).outcome == "applied"


def test_a_bug_in_a_catalog_is_internal_and_reported() -> None:
    catalog = lake()
    catalog.fault = Faults("before", lambda: ZeroDivisionError("oops"))
    report = run(plan(catalog.world, [ns("a"), ns("b")]), catalog)
    assert statuses(report) == ["failed", "failed"]
    assert report.steps[0].error is not None
    assert report.steps[0].error.code == Code.INTERNAL
    assert "ZeroDivisionError" in report.steps[0].error.message


def test_a_bug_after_the_write_landed_is_done() -> None:
    catalog = lake()
    catalog.fault = Faults("after", lambda: ZeroDivisionError("oops"))
    assert statuses(run(plan(catalog.world, [ns("a")]), catalog)) == ["done"]


def test_a_write_that_did_something_else_names_the_differing_fields() -> None:
    catalog = lake()

    def meddle(point: str, subject: object) -> None:
        if point == "after":
            catalog.world.apply(c.UpdateNamespace(("a",), {"team": "other"}, (), OURS))

    catalog.fault = meddle
    report = run(plan(catalog.world, [ns("a", team="vision"), ns("a", "b")]), catalog)
    assert statuses(report) == ["failed", "not_run"]
    error = report.steps[0].error
    assert error is not None
    assert error.code == Code.INVALID_TABLE_STATE
    assert 'properties.team: the catalog shows "other" instead of "vision"' in error.message
    assert report.outcome == "partial"


def test_an_outsider_in_mid_run_fails_that_object_only() -> None:
    catalog = lake(ns("a"), *table("a", "t"), *table("a", "u"))
    changes = [set_properties("a", "t", x="1"), set_properties("a", "u", x="1"), set_properties("a", "t", y="2")]

    def meddle(point: str, subject: object) -> None:
        if point == "before" and subject == changes[0]:
            catalog.world.apply(set_properties("a", "u", by="someone else"))

    catalog.fault = meddle
    report = run(plan(catalog.world, changes), catalog, parallelism=1)
    assert statuses(report) == ["done", "failed", "done"]
    error = report.steps[1].error
    assert error is not None
    assert error.code == Code.CONCURRENT_MODIFICATION
    assert "changed since the plan was made" in error.message
    found = catalog.world.tables["a", "u"]
    assert isinstance(found, Present)
    assert dict(found.state.properties) == {"by": "someone else"}


def test_a_failure_fails_dependants_only_and_withholds_deletes() -> None:
    catalog = lake(ns("old"))
    changes = [ns("a"), *table("a", "t"), ns("b"), c.DropNamespace(("old",))]
    catalog.fault = Faults("before", denied, when=ns("a"))
    report = run(plan(catalog.world, changes), catalog)
    assert statuses(report) == ["failed", "not_run", "not_run", "done", "not_run"]
    assert (report.outcome, EXIT_CODES[report.outcome]) == ("partial", 5)
    assert ("old",) in catalog.world.namespaces


def test_a_create_of_which_nobody_knows_how_it_ended_withholds_deletes() -> None:
    catalog = lake(ns("old"))
    cut = {"now": False}

    def cut_off(point: str, subject: object) -> None:
        cut["now"] = cut["now"] or (point == "after" and subject == ns("a"))
        if cut["now"]:
            cut["now"] = point != "before"
            raise lost_answer()

    catalog.fault = cut_off
    the_plan = plan(catalog.world, [ns("a"), c.DropNamespace(("old",))])
    report = run(the_plan, catalog, parallelism=1, max_retries=0)
    assert statuses(report) == ["unknown", "not_run"]
    assert (report.outcome, EXIT_CODES[report.outcome]) == ("partial", 5)
    assert ("old",) in catalog.world.namespaces


def test_deletes_run_last_even_when_they_need_nothing() -> None:
    catalog = lake(ns("old"), *table("old", "t"))
    order: list[str] = []

    def note(point: str, subject: object) -> None:
        if point == "before":
            order.append(subject.action)  # type: ignore[attr-defined]

    catalog.fault = note
    changes = [c.DeregisterTable(("old", "t")), c.DropNamespace(("old",)), ns("a"), *table("a", "t")]
    report = run(plan(catalog.world, changes, needs={2: [1]}), catalog)
    assert report.outcome == "applied", report.message
    assert order[-2:] == ["deregister_table", "drop_namespace"]
    assert isinstance(catalog.world.find("Table", ("old", "t")), Detached)


def test_blocked_steps_do_not_withhold_deletes() -> None:
    catalog = lake(ns("old"), ns("a"))
    changes = [c.UpdateNamespace(("a",), {"x": "1"}, (), OURS), c.DropNamespace(("old",))]
    report = run(plan(catalog.world, changes, blocked=[1]), catalog)
    assert statuses(report) == ["not_run", "done"]


def test_a_child_that_the_plan_does_not_remove_makes_a_drop_stale() -> None:
    catalog = lake(ns("old"), *table("old", "t"))
    the_plan = plan(catalog.world, [c.DeregisterTable(("old", "t")), c.DropNamespace(("old",))], needs={2: [1]})
    catalog.world.apply(declare("old", "new"))
    report = run(the_plan, catalog)
    assert report.outcome == "stale"
    assert "it holds new" in report.message
    assert catalog.calls.writes == 0


def test_a_child_that_appears_in_mid_run_stops_the_drop() -> None:
    catalog = lake(ns("old"), *table("old", "t"))
    the_plan = plan(catalog.world, [c.DeregisterTable(("old", "t")), c.DropNamespace(("old",))], needs={2: [1]})

    def meddle(point: str, subject: object) -> None:
        if point == "before" and isinstance(subject, c.DeregisterTable):
            catalog.world.apply(declare("old", "new"))

    catalog.fault = meddle
    report = run(the_plan, catalog)
    assert statuses(report) == ["done", "failed"]
    error = report.steps[1].error
    assert error is not None
    assert error.code == Code.NAMESPACE_NOT_EMPTY
    assert ("old",) in catalog.world.namespaces


def test_a_resumed_delete_skips_what_is_gone() -> None:
    catalog = lake(ns("old"), *table("old", "t"))
    the_plan = plan(catalog.world, [c.DeregisterTable(("old", "t")), c.DropNamespace(("old",))], needs={2: [1]})
    catalog.world.apply(c.DeregisterTable(("old", "t")))
    assert statuses(run(the_plan, catalog)) == ["skipped", "done"]


def test_a_rename_is_checked_on_both_sides() -> None:
    catalog = lake(ns("a"), *table("a", "t"))
    changes = [c.RenameTable(("a", "u"), ("a", "t")), set_properties("a", "u", x="1")]
    the_plan = plan(catalog.world, changes)
    twin = MemoryCatalog(copy_of(catalog.world))
    assert statuses(run(the_plan, twin)) == ["done", "done"]
    assert statuses(run(the_plan, twin)) == ["skipped", "skipped"]
    changed = MemoryCatalog(copy_of(catalog.world))
    changed.world.apply(set_properties("a", "t", by="someone else"))
    gone = MemoryCatalog(copy_of(catalog.world))
    gone.world.apply(c.DeregisterTable(("a", "t")))
    for catalog in (changed, gone):
        assert run(the_plan, catalog).outcome == "stale"
        assert catalog.calls.writes == 0


def test_objects_below_a_renamed_namespace_are_found_under_the_old_name() -> None:
    catalog = lake(ns("a"), *table("a", "t"))
    changes = [c.RenameNamespace(("b",), ("a",)), set_properties("b", "t", x="1")]
    the_plan = plan(catalog.world, changes, needs={2: [1]})
    assert statuses(run(the_plan, catalog)) == ["done", "done"]
    assert statuses(run(the_plan, catalog)) == ["skipped", "skipped"]


def test_destructive_steps_on_a_dataset_are_tagged() -> None:
    catalog = lake(ns("a"), *table("a", "t"))
    tags: list[str | None] = []
    apply = catalog.apply

    def spy(change: c.Change, context):  # type: ignore[no-untyped-def]
        tags.append(context.tag)
        return apply(change, context)

    catalog.apply = spy  # type: ignore[method-assign]
    changes = [c.DropColumns(("a", "t"), ("id",)), set_properties("a", "t", x="1")]
    report = run(plan(catalog.world, changes, risks={1: "destructive"}), catalog)
    assert tags == ["reconciler-abababababab-s1", None]
    assert [s.tag for s in report.steps] == ["reconciler-abababababab-s1", None]


class Rows:
    """A data plane on the memory catalog; `says`: what becomes of a step."""

    def __init__(self, catalog: MemoryCatalog, says: Written | CatalogError, moved: str | None = None) -> None:
        self.catalog, self.says, self.why = catalog, says, moved

    def moved(self, catalog: str, change: c.Change) -> str | None:
        return self.why

    def apply(self, catalog: object, change: c.Change, state: object, context: WriteContext) -> Written:
        if isinstance(self.says, CatalogError):
            raise self.says
        self.catalog.world.apply(change)
        return self.says

    def close(self) -> None:
        pass


BACKFILL = c.BackfillColumns(("a", "t"), (Field("n", parse_type("int8"), default="1"),))


@pytest.mark.parametrize(
    ("says", "tag"),
    [
        (Written(1, 3, True), "reconciler-abababababab-s1"),
        (Written(1, 3, False), None),
        (CatalogError(Code.INVALID_INPUT, "bad values"), None),
    ],
)
def test_a_data_step_has_the_tag_that_it_says_it_has(says: Written | CatalogError, tag: str | None) -> None:
    """Its claims make versions, whatever becomes of the rows."""
    catalog = lake(ns("a"), *table("a", "t"))
    report = run(plan(catalog.world, [BACKFILL], risks={1: "rewrite"}), catalog, data=Rows(catalog, says))
    assert [s.tag for s in report.steps] == [tag]


def test_a_source_that_moved_on_makes_the_plan_stale_and_nothing_is_written() -> None:
    catalog = lake(ns("a"), *table("a", "t"))
    before = copy_of(catalog.world)
    the_plan = plan(catalog.world, [set_properties("a", "t", x="1"), BACKFILL])
    report = run(the_plan, catalog, data=Rows(catalog, Written(), "its files have changed"))
    assert (report.outcome, EXIT_CODES[report.outcome]) == ("stale", 4)
    assert "its files have changed" in report.message
    assert catalog.world.snapshot() == before.snapshot()


def test_stop_finishes_running_steps_and_starts_none() -> None:
    catalog = lake()
    stop = threading.Event()

    def signal(point: str, subject: object) -> None:
        if point == "before":
            stop.set()

    catalog.fault = signal
    report = run(plan(catalog.world, [ns("a"), ns("a", "b"), ns("a", "b", "c")]), catalog, stop=stop)
    assert statuses(report) == ["done", "not_run", "not_run"]
    assert (report.outcome, EXIT_CODES[report.outcome]) == ("interrupted", 130)


def test_stop_that_comes_with_the_last_step_changes_nothing() -> None:
    catalog = lake()
    stop = threading.Event()
    catalog.fault = lambda point, subject: stop.set() if point == "before" else None
    assert run(plan(catalog.world, [ns("a")]), catalog, stop=stop).outcome == "applied"


def test_stop_ends_a_back_off_at_once() -> None:
    catalog = lake()
    stop = threading.Event()

    def fail(point: str, subject: object) -> None:
        if point == "before":
            threading.Timer(0.05, stop.set).start()
            raise CatalogError(Code.THROTTLING, "slow down", retry_after=200)

    catalog.fault = fail
    report = execute(plan(catalog.world, [ns("a"), ns("a", "b")]), {"lake": catalog}, stop=stop)
    assert statuses(report) == ["failed", "not_run"]


def test_time_out_starts_no_further_step() -> None:
    catalog = lake()
    over = threading.Event()

    def slow(point: str, subject: object) -> None:
        if point == "before":
            over.wait(0.4)

    catalog.fault = slow
    report = run(plan(catalog.world, [ns("a"), ns("a", "b")]), catalog, timeout=0.2)
    assert statuses(report) == ["done", "not_run"]
    assert (report.outcome, EXIT_CODES[report.outcome]) == ("partial", 5)
    assert "the time-out is over" in report.message


def test_a_time_out_before_the_first_write_is_failed() -> None:
    catalog = lake()
    report = run(plan(catalog.world, [ns("a")]), catalog, timeout=0)
    assert statuses(report) == ["not_run"]
    assert (report.outcome, EXIT_CODES[report.outcome]) == ("failed", 1)


@pytest.mark.parametrize(("parallelism", "most", "bound"), [(3, 8, 3), (8, 2, 2), (1, 8, 1)])
def test_no_more_writes_at_a_time_than_allowed(parallelism: int, most: int, bound: int) -> None:
    catalog = lake()
    catalog.capabilities = MemoryCapabilities(max_parallelism=most)
    lock = threading.Lock()
    now = peak = 0
    full = threading.Semaphore(0)

    def count(point: str, subject: object) -> None:
        nonlocal now, peak
        if point == "before":
            with lock:
                now += 1
                peak = max(peak, now)
                if now == bound:
                    full.release(bound)
            full.acquire(timeout=0.2)
        elif point == "after":
            with lock:
                now -= 1

    catalog.fault = count
    report = run(plan(catalog.world, [ns(f"n{i}") for i in range(12)]), catalog, parallelism=parallelism)
    assert report.outcome == "applied"
    assert peak == bound


def test_two_catalogs_in_one_plan() -> None:
    lakes = {"lake": lake(), "pond": lake()}
    first, second = (plan(x.world, [ns("a")]).steps[0] for x in lakes.values())
    both = replace(
        plan(lakes["lake"].world, []), steps=(first, replace(second, id="s2", catalog="pond", needs=(first.id,)))
    )
    report = execute(both, lakes)
    assert statuses(report) == ["done", "done"]
    assert ("a",) in lakes["pond"].world.namespaces


@pytest.mark.parametrize("seed", range(20))
def test_any_mixture_of_faults_ends_in_a_true_report_and_a_second_run_repairs(seed: int) -> None:
    chance = random.Random(seed)
    catalog = lake(ns("old"), *table("old", "t"))
    changes = [ns("a"), *table("a", "t"), *table("a", "u"), set_properties("a", "t", x="1"), ns("b"), *table("b", "t"),
               c.DeregisterTable(("old", "t")), c.DropNamespace(("old",))]  # fmt: skip
    the_plan = plan(catalog.world, changes, needs={11: [10]})
    goal = wanted(catalog, the_plan)
    errors = [lost_answer, busy, denied, lambda: ValueError("bug")]

    def fault(point: str, subject: object) -> None:
        if chance.random() < 0.15:
            raise chance.choice(errors)()

    catalog.fault = fault
    report = run(the_plan, catalog, parallelism=4, max_retries=2)
    catalog.fault = None
    for result in report.steps:
        if result.status in ("done", "skipped"):
            assert result.error is None
        if result.status in ("failed", "unknown"):
            assert result.error is not None
    counts = Counter(statuses(report))
    if counts["failed"] or counts["unknown"]:
        assert report.outcome in ("partial", "failed")
    assert (report.outcome == "failed") <= (counts["done"] == 0)
    again = run(the_plan, catalog)
    assert again.outcome == "applied", again.message
    assert catalog.world.snapshot() == goal
