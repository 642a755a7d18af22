"""A table that is in the catalog no more and whose data is gone, where a record of ours says that it was: an empty
table under its name would hide that, so it takes an allow word."""

from __future__ import annotations

import sys
from pathlib import Path

import lance_namespace as ln
import pytest
import yaml

from contract.backends import Backend, LocalDir, Service
from contract.lake import US, Doc, Lake, _document, held_back, steps, table
from contract.outsider_dir import DirOutsider
from contract.outsider_rest import RestOutsider
from contract.sample import FOREIGN, FOREIGN_ROWS

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from cli_runs import check_schema, reconciler

COLUMNS = {f.name: str(f.type) for f in FOREIGN}


def lost(lake: Lake) -> list[Doc]:
    """A table that was somebody's, became ours and has rows; entry and data are gone, our record is not. A root table
    of a directory has that record as long as it is declared, all others from when we take them out of the catalog."""
    lake.make_home()
    lake.outsider.create_table(lake.t("t"), FOREIGN, FOREIGN_ROWS)
    docs = [table(lake.t("t"), COLUMNS)]
    lake.apply(lake.plan(docs, adopt=True))
    lake.outsider.data_of(lake.t("t"))
    if isinstance(lake.outsider, DirOutsider) and not lake.at:
        lake.outsider.client.drop_table(ln.DropTableRequest(id=["t"]))
    else:
        lake.reach([table(lake.t("t"), state="absent")])
        lake.outsider.lose(lake.t("t"))
    return docs


def test_what_existed_is_not_created_empty_in_silence(stored: Lake) -> None:
    docs = lost(stored)
    plan = stored.plan(docs)
    assert held_back(plan) == [("declare_table", stored.t("t"), "blocked", "allow:recreate")]
    assert "it existed at " in plan.steps[0].reason
    assert "its data is gone; it would be created empty" in plan.steps[0].reason
    assert stored.unchanged_by(lambda: stored.apply(plan)).outcome == "refused"


def test_with_the_word_it_is_created_empty_and_then_is_a_table_like_others(stored: Lake) -> None:
    lost(stored)
    docs = [table(stored.t("t"), COLUMNS, allow=["recreate"])]
    assert steps(stored.plan(docs)) == [("declare_table", stored.t("t")), ("create_dataset", stored.t("t"))]
    stored.reach(docs)
    stored.reach([table(stored.t("t"), COLUMNS)])
    assert stored.outsider.state().tables[stored.t("t")].rows == []


def test_one_that_never_had_data_needs_no_word(stored: Lake) -> None:
    """Nothing is lost: it was declared, and removed before anybody wrote to it."""
    docs = [*stored.home(), table(stored.t("t"))]
    stored.reach(docs)
    stored.reach([*stored.home(), table(stored.t("t"), state="absent")])
    stored.reach([*stored.home(), table(stored.t("t"), COLUMNS)])


def test_data_that_was_kept_is_attached_without_the_word(stored: Lake) -> None:
    docs = [*stored.home(), table(stored.t("t"), COLUMNS)]
    stored.reach(docs)
    stored.reach([*stored.home(), table(stored.t("t"), state="absent")])
    stored.reach(docs)


def test_it_is_drift_and_shown_in_every_form(stored: Lake) -> None:
    docs = lost(stored)
    catalog = _document("Catalog", {"name": "lake"}, {**stored.site.options, "management": stored.management})
    (stored.folder / "all.yaml").write_text(yaml.safe_dump_all([catalog, *docs]))
    run = reconciler(stored.folder, "plan", "all.yaml", "--detailed-exitcode", "--format", "json", "-o", "p.json")
    assert run.code == 2, run.err
    check_schema("plan", run.json)
    (step,) = run.json["steps"]
    assert (step["verdict"], step["blocked_by"]) == ("blocked", "allow:recreate")
    assert reconciler(stored.folder, "drift", "all.yaml").code == 2
    for form in ("text", "markdown", "html"):
        shown = reconciler(stored.folder, "show", "p.json", "--format", form).out
        assert "its data is gone" in shown, form
    assert reconciler(stored.folder, "apply", "all.yaml", "--yes").code == 3
    assert reconciler(stored.folder, "apply", "all.yaml", "--yes", "--allow", "recreate").code == 0
    assert reconciler(stored.folder, "drift", "all.yaml").code == 0


V1 = Backend("dir-v1", LocalDir({"manifest_enabled": "false"}), home=())
LAYOUTS = [V1, Backend("dir-default-root", LocalDir(), home=())]


@pytest.mark.slow
def test_a_table_that_was_dropped_with_the_servers_own_client(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """We have a record of each table whose marks changed after it was made: the protocol cannot change properties."""
    rest = Backend("rest", Service("outsider_rest:rest_site"))
    lake = Lake(rest, rest.make(tmp_path, request.getfixturevalue), tmp_path)
    assert isinstance(lake.outsider, RestOutsider)
    lake.reach([*lake.home(), table(("n", "t"), COLUMNS), table(("n", "u"), COLUMNS)])
    docs = [*lake.home(), table(("n", "t"), COLUMNS, protect=True), table(("n", "u"), COLUMNS)]
    lake.reach(docs)
    for name in "tu":
        lake.outsider.client.drop_table(ln.DropTableRequest(id=["n", name]))
    assert held_back(lake.plan(docs)) == [("declare_table", ("n", "t"), "blocked", "allow:recreate")]
    lake.reach(docs, allow=frozenset({"recreate"}))
    lake.reach(docs)


@pytest.mark.parametrize("backend", LAYOUTS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("how", ["pylance", "folder removed"])
def test_a_root_table_that_was_dropped_with_another_tool(backend: Backend, how: str, tmp_path: Path) -> None:
    lake = Lake(backend, backend.make(tmp_path, pytest.fail), tmp_path)
    assert isinstance(lake.outsider, DirOutsider)
    docs = [table(("t",), COLUMNS)]
    lake.reach(docs)
    if how == "pylance":
        lake.outsider.client.drop_table(ln.DropTableRequest(id=["t"]))
    else:
        lake.outsider.lose(("t",))
    plan = lake.plan(docs)
    stands = how == "folder removed" and backend is not V1  # The entry in `__manifest`.
    action = "create_dataset" if stands else "declare_table"
    assert held_back(plan) == [(action, ("t",), "blocked", "allow:recreate")]
    if stands:  # To take it out of the catalog and declare it again needs no word.
        other = lake.copy()
        other.reach([table(("t",), state="absent")])
        other.reach(docs)
    lake.reach(docs, allow=frozenset({"recreate"}))
    assert lake.outsider.state().tables[("t",)].owner == US
    lake.reach(docs)


@pytest.mark.parametrize("backend", LAYOUTS, ids=lambda backend: backend.name)
def test_the_record_of_another_owner_is_theirs_to_settle(backend: Backend, tmp_path: Path) -> None:
    """Their record refuses our claim on the name, so the plan promises nothing, whatever is allowed."""
    lake = Lake(backend, backend.make(tmp_path, pytest.fail), tmp_path)
    assert isinstance(lake.outsider, DirOutsider)
    docs = [table(("t",), COLUMNS)]
    lake.management = {"owner": "another-team"}
    lake.reach(docs)
    lake.outsider.client.drop_table(ln.DropTableRequest(id=["t"]))
    lake.management = {"owner": US}
    for options in ({}, {"allow": frozenset({"recreate"}), "take_over": frozenset({"another-team"}), "adopt": True}):
        plan = lake.plan(docs, **options)
        assert {held[2:] for held in held_back(plan)} == {("unsupported", None)}
        assert "another-team owned it" in plan.steps[0].reason
        assert "/__reconciler/tables/t.json" in plan.steps[0].reason
        lake.unchanged_by(lambda plan=plan: lake.apply(plan))
