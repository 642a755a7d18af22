"""Unity behind a proxy that loses, delays and spoils answers: everything converges, and nothing is made twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from catalog.unity_support import OURS, Killed, T, fresh_unity
from contract.backends import Backend
from contract.lake import Doc, Lake, namespace, table
from contract.outsider_unity import UnityOutsider, endpoint, unity_site
from servers.proxy import Fault, Proxy, Request, answer, cut_answer, cut_before, delay, edited, reset_after, truncate

from reconciler.catalog import unity_store
from reconciler.catalog.base import WriteContext
from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.catalog.http import Timeouts
from reconciler.catalog.unity import connect
from reconciler.catalog.unity_client import KINDS
from reconciler.catalog.unity_store import UnityStore
from reconciler.engine.observe import observe
from reconciler.model import change as c
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind
from reconciler.model.observed import Present, Scope, Unreadable

FAULTS: dict[str, Fault] = {
    "cut_answer": cut_answer,
    "cut_before": cut_before,
    "reset_after": reset_after,
    "truncate": truncate,
    "500_done": answer(500, '{"error_code": "INTERNAL", "message": "x"}', forward=True),
    "503": answer(503, "busy", json=False, retry_after=0.01),
    "429": answer(429, '{"error_code": "RESOURCE_EXHAUSTED", "message": "slowly"}', retry_after=0.01),
}
WRITES = 7


@dataclass
class Behind:
    """A fresh catalog, with the proxy between it and us."""

    lake: Lake
    proxy: Proxy

    def open(self, **more: str) -> EntryCatalog:
        options = {k: str(v) for k, v in self.lake.site.options.items() if k != "type"}
        return connect({**options, "endpoint": self.proxy.endpoint, "max_retries": "2", **more})

    def reach(self, docs: list[Doc], catalog: EntryCatalog) -> None:
        report = self.lake.apply(self.lake.plan(docs, catalog), catalog)
        assert report.outcome in ("applied", "no_changes"), report.to_json()
        assert self.lake.plan(docs).steps == ()


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Behind]:
    backend = Backend("unity", unity_site)
    lake = Lake(backend, unity_site(tmp_path, lambda name: None), tmp_path)
    with Proxy(endpoint()) as proxy:
        yield Behind(lake, proxy)


def is_write(request: Request) -> bool:
    return request.method != "GET"


def through_its_life(behind: Behind, catalog: EntryCatalog) -> None:
    """Seven writes: a schema and a table are made, changed (the entry is replaced) and removed."""
    lake, t = behind.lake, behind.lake.t("t")
    outsider = lake.outsider
    assert isinstance(outsider, UnityOutsider)
    behind.reach([*lake.home(), table(t, {"id": "int64"}, properties={"a": "1"}, description="d")], catalog)
    outsider.set_properties("Table", t, {"theirs": "x"})
    changed = table(t, {"id": "int64", "more": "string"}, properties={"a": "2"}, description="e")
    behind.reach([*lake.home(properties={"k": "v"}), changed], catalog)
    (entry,) = outsider.entries().values()
    assert {k: v for k, v in entry.properties.items() if not k.startswith("reconciler.")} == {
        "a": "2", "theirs": "x", "description": "e",
    }  # fmt: skip
    assert isinstance(entry.raw, dict)
    assert [x["name"] for x in entry.raw["columns"]] == ["id", "more"]
    assert outsider.open(t).schema.names == ["id", "more"]
    behind.reach([namespace(lake.at, state="absent"), table(t, state="absent")], catalog)
    assert outsider.namespaces() == {}


def _suffer(behind: Behind, fault: Fault, number: int) -> None:
    rule = behind.proxy.fault(fault, where=is_write, skip=number)
    through_its_life(behind, behind.open())
    assert rule.used == 1


@pytest.mark.parametrize("number", range(WRITES))
@pytest.mark.parametrize("fault", [pytest.param(f, id=n, marks=pytest.mark.slow) for n, f in FAULTS.items()])
def test_a_fault_at_every_write(behind: Behind, fault: Fault, number: int) -> None:
    _suffer(behind, fault, number)


@pytest.mark.parametrize("number", [3, 4])
def test_a_lost_answer_of_both_halves_of_a_replacement(behind: Behind, number: int) -> None:
    _suffer(behind, cut_answer, number)


def test_seven_writes_are_all(behind: Behind) -> None:
    through_its_life(behind, behind.open())
    assert sum(is_write(r) for r in behind.proxy.seen) == WRITES
    assert not any("force" in r.path for r in behind.proxy.seen)


# a replacement that stops half-way


@pytest.mark.slow
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize(("fault", "method"), [("503", "POST"), ("429", "POST"), ("500_done", "DELETE")])
def test_a_removed_entry_is_told_and_comes_back_without_an_allow_word(
    behind: Behind, monkeypatch: pytest.MonkeyPatch, fault: str, method: str, back: bool
) -> None:
    monkeypatch.setattr(unity_store, "_FIRST", 0.0)
    lake, t, outsider = behind.lake, behind.lake.t("t"), behind.lake.outsider
    one = [*lake.home(), table(t, {"id": "int64"}, properties={"a": "1"})]
    two = [*lake.home(), table(t, {"id": "int64"}, properties={"a": "2"})]
    lake.reach(one)
    outsider.set_properties("Table", t, {"theirs": "x", "description": "their words"})
    catalog = behind.open()
    plan = lake.plan(two, catalog)
    behind.proxy.fault(FAULTS[fault], method=method, path="/tables", times=None)
    if method == "DELETE":
        behind.proxy.fault(FAULTS["503"], method="GET", path="/tables/", skip=4, times=2)
        behind.proxy.fault(FAULTS["503"], method="POST", path="/tables", times=None)
    report = lake.apply(plan, catalog, max_retries=1)
    assert outsider.entries() == {}
    assert report.outcome == "partial"
    (step,) = (s for s in report.steps if s.step.action == "replace_table")
    assert step.error is not None
    unread = "What the catalog holds is not known; apply again."  # The read was sent twice: there is no third.
    assert (unread if method == "DELETE" else "the next apply restores the entry") in step.error.message
    behind.proxy.forget()
    again = lake.plan(one if back else two, catalog, allow=frozenset())
    assert [s.action for s in again.steps] == ["declare_table"]
    assert lake.apply(again, catalog).outcome == "applied"
    assert lake.plan(one if back else two, allow=frozenset()).steps == ()
    (entry,) = outsider.entries().values()
    assert {k: v for k, v in entry.properties.items() if not k.startswith("reconciler.")} == {
        "a": "1" if back else "2", "theirs": "x", "description": "their words",
    }  # fmt: skip


def test_a_refused_entry_that_was_put_back_is_a_write_that_landed(behind: Behind) -> None:
    """The old entry is another one now: exit code 5, never "nothing was written"."""
    lake, t, outsider = behind.lake, behind.lake.t("t"), behind.lake.outsider
    lake.reach([*lake.home(), table(t, {"id": "int64"}, properties={"a": "1"})])
    old = outsider.entries()[t]
    catalog = behind.open()
    plan = lake.plan([*lake.home(), table(t, {"id": "int64"}, properties={"a": "2"})], catalog)
    refused = answer(400, '{"error_code": "INVALID_ARGUMENT", "message": "no"}')
    behind.proxy.fault(refused, method="POST", path="/tables$")
    report = lake.apply(plan, catalog)
    (step,) = report.steps
    assert (report.outcome, step.status) == ("partial", "failed")
    assert step.error is not None
    assert "is put back as it was, under a new table id" in step.error.message
    assert (behind.proxy.count("DELETE"), behind.proxy.count("POST", "/tables$")) == (1, 2), "tried once"
    new = outsider.entries()[t]
    assert (new.properties, new.location) == (old.properties, old.location)
    assert new.raw["table_id"] != old.raw["table_id"]  # type: ignore[index]


@pytest.mark.parametrize(
    "fault", [cut_before, FAULTS["503"], answer(500, '{"error_code": "INTERNAL", "message": "x"}')]
)
def test_an_entry_that_never_arrives_leaves_the_old_one(
    behind: Behind, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    """Sent as often as `max_retries` allows; then the old entry is put back, and the step is not tried again."""
    monkeypatch.setattr(unity_store, "_FIRST", 0.0)
    lake, t, outsider = behind.lake, behind.lake.t("t"), behind.lake.outsider
    lake.reach([*lake.home(), table(t, {"id": "int64"}, properties={"a": "1"})])
    outsider.set_properties("Table", t, {"theirs": "x"})
    old = outsider.entries()[t]
    wanted = [*lake.home(), table(t, {"id": "int64"}, properties={"a": "2"})]
    catalog = behind.open()
    plan = lake.plan(wanted, catalog)
    behind.proxy.fault(fault, method="POST", path="/tables$", times=3)
    report = lake.apply(plan, catalog)
    (step,) = report.steps
    assert (report.outcome, step.status) == ("partial", "failed")
    assert (behind.proxy.count("DELETE"), behind.proxy.count("POST", "/tables$")) == (1, 4)
    new = outsider.entries()[t]
    assert (new.properties, new.location) == (old.properties, old.location)
    behind.reach(wanted, behind.open())
    assert outsider.entries()[t].properties.items() >= {"a": "2", "theirs": "x"}.items()


def test_an_apply_with_nothing_to_do_settles_the_record_of_a_replacement_that_was_done(behind: Behind) -> None:
    """Its run was killed after the POST. What others took away later is not revived when the entry is lost."""
    lake, t, outsider = behind.lake, behind.lake.t("t"), behind.lake.outsider
    lake.reach([*lake.home(), table(t, {"id": "int64"}, properties={"a": "1"})])
    outsider.set_properties("Table", t, {"theirs": "x"})
    wanted = [*lake.home(), table(t, {"id": "int64"}, properties={"a": "2"})]
    dying = behind.open()
    (step,) = lake.plan(wanted, dying).steps
    store = dying.store
    assert isinstance(store, UnityStore)
    store.records.end = _die  # type: ignore[method-assign]
    with pytest.raises(Killed):
        dying.apply(step.change, WriteContext())
    nothing = lake.plan(wanted)
    assert nothing.steps == ()
    assert lake.apply(nothing, behind.open()).outcome == "no_changes"
    assert isinstance(outsider, UnityOutsider)
    outsider.call("DELETE", f"/tables/{'.'.join(t)}")
    behind.reach(wanted, behind.open())
    assert "theirs" not in outsider.entries()[t].properties
    assert outsider.entries()[t].properties["a"] == "2"


def _die(*_: object) -> None:
    raise Killed


def test_a_rename_and_a_replacement_in_one_plan(behind: Behind) -> None:
    """The new name first: what others have set comes along."""
    lake, outsider = behind.lake, behind.lake.outsider
    lake.reach([*lake.home(), table(lake.t("old"), {"id": "int64"}, properties={"a": "1"})])
    outsider.set_properties("Table", lake.t("old"), {"theirs": "x"})
    more = {"id": "int64", "n": "string"}
    wanted = table(lake.t("new"), more, properties={"a": "2"}, renamedFrom=[*lake.t("old")])
    plan = lake.plan([*lake.home(), wanted])
    assert [s.action for s in plan.steps] == ["rename_table", "add_columns", "replace_table"]
    behind.reach([*lake.home(), wanted], behind.open())
    ((ident, entry),) = outsider.entries().items()
    assert ident == lake.t("new")
    assert entry.properties.items() >= {"a": "2", "theirs": "x"}.items()


@pytest.mark.parametrize("fault", [pytest.param(f, id=n) for n, f in FAULTS.items()])
def test_a_fault_at_a_rename(behind: Behind, fault: Fault) -> None:
    lake, outsider = behind.lake, behind.lake.outsider
    lake.reach([*lake.home(), table(lake.t("old"), {"id": "int64"}, properties={"a": "1"})])
    old = outsider.entries()[lake.t("old")]
    rule = behind.proxy.fault(fault, method="POST", path="/rename$")
    renamed = table(lake.t("new"), {"id": "int64"}, properties={"a": "1"}, renamedFrom=[*lake.t("old")])
    behind.reach([*lake.home(), renamed], behind.open())
    assert rule.used == 1
    ((ident, new),) = outsider.entries().items()
    assert (ident, new.raw["table_id"]) == (lake.t("new"), old.raw["table_id"])  # type: ignore[index]


# reads


def test_a_no_change_plan_is_pages_and_nothing_else(behind: Behind) -> None:
    lake = behind.lake
    docs = [namespace(lake.ns(f"s{n}")) for n in range(8)]
    docs += [table((*lake.ns(f"s{n}"), "t"), {"id": "int64"}) for n in range(8)]
    lake.reach(docs)
    behind.proxy.latency = 0.01
    catalog = behind.open()
    assert lake.plan(docs, catalog).steps == ()
    assert behind.proxy.count("GET") == len(behind.proxy.seen) == 1 + 8
    most = catalog.capabilities.max_parallelism
    assert 1 < behind.proxy.most_in_flight <= most
    assert behind.proxy.connections <= most


def _three_schemas(behind: Behind) -> None:
    for name in ("a", "b", "c"):
        behind.lake.outsider.create_namespace(behind.lake.ns(name))
        behind.lake.outsider.declare_table((*behind.lake.ns(name), "t"))


DENIED = answer(403, '{"error_code": "PERMISSION_DENIED", "message": "no"}')


@pytest.mark.parametrize("fault", [answer(500), DENIED, cut_answer, answer(200, "<html>", json=False)])
def test_a_page_that_fails_is_a_gap_below_its_schema(behind: Behind, fault: Fault) -> None:
    _three_schemas(behind)
    behind.proxy.fault(fault, path="/tables.*schema_name=b", times=None)
    snapshot = observe(behind.open(max_retries="0"), Scope())
    assert [g.ident for g in snapshot.gaps] == [behind.lake.ns("b")]
    assert sorted(t[1] for t in snapshot.tables) == ["a", "c"]
    assert len(snapshot.namespaces) == 4


def test_the_first_page_of_all_is_needed(behind: Behind) -> None:
    behind.proxy.fault(answer(503), path="/schemas", times=None)
    with pytest.raises(CatalogError) as error:
        list(behind.open(max_retries="0").scan(Scope()))
    assert error.value.code is Code.SERVICE_UNAVAILABLE


@pytest.mark.slow
@pytest.mark.parametrize("fault", [truncate, cut_answer, answer(503), answer(429, retry_after=0.01)])
def test_a_read_is_asked_again(behind: Behind, fault: Fault) -> None:
    _three_schemas(behind)
    behind.proxy.fault(fault, times=2)
    snapshot = observe(behind.open(max_retries="3"), Scope())
    assert not snapshot.gaps
    assert len(snapshot.tables) == 3


def test_a_table_that_may_not_be_read_is_unreadable(behind: Behind) -> None:
    lake = behind.lake
    docs = [*lake.home(), table(lake.t("t"), {"id": "int64"})]
    lake.reach(docs)
    behind.proxy.fault(DENIED, path="/tables/", times=None)
    store = behind.open().store
    entry = store.table(lake.t("t"))
    assert entry is not None
    assert (entry.code, entry.kind) == (Code.PERMISSION_DENIED, "Table")  # type: ignore[union-attr]


def test_two_schemas_of_one_name_are_one_broken_schema_and_their_maker_is_told(behind: Behind) -> None:
    """The server's database has nothing against it. It then fails on every question but the listing."""
    catalog, ident = behind.open(max_retries="0"), behind.lake.ns("twice")
    both = json.dumps({"schemas": [{"name": "twice", "catalog_name": ident[0], "properties": {}}] * 2})
    behind.proxy.fault(answer(200, both), method="GET", path=r"/schemas\?", times=None)
    behind.proxy.fault(
        answer(500, '{"error_code": "INTERNAL", "message": "Query did not return a unique result"}'),
        method="GET", path=r"/schemas/.*twice$", times=None,
    )  # fmt: skip
    with pytest.raises(CatalogError, match=r"holds 2 schemas named .*\.twice") as caught:
        catalog.apply(c.CreateNamespace(ident, {}, OURS), WriteContext())
    assert caught.value.code is Code.INVALID_TABLE_STATE
    (read,) = catalog.read([("Namespace", ident)], Scope())
    for finding in (read.finding, observe(catalog, Scope()).namespaces[ident]):
        assert isinstance(finding, Unreadable)
        assert "holds 2 schemas" in finding.message


def test_an_endless_page_is_an_error(behind: Behind) -> None:
    behind.proxy.fault(answer(200, '{"schemas": [], "next_page_token": "x"}'), path="/schemas", times=None)
    snapshot = observe(behind.open(), Scope())
    assert [g.ident for g in snapshot.gaps] == [behind.lake.ns()]


def test_pages_that_go_round_are_an_error(behind: Behind) -> None:
    """A, B, A, B…: no token is the one before."""
    a, b = (answer(200, f'{{"schemas": [], "next_page_token": "{t}"}}') for t in "AB")
    behind.proxy.fault(b, path="/schemas.*page_token=A", times=5)  # then the server itself ends it
    behind.proxy.fault(a, path="/schemas", times=5)
    snapshot = observe(behind.open(), Scope())
    assert [g.ident for g in snapshot.gaps] == [behind.lake.ns()]


@pytest.mark.parametrize("body", ["{}", '{"next_page_token": null}', '{"tables": null}', '{"message": "ok"}'])
def test_an_answer_without_its_list_is_not_an_empty_one(behind: Behind, body: str) -> None:
    _three_schemas(behind)
    behind.proxy.fault(answer(200, body), path="/tables.*schema_name=b", times=None)
    snapshot = observe(behind.open(), Scope())
    assert [g.ident for g in snapshot.gaps] == [behind.lake.ns("b")]
    behind.proxy.fault(answer(200, body), path="/schemas", times=None)
    with pytest.raises(CatalogError, match="not a page of schemas"):
        list(behind.open().scan(Scope()))


NAMELESS = ["null", "{}", '"t"', '{"name": null}', '{"name": "t"}, 7']


@pytest.mark.parametrize("item", NAMELESS)
def test_an_item_without_a_name_is_not_left_out(behind: Behind, item: str) -> None:
    _three_schemas(behind)
    behind.proxy.fault(answer(200, f'{{"tables": [{item}]}}'), path="/tables.*schema_name=b", times=None)
    (gap,) = observe(behind.open(), Scope()).gaps
    assert (gap.ident, gap.code) == (behind.lake.ns("b"), Code.INTERNAL)
    assert "GET /tables of" in gap.message
    assert "one of tables without a name" in gap.message
    behind.proxy.fault(answer(200, f'{{"schemas": [{item}]}}'), path="/schemas", times=None)
    with pytest.raises(CatalogError, match=r"GET /schemas .* one of schemas without a name"):
        list(behind.open().scan(Scope()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_not_dropped_for_a_list_that_names_nothing(behind: Behind, kind: str) -> None:
    lake = behind.lake
    lake.reach([*lake.home()])
    behind.proxy.fault(answer(200, f'{{"{KINDS[kind]}": [null]}}'), path=rf"/{kind}\?", times=None)
    with pytest.raises(CatalogError, match="without a name"):
        behind.open().apply(c.DropNamespace(lake.at), WriteContext())
    assert behind.proxy.count("DELETE") == 0


@pytest.mark.parametrize("token", ["{}", "[1]", "7", "false"])
def test_a_page_token_that_is_no_text_is_not_the_end(behind: Behind, token: str) -> None:
    _three_schemas(behind)
    behind.proxy.fault(answer(200, f'{{"tables": [], "next_page_token": {token}}}'), path="/tables.*schema_name=b")
    (gap,) = observe(behind.open(), Scope()).gaps
    assert gap.ident == behind.lake.ns("b")
    assert "page token that is no text" in gap.message


@pytest.mark.parametrize(("key", "value"), [("properties", [1]), ("properties", "x"), ("columns", [None])])
def test_an_odd_object_is_unreadable_and_no_other(behind: Behind, key: str, value: object) -> None:
    _three_schemas(behind)
    odd = edited(lambda body: {**body, "tables": [{**t, key: value} for t in body["tables"]]})
    behind.proxy.fault(odd, path="/tables.*schema_name=b", times=None)
    behind.proxy.fault(edited(lambda body: {**body, key: value}), path=r"/(tables|schemas)/", times=None)
    snapshot = observe(behind.open(), Scope())
    told = {t[1]: f.message for t, f in snapshot.tables.items() if isinstance(f, Unreadable)}
    assert list(told) == ["b"]
    assert f".b.t has {key} that are no" in told["b"]
    wanted: list[tuple[Kind, Ident]] = [("Table", (*behind.lake.ns("b"), "t")), ("Namespace", behind.lake.ns("b"))]
    for read in behind.open().read(wanted, Scope()):
        assert isinstance(read.finding, Unreadable), read
        assert read.finding.code is Code.INTERNAL


def test_a_schema_with_odd_properties_is_unreadable_and_its_tables_are_not(behind: Behind) -> None:
    _three_schemas(behind)
    odd = edited(lambda body: {**body, "schemas": [{**s, "properties": [1]} for s in body["schemas"]]})
    behind.proxy.fault(odd, path=r"/schemas\?", times=None)
    snapshot = observe(behind.open(), Scope())
    assert [i[1] for i, f in snapshot.namespaces.items() if isinstance(f, Unreadable)] == ["a", "b", "c"]
    assert all(isinstance(f, Present) for f in snapshot.tables.values())
    assert len(snapshot.tables) == 3


# options


@pytest.mark.slow
def test_times_are_seconds(behind: Behind) -> None:
    behind.proxy.fault(delay(1.6), path="/schemas", times=None)
    with pytest.raises(CatalogError, match="no answer in time"):
        list(behind.open(read_timeout="1", max_retries="0").scan(Scope()))
    store = behind.open(connect_timeout="3", read_timeout="7").store
    assert isinstance(store, UnityStore)
    assert store.client._http._timeouts == Timeouts(connect=3, read=7)


def test_max_retries(behind: Behind) -> None:
    behind.proxy.fault(answer(503), times=None)
    for retries in (0, 2):
        behind.proxy.seen.clear()
        with pytest.raises(CatalogError):
            list(behind.open(max_retries=str(retries)).scan(Scope()))
        assert len(behind.proxy.seen) == retries + 1


@pytest.mark.slow
def test_tables_and_records_in_a_bucket(tmp_path: Path, moto: Any) -> None:
    """`root` and `storage.*`: the data and what we keep beside it."""
    import lance

    root = moto.make_bucket("unity-lake") + "/below"
    storage = {f"storage.{k}": v for k, v in moto.storage_options.items()}
    with fresh_unity(tmp_path) as unity:
        unity.root = root
        make: Callable[..., Any] = unity.open
        unity.open = lambda **more: make(**storage, **more)  # type: ignore[method-assign]
        unity.fill()
        assert unity.wire()["storage_location"] == f"{root}/lake/n/t"
        dataset = lance.dataset(f"{root}/lake/n/t", storage_options=moto.storage_options)
        assert dataset.schema.names == ["id", "v"]
        unity.apply(c.UpdateTable(T, {}, (), OURS), c.ReplaceTable(T, {"a": "b"}, (), OURS))
        assert unity.table().properties == {"a": "b"}
        keys = [o["Key"] for o in moto.client.list_objects_v2(Bucket="unity-lake")["Contents"]]
        assert not [k for k in keys if "__reconciler" in k]
