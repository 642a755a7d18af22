"""What holds on catalogs that cannot do everything: the invariants run on them too, these are rules of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from prop_cases import Case, cases, place_in
from prop_kinds import GLUE_LIKE, REST_LIKE, SERVICES, UNITY_LIKE
from prop_run import allowed, apply_all, catalog_of, plan_on, state_of

from reconciler.core.errors import PlanError
from reconciler.model.change import (
    DELETES,
    DeclareTable,
    DropNamespace,
    ReplaceTable,
    SyncColumns,
    UpdateNamespace,
    UpdateTable,
)
from reconciler.model.observed import Present
from reconciler.model.plan import ALLOW, Plan
from reconciler.model.state import DatasetState, TableState


def planned(case: Case) -> Plan:
    try:
        return plan_on(case, catalog_of(case))
    except PlanError:
        assume(False)
        raise


def ended(case: Case, plan: Plan) -> dict[tuple[str, ...], TableState]:
    """The tables once the plan is applied."""
    assume(plan.refused is None)
    catalog = catalog_of(case)
    apply_all(plan, catalog)
    tables = catalog.world.tables.items()
    return {i: f.state for i, f in tables if isinstance(f, Present) and isinstance(f.state, TableState)}


@given(cases(kinds=(GLUE_LIKE, UNITY_LIKE)))
def test_in_the_end_the_catalog_shows_the_columns_of_the_data_or_the_plan_says_so(case: Case) -> None:
    plan = planned(case)
    stale = plan.catalogs["lake"].projection_stale
    held = {s.change.ident for s in plan.steps if s.verdict != "allowed"}
    touched = {i for i, t in case.desired.tables["lake"].items() if not t.absent}
    assume(not case.options.targets)
    for ident, state in ended(case, plan).items():
        ours = ident in touched and state.marks.owner == case.management.owner
        if ours and isinstance(state.dataset, DatasetState) and ident not in held:
            fits = state.columns is not None and {*state.columns} == {
                *(case.capabilities.columns_of(state.dataset.fields) or ())
            }
            assert fits == (ident not in stale)


@given(cases(kinds=(UNITY_LIKE,)))
def test_no_entry_is_replaced_unless_it_was_allowed(case: Case) -> None:
    plan = planned(case)
    for step in plan.steps:
        assert not isinstance(step.change, SyncColumns)
        if isinstance(step.change, ReplaceTable):
            declared = case.desired.tables["lake"][step.change.ident]
            may = "replace_table" in {*declared.allow, *case.options.allow}
            assert may or step.verdict == "blocked"
            assert step.risk == "destructive"
            assert "grants" in step.reason
        elif isinstance(step.change, UpdateTable) and step.verdict == "allowed":
            assert not step.change.set
            assert not step.change.unset


@pytest.mark.slow
@given(cases(kinds=(UNITY_LIKE,)))
def test_a_stale_projection_alone_is_no_change(case: Case) -> None:
    """Apply what can be applied; what the next plan still calls stale has no step, and nothing is written for it."""
    case = replace(case, options=replace(case.options, allow=case.options.allow - {"replace_table"}))
    plan = planned(case)
    catalog = catalog_of(case)
    assume(plan.refused is None)
    apply_all(plan, catalog)
    before = state_of(catalog)
    try:
        again = plan_on(case, catalog)
    except PlanError:
        return
    apply_all(again, catalog)
    stale = {*again.catalogs["lake"].projection_stale}
    assert not stale & {s.change.ident for s in again.steps if isinstance(s.change, (ReplaceTable, SyncColumns))}
    assert all(state_of(catalog)[k] == v for k, v in before.items() if k[1] in stale)


@given(cases(kinds=SERVICES))
def test_the_dataset_is_as_declared_before_the_entry_shows_it(case: Case) -> None:
    """Nothing follows a projection on its table but a delete under an old name, and it needs what came before."""
    plan = planned(case)
    shown: set[tuple[str, ...]] = set()
    last: dict[tuple[str, ...], str] = {}
    for step in allowed(plan):
        ident = step.change.ident
        if step.change.kind == "Table" and not isinstance(step.change, DELETES):
            assert ident not in shown
            if isinstance(step.change, (SyncColumns, ReplaceTable)):
                assert ident not in last or last[ident] in step.needs
                shown.add(ident)
            last[ident] = step.id


@given(cases(kinds=SERVICES))
def test_no_table_of_others_gets_other_columns(case: Case) -> None:
    plan = planned(case)
    before = {i: f.state.columns for i, f in case.live.tables.items() if isinstance(f, Present)}
    taken = {s.change.ident for s in plan.steps if s.action == "adopt"}
    for step in plan.steps:
        if isinstance(step.change, SyncColumns) and step.change.ident in before:
            found = case.live.tables[step.change.ident]
            assert isinstance(found, Present)
            assert found.state.marks.owner == case.management.owner or step.change.ident in taken


@given(cases(kinds=(REST_LIKE,)))
def test_properties_that_cannot_change_are_said_and_not_tried(case: Case) -> None:
    plan = planned(case)
    for step in plan.steps:
        if isinstance(step.change, (UpdateTable, UpdateNamespace)) and (step.change.set or step.change.unset):
            assert step.verdict != "allowed"
            assert step.verdict == "blocked" or "cannot" in step.reason


@given(cases(kinds=(REST_LIKE, UNITY_LIKE)))
def test_protection_does_not_wait_for_properties(case: Case) -> None:
    case = replace(case, options=replace(case.options, targets=()))
    plan = planned(case)
    word = f"{ALLOW}replace_table"
    blocked = {s.change.ident for s in plan.steps if s.verdict == "blocked" and s.blocked_by != word}
    gone = {s.change.ident for s in plan.steps if s.deletes}
    for ident, state in ended(case, plan).items():
        want = case.desired.tables["lake"].get(ident)
        if want is None or want.absent or ident in blocked or ident in gone:
            continue
        if want.location is not None and state.location != want.location:
            continue  # A contradiction about the location stops every step of the table.
        if want.protect is not None and state.marks.owner == case.management.owner:
            assert state.marks.protect == want.protect


@given(cases(kinds=(REST_LIKE, UNITY_LIKE)))
def test_we_never_note_a_key_as_ours_that_others_set(case: Case) -> None:
    """Otherwise a manifest that drops the key later would take away what somebody else wrote."""
    plan = planned(case)
    for ident, state in ended(case, plan).items():
        found = case.live.tables.get(ident)
        want = case.desired.tables["lake"].get(ident)
        if want is None or not isinstance(found, Present) or found.state.marks.owner == case.management.owner:
            continue
        if state.marks.owner == case.management.owner:
            assert all(state.properties.get(k) == want.properties.get(k) for k in state.marks.applied)


@given(cases(kinds=(GLUE_LIKE,)))
def test_a_drop_that_could_cascade_needs_its_word(case: Case) -> None:
    for step in planned(case).steps:
        if isinstance(step.change, DropNamespace) and step.verdict == "allowed":
            declared = case.desired.namespaces["lake"].get(step.change.ident)
            words = {*case.options.allow, *(declared.allow if declared is not None else ())}
            assert "drop_namespace" in words


@given(cases(kinds=SERVICES))
def test_a_new_table_goes_where_the_plan_says(case: Case) -> None:
    plan = planned(case)
    for step in plan.steps:
        change = step.change
        if isinstance(change, DeclareTable) and step.expect.state == "absent" and step.verdict == "allowed":
            want = case.desired.tables["lake"][change.ident]
            chooses = case.capabilities.chooses_location
            assert change.location == (place_in(case.capabilities, change.ident, want) if chooses else None)
