"""The planner on whatever manifests and catalogs may hold. Numbers in brackets: the invariants of the design."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from prop_cases import GAPS, THEM, US, Case, cases, desired, place_in
from prop_run import (
    allowed,
    apply_all,
    assert_ends_alike,
    catalog_of,
    dump,
    held_back,
    may_change,
    plan_on,
    recorded_and_gone,
    state_of,
)

from reconciler.core.errors import PlanError
from reconciler.core.fields import find
from reconciler.core.globs import matcher
from reconciler.core.index_fit import unsuitable
from reconciler.core.planner import make_plan
from reconciler.core.world import World
from reconciler.model.arrow import Field, parse_type
from reconciler.model.change import (
    DELETES,
    AlterColumns,
    BackfillColumns,
    CreateIndex,
    DropColumns,
    RenameNamespace,
    RenameTable,
)
from reconciler.model.codec import canonical
from reconciler.model.desired import DEFAULT_OWNER, DesiredNamespace, DesiredTable, Management
from reconciler.model.diagnostic import Source
from reconciler.model.errors import Code
from reconciler.model.ident import Ident, is_below
from reconciler.model.observed import Detached, Gap, Present, Snapshot, Unreadable
from reconciler.model.plan import INCOMPLETE, TWO_APPLIES, Plan, Step
from reconciler.model.plan_json import plan_from_json, plan_to_json
from reconciler.model.state import DatasetState, Index, Marks, NamespaceState, TableState

HERE, ID = Source("here.yaml"), (Field("id", parse_type("int64")),)


def planned(case: Case) -> Plan:
    """Cases whose manifests do not fit the catalog have no plan and nothing more to say."""
    try:
        return plan_on(case, catalog_of(case))
    except PlanError:
        assume(False)
        raise


@given(cases())
def test_a_plan_or_a_plan_error_and_nothing_else(case: Case) -> None:
    """An InternalError or any other exception is a bug in the planner."""
    problems = None
    try:
        plan_on(case, catalog_of(case))
    except PlanError as error:
        problems = error.diagnostics
    assert problems is None or all(d.hint and d.source.file for d in problems)


SPACE = Present(NamespaceState(marks=Marks(US)))
NAME_OF_A_NAMESPACE_THAT_MOVES = Case(
    desired(
        Management(US),
        {
            ("a",): DesiredNamespace("lake", ("a",), HERE),
            ("b",): DesiredNamespace("lake", ("b",), HERE, renamed_from=("a", "x")),
        },
        {("a", "x"): DesiredTable("lake", ("a", "x"), HERE, fields=ID)},
    ),
    Snapshot({("a",): SPACE, ("a", "x"): SPACE}, {}),
)
"""A table takes the name that a namespace gives up."""


@given(cases())
def test_after_apply_only_what_was_held_back_is_left(case: Case) -> None:
    """[1] And a second apply changes nothing [2]."""
    catalog = catalog_of(case)
    plan = planned(case)
    assume(plan.refused is None and not any(s.blocked_by == TWO_APPLIES for s in plan.steps))
    apply_all(plan, catalog)
    after = state_of(catalog)
    again = plan_on(case, catalog)
    assert allowed(again) == []
    settled = held_back(plan) - held_back(again)
    assert held_back(again) <= held_back(plan)
    if case.options.targets:  # A target may name the old identifier: renamed, the object is outside of it.
        moved = {s.change.ident for s in plan.steps if isinstance(s.change, RenameNamespace | RenameTable)}
        settled = {(a, i) for a, i in settled if not any(i[: len(m)] == m for m in moved)}
    assert {action for action, _ in settled} <= {"rename_table", "rename_namespace"}, (
        "only a rename whose old name went"
    )
    apply_all(again, catalog)
    assert state_of(catalog) == after


@pytest.mark.slow
@given(cases())
@settings(max_examples=settings().max_examples // 4)  # one case in thirteen fits: the time goes into looking
def test_what_takes_two_applies_takes_no_third(case: Case) -> None:
    """Each object that the plan says so of. What only has a blocked parent may come later."""
    catalog = catalog_of(case)
    plan = planned(case)
    assume(plan.refused is None and any(s.blocked_by == TWO_APPLIES for s in plan.steps))
    waiting = {s.change.ident for s in plan.steps if s.verdict != "allowed" and s.blocked_by != TWO_APPLIES}
    try:
        for _ in range(2):
            plan = plan_on(case, catalog)
            assume(plan.refused is None)
            apply_all(plan, catalog)
        rest = allowed(plan_on(case, catalog))
    except PlanError:  # A missing parent that shows only once the namespace above it can be made.
        return
    assert [s for s in rest if not any(w == s.change.ident[: len(w)] for w in waiting)] == []


@given(cases())
def test_what_is_not_ours_stays_as_it_is(case: Case) -> None:
    """[3] Byte for byte, and under its name: others' objects, nobody's, the ignored and the unreadable."""
    catalog = catalog_of(case)
    plan = planned(case)
    before = state_of(catalog)
    apply_all(plan, catalog)
    after = state_of(catalog)
    changed = {k for k in before.keys() | after.keys() if before.get(k) != after.get(k)}
    assert {k for k in changed if k in before and not may_change(case, k)} == set()


@given(cases())
def test_only_what_we_own_and_nobody_protects_is_deleted(case: Case) -> None:
    plan = planned(case)
    for step in allowed(plan):
        if step.deletes:
            table = step.change.kind == "Table"
            found = catalog_of(case).world.find(step.change.kind, step.change.ident)
            moved = not isinstance(found, Present)
            declared = case.desired.tables["lake"] if table else case.desired.namespaces["lake"]
            wanted = declared.get(step.change.ident)
            assert case.management.owner != DEFAULT_OWNER
            assert case.options.prune if wanted is None else wanted.absent
            if not moved:
                assert found.state.marks.owner == case.management.owner
                assert not found.state.marks.protect


@given(cases(), st.randoms(use_true_random=False))
@example(NAME_OF_A_NAMESPACE_THAT_MOVES, random.Random(1))
@example(NAME_OF_A_NAMESPACE_THAT_MOVES, random.Random(2))
def test_any_order_that_the_needs_allow_is_legal(case: Case, luck: random.Random) -> None:
    """[4] Every prefix too: the world refuses a create without its parent and a drop of what is not empty. The steps
    of one object run in the order of the plan."""
    plan = planned(case)
    assume(plan.refused is None)
    world = catalog_of(case).world
    for step in allowed(plan):
        world.apply(step.change)
    end = dump(world.snapshot())
    world = catalog_of(case).world
    todo = allowed(plan)
    done: set[str] = {s.id for s in plan.steps if s.verdict != "allowed"}
    while todo:
        building = any(not s.deletes for s in todo)
        firsts = list({s.key: s for s in reversed(todo)}.values())
        ready = [s for s in firsts if set(s.needs) <= done and not (s.deletes and building)]
        assert ready, "the needs go in a circle, or name a step that never runs"
        step = luck.choice(ready)
        world.apply(step.change)
        done.add(step.id)
        todo.remove(step)
    assert dump(world.snapshot()) == end


@given(cases(), st.data())
def test_a_step_that_fails_leaves_the_others_legal(case: Case, data: st.DataObject) -> None:
    """Whatever does not need it can be done without it, and what another column's values decide does not need it."""
    plan = planned(case)
    assume(plan.refused is None and allowed(plan))
    failed = data.draw(st.sampled_from(allowed(plan)))
    world = catalog_of(case).world
    lost = {failed.id}
    for step in allowed(plan):
        if step.id in lost or lost.intersection(step.needs) or step.deletes:
            lost.add(step.id)
        else:
            world.apply(step.change)
    drops = any(isinstance(s.change, DropColumns) and s.key == failed.key for s in plan.steps)
    if (columns := _columns(failed)) and not drops:  # An index waits for all drops: its name may be that of one lost.
        others = [s for s in allowed(plan) if s.key == failed.key and _columns(s) and not _columns(s) & columns]
        computed = {f.name for s in plan.steps if isinstance(s.change, BackfillColumns) for f in s.change.fields}
        others = [s for s in others if not _takes_name(s, failed) and not _columns(s) & computed]
        assert not lost.intersection(s.id for s in others)


def _columns(step: Step) -> frozenset[str]:
    """Of a cast, or of an index."""
    match step.change:
        case AlterColumns(columns=columns) if all(a.rename is None for a in columns):
            return frozenset(a.path.partition(".")[0] for a in columns)
        case CreateIndex(index=index):
            return frozenset({index.column.partition(".")[0]})
        case _:
            return frozenset()


def _takes_name(step: Step, failed: Step) -> bool:
    """An index of another column gets the name of one that goes with a cast."""
    lost = failed.change.loses if isinstance(failed.change, AlterColumns) else ()
    return isinstance(step.change, CreateIndex) and step.change.index.name in lost


@given(cases())
def test_deletes_come_last_and_needs_look_back(case: Case) -> None:
    plan = planned(case)
    seen: dict[str, str] = {}
    deleting = False
    for step in plan.steps:
        assert all(n in seen for n in step.needs)
        if step.verdict == "allowed":
            assert all(seen[n] == "allowed" for n in step.needs)
        assert not deleting or isinstance(step.change, DELETES)
        deleting = isinstance(step.change, DELETES)
        seen[step.id] = step.verdict


@given(cases(), st.data())
def test_killed_after_any_step_and_run_again(case: Case, data: st.DataObject) -> None:
    """[5] The next plan picks up what is left and ends where an undisturbed run ends."""
    plan = planned(case)
    assume(plan.refused is None and allowed(plan) and not any(s.blocked_by == TWO_APPLIES for s in plan.steps))
    killed_and_run_again(case, plan, data.draw(st.integers(1, len(allowed(plan)))))


def killed_and_run_again(case: Case, plan: Plan, k: int) -> None:
    """What is only recorded along with another change (core/notes.py) may wait for the next one: keys that are ours by
    now, and keys that were and are gone."""
    undisturbed = catalog_of(case)
    apply_all(plan, undisturbed)
    killed = catalog_of(case)
    for step in allowed(plan)[:k]:
        killed.world.apply(step.change)
    gone = recorded_and_gone(killed)
    rest = plan_on(case, killed)
    if rest.refused is not None:
        return
    apply_all(rest, killed)
    assert_ends_alike(state_of(killed), state_of(undisturbed), gone)


def test_a_record_of_what_is_gone_and_left_to_others_waits() -> None:
    """Killed right after the table got its data back: nothing is left to do, and the record goes along with that."""
    left = DesiredTable("lake", ("t",), HERE, schema_metadata={"k": "1"}, fields=ID, ignore_differences=("schema",))
    found = DatasetState(ID, {"k": "1"}, owner=US, applied=("field:x:comment",))
    case = Case(desired(Management(US), {}, {("t",): left}), Snapshot({}, {("t",): Detached("memory/t", found)}))
    plan = planned(case)
    assert [s.action for s in allowed(plan)] == ["declare_table", "update_table"]
    killed_and_run_again(case, plan, 1)


@given(cases(gaps=False), st.sampled_from(GAPS))
def test_nothing_is_deleted_on_half_the_facts(case: Case, where: tuple[str, ...]) -> None:
    """[7] And what is not seen there is not created either."""
    assume(not matcher(case.management.ignore)(where))
    case = replace(case, gaps=(Gap(where, Code.SERVICE_UNAVAILABLE, "page 2 failed"),))
    plan = planned(case)
    assert not plan.catalogs["lake"].complete
    assert any("page 2 failed" in p.message for p in plan.catalogs["lake"].problems)
    for step in allowed(plan):
        ident = step.change.ident
        if step.deletes:
            assert ident[: len(where)] != where
            assert where[: len(ident)] != ident
        assert step.action not in ("create_namespace", "declare_table") or ident[: len(where)] != where
        if isinstance(step.change, (RenameTable, RenameNamespace)):
            assert not is_below(where, step.change.source)
    for step in plan.steps:
        if step.blocked_by == INCOMPLETE:
            assert "incomplete" in step.reason


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_manifests_and_listings_does_not_matter(case: Case, luck: random.Random) -> None:
    """[8] Same plan_id, to the byte."""

    def shuffled(mapping):  # type: ignore[no-untyped-def]
        items = list(mapping.items())
        luck.shuffle(items)
        return dict(items)

    plan = planned(case)
    live = replace(case.live, namespaces=shuffled(case.live.namespaces), tables=shuffled(case.live.tables))
    spaces = {"lake": shuffled(case.desired.namespaces["lake"])}
    tables = {"lake": shuffled(case.desired.tables["lake"])}
    other = replace(case, live=live, desired=replace(case.desired, namespaces=spaces, tables=tables))
    assert canonical(plan_to_json(planned(other))) == canonical(plan_to_json(plan))


@given(cases())
def test_plan_json_round_trips(case: Case) -> None:
    """[10]"""
    plan = planned(case)
    text = json.dumps(plan_to_json(plan))
    back = plan_from_json(json.loads(text))
    assert [s.change for s in back.steps] == [s.change for s in plan.steps]
    assert json.dumps(plan_to_json(back)) == text
    assert back.plan_id == plan.plan_id


HASH_SEED_SCRIPT = """
import random, sys
sys.path[:0] = {path!r}
from prop_cases import roll_case
from prop_dice import LENGTH, Dice
from prop_run import catalog_of, plan_on
from reconciler.core.errors import PlanError
for seed in range(40):
    case = roll_case(Dice(random.Random(seed).randbytes(LENGTH)))
    try:
        print(plan_on(case, catalog_of(case)).plan_id)
    except PlanError as error:
        print([d.to_json() for d in error.diagnostics])
"""


@pytest.mark.slow
def test_plan_ids_do_not_depend_on_the_hash_seed() -> None:
    """[10] Sets and dicts of strings come in another order in every process."""
    here = Path(__file__).parent
    script = HASH_SEED_SCRIPT.format(path=[str(here), str(here.parent.parent)])
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1
    assert outputs.pop().count(b"sha256:") > 20


@given(cases(gaps=False), cases(gaps=False))
@settings(max_examples=settings().max_examples // 2)
def test_catalogs_do_not_influence_each_other(one: Case, two: Case) -> None:
    """Two catalogs in one plan give the steps that each gives alone."""
    alone = [planned(replace(c, options=one.options)) for c in (one, two)]
    spec = one.desired.catalogs["lake"]
    both = replace(
        one.desired,
        catalogs={"lake": spec, "pond": replace(two.desired.catalogs["lake"], name="pond")},
        namespaces={"lake": one.desired.namespaces["lake"], "pond": two.desired.namespaces["lake"]},
        tables={"lake": one.desired.tables["lake"], "pond": in_the_pond(two)},
    )
    live = {"lake": observed(one), "pond": elsewhere(observed(two))}
    kinds = {"lake": one.capabilities, "pond": replace(two.capabilities, root="s3://pond")}
    together = make_plan(both, live, kinds, one.options)
    for name, plan in zip(("lake", "pond"), alone, strict=True):
        steps = [s for s in together.steps if s.catalog == name]
        assert [(s.action, s.key.ident, s.verdict) for s in steps] == [
            (s.action, s.key.ident, s.verdict) for s in plan.steps
        ]


def in_the_pond(case: Case) -> dict[Ident, DesiredTable]:
    tables = case.desired.tables["lake"]
    return {i: replace(t, location=f"pond/{t.location}" if t.location else None) for i, t in tables.items()}


def observed(case: Case) -> Snapshot:
    from reconciler.core.planner import scope_of
    from reconciler.engine.observe import observe

    return observe(catalog_of(case), scope_of(case.desired, "lake"))


def elsewhere(snapshot: Snapshot) -> Snapshot:
    """Other locations: one dataset in two catalogs is another story."""

    def moved(found: Present | Detached | Unreadable) -> Present | Detached | Unreadable:
        if isinstance(found, Present) and isinstance(found.state, TableState):
            return Present(replace(found.state, location=f"pond/{found.state.location}", place=None))
        return replace(found, location=f"pond/{found.location}", checked=None) if isinstance(found, Detached) else found

    return replace(snapshot, tables={i: moved(f) for i, f in snapshot.tables.items()}, checked={})


@given(cases(data_plane=True))
def test_a_fresh_catalog_ends_as_declared(case: Case) -> None:
    """From nothing, every declared object is there, ours, with what was declared."""
    empty = replace(case, live=Snapshot({}, {}), gaps=())
    plan = planned(empty)
    assume(not case.options.targets)
    bare = {i for i, t in case.desired.tables["lake"].items() if t.fields is None}
    steps = [s for s in plan.steps if s.change.ident not in bare and not isinstance(s.change, CreateIndex)]
    assert {s.verdict for s in steps} <= {"allowed"}
    catalog = catalog_of(empty)
    apply_all(plan, catalog)
    world: World = catalog.world
    for ident, n in case.desired.namespaces["lake"].items():
        found = world.namespaces.get(ident)
        assert (found is None) == n.absent
        if isinstance(found, Present) and isinstance(found.state, NamespaceState) and not n.ignore_differences:
            assert dict(found.state.properties) == dict(n.properties)
            assert found.state.marks.owner == case.management.owner
            assert found.state.marks.protect == bool(n.protect)
    for ident, t in case.desired.tables["lake"].items():
        found = world.tables.get(ident)
        assert (found is None) == t.absent
        if isinstance(found, Present) and isinstance(found.state, TableState) and t.fields is not None:
            dataset = found.state.dataset
            assert found.state.location == place_in(case.capabilities, ident, t)
            assert found.state.columns == case.capabilities.columns_of(dataset.fields)
            assert [f.name for f in dataset.fields] == [f.name for f in t.fields]
            if not t.ignore_differences:
                unfit = {i.name for i in t.indexes if _unfit(i, t.fields)}
                assert [i.name for i in dataset.indexes] == sorted({i.name for i in t.indexes} - unfit)


def _unfit(index: Index, fields: tuple[Field, ...]) -> bool:
    """An index that its column cannot have; validation says so before there is a plan."""
    column = find(fields, index.column)
    return column is not None and unsuitable(index, column.type) is not None


@given(cases())
def test_others_are_taken_from_only_by_name(case: Case) -> None:
    """--adopt never takes what another owner holds."""
    case = replace(case, options=replace(case.options, adopt=True, take_over=frozenset()))
    plan = planned(case)
    world = catalog_of(case).world
    for step in allowed(plan):
        found = world.find(step.change.kind, step.change.ident)
        if isinstance(found, Present):
            assert found.state.marks.owner != THEM
