"""`import` on every backend: the next plan is empty, adoption makes it ours, a second import has nothing to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from contract.lake import Lake, steps, table
from contract.sample import FOREIGN, FOREIGN_ROWS
from reconciler.app_import import ImportRequest, import_catalogs
from reconciler.model.desired import Desired
from reconciler.model.file_change import FileChange
from reconciler.session import Session


class Here(Session):
    """A session whose catalog is the one of the test."""

    lake: Lake

    def connect(self, spec: Any) -> Any:
        self.specs[spec.name] = spec
        self.catalogs[spec.name] = self.lake.site.open()
        return self.catalogs[spec.name]


def imported(lake: Lake) -> Sequence[FileChange]:
    file = lake.folder / "catalog-only.yaml"
    spec = {**lake.site.options, "management": lake.management}
    document = {"apiVersion": "reconciler.lance/v1", "kind": "Catalog", "metadata": {"name": "lake"}, "spec": spec}
    file.write_text(yaml.safe_dump(document))
    session = Here()
    session.lake = lake
    return import_catalogs(ImportRequest((str(file),), lake.folder / "live"), session).changes


def declared(lake: Lake) -> Desired:
    loaded = lake.read(Path(lake.folder / "live"))
    assert [d for d in loaded.diagnostics if d.severity == "error"] == []
    return loaded.desired


def test_import_adopt_and_import_again(lake: Lake) -> None:
    lake.make_home()
    lake.outsider.create_table(lake.t("theirs"), FOREIGN, FOREIGN_ROWS)
    lake.reach([table(lake.t("ours"), {"id": "int64"}, config={"k": "v"}, **lake.with_properties(a="1"))])
    assert imported(lake)
    plan = lake.plan_desired(declared(lake))
    assert (steps(plan), plan.orphans) == ([], ())
    assert lake.t("theirs") in {k.ident for k in plan.unowned}

    adopting = lake.plan_desired(declared(lake), adopt=True)
    assert {action for action, _ in steps(adopting)} == {"adopt"}
    assert lake.apply(adopting, applied_by='{"at":"1"}').outcome == "applied"
    after = lake.plan_desired(declared(lake))
    assert (steps(after), after.unowned) == ([], ())
    assert imported(lake) == []

    lake.outsider.create_table(lake.t("new"), FOREIGN)
    lake.outsider.set_config(lake.t("ours"), {"k": "other", "added": "1"})
    if lake.has_properties and lake.changes_tables:
        lake.outsider.set_properties("Table", lake.t("ours"), {"theirs": "x"})
    (change,) = imported(lake)
    assert change.before is not None
    assert change.after.count("kind: Table") == change.before.count("kind: Table") + 1
    assert "reconciler." not in change.after.replace("reconciler.lance/v1", "")
    again = lake.plan_desired(declared(lake))
    assert (steps(again), again.orphans) == ([], ())
    assert {k.ident for k in again.unowned} == {lake.t("new")}
    assert imported(lake) == []


def test_what_others_took_away_is_left_to_them(lake: Lake) -> None:
    """The plan is empty; and when they set it again, it stays: neither by the manifest nor by our record is it ours."""
    lake.make_home()
    ident, changes = lake.t("ours"), lake.has_properties and lake.changes_tables
    lake.reach([table(ident, {"id": "int64"}, config={"k": "v", "kept": "1"}, **lake.with_properties(a="1", b="2"))])
    lake.outsider.set_config(ident, {"k": None})
    if changes:
        lake.outsider.set_properties("Table", ident, {"a": None})
    assert imported(lake)
    left = ("config.k", "properties.a") if changes else ("config.k",)
    assert declared(lake).tables["lake"][ident].ignore_differences == left
    assert steps(lake.plan_desired(declared(lake))) == []
    assert imported(lake) == []

    lake.outsider.set_config(ident, {"k": "theirs"})
    if changes:
        lake.outsider.set_properties("Table", ident, {"a": "theirs"})
    assert lake.apply(lake.plan_desired(declared(lake))).outcome == "applied"  # It goes off our record.
    assert imported(lake) == []
    (file,) = [f for f in (lake.folder / "live").rglob("*.yaml") if "ignoreDifferences" in f.read_text()]
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if "ignoreDifferences" not in line))
    assert steps(lake.plan_desired(declared(lake))) == []
    view = lake.outsider.state().tables[ident]
    assert view.config["k"] == "theirs"
    assert not changes or view.properties["a"] == "theirs"
