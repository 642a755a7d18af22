"""A plan file whose id is right and whose steps are no plan: it is refused as a whole, and nothing is `applied`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_runs import catalog, namespace, reconciler, table, write

from reconciler.model.codec import canonical

Steps = list[dict[str, Any]]


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A plan that makes a namespace with a table, changes two tables, and drops two namespaces, one in the other."""
    folder = tmp_path_factory.mktemp("planned")
    both = "[{name: id, type: int64}, {name: n, type: int8}]"
    write(folder, catalog(), namespace("old"), namespace("old", "inner"), table("kept"), table("loses", schema=both))
    assert reconciler(folder, "apply", "m.yaml", "--yes").code == 0
    absent = "{state: absent}"
    write(
        folder, catalog(), namespace("old", spec=absent), namespace("old", "inner", spec=absent),
        namespace("new"), table("new", "t"), namespace("other"),
        table("kept", schema="[{name: id, type: int64}, {name: n, type: int8}]", spec="properties: {a: b}"),
        table("loses", spec="allow: [drop_column]"),
    )  # fmt: skip
    assert reconciler(folder, "plan", "m.yaml", "-o", "good.json").code == 0
    return folder, json.loads((folder / "good.json").read_text())


def forged(steps: Steps, changed: Callable[[Steps], object]) -> Steps:
    steps = json.loads(json.dumps(steps))
    changed(steps)
    return steps


def of(steps: Steps, action: str, name: str) -> dict[str, Any]:
    return next(s for s in steps if s["action"] == action and s["object"]["id"][-1] == name)


def swap(steps: Steps, one: dict[str, Any], two: dict[str, Any]) -> None:
    i, j = steps.index(one), steps.index(two)
    steps[i], steps[j] = {**two, "needs": []}, {**one, "needs": []}


FORGERIES: dict[str, tuple[Callable[[Steps], object], str]] = {
    "unknown need": (lambda s: s[0]["needs"].append("s99"), "needs s99, which is no step of it"),
    "need of itself": (lambda s: s[0]["needs"].append(s[0]["id"]), "which does not come before it"),
    "circle": (lambda s: s[0]["needs"].append(s[1]["id"]), "which does not come before it"),
    "blocked step in a circle": (
        lambda s: s[0].update(verdict="blocked", blocked_by="adopt", needs=[s[1]["id"]]), "does not come before it",
    ),
    "two of one id": (lambda s: s[1].update(id=s[0]["id"], needs=[]), "two steps have the id"),
    "an id that is a path": (lambda s: s[-1].update(id="../../x"), "'../../x' is no id of a step"),
    "no id": (lambda s: s[-1].update(id=""), "'' is no id of a step"),
    "no name": (lambda s: of(s, "create_namespace", "other")["object"].update(id=[]), "an object without a name"),
    "an empty name": (lambda s: of(s, "create_namespace", "other")["object"].update(id=[""]), "without a name"),
    "delete first": (lambda s: s.insert(0, {**s.pop(), "needs": []}), "deletes come last"),
    "child before parent": (
        lambda s: swap(s, of(s, "create_namespace", "new"), of(s, "declare_table", "t")), "comes after",
    ),
    "parent dropped first": (
        lambda s: swap(s, of(s, "drop_namespace", "inner"), of(s, "drop_namespace", "old")), "comes after",
    ),
    "data before its table": (
        lambda s: swap(s, of(s, "declare_table", "t"), of(s, "create_dataset", "t")), "does not start from what",
    ),
    "columns before properties": (
        lambda s: swap(s, of(s, "update_table", "kept"), of(s, "add_columns", "kept")), "does not start from what",
    ),
    "no first step": (lambda s: s.remove(of(s, "update_table", "kept")), ", which is no step of it"),
    "a drop that is safe": (
        lambda s: of(s, "drop_columns", "loses").update(risk="safe"), "and is destructive at the least",
    ),
    "a drop of a namespace that is safe": (
        lambda s: of(s, "drop_namespace", "old").update(risk="metadata"), "and is destructive at the least",
    ),
    "no such verdict": (lambda s: s[0].update(verdict="maybe"), "which is none"),
    "no such risk": (lambda s: s[0].update(risk="none"), "which is none"),
    "blocked by nothing": (lambda s: s[-1].update(verdict="blocked"), "nothing says by what"),
    "allowed and blocked": (lambda s: s[-1].update(blocked_by="adopt"), "is allowed, and blocked by adopt"),
    "a need of what will not run": (
        lambda s: of(s, "create_namespace", "new").update(verdict="blocked", blocked_by="adopt"), "which will not run",
    ),
    "another plane": (lambda s: s[0].update(plane="data"), "plane of "),
    "another catalog": (lambda s: s[-1].update(catalog="sea"), "which it does not describe"),
    "a step that is not counted": (lambda s: s.remove(of(s, "create_namespace", "other")), "counts other steps"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_plan_is_refused(planned: tuple[Path, dict[str, Any]], name: str) -> None:
    folder, plan = planned
    change, problem = FORGERIES[name]
    plan = {**plan, "steps": forged(plan["steps"], change)}
    rest = {k: v for k, v in plan.items() if k != "plan_id"}
    plan["plan_id"] = "sha256:" + hashlib.sha256(canonical(rest).encode()).hexdigest()
    (folder / "forged.json").write_text(json.dumps(plan))
    before = sorted(folder.joinpath("lake").rglob("*"))
    for arguments in (("apply", "--yes", "--plan"), ("show",)):
        run = reconciler(folder, *arguments, "forged.json")
        assert run.code == 1, run
        assert "the plan is malformed: " in run.err
        assert problem in run.err
    assert sorted(folder.joinpath("lake").rglob("*")) == before


def test_a_key_that_is_there_twice(planned: tuple[Path, dict[str, Any]]) -> None:
    """Of two lists of steps one reader shows the first, and another one runs the last."""
    folder, plan = planned
    text = json.dumps(plan).replace('"steps":', '"steps": [], "steps":', 1)
    (folder / "twice.json").write_text(text)
    for arguments in (("apply", "--yes", "--plan"), ("show",)):
        run = reconciler(folder, *arguments, "twice.json")
        assert run.code == 1, run
        assert "an object has the key 'steps' twice" in run.err
