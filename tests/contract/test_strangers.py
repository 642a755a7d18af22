"""What a catalog service holds besides Lance tables: counted, never touched, never taken for anything else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from contract.lake import Lake, _document, held_back, namespace, table
from contract.outsider import Ident
from contract.outsider_service import ServiceOutsider

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from cli_runs import check_schema, reconciler

COLUMNS = {"id": "int64"}


def stranger(lake: Lake, ident: Ident) -> None:
    """Something of the service's own that is no Lance table."""
    assert isinstance(lake.outsider, ServiceOutsider)
    lake.outsider.foreign_table(ident)


def test_a_stranger_keeps_its_namespace(mixed: Lake) -> None:
    x = mixed.ns("x")
    mixed.reach([namespace(x)])
    stranger(mixed, (*x, "native"))
    plan = mixed.plan([namespace(x, state="absent")])
    assert held_back(plan) == [("drop_namespace", x, "blocked", "not_empty")]
    assert "native" in plan.steps[0].reason
    mixed.unchanged_by(lambda: mixed.apply(plan))


def test_a_stranger_that_comes_right_before_the_drop_keeps_its_namespace(mixed: Lake) -> None:
    x = mixed.ns("x")
    mixed.reach([namespace(x)])
    plan = mixed.plan([namespace(x, state="absent")])
    stranger(mixed, (*x, "native"))
    assert mixed.unchanged_by(lambda: mixed.apply(plan)).outcome == "stale"


@pytest.mark.parametrize("adopt", [False, True])
def test_a_stranger_is_never_taken_for_a_table_of_its_name(mixed: Lake, adopt: bool) -> None:
    mixed.make_home()
    stranger(mixed, mixed.t("native"))
    for docs in ([table(mixed.t("native"), COLUMNS)], [table(mixed.t("native"), state="absent")]):
        plan = mixed.plan(docs, adopt=adopt, prune=True)
        assert {s.verdict for s in plan.steps} == {"blocked"}
        mixed.unchanged_by(lambda plan=plan: mixed.apply(plan))


def test_a_stranger_is_in_nobodys_way(mixed: Lake) -> None:
    mixed.make_home()
    stranger(mixed, mixed.t("native"))
    mixed.reach([table(mixed.t("t"), COLUMNS)], prune=True)
    mixed.reach([table(mixed.t("t"), state="absent")], prune=True)


def test_strangers_are_counted_apart_and_left_out_of_an_import_with_one_line(mixed: Lake) -> None:
    """There may be thousands: no warning and no comment for each."""
    docs = [*mixed.home(), table(mixed.t("ours"), COLUMNS)]
    mixed.reach(docs)
    for name in ("one", "two"):
        stranger(mixed, mixed.t(name))
    catalog = _document("Catalog", {"name": "lake"}, {**mixed.site.options, "management": mixed.management})
    (mixed.folder / "c.yaml").write_text(yaml.safe_dump(catalog))
    (mixed.folder / "d.yaml").write_text(yaml.safe_dump_all(docs))
    made = reconciler(mixed.folder, "plan", "c.yaml", "d.yaml", "--format", "json").json
    check_schema("plan", made)
    assert (made["catalogs"]["lake"]["tables"], made["catalogs"]["lake"]["other_tables"]) == (1, 2)
    shown = reconciler(mixed.folder, "status", "c.yaml", "d.yaml")
    assert "1 Lance table, 2 of other formats" in shown.out
    live = reconciler(mixed.folder, "status", "c.yaml", "d.yaml", "--format", "json").json["catalogs"]["lake"]["live"]
    assert (live["tables"], live["other_tables"]) == (1, 2)
    done = reconciler(mixed.folder, "import", "c.yaml", "-o", "out")
    assert done.code == 0, done.err
    assert done.err.count("of other formats") == 1
    assert "note: catalog lake: 2 tables of other formats left out" in done.err
    assert not any("one" in line or "two" in line for line in done.err.splitlines() if line.startswith("warning"))
    files = "".join(f.read_text() for f in (mixed.folder / "out").rglob("*.yaml"))
    assert "ours" in files
    assert "two" not in files
