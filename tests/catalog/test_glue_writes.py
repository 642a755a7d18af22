"""Writes keep what they do not manage, go out under the version that was read, and never take anything with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import lance
import pytest
from catalog.glue_support import Account, account, apply, found, glue_client, glue_server
from servers.moto import Moto

from reconciler.model import change as c
from reconciler.model.arrow import Field, parse_type
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Detached, Present
from reconciler.model.state import Column, DatasetState, Marks, TableState

__all__ = ["account", "glue_client", "glue_server"]

OURS = Marks("team-a")
T = ("db", "t")
FIELDS = (Field("Id", parse_type("int64"), False), Field("tags", parse_type("struct<userId: string>")))
COLUMNS = (Column("id", "bigint", comment="key"), Column("tags", "struct<userId:string>"))
FOREIGN: dict[str, Any] = {
    "Owner": "somebody",
    "Retention": 7,
    "PartitionKeys": [{"Name": "day", "Type": "date"}],
    "Parameters": {"table_type": "LANCE", "theirs": "1", "metadata_location": "x", "reconciler.owner": "team-a"},
    "StorageDescriptor": {
        "Location": "",
        "Columns": [
            {"Name": "id", "Type": "int", "Parameters": {"sensitivity": "high"}},
            {"Name": "gone", "Type": "string"},
        ],
        "InputFormat": "a.b.C",
        "SerdeInfo": {"SerializationLibrary": "s", "Parameters": {"p": "q"}},
        "BucketColumns": ["id"],
        "NumberOfBuckets": 4,
        "Parameters": {"of": "storage"},
        "AdditionalLocations": ["s3://b/x"],
    },
}


def code_of(catalog: Any, change: c.Change) -> Code:
    with pytest.raises(CatalogError) as caught:
        apply(catalog, change)
    return caught.value.code


def properties(finding: object) -> dict[str, str]:
    assert isinstance(finding, Present)
    return dict(finding.state.properties)


def test_a_table_is_what_the_manifest_says_and_opens_with_plain_pylance(account: Account) -> None:
    catalog = account.connect()
    apply(catalog, c.CreateNamespace(("db",), {"description": "what", "location": "s3://b/db", "a": "1"}, OURS))
    apply(catalog, c.DeclareTable(T, {"description": "photos", "pii": "no"}, OURS, None, COLUMNS))
    apply(catalog, c.CreateDataset(T, FIELDS, {}, {}, "team-a", ()))
    database, table = account.database(), account.table()
    assert (database["Description"], database["LocationUri"]) == ("what", "s3://b/db")
    assert database["Parameters"] == {"a": "1", "reconciler.owner": "team-a"}
    assert "CreateTableDefaultPermissions" not in database
    assert table["TableType"] == "EXTERNAL_TABLE"
    assert table["Description"] == "photos"
    assert table["Parameters"] == {"table_type": "lance", "pii": "no", "reconciler.owner": "team-a"}
    assert table["StorageDescriptor"] == {
        "Location": str(account.root / "db" / "t.lance"),
        "Columns": [
            {"Name": "id", "Type": "bigint", "Comment": "key"},
            {"Name": "tags", "Type": "struct<userId:string>"},
        ],
    }
    assert lance.dataset(table["StorageDescriptor"]["Location"]).schema.names == ["Id", "tags"]
    state = found(catalog, "Table", T, detail=True)
    assert isinstance(state, Present)
    assert isinstance(state.state, TableState)
    assert isinstance(state.state.dataset, DatasetState)
    assert state.state.columns == COLUMNS


def test_an_update_of_a_table_keeps_every_field_of_others(account: Account) -> None:
    account.make_database()
    account.make_table(**{**FOREIGN, "StorageDescriptor": {**FOREIGN["StorageDescriptor"], "Location": "/x/t"}})
    before = account.table()
    catalog = account.connect()
    apply(catalog, c.UpdateTable(T, {"ours": "1", "description": "d"}, (), Marks("team-a", applied=("ours",))))
    ours = {"ours": "1", "reconciler.applied-keys": '["ours"]'}
    after = account.table()
    assert after["Parameters"] == {**FOREIGN["Parameters"], **ours}
    assert after["Description"] == "d"
    for key in ("Owner", "Retention", "PartitionKeys", "StorageDescriptor", "TableType"):
        assert after[key] == before[key]
    apply(catalog, c.SyncColumns(T, COLUMNS))
    synced = account.table()
    assert synced["Parameters"] == after["Parameters"]
    assert synced["StorageDescriptor"] == {
        **before["StorageDescriptor"],
        "Columns": [
            {"Name": "id", "Type": "bigint", "Comment": "key", "Parameters": {"sensitivity": "high"}},
            {"Name": "tags", "Type": "struct<userId:string>"},
        ],
    }
    sent = [a for o, a in account.server.requests if o == "UpdateTable"]
    assert [(a["VersionId"], a["SkipArchive"]) for a in sent] == [("1", True), ("2", True)]


def test_a_table_without_a_table_type_is_not_changed(account: Account) -> None:
    account.make_database()
    account.make_table(TableType="")
    before = account.table()
    for change in (c.AdoptTable(T, OURS), c.DeregisterTable(T), c.SyncColumns(T, COLUMNS)):
        with pytest.raises(CatalogError, match="EXTERNAL_TABLE"):
            apply(account.connect(), change)
    assert account.table() == before


def test_an_update_of_a_database_keeps_every_field_of_others(account: Account) -> None:
    grants = [{"Principal": {"DataLakePrincipalIdentifier": "IAM_ALLOWED_PRINCIPALS"}, "Permissions": ["ALL"]}]
    account.make_database(CreateTableDefaultPermissions=grants, LocationUri="s3://b/x", Parameters={"theirs": "1"})
    account.make_database("none", CreateTableDefaultPermissions=[])
    catalog = account.connect()
    for name in ("db", "none"):
        apply(catalog, c.UpdateNamespace((name,), {"ours": "1", "description": "d"}, (), OURS))
    database = account.database()
    assert database["Parameters"] == {"theirs": "1", "ours": "1", "reconciler.owner": "team-a"}
    assert (database["Description"], database["LocationUri"]) == ("d", "s3://b/x")
    assert database["CreateTableDefaultPermissions"] == grants
    assert account.database("none")["CreateTableDefaultPermissions"] == []
    apply(catalog, c.UpdateNamespace(("db",), {}, ("description", "location"), OURS))
    assert properties(found(catalog, "Namespace", ("db",))) == {"theirs": "1", "ours": "1"}


def test_a_table_that_changed_since_it_was_read_is_not_written(account: Account) -> None:
    account.make_database()
    account.make_table()

    def another() -> None:
        account.glue.update_table(CatalogId=account.id, DatabaseName="db", TableInput={**made, "Owner": "quicker"})

    made = {k: account.table()[k] for k in ("Name", "Parameters", "StorageDescriptor", "TableType")}
    account.server.before("UpdateTable", another)
    change = c.UpdateTable(T, {"a": "1"}, (), OURS)
    assert code_of(account.connect(), change) is Code.CONCURRENT_MODIFICATION
    assert account.table()["Owner"] == "quicker"
    assert "a" not in account.table()["Parameters"]
    apply(account.connect(), change)
    assert (account.table()["Owner"], account.table()["Parameters"]["a"]) == ("quicker", "1")


@pytest.mark.parametrize("kind", ["lance", "view", "function"])
def test_a_database_that_holds_anything_is_not_dropped(account: Account, kind: str) -> None:
    """The service would take it all along."""
    account.make_database()
    if kind == "lance":
        account.make_table()
    elif kind == "view":
        account.make_table("v", TableType="VIRTUAL_VIEW", Parameters={})
    else:
        account.server.functions[account.id, "db"] = ["f"]
    assert code_of(account.connect(), c.DropNamespace(("db",))) is Code.NAMESPACE_NOT_EMPTY
    assert account.database()
    assert account.server.calls["DeleteDatabase"] == 0


def test_emptiness_is_looked_at_twice_and_to_the_last_page(account: Account) -> None:
    account.make_database()
    account.server.forget()
    account.server.empty_pages = True
    account.server.before("GetTables", account.make_table, skip=2)  # between the first look and the second
    assert code_of(account.connect(), c.DropNamespace(("db",))) is Code.NAMESPACE_NOT_EMPTY
    account.glue.delete_table(CatalogId=account.id, DatabaseName="db", Name="t")
    account.server.forget()
    apply(account.connect(), c.DropNamespace(("db",)))
    assert account.server.calls["DeleteDatabase"] == 1
    assert account.server.calls["GetTables"] == 2


@pytest.mark.parametrize("operation", ["GetTables", "GetUserDefinedFunctions"])
def test_a_look_that_fails_drops_nothing(account: Account, operation: str) -> None:
    account.make_database()
    account.server.fail(operation, "AccessDeniedException", skip=1)
    assert code_of(account.connect(), c.DropNamespace(("db",))) is Code.PERMISSION_DENIED
    assert account.server.calls["DeleteDatabase"] == 0


@pytest.mark.parametrize("body", ["{}", "", '{"message": "ok"}'])
@pytest.mark.parametrize("operation", ["GetTables", "GetUserDefinedFunctions"])
def test_an_answer_without_its_list_drops_nothing(account: Account, operation: str, body: str) -> None:
    account.make_database()
    if operation == "GetTables":
        account.make_table("theirs")
    for _ in range(2):
        account.server.answer(operation, body)
    catalog = account.connect(max_retries="0")
    assert code_of(catalog, c.DropNamespace(("db",))) is Code.SERVICE_UNAVAILABLE
    assert account.server.calls["DeleteDatabase"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["UnknownOperationException", "InvalidAction"])
def test_a_service_that_does_not_know_functions_has_none(account: Account, name: str) -> None:
    account.make_database()
    account.server.fail("GetUserDefinedFunctions", name, times=None)
    apply(account.connect(), c.DropNamespace(("db",)))
    assert account.server.calls["DeleteDatabase"] == 1


@pytest.mark.parametrize("status", [500, 501, 404])
@pytest.mark.parametrize("body", ["<html>error</html>", "", '{"message": "no"}'])
def test_an_error_without_a_name_does_not_mean_no_functions(account: Account, status: int, body: str) -> None:
    """It may be of any proxy. The database holds a function, which would go with it."""
    account.make_database()
    account.server.functions[account.id, "db"] = ["f"]
    for _ in range(2):
        account.server.answer("GetUserDefinedFunctions", body, status)
    code_of(account.connect(max_retries="0"), c.DropNamespace(("db",)))
    assert account.server.calls["DeleteDatabase"] == 0


def test_child_catalogs_hold_databases_and_are_never_changed(account: Account) -> None:
    child = account.server.add_catalog(account.id, "parent", "child")
    catalog = account.connect()
    deep = ("parent", "child", "db")
    apply(catalog, c.CreateNamespace(deep, {"a": "1"}, OURS))
    apply(catalog, c.DeclareTable((*deep, "t"), {}, OURS, None, ()))
    table = account.glue.get_table(CatalogId=child, DatabaseName="db", Name="t")["Table"]
    assert table["StorageDescriptor"]["Location"] == str(account.root / "parent" / "child" / "db" / "t.lance")
    apply(catalog, c.UpdateTable((*deep, "t"), {"x": "1"}, (), OURS))
    apply(catalog, c.DeregisterTable((*deep, "t")))
    apply(catalog, c.DropNamespace(deep))
    assert account.glue.get_databases(CatalogId=child)["DatabaseList"] == []
    assert code_of(catalog, c.UpdateNamespace(("parent", "child"), {"a": "1"}, (), OURS)) is Code.UNSUPPORTED
    assert code_of(catalog, c.DropNamespace(("parent", "child"))) is Code.UNSUPPORTED
    assert code_of(catalog, c.CreateNamespace(("nobody", "db"), {}, OURS)) is Code.NAMESPACE_NOT_FOUND


def test_a_table_that_left_is_found_where_its_data_is(account: Account, tmp_path: Path) -> None:
    account.make_database()
    catalog = account.connect()
    elsewhere = str(tmp_path / "elsewhere")
    apply(catalog, c.DeclareTable(T, {}, OURS, elsewhere, ()))
    apply(catalog, c.CreateDataset(T, FIELDS, {}, {}, "team-a", ()))
    apply(catalog, c.DeregisterTable(T))
    gone = found(account.connect(), "Table", T, detail=True)
    assert isinstance(gone, Detached)
    assert gone.location == elsewhere
    assert lance.dataset(elsewhere).schema.names == ["Id", "tags"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (c.CreateNamespace(("db",), {}, OURS), Code.NAMESPACE_ALREADY_EXISTS),
        (c.DeclareTable(("nodb", "t"), {}, OURS), Code.NAMESPACE_NOT_FOUND),
        (c.DeclareTable(T, {}, OURS), Code.TABLE_ALREADY_EXISTS),
        (c.UpdateNamespace(("nodb",), {"a": "1"}, (), OURS), Code.NAMESPACE_NOT_FOUND),
        (c.UpdateTable(("db", "u"), {"a": "1"}, (), OURS), Code.TABLE_NOT_FOUND),
        (c.DeregisterTable(("db", "u")), Code.TABLE_NOT_FOUND),
        (c.DeregisterTable(("db", "view")), Code.INVALID_INPUT),
        (c.DropNamespace(("nodb",)), Code.NAMESPACE_NOT_FOUND),
        (c.RenameTable(("db", "new"), T), Code.UNSUPPORTED),
    ],
)
def test_codes_of_what_cannot_be(account: Account, change: c.Change, code: Code) -> None:
    account.make_database()
    account.make_table()
    account.make_table("view", TableType="VIRTUAL_VIEW", Parameters={})
    assert code_of(account.connect(), change) is code
    assert {t["Name"] for t in account.glue.get_tables(CatalogId=account.id, DatabaseName="db")["TableList"]} == {
        "t",
        "view",
    }


@pytest.mark.slow
def test_tables_in_a_bucket(account: Account, moto: Moto) -> None:
    root = moto.make_bucket("glue-tables")
    account.make_database("a b")
    ident = ("a b", "50% größe")
    storage = {f"storage.{k}": v for k, v in moto.storage_options.items()}
    catalog = account.connect(root=root, **storage)
    apply(catalog, c.DeclareTable(ident, {}, OURS, None, ()))
    apply(catalog, c.CreateDataset(ident, FIELDS, {}, {}, "team-a", ()))
    location = account.table(ident[1], ident[0])["StorageDescriptor"]["Location"]
    assert lance.dataset(location, storage_options=moto.storage_options).schema.names == ["Id", "tags"]
    assert isinstance(found(catalog, "Table", ident, detail=True), Present)
    keys = {o["Key"] for o in moto.client.list_objects_v2(Bucket="glue-tables")["Contents"]}
    assert {k.split("/_")[0].split("/.")[0] for k in keys} == {"a b/50% größe.lance"}


def test_boto3s_default_session_is_left_alone(account: Account) -> None:
    account.make_database()
    before = boto3.DEFAULT_SESSION
    assert account.connect().children(("db",)) == []
    assert boto3.DEFAULT_SESSION is before
