"""Import where overlays and Defaults give a part of what an object is: each value is changed in the document that it
belongs to, other environments keep theirs, and what cannot be changed is told."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from reconciler.app_import import ImportRequest, import_catalogs
from reconciler.catalog.memory import MemoryCapabilities
from reconciler.core.options import PlanOptions
from reconciler.core.planner import make_plan
from reconciler.manifest.import_edits import edits_for
from reconciler.manifest.load import load
from reconciler.manifest.yaml_edit import CannotEdit
from reconciler.model.desired import Desired
from reconciler.model.observed import Present, Snapshot
from reconciler.model.plan import Step
from reconciler.model.reading import Reading
from reconciler.model.state import Index, Marks, NamespaceState

from . import test_reimport
from .layer_files import LAKE, documents, folder
from .test_reimport import Live, plain

DEFAULTS = """\
kind: Defaults
metadata: {catalog: lake}
spec:
  properties: {team: data, tier: gold}
  protect: true
"""
QUIET = ("not written again", "makes them ours", "outside overlays/", "with --env")
NAMESPACE = "kind: Namespace\nmetadata: {catalog: lake, id: [a]}\n"


def table(*columns: str, protect: bool = False, **more: Any) -> Present:
    """Nobody's: the plan has a step for it when something differs, and only then."""
    state = test_reimport.table(*columns, **more).state
    return Present(replace(state, marks=Marks(protect=protect)))


def spec(text: str, name: str = "t") -> str:
    return f"kind: Table\nmetadata: {{catalog: lake, id: [a, {name}]}}\nspec: {text}\n"


def lake(**tables: Present) -> Snapshot:
    return Snapshot({("a",): Present(NamespaceState({}, Marks("default")))}, {("a", n): t for n, t in tables.items()})


def run(m: Path, live: Snapshot, environment: str = "") -> tuple[list[str], list[str], int]:
    """The files that changed, what was said, and how much was left."""
    said: list[str] = []
    session = Live(said.append)
    session.snapshot = live
    done = import_catalogs(ImportRequest((str(m),), m, Reading(environment=environment)), session)
    told = [s.replace(f"{m}/", "") for s in said if not s.endswith(QUIET)]
    return [str(Path(c.path).relative_to(m)) for c in done.changes], told, done.left


def meant(m: Path, environment: str = "") -> Desired:
    found = load([str(m)], environment=environment, environ={})
    assert [d for d in found.diagnostics if d.severity == "error"] == []
    return found.desired


def planned(desired: Desired, live: Snapshot) -> tuple[Step, ...]:
    return make_plan(desired, {"lake": live}, {"lake": MemoryCapabilities()}, PlanOptions()).steps


def read(m: Path, name: str) -> str:
    return (m / name).read_text()


def test_the_column_of_the_overlay_is_changed_there(tmp_path: Path) -> None:
    base = documents(LAKE, NAMESPACE, spec("{schema: [{name: id, type: int64}, {name: email, type: string}]}"))
    columns = "{schema: [{name: email, type: string}, {name: score, type: int32}, {name: id, type: int64}]}  # of prod"
    m = folder(tmp_path, base=base, prod=documents(spec(columns)))
    live = lake(t=table("email:string", "score:int64", "id:int64"))
    assert run(m, live, "prod") == (["overlays/prod/patch.yaml"], [], 0)
    assert read(m, "base.yaml") == base
    expected = columns.replace("score, type: int32", "score, type: int64")
    assert read(m, "overlays/prod/patch.yaml") == documents(spec(expected))
    assert run(m, live, "prod") == ([], [], 0)


def test_values_of_the_base_get_one_of_their_own_in_the_overlay(tmp_path: Path) -> None:
    one = "{description: x, properties: {keep: a, other: b, gone: c}, schema: [{name: id, type: int64}]}"
    base = documents(LAKE, NAMESPACE, spec(one), spec(one, "u"))
    m = folder(tmp_path, base=base, prod=documents(spec("\n  properties:\n    other: p  # of prod")))
    state = table("id:int64", properties={"keep": "a", "other": "q", "new": "${n}", "description": "y"})
    live = lake(t=state, u=state)
    assert run(m, live, "prod") == (["overlays/prod/lake/a.yaml", "overlays/prod/patch.yaml"], [], 0)
    assert read(m, "base.yaml") == base
    assert read(m, "overlays/prod/patch.yaml").endswith(
        "  properties:\n    other: q  # of prod\n    gone: null\n    new: '$${n}'\n  description: y\n"
    )
    found = meant(m, "prod").tables["lake"]
    assert dict(found["a", "t"].properties) == dict(found["a", "u"].properties) == dict(state.state.properties)
    assert run(m, live, "prod") == ([], [], 0)


def test_a_list_of_the_base_is_left_alone_with_the_whole_object(tmp_path: Path) -> None:
    base = documents(LAKE, NAMESPACE, spec("\n  schema: [{name: id, type: int64}]"))
    overlay = documents(spec("{properties: {a: '1'}, indexes: [{column: id, type: btree}]}"))
    m = folder(tmp_path, base=base, prod=overlay)
    indexes = (Index("id_idx", "id", "btree"), Index("more_idx", "more", "btree"))
    live = lake(t=table("id:int64", "more:int64", properties={"a": "2"}, indexes=indexes))
    changed, (said,), left = run(m, live, "prod")
    assert (changed, left) == ([], 1)
    assert said == (
        "warning: lake:a.t is not as overlays/prod/patch.yaml:1:1 says, and the document is left as it is: other "
        "environments share `spec.schema` at base.yaml:14:3; edit it there, or give the overlay one of its own"
    )
    assert (read(m, "base.yaml"), read(m, "overlays/prod/patch.yaml")) == (base, overlay)


def test_a_list_that_hides_another_is_not_taken_away(tmp_path: Path) -> None:
    """Without the overlay's list, that of the base would count."""
    schema = "schema: [{name: id, type: int64}]"
    base = documents(LAKE, NAMESPACE, spec(f"{{{schema}, indexes: [{{column: id, type: bitmap}}]}}"))
    overlay = documents(spec("{indexes: [{column: id, type: btree}]}"))
    m = folder(tmp_path, base=base, prod=overlay)
    changed, (said,), left = run(m, lake(t=table("id:int64")), "prod")
    assert (changed, left) == ([], 1)
    assert said.endswith("another document gives the object what would have to change")
    assert read(m, "overlays/prod/patch.yaml") == overlay


def test_new_objects_are_new_in_that_environment_only(tmp_path: Path) -> None:
    base = documents(LAKE)
    m = folder(tmp_path, base=base, prod=documents("kind: Catalog\nmetadata: {name: lake}\nspec: {path: ./prod}\n"))
    live = lake(t=table("id:int64"))
    assert run(m, live, "prod")[0] == ["overlays/prod/lake/a.yaml"]
    assert meant(m).tables == {}
    assert planned(meant(m, "prod"), live) == ()
    more = lake(t=table("id:string", properties={"a": "1"}), u=table("id:int64"))
    assert run(m, more, "prod")[0] == ["overlays/prod/lake/a.yaml"]
    assert planned(meant(m, "prod"), more) == ()
    assert run(m, more, "prod")[::2] == ([], 0)


def test_an_overlay_that_cannot_be_edited_is_named(tmp_path: Path) -> None:
    base = documents(LAKE, NAMESPACE, spec("{properties: {a: '1'}}"))
    m = folder(tmp_path, base=base, prod=documents(spec("{properties: {a: &x '2', b: *x}}")))
    changed, (said,), left = run(m, lake(t=table("id:int64", properties={"a": "3", "b": "2"})), "prod")
    assert (changed, left) == ([], 1)
    assert "overlays/prod/patch.yaml:1:1 says, and the document is left as it is: it has anchors or aliases" in said


def test_what_defaults_give_and_is_not_live_is_told_and_the_rest_is_updated(tmp_path: Path) -> None:
    own = "{properties: {a: '1', tier: own}, schema: [{name: id, type: int64}]}"
    m = folder(tmp_path, base=documents(LAKE, NAMESPACE, DEFAULTS, spec(own), spec("{properties: {a: '2'}}", "u")))
    live = lake(t=table("id:int64", properties={"a": "2"}), u=table("id:int64", properties={"a": "2"}))
    changed, said, left = run(m, live)
    assert (changed, left) == (["base.yaml"], 2)
    assert said == [
        "note: lake:a.t and 1 more do not have live what Defaults give, and the next apply sets it: "
        "properties.team comes from Defaults at base.yaml:14:16 (2 objects), "
        "properties.tier comes from Defaults at base.yaml:14:28 (1 object), "
        "properties.tier comes from base.yaml:20:29, and without that from Defaults at base.yaml:14:28 (1 object), "
        "protect comes from Defaults at base.yaml:15:3 (2 objects)"
    ]
    assert "{properties: {a: '2', tier: own}, schema" in read(m, "base.yaml")
    assert run(m, live) == ([], said, 2)


def test_defaults_can_be_contradicted_by_a_value(tmp_path: Path) -> None:
    m = folder(tmp_path, base=documents(LAKE, NAMESPACE, DEFAULTS, spec("{schema: [{name: id, type: int64}]}")))
    live = lake(t=table("id:int64", properties={"team": "ops", "tier": "gold"}, protect=True))
    assert run(m, live) == (["base.yaml"], [], 0)
    assert planned(meant(m), live) == ()


def test_a_new_document_does_not_repeat_defaults_and_what_they_add_is_told(tmp_path: Path) -> None:
    m = folder(tmp_path, base=documents(LAKE, NAMESPACE, DEFAULTS, spec("{}", "x")))
    full = table("id:int64", properties={"team": "data", "tier": "gold"}, protect=True)
    live = lake(x=full, t=full, u=table("id:int64", properties={"team": "ops"}))
    changed, said, left = run(m, live)
    assert changed == ["base.yaml"]
    added = read(m, "base.yaml").split("---\n")[-2:]
    assert ["properties" in text or "protect" in text for text in added] == [False, True]
    assert added[1].count("team: ops") == 1
    (note,) = said
    assert note.startswith("note: lake:a.u does not have live what Defaults give, and the next apply sets it: ")
    assert ["properties.tier comes" in note, "protect comes" in note, "properties.team" in note] == [True, True, False]
    assert left == 1
    assert {s.change.ident for s in planned(meant(m), live)} == {("a", "u")}


def test_defaults_that_contradict_each_other_keep_a_new_object_out(tmp_path: Path) -> None:
    named = "kind: Defaults\nmetadata: {{catalog: lake, name: {0}}}\nspec: {{properties: {{team: {0}}}}}\n"
    base = documents(LAKE, NAMESPACE, named.format("one"), named.format("two"))
    m = folder(tmp_path, base=base)
    changed, (said,), left = run(m, lake(t=table("id:int64"), u=table("id:int64", properties={"team": "own"})))
    assert (changed, left) == (["base.yaml"], 1)
    assert said.startswith("warning: lake:a.t is left out: the Defaults at base.yaml:10 and base.yaml:15 both give it")
    assert {*meant(m).tables["lake"]} == {("a", "u")}


@pytest.mark.parametrize("part", ["schema", "indexes"])
def test_an_edit_by_position_needs_the_name_to_be_there(tmp_path: Path, part: str) -> None:
    text = "{schema: [{name: id, type: int64}, {name: b, type: int64}], indexes: [{column: id, type: btree}]}"
    m = folder(tmp_path, base=documents(LAKE, NAMESPACE, spec(text)))
    declared = meant(m).tables["lake"]["a", "t"]
    other: dict[str, Any] = {
        "schema": [{"name": "id", "type": "int64"}, {"name": "b", "type": "int64"}],
        "indexes": [{"column": "id", "type": "btree"}],
    }
    other[part] = [{**other[part][0], "name": "other"}]
    state = table("id:int64", "b:int64").state
    wanted = {**other, "schema": [{"name": "id", "type": "int64"}, {"name": "b", "type": "int64"}], "indexes": []}
    with pytest.raises(CannotEdit, match="is not where it was expected"):
        edits_for(declared, state, replace(declared, indexes=()), {"spec": wanted}, {"spec": other})


KEYS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["1", "2"]), max_size=3)
COLUMNS = st.lists(st.sampled_from(["id", "x", "y"]), min_size=1, max_size=3, unique=True)
TYPE = st.sampled_from(["int32", "int64"])


def _columns(names: list[str], type_: str) -> str:
    return "[" + ", ".join(f"{{name: {n}, type: {type_}}}" for n in names) + "]"


def _quoted(values: dict[str, str | None]) -> str:
    return "{" + ", ".join(f"{k}: " + ("null" if v is None else f"'{v}'") for k, v in values.items()) + "}"


def _defaults(text: str) -> str:
    return f"kind: Defaults\nmetadata: {{catalog: lake}}\nspec: {{{text}}}\n"


@st.composite
def layered(draw: st.DrawFn) -> tuple[dict[str, str], Snapshot]:
    """The files of a base with Defaults, of prod and of dev; and a lake."""
    base = draw(KEYS)
    texts = [LAKE, NAMESPACE]
    defaults = draw(st.booleans())
    if defaults:
        protect = draw(st.sampled_from(["", ", protect: true", ", protect: false"]))
        texts.append(_defaults(f"properties: {_quoted({**draw(KEYS)})}{protect}"))
    texts.append(spec(f"{{properties: {_quoted(base)}, schema: {_columns(draw(COLUMNS), draw(TYPE))}}}"))
    found = {"base": documents(*texts)}
    for name in ("prod", "dev"):
        patch: dict[str, str | None] = {**draw(KEYS)}
        patch |= dict.fromkeys(draw(st.lists(st.sampled_from(sorted(base)), max_size=1)) if base else [])
        keys = [f"properties: {_quoted(patch)}"]
        if draw(st.booleans()):
            keys.append(f"schema: {_columns(draw(COLUMNS), draw(TYPE))}")
        patches = [spec("{" + ", ".join(keys) + "}")] if draw(st.booleans()) else []
        if defaults and draw(st.booleans()):
            patches.append(_defaults(f"properties: {_quoted({**draw(KEYS)})}"))
        other = "kind: Catalog\nmetadata: {name: lake}\nspec: {path: ./other}\n"
        found[name] = documents(*(patches or [other]))
    tables = {}
    for name in draw(st.sampled_from([["t"], ["t", "u"]])):
        columns = [f"{n}:{draw(TYPE)}" for n in draw(COLUMNS)]
        tables[name] = table(*columns, properties=draw(KEYS), protect=draw(st.booleans()))
    return found, lake(**tables)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, phases=[Phase.generate])
@given(layered(), st.sampled_from(["prod", ""]))
def test_whatever_the_layers_are(case: tuple[dict[str, str], Snapshot], environment: str) -> None:
    """Nothing is raised, no other environment changes its meaning, a second import changes nothing, and when nothing
    is left the next plan is empty."""
    texts, live = case
    with tempfile.TemporaryDirectory() as root:
        m = folder(Path(root), **texts)
        others = [e for e in ("prod", "dev", "") if environment and e != environment]
        before = [plain(meant(m, e)) for e in others]
        _, said, left = run(m, live, environment)
        assert [plain(meant(m, e)) for e in others] == before
        assert run(m, live, environment)[0] == []
        if not left:
            assert planned(meant(m, environment), live) == (), said
