"""The replacement of an entry, cut at every point: the next run ends it, and nothing of the entry is lost."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from catalog.unity_support import FIELDS, OURS, Killed, N, T, Unity, fresh_unity
from servers.unity_checks import broken

from reconciler.catalog.base import WriteContext
from reconciler.catalog.entries import TableEntry
from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.catalog.unity_store import UnityStore
from reconciler.engine.observe import observe
from reconciler.model import change as c
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident
from reconciler.model.observed import Absent, Detached, Present, Scope, Unreadable, Unsupported
from reconciler.model.state import Column, Marks

AFTER = Marks("us", True, ("b",))


@pytest.fixture
def unity(tmp_path: Path) -> Iterator[Unity]:
    """A table of ours on which somebody else has set a property and a comment."""
    with fresh_unity(tmp_path / "lake") as made:
        made.fill({"a": "1"})
        made.wire()["properties"] |= {"theirs": "x", "table_type": "LANCE"}
        made.wire()["comment"] = "their words"
        yield made


def replacing(unity: Unity) -> c.ReplaceTable:
    return c.ReplaceTable(T, {"b": "2"}, ("a",), AFTER, unity.open().capabilities.columns_of(FIELDS[:1]))


def check_replaced(unity: Unity) -> None:
    wire = unity.wire()
    assert wire["properties"] == {
        "b": "2", "theirs": "x", "table_type": "LANCE", "reconciler.owner": "us", "reconciler.protect": "true",
        "reconciler.applied-keys": '["b"]',
    }  # fmt: skip
    assert (wire["comment"], wire["data_source_format"]) == ("their words", "TEXT")
    assert [x["name"] for x in wire["columns"]] == ["id"]
    state = unity.table()
    assert (state.marks, state.columns) == (AFTER, unity.open().capabilities.columns_of(FIELDS[:1]))
    assert not [p for p in (unity.root / "__reconciler").rglob("*") if p.is_file()]


def test_everything_that_is_not_ours_is_kept(unity: Unity) -> None:
    old = unity.wire()["table_id"]
    unity.apply(replacing(unity))
    check_replaced(unity)
    assert unity.wire()["table_id"] != old


def test_marks_that_were_kept_beside_go_into_the_new_entry(unity: Unity) -> None:
    unity.apply(c.UpdateTable(T, {}, (), Marks("us", True, ("a",))))
    unity.apply(replacing(unity))
    check_replaced(unity)


def _store(catalog: EntryCatalog) -> UnityStore:
    assert isinstance(catalog.store, UnityStore)
    return catalog.store


def _kill(catalog: EntryCatalog, point: str) -> None:
    """The process dies before or after that call."""
    when, _, name = point.partition(" ")
    store = _store(catalog)
    owner: Any = store.client if hasattr(store.client, name) else store.records
    real: Callable[..., Any] = getattr(owner, name)

    def dying(*arguments: Any) -> Any:
        if when == "after":
            real(*arguments)
        raise Killed

    setattr(owner, name, dying)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["begin", "delete_table", "create_table", "end", "forget_marks"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_point(unity: Unity, name: str, when: str) -> None:
    unity.apply(c.UpdateTable(T, {}, (), Marks("us", True, ("a",))))
    change = replacing(unity)
    dying = unity.open()
    _kill(dying, f"{when} {name}")
    with pytest.raises(Killed):
        dying.apply(change, WriteContext())
    if not unity.server.state.schema(*N).leaves["tables"]:
        end_by_a_declare(unity, change)
        return
    state = unity.table()
    (listed,) = (o.finding for o in unity.open().scan(Scope(detail=frozenset({T}))) if o.ident == T)
    assert isinstance(listed, Present)
    assert listed.state == state
    if state.properties != {"b": "2", "theirs": "x", "description": "their words"}:
        assert state.properties == {"a": "1", "theirs": "x", "description": "their words"}
        assert state.marks == Marks("us", True, ("a",))
    unity.apply(change)
    check_replaced(unity)


def end_by_a_declare(unity: Unity, change: c.ReplaceTable) -> None:
    """To another run the table is one whose data is there: an ordinary declare ends it, and needs no allow word."""
    found = unity.find("Table", T)
    assert isinstance(found, Detached)
    (listed,) = (o.finding for o in unity.open().scan(Scope(detail=frozenset({T}))) if o.ident == T)
    assert listed == found
    unity.apply(c.DeclareTable(T, change.set, change.marks, found.location, change.columns))
    assert unity.table().properties == {"b": "2"}, "what the plan knew"
    check_replaced(unity)
    whole = {"b": "2", "theirs": "x", "description": "their words"}
    assert unity.table(catalog=unity.open()).properties == whole
    unity.apply(c.ReplaceTable(T, {}, (), change.marks, change.columns))
    check_replaced(unity)


def test_a_cut_table_elsewhere_is_found_where_it_was(unity: Unity) -> None:
    far, where = (*N, "far"), str(unity.root / "own" / "place")
    unity.apply(c.DeclareTable(far, {}, OURS, where), c.CreateDataset(far, FIELDS, {}, {}, "us", ()))
    unity.cut(c.ReplaceTable(far, {"b": "2"}, (), OURS))
    found = unity.find("Table", far)
    assert isinstance(found, Detached)
    assert found.location == f"file://{where}"


@pytest.mark.parametrize("point", ["after detach", "before delete_table", "after delete_table", "before forget_marks"])
def test_a_deregistration_that_is_killed_loses_no_data(unity: Unity, point: str) -> None:
    """Where the data is gets known before the entry goes: the server does not say it afterwards."""
    far, where = (*N, "far"), str(unity.root / "own" / "place")
    unity.apply(c.DeclareTable(far, {}, OURS, where), c.CreateDataset(far, FIELDS, {}, {}, "us", ()))
    dying = unity.open()
    _kill(dying, point)
    with pytest.raises(Killed):
        dying.apply(c.DeregisterTable(far), WriteContext())
    if isinstance(unity.find("Table", far), Present):
        assert unity.table(far, unity.open()).marks == OURS
        unity.apply(c.DeregisterTable(far), catalog=unity.open())
    found = unity.find("Table", far, unity.open())
    assert isinstance(found, Detached), found
    assert found.location == f"file://{where}"
    unity.apply(c.DeclareTable(far, {}, OURS, where), catalog=unity.open())
    assert unity.table(far, unity.open()).marks == OURS


@pytest.mark.parametrize("schema", ["is there", "is gone"])
def test_a_cut_table_that_nobody_declares_is_told_of(unity: Unity, schema: str) -> None:
    unity.cut(replacing(unity))
    if schema == "is gone":
        unity.server.state.delete_schema(*N, force=False)
    told = observe(unity.open(), Scope()).tables[T]
    assert isinstance(told, Unreadable)
    assert f"its data was left at file://{unity.root}/lake/n/t" in told.message
    (record,) = (p for p in (unity.root / "__reconciler").rglob("entry.json"))
    assert f"or remove {record}" in told.message
    record.unlink()
    assert observe(unity.open(), Scope()).tables == {}


def test_a_cut_table_that_never_had_data_is_declared_again(unity: Unity) -> None:
    new = (*N, "new")
    unity.apply(c.DeclareTable(new, {}, OURS))
    unity.cut(c.ReplaceTable(new, {"b": "2"}, (), OURS))
    assert isinstance(unity.find("Table", new), Absent)


@pytest.mark.parametrize("odd", [{"storage_location": 7}, {"properties": ["x"]}])
def test_a_damaged_record_is_named(unity: Unity, odd: dict[str, Any]) -> None:
    unity.cut(replacing(unity))
    (record,) = (p for p in (unity.root / "__reconciler").rglob("entry.json"))
    value = json.loads(record.read_text())
    record.write_text(json.dumps({**value, "entry": {**value["entry"], **odd}}))
    for detail in (frozenset({T}), frozenset[Ident]()):
        told = observe(unity.open(), Scope(detail=detail)).tables[T]
        assert isinstance(told, Unreadable)
        assert f"the record {record} cannot be read" in told.message


def test_the_record_says_nothing_about_a_table_at_another_place(unity: Unity) -> None:
    unity.cut(replacing(unity))
    unity.apply(c.DeclareTable(T, {}, OURS, str(unity.root / "new")))
    assert unity.wire()["properties"] == {"table_type": "lance", "reconciler.owner": "us"}
    assert not [p for p in (unity.root / "__reconciler").rglob("*") if p.is_file()]


@pytest.mark.parametrize("name", ["end", "forget_marks"])
def test_a_record_that_was_left_behind_does_not_outlive_the_table(unity: Unity, name: str) -> None:
    dying = unity.open()
    _kill(dying, f"before {name}")
    with pytest.raises(Killed):
        dying.apply(replacing(unity), WriteContext())
    unity.apply(c.DeregisterTable(T))
    assert isinstance(unity.find("Table", T), Detached)


def test_a_table_that_came_back_by_itself_is_not_removed(unity: Unity) -> None:
    """What is in the catalog counts, not the record."""
    stale = _store(unity.open()).table(T)
    assert stale is not None
    unity.cut(replacing(unity))
    unity.post("tables", name="t", table_type="EXTERNAL", storage_location="/x/y", properties={"table_type": "lance"})
    mine = unity.wire()["table_id"]
    assert unity.table().properties == {}
    with pytest.raises(CatalogError) as error:
        _store(unity.open()).replace_table(stale, {}, None)  # type: ignore[arg-type]
    assert error.value.code is Code.CONCURRENT_MODIFICATION
    assert unity.wire()["table_id"] == mine
    assert unity.code(c.DeclareTable(T, {}, OURS)) is Code.TABLE_ALREADY_EXISTS
    assert unity.wire()["table_id"] == mine


def test_a_new_entry_that_is_refused_brings_the_old_one_back(unity: Unity) -> None:
    before = unity.wire()
    bad = c.ReplaceTable(T, {}, (), AFTER, unity.open().capabilities.columns_of(FIELDS))
    catalog = unity.open()
    client = _store(catalog).client
    real = client.create_table

    def with_a_fault(body: dict[str, Any]) -> None:
        if "reconciler.protect" in body["properties"]:
            body["columns"][0]["type_json"] = "nonsense"
        real(body)

    client.create_table = with_a_fault  # type: ignore[method-assign]
    with pytest.raises(CatalogError, match="type_json") as error:
        catalog.apply(bad, WriteContext())
    assert error.value.code is Code.INVALID_INPUT
    after = unity.wire()
    same = ("properties", "comment", "columns", "storage_location", "data_source_format")
    assert {k: after[k] for k in same} == {k: before[k] for k in same}
    assert not [p for p in (unity.root / "__reconciler").rglob("*") if p.is_file()]


def fail_on(unity: Unity, key: str) -> None:
    """The server answers 500 to every entry with this property, as it does to what its database does not hold."""
    real = unity.server.state.create_table

    def create(body: dict[str, Any]) -> dict[str, Any]:
        if key in body["properties"]:
            raise broken("Error creating table")
        return real(body)

    unity.server.state.create_table = create  # type: ignore[method-assign]


def no_records(unity: Unity) -> bool:
    return not [p for p in (unity.root / "__reconciler").rglob("*") if p.is_file()]


@pytest.mark.parametrize("beside", [False, True])
def test_an_entry_that_the_server_fails_on_for_good_leaves_the_old_one(unity: Unity, beside: bool) -> None:
    """`beside`: its marks had changed since it was made, and were kept under an id that it does not get back."""
    if beside:
        unity.apply(c.UpdateTable(T, {}, (), Marks("us", True, ("a", "z"))))
    before, old = unity.table(), unity.wire()
    fail_on(unity, "b")
    for _ in range(2):
        with pytest.raises(CatalogError, match="is put back as it was") as error:
            unity.apply(replacing(unity), catalog=unity.open())
        assert (error.value.landed, error.value.unknown_outcome, error.value.spent) == (True, False, True)
        assert unity.table(catalog=unity.open()) == before
        wire = unity.wire()
        assert [wire[k] for k in ("comment", "columns")] == [old[k] for k in ("comment", "columns")]
        assert wire["properties"].items() >= old["properties"].items()
        assert no_records(unity)


def test_a_declare_that_the_server_fails_on_brings_the_removed_entry_back(unity: Unity) -> None:
    """The run before was cut: this one must not leave the table out of the catalog for good."""
    unity.apply(c.UpdateTable(T, {}, (), Marks("us", True, ("a",))))
    before = unity.table()
    unity.cut(replacing(unity))
    fail_on(unity, "b")
    catalog = unity.open()
    with pytest.raises(CatalogError, match="is put back as it was"):
        unity.apply(c.DeclareTable(T, {"b": "2"}, AFTER), catalog=catalog)
    assert unity.table(catalog=catalog) == before
    assert no_records(unity)


def test_an_entry_that_cannot_be_put_back_either_is_left_to_the_record(unity: Unity) -> None:
    fail_on(unity, "theirs")
    catalog = unity.open()
    with pytest.raises(CatalogError) as error:
        unity.apply(replacing(unity), catalog=catalog)
    assert error.value.unknown_outcome
    with pytest.raises(CatalogError, match="the next apply restores the entry"):
        unity.find("Table", T, catalog)
    assert isinstance(unity.find("Table", T, unity.open()), Detached)


@pytest.mark.parametrize("point", ["after begin", "before end", "before forget_marks"])
@pytest.mark.parametrize(
    "leaves", [c.DeregisterTable(T), c.RenameTable((*N, "new"), T), c.RenameNamespace(("lake", "m"), N)]
)
def test_a_record_is_gone_before_the_name_is_free(unity: Unity, point: str, leaves: c.Change) -> None:
    """The run that takes the entry away may be cut as well, right after: what the record knows is not revived."""
    dying = unity.open()
    _kill(dying, point)
    with pytest.raises(Killed):
        dying.apply(replacing(unity), WriteContext())
    dying = unity.open()
    calls = {c.DeregisterTable: "delete_table", c.RenameTable: "rename_table", c.RenameNamespace: "update_schema"}
    _kill(dying, f"after {calls[type(leaves)]}")
    with pytest.raises(Killed):
        dying.apply(leaves, WriteContext())
    assert T not in {i for i, f in observe(unity.open(), Scope()).tables.items() if isinstance(f, Unreadable)}
    if isinstance(leaves, c.DeregisterTable):
        unity.apply(c.DeclareTable(T, {}, OURS))
        assert unity.wire()["properties"] == {"table_type": "lance", "reconciler.owner": "us"}


def gone_and_declared_again(unity: Unity, catalog: EntryCatalog) -> dict[str, str]:
    """Somebody else removes the entry, and it comes back: its properties then."""
    unity.server.state.schema(*N).leaves["tables"].clear()
    assert isinstance(unity.find("Table", T, catalog), Detached)
    unity.apply(c.DeclareTable(T, {}, OURS), catalog=catalog)
    properties: dict[str, str] = unity.wire()["properties"]
    return properties


@pytest.mark.parametrize("seen", ["read", "listed", "settled"])
@pytest.mark.parametrize("name", ["end", "forget_marks"])
def test_a_record_is_void_once_a_newer_entry_was_there(unity: Unity, name: str, seen: str) -> None:
    """The replacement was done, its run was killed right after, and then others removed what they had set."""
    unity.wire()["created_at"] -= 1000
    dying = unity.open()
    _kill(dying, f"before {name}")
    with pytest.raises(Killed):
        dying.apply(replacing(unity), WriteContext())
    catalog = unity.open()
    if seen == "read":
        unity.table(catalog=catalog)
    elif seen == "listed":
        list(catalog.scan(Scope()))
    else:  # by another run than the one that declares it
        unity.open().settle_records()
        assert no_records(unity)
    assert gone_and_declared_again(unity, catalog) == {"table_type": "lance", "reconciler.owner": "us"}


def test_the_record_of_a_cut_replacement_is_not_settled(unity: Unity) -> None:
    unity.cut(replacing(unity))
    catalog = unity.open()
    catalog.settle_records()
    list(catalog.scan(Scope()))
    assert gone_and_declared_again(unity, catalog).items() >= {"theirs": "x"}.items()


EMOJI = "\N{GRINNING FACE}"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (c.ReplaceTable(T, {"b": EMOJI * 255}, (), OURS), "the property 'b' has 255 characters, which are 510"),
        (c.ReplaceTable(T, {EMOJI * 128: "b"}, (), OURS), "the key of the property"),
        (c.ReplaceTable(T, {"description": EMOJI * 32768}, (), OURS), "the description"),
        (c.ReplaceTable(T, {}, (), Marks(EMOJI * 128)), "'reconciler.owner' has 128 characters"),
        (c.ReplaceTable(T, {}, (), OURS, (Column(EMOJI * 128, "long", True),)), "the column name"),
        (c.ReplaceTable(T, {}, (), OURS, (Column("v", "long", True, EMOJI * 32768),)), "the comment of column 'v'"),
    ],
)  # fmt: skip
def test_an_entry_that_the_database_does_not_hold_is_refused_before_the_old_one_goes(
    unity: Unity, change: c.ReplaceTable, what: str
) -> None:
    before = unity.wire()
    with pytest.raises(CatalogError, match=what) as error:
        unity.apply(change)
    assert (error.value.code, error.value.landed) == (Code.INVALID_INPUT, False)
    assert unity.wire() == before
    assert "DELETE" not in {method for method, _ in unity.server.requests}
    assert no_records(unity)


def test_a_table_that_somebody_removes_meanwhile(unity: Unity) -> None:
    catalog = unity.open()
    records = _store(catalog).records
    real = records.begin

    def begin(*arguments: Any) -> bool:
        first = real(*arguments)
        unity.server.state.schema(*N).leaves["tables"].clear()
        return first

    records.begin = begin  # type: ignore[method-assign]
    with pytest.raises(CatalogError) as error:
        catalog.apply(replacing(unity), WriteContext())
    assert error.value.code is Code.CONCURRENT_MODIFICATION
    assert isinstance(unity.find("Table", T), Detached)


def test_of_two_runs_that_replace_one_entry_the_quicker_one_does_it(unity: Unity) -> None:
    """The other one sees right before the DELETE that it is another entry now."""
    slow, quick = unity.open(), unity.open()
    records = _store(slow).records
    real = records.begin

    def begin(*arguments: Any) -> bool:
        quick.apply(replacing(unity), WriteContext())
        return real(*arguments)

    records.begin = begin  # type: ignore[method-assign]
    with pytest.raises(CatalogError) as error:
        slow.apply(replacing(unity), WriteContext())
    assert error.value.code is Code.CONCURRENT_MODIFICATION
    check_replaced(unity)


def test_a_run_that_joins_a_replacement_leaves_its_record(unity: Unity) -> None:
    unity.apply(c.UpdateTable(T, {}, (), Marks("us", True, ("a",))))
    dying, other = unity.open(), unity.open()
    entry = _store(other).table(T)
    assert isinstance(entry, TableEntry)
    _kill(dying, "after delete_table")
    with pytest.raises(Killed):
        dying.apply(replacing(unity), WriteContext())
    with pytest.raises(CatalogError) as error:
        _store(other).replace_table(entry, {}, None)
    assert error.value.code is Code.CONCURRENT_MODIFICATION
    end_by_a_declare(unity, replacing(unity))


def test_one_writer_for_one_name_in_a_process(unity: Unity) -> None:
    """On this server, parallel creates of one name all succeed."""
    unity.server.state.race = lambda: time.sleep(0.05)
    new = (*N, "new")
    catalog = unity.open()
    codes = _in_parallel(lambda: catalog.apply(c.DeclareTable(new, {}, OURS), WriteContext()), 6)
    assert sorted(codes, key=str) == [Code.TABLE_ALREADY_EXISTS] * 5 + [None]
    assert unity.table(new).marks == OURS


def test_two_processes_that_create_one_name_are_told(unity: Unity) -> None:
    unity.server.state.race = threading.Barrier(3, timeout=30).wait
    new = (*N, "new")
    codes = _in_parallel(lambda: unity.apply(c.DeclareTable(new, {}, OURS), catalog=unity.open()), 3)
    assert Code.INVALID_TABLE_STATE in codes
    finding = unity.find("Table", new)
    assert not isinstance(finding, Absent | Present)


def _in_parallel(call: Callable[[], None], count: int) -> list[Code | None]:
    codes: list[Code | None] = []

    def run() -> None:
        try:
            call()
            codes.append(None)
        except CatalogError as error:
            codes.append(error.code)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return codes


# who may make again what is removed

US, THEM = "ci@acme.io", "admin@acme.io"


def owned(unity: Unity, **owners: str) -> None:
    """Authorization is on; who owns the catalog, the schema and the table."""
    server = unity.server
    server.token, server.principal = "canary", US
    server.state.catalog("lake").info["owner"] = owners.get("catalog", THEM)
    unity.wire(N)["owner"] = owners.get("schema", THEM)
    unity.wire()["owner"] = owners.get("table", THEM)


def refusals(unity: Unity) -> list[Unsupported]:
    catalog = unity.open(auth_token="canary")
    return [u for u in catalog.scan(Scope(detail=frozenset({T}))) if isinstance(u, Unsupported)]


@pytest.mark.parametrize("owner", ["table", "catalog"])
def test_what_the_principal_could_not_make_again_is_not_replaced(unity: Unity, owner: str) -> None:
    """The right to remove an entry is another one than the right to make one. The plan says so, and so does a saved
    plan of somebody else's, before anything is removed."""
    owned(unity, **{owner: US})
    unity.server.grants["schema/lake.n"] = {US: ["USE SCHEMA"], THEM: ["CREATE TABLE"]}
    (told,) = refusals(unity)
    assert (told.ident, told.change) == (T, "ReplaceTable")
    assert told.reason == (
        f"{US} may remove the entry of lake.n.t and may not make it again: grant CREATE TABLE on schema lake.n"
    )
    before = dict(unity.wire())
    with pytest.raises(CatalogError, match="may not make it again") as error:
        unity.apply(replacing(unity), catalog=unity.open(auth_token="canary"))
    assert error.value.code is Code.PERMISSION_DENIED
    assert unity.wire() == before
    assert not [m for m, _ in unity.server.requests if m == "DELETE"]
    assert no_records(unity)


@pytest.mark.parametrize(
    "held",
    [
        {"schema/lake.n": ["CREATE TABLE", "USE SCHEMA"]},
        {"catalog/lake": ["CREATE TABLE", "USE SCHEMA", "USE CATALOG"]},
        {"catalog/lake": ["USE SCHEMA"], "schema/lake.n": ["CREATE TABLE"]},
        {},
    ],
)  # fmt: skip
def test_what_the_principal_can_make_again_is_replaced(unity: Unity, held: dict[str, list[str]]) -> None:
    """By its grants, on the schema or above it; or because the schema is its own."""
    owned(unity, table=US, schema=THEM if held else US)
    unity.server.grants = {of: {US: privileges} for of, privileges in held.items()}
    assert refusals(unity) == []
    unity.apply(replacing(unity), catalog=unity.open(auth_token="canary"))
    assert unity.wire()["properties"]["b"] == "2"


@pytest.mark.parametrize(
    ("owner", "held", "closed"),
    [(THEM, [], True), (THEM, ["READ FILES"], True), (THEM, ["CREATE EXTERNAL TABLE"], False), (US, [], False)],
)
def test_the_external_location_of_the_data_has_to_allow_it_too(
    unity: Unity, owner: str, held: list[str], closed: bool
) -> None:
    """Even to the owner of the schema."""
    owned(unity, table=US, schema=US)
    unity.server.external = [
        {"name": "beside", "url": f"file://{unity.root}/la", "owner": THEM},
        {"name": "place", "url": f"file://{unity.root}/lake", "owner": owner},
    ]
    unity.server.grants["external_location/place"] = {US: held}
    assert [u.reason.partition(": ")[2] for u in refusals(unity)] == (
        ["grant CREATE EXTERNAL TABLE on external location place"] if closed else []
    )
    if closed:
        with pytest.raises(CatalogError, match="may not make it again"):
            unity.apply(replacing(unity), catalog=unity.open(auth_token="canary"))
    else:
        unity.apply(replacing(unity), catalog=unity.open(auth_token="canary"))
    assert ("b" in unity.wire()["properties"]) != closed


def test_what_the_server_does_not_say_is_no_refusal(unity: Unity) -> None:
    """Neither is a principal that can remove nothing (a plan on a pull request), nor a server that knows no users."""
    owned(unity)
    assert refusals(unity) == []
    owned(unity, table=US)
    unity.server.missing.add("permissions")
    assert refusals(unity) == []
    unity.server.missing.clear()
    unity.server.principal = None
    assert refusals(unity) == []


def test_owners_are_asked_about_only_where_there_are_any(unity: Unity) -> None:
    """Without authorization nothing has an owner, and a plan makes no call more."""
    unity.server.token, unity.server.principal = "canary", US
    unity.server.requests.clear()
    assert refusals(unity) == []
    assert not [p for _, p in unity.server.requests if "scim2" in p or "permissions" in p]
