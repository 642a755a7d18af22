"""When a table is filled from its source, and when the step is held back instead of guessed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.memory import MemoryCapabilities, MemoryCatalog, place
from reconciler.core.options import PlanOptions
from reconciler.core.planner import make_plan, scope_of
from reconciler.core.simulate import World
from reconciler.engine.observe import observe
from reconciler.model.arrow import Field, parse_type
from reconciler.model.change import MaterializeTable
from reconciler.model.data import DataRecord, DataSpec, ExternalRows, SourceState
from reconciler.model.desired import CatalogSpec, Desired, DesiredTable, Management
from reconciler.model.diagnostic import Source
from reconciler.model.observed import Present, Snapshot
from reconciler.model.plan import DATA_PLANE_MISSING, Plan, Step
from reconciler.model.plan_json import plan_from_json, plan_to_json
from reconciler.model.state import DatasetState, Index, Marks, TableState

HERE = Source("here.yaml")
IDENT = ("t",)
FIELDS = (Field("id", parse_type("int64")), Field("text", parse_type("string")))
FILES = {"path-a": "stamp-a", "path-b": "stamp-b"}
NAMES = {"path-a": "a.parquet", "path-b": "b.parquet"}
SOURCE = SourceState("sha256:ab", FILES, NAMES, "2 files, 1 kB")
LOADED = DataRecord("sha256:ab", FILES)
READY = PlanOptions(data_plane=None)


def spec(mode: Any, **more: Any) -> DataSpec:
    return DataSpec({"format": "parquet", "path": "raw"}, mode, **more)


def planned(
    mode: str,
    record: DataRecord | None = None,
    source: SourceState = SOURCE,
    options: PlanOptions = READY,
    absent: bool = False,
    **more: Any,
) -> Plan:
    """`more`: of the live dataset, or `want` for the manifest."""
    wanted = more.pop("want", {})
    want = DesiredTable("lake", IDENT, HERE, fields=FIELDS, data=spec(mode), **wanted)
    desired = Desired(
        {"lake": CatalogSpec("lake", "memory", {}, Management("us"), HERE)}, {"lake": {}}, {"lake": {IDENT: want}}
    )
    fields = more.pop("fields", FIELDS)
    dataset = DatasetState(fields, owner="us", data=record, empty=more.pop("empty", record is None), **more)
    live = {} if absent else {IDENT: Present(TableState(place(IDENT), {}, Marks("us"), dataset))}
    catalog = MemoryCatalog(World(Snapshot({}, live), place))
    snapshot = replace(observe(catalog, scope_of(desired, "lake")), sources={IDENT: source})
    return make_plan(desired, {"lake": snapshot}, {"lake": MemoryCapabilities()}, options)


def fill(plan: Plan) -> Step | None:
    return next((s for s in plan.steps if isinstance(s.change, MaterializeTable)), None)


def change(plan: Plan) -> MaterializeTable:
    step = fill(plan)
    assert step is not None
    assert step.verdict == "allowed", step.reason
    assert isinstance(step.change, MaterializeTable)
    return step.change


def held(plan: Plan) -> Step:
    step = fill(plan)
    assert step is not None
    assert step.verdict == "blocked"
    return step


def test_a_new_table_is_made_then_filled_then_indexed() -> None:
    plan = planned("once", absent=True, want={"indexes": (Index("id_idx", "id", "btree"),)})
    assert [s.action for s in plan.steps] == ["declare_table", "create_dataset", "materialize_table", "create_index"]
    step = fill(plan)
    assert step is not None
    assert (step.plane, step.risk, step.needs) == ("data", "safe", ("s2",))


@pytest.mark.parametrize("mode", ["once", "append", "replace-if-changed"])
def test_an_empty_table_is_filled_and_a_filled_one_left(mode: str) -> None:
    assert change(planned(mode)).files == FILES
    assert fill(planned(mode, LOADED)) is None


def test_another_source_is_loaded_again_only_where_that_is_asked_for() -> None:
    new = SourceState("sha256:abc", {**FILES, "path-c": "stamp-c"}, {**NAMES, "path-c": "c.parquet"}, "3 files")
    assert fill(planned("once", LOADED, new)) is None
    appended = change(planned("append", LOADED, new))
    assert (appended.files, appended.replace) == ({"path-c": "stamp-c"}, False)
    replaced = planned("replace-if-changed", LOADED, new, empty=False)
    assert (change(replaced).files, change(replaced).replace) == (new.files, True)
    step = fill(replaced)
    assert step is not None
    assert step.risk == "rewrite"


def test_files_that_are_gone_do_not_matter_to_append() -> None:
    less = SourceState("sha256:a", {"path-a": "stamp-a"}, NAMES, "1 file")
    assert fill(planned("append", LOADED, less)) is None
    assert change(planned("replace-if-changed", LOADED, less)).files == less.files


CHANGED = replace(SOURCE, digest="sha256:x", files={**FILES, "path-a": "stamp-z"})
COPIED = replace(SOURCE, files={**FILES, "path-x": "stamp-a"}, names={**NAMES, "path-x": "x.parquet"})
BOTH = replace(CHANGED, files={**CHANGED.files, **COPIED.files, "path-a": "stamp-z", "path-c": "stamp-c"})


@pytest.mark.parametrize(("source", "named"), [(CHANGED, "a.parquet"), (COPIED, "x.parquet")])
def test_a_file_that_may_be_in_is_neither_taken_nor_skipped_unasked(source: SourceState, named: str) -> None:
    made = planned("append", LOADED, source)
    step = held(made)
    assert step.blocked_by == "allow:skip_files"
    for said in (named, "`skip_files` counts them as in", "`add_files` adds their rows"):
        assert said in step.reason
    assert plan_from_json(plan_to_json(made)) == made


@pytest.mark.parametrize("source", [CHANGED, COPIED, BOTH])
def test_a_word_says_what_such_a_file_is(source: SourceState) -> None:
    def with_word(word: str) -> MaterializeTable:
        return change(planned("append", LOADED, source, replace(READY, allow=frozenset({word}))))

    asked = {path: stamp for path, stamp in source.files.items() if path != "path-c" and FILES.get(path) != stamp}
    new = {"path-c": "stamp-c"} if source is BOTH else {}
    skipped, added = with_word("skip_files"), with_word("add_files")
    assert (skipped.files, skipped.known, skipped.only_notes) == (new, asked, not new)
    assert (added.files, added.known, added.only_notes) == ({**new, **asked}, {}, False)
    assert LOADED.digest not in (skipped.digest, added.digest), "another run of the step is told from none"
    for word in ("skip_files", "add_files"):
        made = planned("append", LOADED, source, replace(READY, allow=frozenset({word})))
        assert plan_from_json(plan_to_json(made)) == made
    both = planned("append", LOADED, source, replace(READY, allow=frozenset({"skip_files", "add_files"})))
    assert held(both).blocked_by == "data_unaccounted"
    for mode in ("once", "replace-if-changed"):
        step = fill(planned(mode, LOADED, source, empty=False))
        assert step is None or step.verdict == "allowed", "it is asked for in mode append alone"


@pytest.mark.parametrize("mode", ["once", "append"])
def test_rows_of_unknown_origin_are_not_added_to(mode: str) -> None:
    assert held(planned(mode, empty=False)).blocked_by == "data_unaccounted"


def test_rows_of_unknown_origin_are_replaced_only_when_allowed() -> None:
    step = held(planned("replace-if-changed", empty=False))
    assert (step.blocked_by, step.risk) == ("allow:purge_data", "destructive")
    allowed = planned("replace-if-changed", empty=False, options=replace(READY, allow=frozenset({"purge_data"})))
    assert change(allowed).replace


ADDED = ExternalRows("version 7 (Append, not by this tool) added 4 rows", 7, changed=False)
GONE = ExternalRows("version 7 (Overwrite, not by this tool) replaced all rows", 7, gone=True)
UNTOLD = ExternalRows("no history", 7, seen=False)
MORE = SourceState("sha256:abc", {**FILES, "path-c": "stamp-c"}, {**NAMES, "path-c": "c.parquet"}, "3 files")
APPEND, REPLACE = "append", "replace-if-changed"


def over(mode: str, external: ExternalRows, source: SourceState = SOURCE, allow: str = "") -> Plan:
    options = replace(READY, allow=frozenset(allow.split()))
    return planned(mode, replace(LOADED, external=external), source, options, empty=False)


@pytest.mark.parametrize("source", [SOURCE, MORE])
@pytest.mark.parametrize(
    ("mode", "external", "word"),
    [
        (APPEND, ADDED, "mix_rows"), (APPEND, GONE, "purge_data"), (REPLACE, ADDED, "purge_data"),
        (REPLACE, GONE, "purge_data"),
    ],
)  # fmt: skip
def test_what_others_did_to_the_rows_is_told_also_when_nothing_else_is_to_do(
    mode: str, external: ExternalRows, word: str, source: SourceState
) -> None:
    step = held(over(mode, external, source))
    assert (step.blocked_by, step.risk) == (f"allow:{word}", "destructive")
    assert step.reason.startswith(f"needs `{word}`: ")
    assert external.reason in step.reason
    assert ("the rows of 2 files are no longer there" in step.reason) == external.gone
    assert plan_from_json(plan_to_json(over(mode, external, source))) == over(mode, external, source)


@pytest.mark.parametrize("external", [ADDED, GONE])
def test_a_word_leaves_their_rows_beside_the_new_ones(external: ExternalRows) -> None:
    assert fill(over(APPEND, external, allow="mix_rows")) is None
    added = change(over(APPEND, external, MORE, "mix_rows purge_data"))
    assert (added.replace, added.mixes, added.purges, added.files) == (False, True, None, {"path-c": "stamp-c"})
    assert held(over(REPLACE, external, MORE, "mix_rows")).blocked_by == "allow:purge_data"


@pytest.mark.parametrize("mode", [APPEND, REPLACE])
@pytest.mark.parametrize("external", [ADDED, GONE])
@pytest.mark.parametrize("source", [SOURCE, MORE])
def test_a_word_replaces_what_the_plan_saw(mode: str, external: ExternalRows, source: SourceState) -> None:
    made = over(mode, external, source, "purge_data")
    again = change(made)
    assert (again.replace, again.mixes, again.purges, again.files) == (True, False, 7, source.files)
    assert plan_from_json(plan_to_json(made)) == made
    step = fill(made)
    assert step is not None
    assert step.expect.fingerprint not in (None, "")
    assert step.risk == "destructive"


def test_rows_that_could_not_be_written_again_are_not_replaced() -> None:
    less = SourceState("sha256:a", {"path-a": "stamp-a"}, NAMES, "1 file")
    step = held(over(APPEND, ADDED, less, "purge_data"))
    assert step.blocked_by == "data_unaccounted"
    assert "no longer has 1 file" in step.reason
    assert change(over(APPEND, GONE, less, "purge_data")).files == less.files, "they are gone already"


def test_without_proof_only_what_is_new_is_blocked() -> None:
    for mode, word in ((APPEND, "mix_rows"), (REPLACE, "purge_data")):
        assert fill(over(mode, UNTOLD)) is None
        assert held(over(mode, UNTOLD, MORE)).blocked_by == f"allow:{word}"
        assert change(over(mode, UNTOLD, MORE, word))


@pytest.mark.parametrize("external", [ADDED, GONE, UNTOLD])
def test_a_table_that_is_filled_once_stays_so(external: ExternalRows) -> None:
    assert fill(over("once", external, MORE)) is None


@pytest.mark.parametrize("mode", ["once", "append", "replace-if-changed"])
def test_a_lost_ledger_holds_everything_back(mode: str) -> None:
    step = held(planned(mode, DataRecord("", lost=True)))
    assert step.blocked_by == "data_unaccounted"
    assert "cleaned up" in step.reason


@pytest.mark.parametrize("mode", ["once", "append", "replace-if-changed"])
def test_rows_that_were_not_noted_are_noted_and_not_loaded_again(mode: str) -> None:
    other = replace(SOURCE, digest="sha256:other")
    again = change(planned(mode, replace(LOADED, noted=False), other))
    assert (again.digest, again.files, again.replace) == (LOADED.digest, {}, False)
    later = [s for s in planned(mode, replace(LOADED, noted=False), other).steps if s.change != again]
    assert [s.action for s in later] == (["materialize_table"] if mode == "replace-if-changed" else [])


def test_append_after_a_source_without_files_is_not_guessed() -> None:
    assert held(planned("append", DataRecord("sha256:token"))).blocked_by == "data_unaccounted"


def test_a_source_that_cannot_be_read_holds_back_this_step_alone() -> None:
    plan = planned("once", source=SourceState(problem="no such folder"), absent=True)
    assert [(s.action, s.verdict) for s in plan.steps] == [
        ("declare_table", "allowed"), ("create_dataset", "allowed"), ("materialize_table", "blocked"),
    ]  # fmt: skip
    assert held(plan).blocked_by == "source"


def test_columns_come_first() -> None:
    live = (Field("id", parse_type("int64")),)
    plan = planned("once", fields=live)
    assert [s.action for s in plan.steps] == ["add_columns", "materialize_table"]
    narrower = (Field("id", parse_type("int64")), Field("text", parse_type("int64")))
    waiting = planned("once", fields=narrower, options=PlanOptions(data_plane=None), indexes=())
    assert [s.action for s in waiting.steps] == ["alter_columns", "materialize_table"]


def test_without_spark_it_is_shown_and_does_not_run() -> None:
    plan = planned("once", options=PlanOptions(data_plane="no Java here"))
    step = held(plan)
    assert step.blocked_by == DATA_PLANE_MISSING
    assert "no Java here" in step.reason


def test_the_plan_survives_json() -> None:
    plan = planned("append")
    assert plan_from_json(plan_to_json(plan)) == plan
