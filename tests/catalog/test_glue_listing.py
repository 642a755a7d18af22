"""A listing is complete or says what is missing, and takes no call more than it needs."""

from __future__ import annotations

import itertools
import json
import threading
from typing import Any

import pytest
from catalog.glue_support import Account, account, found, glue_client, glue_server, scanned

from reconciler.catalog.glue_api import GlueApi
from reconciler.catalog.glue_capabilities import GlueCapabilities
from reconciler.catalog.glue_store import GlueStore
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Absent, Gap, Present, Scope, Unreadable
from reconciler.model.state import NamespaceState

__all__ = ["account", "glue_client", "glue_server"]


@pytest.mark.parametrize("empty_pages", [False, True])
def test_every_page_is_read(account: Account, empty_pages: bool) -> None:
    for number in range(7):
        account.make_database(f"db{number}")
    for number in range(11):
        account.make_table(f"t{number:02}", "db3")
    account.server.forget()
    account.server.page_size, account.server.empty_pages = 3, empty_pages
    seen = scanned(account.connect())
    assert sorted(i for k, i in seen if k == "Namespace") == [(f"db{n}",) for n in range(7)]
    assert sorted(i for k, i in seen if k == "Table") == [("db3", f"t{n:02}") for n in range(11)]
    assert account.connect().children(("db3",)) == [f"t{n:02}" for n in range(11)]


def test_calls_of_a_scan(account: Account) -> None:
    """One listing of databases, one of tables for each of them: no call for a table, none for child catalogs."""
    for number in range(3):
        account.make_database(f"db{number}")
        account.make_table("t", f"db{number}")
        account.make_table("u", f"db{number}")
    account.server.forget()
    scanned(account.connect(), Scope(namespaces=frozenset({("db0",)}), detail=frozenset({("db0", "t")})))
    assert account.server.calls == {"GetDatabases": 1, "GetTables": 3}
    assert all(a["MaxResults"] == 100 for _, a in account.server.requests)


def test_what_is_not_ours_to_use_is_counted_and_left_alone(account: Account) -> None:
    account.make_database()
    account.make_database("link", TargetDatabase={"CatalogId": "1", "DatabaseName": "d"})
    account.make_table("lance")
    account.make_table("upper", Parameters={"table_type": "LANCE"})
    account.make_table("untyped", TableType="")
    account.make_table("view", TableType="VIRTUAL_VIEW", Parameters={})
    account.make_table("governed", TableType="GOVERNED")
    account.make_table("iceberg", Parameters={"table_type": "ICEBERG"})
    account.make_table("linked", TargetTable={"CatalogId": "1", "DatabaseName": "d", "Name": "t"})
    account.make_table("federated", FederatedTable={"Identifier": "x", "DatabaseIdentifier": "y"})
    account.make_table("nowhere", StorageDescriptor={"Columns": []})
    account.make_table("bare", TableType="EXTERNAL_TABLE", Parameters={})
    seen = scanned(account.connect())
    usable = {i[-1] for (k, i), finding in seen.items() if k == "Table" and isinstance(finding, Present)}
    broken = {i[-1] for (k, i), finding in seen.items() if isinstance(finding, Unreadable)}
    assert usable == {"lance", "upper"}
    assert broken == {"link", "view", "governed", "iceberg", "linked", "federated", "nowhere", "bare", "untyped"}
    assert len(account.connect().children(("db",))) == 10
    for name in ("view", "linked", "iceberg"):
        assert isinstance(found(account.connect(), "Table", ("db", name)), Unreadable)


@pytest.mark.parametrize("type_", [None, "", "MANAGED_TABLE", "GOVERNED", "external_table"])
def test_only_an_external_table_is_a_lance_table(account: Account, type_: str | None) -> None:
    account.make_database()
    table = account.make_table("other", **({"TableType": type_} if type_ is not None else {}))
    if type_ is None:
        account.glue.delete_table(CatalogId=account.id, DatabaseName="db", Name="other")
        del table["TableType"]
        account.glue.create_table(CatalogId=account.id, DatabaseName="db", TableInput=table)
    one = found(account.connect(), "Table", ("db", "other"))
    assert isinstance(one, Unreadable)
    assert one.foreign
    assert "EXTERNAL_TABLE" in one.message
    assert scanned(account.connect())["Table", ("db", "other")] == one


def test_a_page_that_fails_leaves_a_gap_in_its_database_only(account: Account) -> None:
    for name in ("bad", "good"):
        account.make_database(name)
        for number in range(4):
            account.make_table(f"t{number}", name)
    account.server.forget()
    account.server.page_size = 2
    account.server.fail("GetTables", "AccessDeniedException", skip=1)  # one of the later pages, or a first one
    seen = scanned(account.connect())
    ((_, gap),) = [(key, one) for key, one in seen.items() if isinstance(one, Gap)]
    assert gap.code is Code.PERMISSION_DENIED
    assert len(gap.ident) == 1
    other = "good" if gap.ident == ("bad",) else "bad"
    assert [("Table", (other, f"t{n}")) in seen for n in range(4)] == [True] * 4


def test_a_database_that_goes_while_it_is_listed_is_not_empty(account: Account) -> None:
    account.make_database()
    account.make_table()
    account.server.before("GetTables", lambda: account.glue.delete_database(CatalogId=account.id, Name="db"))
    seen = scanned(account.connect())
    assert isinstance(seen["Gap", ("db",)], Gap)


def test_nothing_is_said_when_the_first_listing_fails(account: Account) -> None:
    account.server.fail("GetDatabases", "AccessDeniedException", message="Insufficient Lake Formation permission(s)")
    with pytest.raises(CatalogError) as caught:
        scanned(account.connect())
    assert caught.value.code is Code.PERMISSION_DENIED
    for number in range(3):
        account.make_database(f"db{number}")
    account.server.page_size = 2
    account.server.fail("GetDatabases", "InternalServiceException", status=500, skip=1, times=None)
    seen = scanned(account.connect(max_retries="1"))
    assert isinstance(seen["Gap", ()], Gap)


@pytest.mark.parametrize("body", ['{"TableList": [', "<html>sign in</html>", "[]", "{}", "", '{"TableList": null}'])
def test_an_answer_that_is_no_answer_is_not_an_empty_database(account: Account, body: str) -> None:
    """botocore itself reads such an answer as one without any table."""
    account.make_database()
    account.make_table()
    for _ in range(2):
        account.server.answer("GetTables", body)
    seen = scanned(account.connect(max_retries="1"))
    assert isinstance(seen["Gap", ("db",)], Gap)
    account.server.answer("GetTables", body)
    assert ("Table", ("db", "t")) in scanned(account.connect(max_retries="1"))


@pytest.mark.parametrize("body", ["{}", "", '{"message": "ok"}'])
def test_an_answer_without_its_list_is_not_an_empty_catalog(account: Account, body: str) -> None:
    account.make_database()
    account.server.answer("GetDatabases", body)
    with pytest.raises(CatalogError, match="holds no DatabaseList") as caught:
        scanned(account.connect(max_retries="0"))
    assert caught.value.code is Code.SERVICE_UNAVAILABLE
    account.server.answer("GetCatalogs", body)
    seen = scanned(account.connect(max_retries="0"), Scope(namespaces=frozenset({("parent", "db")})))
    assert isinstance(seen["Gap", ("parent",)], Gap)
    account.server.answer("GetDatabase", body)
    with pytest.raises(CatalogError, match="holds no Database"):
        found(account.connect(max_retries="0"), "Namespace", ("db",))


@pytest.mark.parametrize("item", ["{}", "null", '{"Name": null}', '{"Name": 7}'])
def test_an_item_without_a_name_is_not_left_out(account: Account, item: str) -> None:
    account.make_database()
    account.server.answer("GetTables", f'{{"TableList": [{item}]}}')
    gap = scanned(account.connect())["Gap", ("db",)]
    assert isinstance(gap, Gap)
    assert gap.message == "list the tables of db: the answer holds an item of TableList without Name"
    account.server.answer("GetDatabases", f'{{"DatabaseList": [{item}]}}')
    with pytest.raises(CatalogError, match=r"list the databases of the catalog: .*DatabaseList without Name"):
        scanned(account.connect())
    account.server.answer("GetCatalogs", f'{{"CatalogList": [{item}]}}')
    seen = scanned(account.connect(), Scope(namespaces=frozenset({("parent", "db")})))
    assert isinstance(seen["Gap", ("parent",)], Gap)
    account.server.answer("GetUserDefinedFunctions", f'{{"UserDefinedFunctions": [{item}]}}')
    with pytest.raises(CatalogError, match=r"list the functions of db: .* without FunctionName"):
        account.connect().children(("db",))


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ({"StorageDescriptor": {"Location": "/x", "Columns": [{"Type": "int"}]}}, "a column without a Name"),
        ({"StorageDescriptor": {"Location": "/x", "Columns": [None]}}, "a column without a Name"),
        ({"StorageDescriptor": {"Location": "/x", "Columns": [{"Name": "c", "Type": []}]}}, "a column c whose Type"),
        ({"StorageDescriptor": {"Location": {"a": 1}}}, "a Location that is no text"),
        ({"Parameters": {"table_type": 5}}, "Parameters that are no text"),
        ({"Description": {"a": 1}}, "a Description that is no text"),
    ],
)
def test_an_odd_table_is_unreadable_and_no_other(account: Account, odd: dict[str, Any], words: str) -> None:
    good = {"Name": "good", "TableType": "EXTERNAL_TABLE", "Parameters": {"table_type": "lance"}}
    good["StorageDescriptor"] = {"Location": "/x/good", "Columns": []}
    account.make_database()
    account.server.answer("GetTables", json.dumps({"TableList": [{**good, "Name": "bad", **odd}, good]}))
    seen = scanned(account.connect())
    assert isinstance(seen["Table", ("db", "good")], Present)
    account.server.answer("GetTable", json.dumps({"Table": {**good, "Name": "bad", **odd}}))
    for bad in (seen["Table", ("db", "bad")], found(account.connect(), "Table", ("db", "bad"))):
        assert isinstance(bad, Unreadable)
        assert bad.code is Code.INTERNAL
        assert f"Glue's answer for db.bad has {words}" in bad.message


@pytest.mark.parametrize("odd", ['{"Name": "t", "Parameters": [1]}', '{"Name": "t", "StorageDescriptor": "x"}', "7"])
def test_what_botocore_cannot_read_is_a_gap_that_says_so(account: Account, odd: str) -> None:
    account.make_database()
    account.server.answer("GetTables", f'{{"TableList": [{odd}]}}')
    gap = scanned(account.connect())["Gap", ("db",)]
    assert isinstance(gap, Gap)
    assert "list the tables of db: the answer does not have the form of Glue's API" in gap.message


def test_an_odd_database_is_unreadable(account: Account) -> None:
    account.server.answer("GetDatabases", '{"DatabaseList": [{"Name": "db", "Parameters": {"a": [1]}}]}')
    account.make_database()
    bad = scanned(account.connect())["Namespace", ("db",)]
    assert isinstance(bad, Unreadable)
    assert bad.message == "Glue's answer for db has Parameters that are no text"


@pytest.mark.parametrize("token", ['{"a": 1}', "[1]", "7", "false"])
def test_a_page_token_that_is_no_text_is_not_the_end(account: Account, token: str) -> None:
    account.make_database()
    account.server.answer("GetTables", f'{{"TableList": [], "NextToken": {token}}}')
    gap = scanned(account.connect())["Gap", ("db",)]
    assert isinstance(gap, Gap)
    assert gap.message == "list the tables of db: the answer has a page token that is no text"


def test_absence_is_an_answer_and_never_an_error(account: Account) -> None:
    catalog = account.connect(max_retries="0")
    assert isinstance(found(catalog, "Namespace", ("db",)), Absent)
    assert isinstance(found(catalog, "Table", ("db", "t")), Absent)
    account.make_database()
    assert isinstance(found(catalog, "Table", ("db", "t")), Absent)
    account.server.fail("GetTable", "AccessDeniedException", message="Insufficient Lake Formation permission(s) on t")
    lost = found(catalog, "Table", ("db", "t"))
    assert isinstance(lost, Unreadable)
    assert lost.code is Code.PERMISSION_DENIED
    account.server.fail("GetDatabase", "InternalServiceException", status=500)
    assert isinstance(found(catalog, "Namespace", ("db",)), Unreadable)
    for name in ("ThrottlingException", "OperationTimeoutException", "FederationSourceRetryableException"):
        account.server.fail("GetTable", name)
        with pytest.raises(CatalogError):
            found(account.connect(max_retries="0"), "Table", ("db", "t"))
    account.server.answer("GetTable", "{}")
    with pytest.raises(CatalogError, match="holds no Table"):
        found(account.connect(max_retries="0"), "Table", ("db", "t"))


def test_a_mistake_of_ours_is_not_an_empty_database(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.make_database()
    account.make_table()

    def mistaken(*_: object, **__: object) -> None:
        raise IndexError("a bug")

    monkeypatch.setattr("reconciler.catalog.glue_walk.table_entry", mistaken)
    with pytest.raises(CatalogError, match="a bug"):
        scanned(account.connect())


def test_ignored_databases_are_not_read(account: Account) -> None:
    for name in ("work", "scratch"):
        account.make_database(name)
        account.make_table("t", name)
    account.server.forget()
    seen = scanned(account.connect(), Scope(ignore=("scratch.**",)))
    assert ("Table", ("work", "t")) in seen
    assert account.server.calls["GetTables"] == 1
    scanned(account.connect(), Scope(ignore=("scratch", "scratch.a*")))
    assert account.server.calls["GetTables"] == 3


# child catalogs


def catalogs(account: Account) -> tuple[str, str]:
    child = account.server.add_catalog(account.id, "parent", "child", Parameters={"k": "v"})
    other = account.server.add_catalog(account.id, "other")
    account.make_database("db", child, Parameters={"deep": "yes"})
    account.make_table("t", catalog=child)
    account.make_database("db", other)
    account.make_database("flat")
    account.server.forget()
    return child, other


def test_child_catalogs_are_read_only_where_an_identifier_leads_there(account: Account) -> None:
    catalogs(account)
    assert set(scanned(account.connect())) == {("Namespace", ("flat",))}
    assert account.server.calls["GetCatalogs"] == 0
    deep = ("parent", "child", "db")
    seen = scanned(account.connect(), Scope(namespaces=frozenset({deep})))
    assert set(seen) == {
        ("Namespace", ("flat",)), ("Namespace", ("parent",)), ("Namespace", ("parent", "child")),
        ("Namespace", deep), ("Table", (*deep, "t")),
    }  # fmt: skip
    assert seen["Namespace", deep] == Present(NamespaceState({"deep": "yes"}))
    assert all("IncludeRoot" not in a for _, a in account.server.requests)
    everything = scanned(account.connect(catalogs="true"))
    assert ("Namespace", ("other", "db")) in everything
    assert ("Table", (*deep, "t")) in everything


def test_many_child_catalogs_take_many_pages(account: Account) -> None:
    for number in range(5):
        id_ = account.server.add_catalog(account.id, f"c{number}")
        account.make_database("db", id_)
    account.server.forget()
    account.server.page_size, account.server.empty_pages = 2, True
    seen = scanned(account.connect(catalogs="true"))
    assert sum(1 for kind, ident in seen if len(ident) == 2) == 5


def test_child_catalogs_that_fail_leave_the_databases_of_the_root_alone(account: Account) -> None:
    catalogs(account)
    scope = Scope(namespaces=frozenset({("parent", "child", "db")}))
    account.server.fail("GetCatalogs", "AccessDeniedException", times=None)
    seen = scanned(account.connect(), scope)
    assert set(seen) == {("Namespace", ("flat",)), ("Gap", ("parent",))}
    seen = scanned(account.connect(catalogs="true"))
    assert ("Namespace", ("flat",)) in seen
    (place,) = [ident for kind, ident in seen if kind == "Gap"]
    assert place not in ((), ("flat",))
    account.server.forget()
    account.server.fail("GetDatabases", "AccessDeniedException", skip=2)
    seen = scanned(account.connect(), scope)
    assert ("Gap", ("parent", "child")) in seen
    assert ("Namespace", ("flat",)) in seen


def test_reads_agree_with_the_scan(account: Account) -> None:
    child, _ = catalogs(account)
    catalog = account.connect()
    deep = ("parent", "child", "db")
    assert isinstance(found(catalog, "Namespace", deep), Present)
    assert isinstance(found(catalog, "Namespace", ("parent", "child")), Present)
    assert isinstance(found(catalog, "Table", (*deep, "t")), Present)
    assert isinstance(found(catalog, "Namespace", ("parent", "nobody", "db")), Absent)
    assert isinstance(found(catalog, "Table", ("nobody", "db", "t")), Absent)
    asked: list[Any] = [a.get("CatalogId") for o, a in account.server.requests if o == "GetTable"]
    assert asked == [child]


def test_a_database_and_a_child_catalog_of_one_name(account: Account) -> None:
    """The identifier is the database's, and what is in the catalog still makes it a parent."""
    child = account.server.add_catalog(account.id, "both", Parameters={"of": "catalog"})
    account.make_database("both", Parameters={"of": "database"})
    account.make_database("db", child)
    account.make_table("t", "both")
    seen = scanned(account.connect(catalogs="true"))
    assert set(seen) == {("Namespace", ("both",)), ("Namespace", ("both", "db")), ("Table", ("both", "t"))}
    assert seen["Namespace", ("both",)] == Present(NamespaceState({"of": "database"}))
    assert found(account.connect(catalogs="true"), "Namespace", ("both",)) == seen["Namespace", ("both",)]


class Endless:
    """Answers as boto3 does, from a database that never ends."""

    def __init__(self) -> None:
        self.pages = 0

    def get_databases(self, **_: object) -> dict[str, Any]:
        return {"DatabaseList": [{"Name": f"db{n}"} for n in range(20)]}

    def get_tables(self, NextToken: str = "0", **_: object) -> dict[str, Any]:
        self.pages += 1
        first = int(NextToken)
        storage = {"Location": "s3://b/t", "Columns": [{"Name": "id", "Type": "bigint"}]}
        tables = [
            {"Name": f"t{first + n}", "Parameters": {"table_type": "lance"}, "StorageDescriptor": storage}
            for n in range(100)
        ]
        return {"TableList": tables, "NextToken": str(first + 100)}


@pytest.mark.slow
def test_a_listing_streams_and_stops_when_nobody_reads_on() -> None:
    client = Endless()
    store = GlueStore(GlueApi(client, 16, 0), GlueCapabilities(), "Glue", {})
    before = threading.active_count()
    walk = store.walk(Scope())
    assert len(list(itertools.islice(walk, 5020))) == 5020
    assert client.pages <= 50 + 100, "a bounded number of pages is read ahead"
    walk.close()  # type: ignore[attr-defined]
    assert threading.active_count() <= before


@pytest.mark.parametrize("tokens", ["A", "AB", "XAB"])
def test_pages_that_go_round_end(tokens: str) -> None:
    turns = itertools.chain(tokens, itertools.cycle(tokens[-2:]))

    class Round(Endless):
        def get_tables(self, NextToken: str = "", **_: object) -> dict[str, Any]:
            self.pages += 1
            assert self.pages < 10, "it would never end"
            return {"TableList": [], "NextToken": next(turns)}

    store = GlueStore(GlueApi(Round(), 16, 0), GlueCapabilities(), "Glue", {})
    with pytest.raises(CatalogError, match="same page token twice"):
        store.inside(("db",))
