"""Unity as a catalog, on the stand-in: every operation of its specification with the error codes it names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import pytest
from catalog.unity_support import FIELDS, OURS, N, T, Unity, fresh_unity
from servers.unity_checks import Refused

from reconciler.catalog.lance_dataset import Datasets
from reconciler.model import change as c
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident
from reconciler.model.observed import Absent, Detached, Gap, Observation, Occupied, Present, Scope, Unreadable
from reconciler.model.state import DatasetState, Marks


@pytest.fixture
def unity(tmp_path: Path) -> Iterator[Unity]:
    with fresh_unity(tmp_path / "lake") as made:
        yield made


def scanned(unity: Unity, scope: Scope | None = None) -> list[Observation | Gap | Occupied]:
    return list(unity.open().scan(scope or Scope()))


def found(unity: Unity, scope: Scope | None = None) -> dict[Ident, object]:
    return {o.ident: o.finding for o in scanned(unity, scope) if isinstance(o, Observation)}


# what is written


def test_a_table_as_the_specification_wants_it(unity: Unity) -> None:
    unity.fill({"a": "1", "description": "words"})
    wire = unity.wire()
    assert (wire["table_type"], wire["data_source_format"], wire["comment"]) == ("EXTERNAL", "TEXT", "words")
    assert wire["storage_location"] == f"file://{unity.root}/lake/n/t"
    assert wire["properties"] == {"a": "1", "table_type": "lance", "reconciler.owner": "us"}
    assert [(x["name"], x["type_name"], x["position"]) for x in wire["columns"]] == [
        ("id", "LONG", 0),
        ("v", "ARRAY", 1),
    ]
    assert lance.dataset(str(unity.root / "lake" / "n" / "t")).schema.names == ["id", "v"]
    state = unity.table()
    assert state.properties == {"a": "1", "description": "words"}
    assert state.columns == unity.open().capabilities.columns_of(FIELDS)


def test_a_description_is_the_comment_and_can_be_cleared(unity: Unity) -> None:
    unity.apply(c.CreateNamespace(N, {"description": "one", "k": "v"}, OURS))
    assert unity.wire(N)["comment"] == "one"
    unity.apply(c.UpdateNamespace(N, {"description": "two"}, (), OURS))
    assert (unity.wire(N)["comment"], unity.namespace().properties) == ("two", {"description": "two", "k": "v"})
    unity.apply(c.UpdateNamespace(N, {}, ("description",), OURS))
    assert (unity.wire(N)["comment"], unity.namespace().properties) == ("", {"k": "v"})


def test_the_last_property_of_a_schema_can_go_because_our_mark_stays(unity: Unity) -> None:
    """An empty map would change nothing on this server."""
    unity.apply(c.CreateNamespace(N, {"k": "v"}, OURS))
    unity.apply(c.UpdateNamespace(N, {}, ("k",), OURS))
    assert unity.wire(N)["properties"] == {"reconciler.owner": "us"}


def test_properties_that_others_set_meanwhile_are_kept(unity: Unity) -> None:
    unity.apply(c.CreateNamespace(N, {"k": "v"}, OURS))
    unity.wire(N)["properties"]["theirs"] = "x"
    unity.apply(c.UpdateNamespace(N, {"k": "w"}, (), OURS))
    assert unity.namespace().properties == {"k": "w", "theirs": "x"}


def test_a_property_description_of_others_is_the_description_until_there_is_a_comment(unity: Unity) -> None:
    unity.post("schemas", name="n", properties={"description": "theirs"})
    assert unity.namespace().properties == {"description": "theirs"}
    unity.apply(c.UpdateNamespace(N, {"description": "ours"}, (), OURS))
    assert unity.namespace().properties == {"description": "ours"}


def test_a_property_description_of_others_stays_whatever_becomes_of_the_comment(unity: Unity) -> None:
    """The key is theirs: an update of anything else must not move or remove it either."""
    unity.fill()
    for ident, update in ((N, c.UpdateNamespace), (T, c.ReplaceTable)):
        unity.wire(ident)["properties"]["description"] = "theirs"
        found = unity.namespace if ident == N else unity.table
        seen = []
        for set_, unset in (({"k": "1"}, ()), ({"description": "ours"}, ()), ({"k": "2"}, ()), ({}, ("description",))):
            unity.apply(update(ident, set_, unset, OURS))
            wire = unity.wire(ident)
            assert wire["properties"]["description"] == "theirs"
            seen.append((wire["comment"], found().properties.get("description")))
        assert seen == [(None, "theirs"), ("ours", "ours"), ("ours", "ours"), ("", None)]


def test_marks_go_beside_the_table_and_follow_its_id(unity: Unity) -> None:
    unity.fill()
    before = dict(unity.wire())
    marks = Marks("us", True, tuple(f"key-{n:02}" for n in range(60)))
    unity.apply(c.UpdateTable(T, {}, (), marks))
    assert unity.wire() == before
    assert unity.table().marks == marks
    state = found(unity)[T]
    assert isinstance(state, Present)
    assert state.state.marks == marks
    unity.apply(c.RenameNamespace(("lake", "m"), N))
    assert unity.table(("lake", "m", "t")).marks == marks


def test_marks_never_fall_to_a_strangers_table_of_the_same_name(unity: Unity) -> None:
    unity.fill()
    unity.apply(c.UpdateTable(T, {}, (), Marks("us", True)))
    tables = unity.server.state.schema(*N).leaves["tables"]
    tables.clear()
    unity.post("tables", name="t", table_type="EXTERNAL", storage_location="/elsewhere/t", columns=[],
               properties={"table_type": "Lance"})  # fmt: skip
    assert unity.table().marks == Marks()


def test_marks_at_creation_are_split_at_the_limit(unity: Unity) -> None:
    unity.apply(c.CreateNamespace(N, {}, OURS))
    marks = Marks("us", False, tuple(sorted(f"{n:03}{'k' * 40}" for n in range(20))))
    unity.apply(c.DeclareTable(T, {}, marks))
    assert max(len(v) for v in unity.wire()["properties"].values()) <= 255
    assert unity.table().marks == marks


def test_data_that_is_written_while_it_is_looked_for_is_there(unity: Unity, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run wrote it between our look for the dataset and our look at the folder."""
    unity.fill()
    real, looks = Datasets.state, []

    def too_early(self: Datasets, uri: str) -> DatasetState:
        looks.append(uri)
        if len(looks) % 2:
            raise CatalogError(Code.TABLE_NOT_FOUND, "not yet")
        return real(self, uri)

    monkeypatch.setattr(Datasets, "state", too_early)
    assert isinstance(unity.table().dataset, DatasetState)
    unity.server.state.schema(*N).leaves["tables"].clear()
    assert isinstance(unity.find("Table", T), Detached)


def test_a_deregistered_table_is_found_again(unity: Unity) -> None:
    unity.fill()
    unity.apply(c.DeregisterTable(T))
    assert isinstance(unity.find("Table", T), Detached)
    where = str(unity.root / "own" / "place")
    unity.apply(c.DeclareTable(("lake", "n", "far"), {}, OURS, where))
    unity.apply(c.CreateDataset(("lake", "n", "far"), FIELDS, {}, {}, "us", ()))
    unity.apply(c.DeregisterTable(("lake", "n", "far")))
    far = unity.find("Table", ("lake", "n", "far"))
    assert isinstance(far, Detached)
    assert far.location == f"file://{where}"
    assert lance.dataset(where).schema.names == ["id", "v"]


def test_a_schema_that_holds_anything_is_not_even_asked_to_go(unity: Unity) -> None:
    """Whatever the server would do: nothing rests on its refusal alone."""
    unity.apply(c.CreateNamespace(N, {}, OURS))
    unity.post("volumes", name="v", volume_type="EXTERNAL", storage_location="/x/v")
    assert unity.code(c.DropNamespace(N)) is Code.NAMESPACE_NOT_EMPTY
    assert not [r for r in unity.server.requests if r[0] == "DELETE"]


# errors


@pytest.mark.parametrize("old", [False, True])
def test_the_codes_of_the_specification(unity: Unity, old: bool) -> None:
    unity.server.old = old
    unity.fill()
    wrong: Ident = ("other", "n")
    assert unity.code(c.CreateNamespace(N, {}, OURS)) is Code.NAMESPACE_ALREADY_EXISTS
    assert unity.code(c.CreateNamespace(wrong, {}, OURS)) is Code.INVALID_INPUT
    assert unity.code(c.DropNamespace(("lake", "x"))) is Code.NAMESPACE_NOT_FOUND
    assert unity.code(c.DropNamespace(N)) is Code.NAMESPACE_NOT_EMPTY
    assert unity.code(c.DeclareTable(T, {}, OURS)) is Code.TABLE_ALREADY_EXISTS
    assert unity.code(c.DeclareTable(("lake", "x", "t"), {}, OURS)) is Code.NAMESPACE_NOT_FOUND
    assert unity.code(c.DeregisterTable(("lake", "n", "x"))) is Code.TABLE_NOT_FOUND
    assert unity.code(c.RenameTable(("lake", "m", "t"), T)) is Code.UNSUPPORTED
    if old:
        assert unity.code(c.RenameTable(("lake", "n", "x"), T)) is Code.UNSUPPORTED
    unity.apply(c.CreateNamespace(("lake", "m"), {}, OURS))
    assert unity.code(c.RenameNamespace(("lake", "m"), N)) is Code.NAMESPACE_ALREADY_EXISTS
    assert isinstance(unity.find("Table", ("lake", "n", "x")), Absent)
    assert isinstance(unity.find("Namespace", ("lake", "x")), Absent)


def test_a_missing_catalog_is_an_error_and_not_an_empty_one(unity: Unity) -> None:
    del unity.server.state.catalogs["lake"]
    for ask in (lambda: scanned(unity), lambda: unity.find("Table", T), lambda: unity.find("Namespace", N)):
        with pytest.raises(CatalogError) as error:
            ask()
        assert error.value.code is Code.NAMESPACE_NOT_FOUND


def test_an_answer_that_is_not_unitys_is_never_absence(unity: Unity) -> None:
    found = unity.find("Table", T, unity.open(api_path="/wrong"))
    assert isinstance(found, Unreadable)
    assert "api_path" in found.message
    with pytest.raises(CatalogError, match="api_path"):
        list(unity.open(api_path="/wrong").scan(Scope()))


def test_a_server_that_takes_delta_only_says_so(unity: Unity) -> None:
    unity.apply(c.CreateNamespace(N, {}, OURS))
    unity.server.state.only_delta = True
    with pytest.raises(CatalogError, match="open-source server") as error:
        unity.apply(c.DeclareTable(T, {}, OURS))
    assert error.value.code is Code.UNSUPPORTED


# other things in a schema


def test_tables_of_other_kinds_are_listed_and_not_used(unity: Unity) -> None:
    unity.fill()
    unity.post("tables", name="delta", table_type="EXTERNAL", data_source_format="DELTA", storage_location="/x/d")
    unity.post(
        "tables", name="upper", table_type="EXTERNAL", storage_location="/x/u", properties={"table_type": "LANCE"}
    )
    tables = found(unity)
    assert isinstance(tables[(*N, "delta")], Unreadable)
    assert isinstance(tables[(*N, "upper")], Present)
    assert set(unity.open().children(N)) == {"t", "delta", "upper"}
    assert unity.code(c.DeregisterTable((*N, "delta"))) is Code.INVALID_INPUT


@pytest.mark.parametrize("kind", ["volumes", "functions", "models"])
def test_everything_counts_as_a_child(unity: Unity, kind: str) -> None:
    unity.apply(c.CreateNamespace(N, {}, OURS))
    unity.post(kind, name="x")
    assert list(unity.open().children(N)) == ["x"]
    assert Occupied((*N, "x")) in scanned(unity)
    assert unity.code(c.DropNamespace(N)) is Code.NAMESPACE_NOT_EMPTY
    assert not any("force" in path for _, path in unity.server.requests)


def test_a_server_without_models_has_none(unity: Unity) -> None:
    unity.fill()
    unity.server.missing = {"models", "functions"}
    assert list(unity.open().children(N)) == ["t"]
    unity.server.missing = {"tables"}
    with pytest.raises(CatalogError):
        unity.open().children(N)


# listings


def _many(unity: Unity, count: int) -> None:
    unity.post("schemas", name="n")
    for number in range(count):
        unity.post("tables", name=f"t{number:04}", table_type="EXTERNAL", storage_location=f"/x/{number}",
                   properties={"table_type": "lance"})  # fmt: skip


def test_all_pages_and_no_call_for_a_table(unity: Unity) -> None:
    _many(unity, 250)
    unity.server.requests.clear()
    assert len(found(unity)) == 252
    assert len(unity.server.requests) == 1 + 3
    _many_more = [unity.post("schemas", name=f"s{n:03}") for n in range(100)]
    unity.server.requests.clear()
    assert len(found(unity)) == 252 + len(_many_more)
    assert len(unity.server.requests) == 2 + 3 + 100


def test_an_empty_page_is_not_the_last(unity: Unity) -> None:
    """With authorization on, rows are taken out after the page was cut."""
    _many(unity, 250)
    unity.server.state.visible = lambda o: not o["name"].startswith(("t00", "t01"))
    assert len(found(unity)) == 2 + 50


def test_two_tables_of_one_name_are_one_broken_table(unity: Unity) -> None:
    unity.fill()
    tables = unity.server.state.schema(*N).leaves["tables"]
    tables.append({**tables[0], "table_id": "other"})
    for finding in (found(unity)[T], unity.find("Table", T)):
        assert isinstance(finding, Unreadable)
        assert finding.code is Code.INVALID_TABLE_STATE
        assert "holds 2 tables named lake.n.t" in finding.message


def test_an_ignored_schema_is_not_read(unity: Unity) -> None:
    unity.fill()
    unity.server.requests.clear()
    found(unity, Scope(ignore=("lake.n.**", "lake.n")))
    assert len(unity.server.requests) == 1


def test_a_record_that_cannot_be_read_spoils_its_table_only(unity: Unity) -> None:
    unity.fill()
    unity.apply(c.DeclareTable((*N, "other"), {}, OURS), c.UpdateTable(T, {}, (), Marks("us", True)))
    (record,) = (unity.root / "__reconciler").rglob("*.json")
    record.write_text("{")
    for tables in (found(unity), {T: unity.find("Table", T), (*N, "other"): unity.find("Table", (*N, "other"))}):
        assert isinstance(tables[T], Unreadable)
        assert isinstance(tables[(*N, "other")], Present)


# options


def test_the_token(unity: Unity) -> None:
    unity.server.token = "canary-token"
    assert scanned_with(unity, auth_token="canary-token")
    for options in ({}, {"auth_token": "wrong-canary"}):
        with pytest.raises(CatalogError) as error:
            scanned_with(unity, **options)
        assert error.value.code is Code.UNAUTHENTICATED
        assert "canary" not in error.value.message


def scanned_with(unity: Unity, **options: str) -> list[object]:
    return list(unity.open(**options).scan(Scope()))


@pytest.mark.parametrize(
    "wrong",
    [{"endpoint": "127.0.0.1"}, {"endpoint": "http://u:p@h"}, {"catalog": ""}, {"read_timeout": "soon"},
     {"max_retries": "-1"}, {"connect_timeout": "1.5"}],
)  # fmt: skip
def test_options_that_make_no_sense(unity: Unity, wrong: dict[str, str]) -> None:
    with pytest.raises(CatalogError) as error:
        unity.open(**wrong)
    assert error.value.code is Code.INVALID_INPUT
    assert f"spec.{next(iter(wrong))}" in error.value.message


def test_the_api_path(unity: Unity) -> None:
    assert scanned_with(unity, api_path="api/2.1/unity-catalog/")


EMOJI = "\N{GRINNING FACE}"
TEXT = {"type_text": "string", "type_name": "STRING", "position": 0}


def text_column(name: str, comment: str) -> dict[str, object]:
    field = {"name": name, "type": "string", "nullable": True, "metadata": {}}
    return {**TEXT, "name": name, "comment": comment, "type_json": json.dumps(field)}


@pytest.mark.parametrize("fits", [True, False])
@pytest.mark.parametrize(
    ("key", "value", "most"),
    [
        ("properties", lambda text: {"table_type": "lance", "k": text}, 255),
        ("properties", lambda text: {"table_type": "lance", text: "v"}, 255),
        ("comment", str, 65535),
        ("storage_location", lambda text: f"s3://b/{text}"[:-7], 2048),
        ("columns", lambda text: [text_column(text, "")], 255),
        ("columns", lambda text: [text_column("c", text)], 65535),
    ],
)
def test_the_stand_in_counts_lengths_as_the_real_server(
    unity: Unity, key: str, value: Callable[[str], object], most: int, fits: bool
) -> None:
    """In UTF-16 units, with a 500 for what is longer, and then there is no entry."""
    unity.apply(c.CreateNamespace(N, {}, OURS))
    body = {"table_type": "EXTERNAL", "storage_location": "s3://b/t", "properties": {"table_type": "lance"}}
    text = "x" * (most % 2) + EMOJI * (most // 2) + ("" if fits else "xxxxxxxx" if key == "storage_location" else "x")
    body[key] = value(text)  # type: ignore[assignment]
    if fits:
        unity.post("tables", name="t", **body)
        return
    with pytest.raises(Refused) as refused:
        unity.post("tables", name="t", **body)
    assert (refused.value.status, refused.value.code) == (500, "INTERNAL")
    assert isinstance(unity.find("Table", T), Absent)


# renames

NEW: Ident = ("lake", "n", "new")


def test_a_rename_keeps_the_id_and_all_that_the_entry_has(unity: Unity) -> None:
    unity.fill({"a": "1", "description": "words"})
    unity.wire()["properties"]["theirs"] = "x"
    unity.apply(c.UpdateTable(T, {}, (), Marks("us", True, ("a",))))
    before, state = dict(unity.wire()), unity.table()
    unity.server.requests.clear()
    unity.apply(c.RenameTable(NEW, T))
    after = unity.wire(NEW)
    assert {**after, "name": "t", "updated_at": 0} == {**before, "updated_at": 0}
    assert unity.table(NEW) == state
    assert [t for t in unity.server.requests if t[0] in ("POST", "DELETE", "PATCH")] == [
        ("POST", "/api/2.1/unity-catalog/delta/v1/catalogs/lake/schemas/n/tables/t/rename")
    ]
    assert set(found(unity)) == {("lake",), N, NEW}


def test_a_table_that_was_renamed_is_found_again_where_its_data_is(unity: Unity) -> None:
    """Its place is not the one by rule any more."""
    unity.fill()
    unity.apply(c.RenameTable(NEW, T), c.DeregisterTable(NEW))
    finding = unity.find("Table", NEW)
    assert isinstance(finding, Detached)
    assert finding.location == f"file://{unity.root}/lake/n/t"


def test_renames_that_are_refused(unity: Unity) -> None:
    unity.fill()
    unity.apply(c.DeclareTable(NEW, {}, OURS), c.CreateNamespace(("lake", "m"), {}, OURS))
    assert unity.code(c.RenameTable(NEW, T)) is Code.TABLE_ALREADY_EXISTS
    assert unity.code(c.RenameTable(NEW, ("lake", "n", "gone"))) is Code.TABLE_NOT_FOUND
    assert unity.code(c.RenameTable(("lake", "m", "t"), T)) is Code.UNSUPPORTED
    assert unity.code(c.RenameTable(("lake", "n", "a b"), T)) is Code.INVALID_INPUT
    assert set(found(unity)) == {("lake",), N, ("lake", "m"), T, NEW}


def test_a_server_without_the_call_is_said(unity: Unity) -> None:
    """Before 0.6.0: the path is not there, which is no word about the table."""
    unity.fill()
    unity.server.missing.add("delta")
    with pytest.raises(CatalogError, match=r"Unity Catalog has one from 0\.6\.0 on") as error:
        unity.apply(c.RenameTable(NEW, T))
    assert (error.value.code, error.value.unknown_outcome) == (Code.UNSUPPORTED, False)
    assert set(found(unity)) == {("lake",), N, T}
