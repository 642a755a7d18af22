"""Child catalogs as namespaces: CreateCatalog, GetCatalog, UpdateCatalog and DeleteCatalog."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from catalog.glue_support import Account, apply, found
from cli.cli_runs import Run, namespace, reconciler, table, write
from servers.glue_moto import KEYS, GlueServer

from reconciler.model import change as c
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Absent, Present
from reconciler.model.state import Marks, NamespaceState

HOME = "123456789012"
"""The account of the credentials, to moto."""
OURS = Marks("us")
ENV = {"KEY": KEYS["access_key_id"], "SECRET": KEYS["secret_access_key"]}
_names = (f"cat{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def server() -> Iterator[GlueServer]:
    with GlueServer() as server:
        yield server


@pytest.fixture
def home(server: GlueServer, tmp_path: Path) -> Account:
    server.forget()
    return Account(server, HOME, tmp_path / "lake", server.client())


@pytest.fixture
def name() -> str:
    return next(_names)


def head(home: Account, more: str = "", **options: str) -> str:
    given = {**home.options(), "access_key_id": "${env:KEY}", "secret_access_key": "${env:SECRET}", **options}
    lines = "".join(f"  {k}: {v!r}\n" for k, v in given.items() if v)
    return (
        "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\nspec:\n  type: glue\n"
        f"{lines}{more}  management: {{owner: us}}\n"
    )


def run(folder: Path, *arguments: str | Path, code: int = 0) -> Run:
    done = reconciler(folder, *arguments, env=ENV)
    assert done.code == code, done.out + done.err
    return done


def written(home: Account) -> list[tuple[str, Any]]:
    words = ("Create", "Update", "Delete")
    return [(o, a) for o, a in home.server.requests if o.startswith(words) and "__reconciler" not in json.dumps(a)]


@pytest.mark.slow
@pytest.mark.parametrize("account_named", [True, False])
def test_a_child_catalog_lives_and_goes_like_any_namespace(
    home: Account, name: str, tmp_path: Path, account_named: bool
) -> None:
    start = head(home, catalog_id=HOME if account_named else "")
    inside = [namespace(name, "db"), table(name, "db", "t")]
    file = write(tmp_path, start, namespace(name, spec="{description: what, properties: {a: '1'}}"), *inside)
    assert re.search(r'\+ level +=? *"catalog"', run(tmp_path, "plan", file).out)
    run(tmp_path, "apply", file, "--yes")
    made = dict(written(home))
    assert made["CreateCatalog"]["Name"] == name
    assert made["CreateCatalog"]["CatalogInput"]["Description"] == "what"
    assert made["CreateCatalog"]["CatalogInput"]["Parameters"]["a"] == "1"
    assert made["CreateDatabase"]["CatalogId"] == f"{HOME}:{name}"
    assert made["CreateTable"]["CatalogId"] == f"{HOME}:{name}"
    run(tmp_path, "plan", file, "--detailed-exitcode")

    write(tmp_path, start, namespace(name, spec="{description: new, properties: {b: '2'}}"), *inside)
    home.server.requests.clear()
    run(tmp_path, "plan", file, "-o", "plan.json", "--detailed-exitcode", code=2)
    run(tmp_path, "apply", "--plan", "plan.json", "--yes")
    assert [o for o, _ in written(home)] == ["UpdateCatalog"]
    live = home.glue.get_catalog(CatalogId=f"{HOME}:{name}")["Catalog"]
    assert live["Description"] == "new"
    assert {k: v for k, v in live["Parameters"].items() if "." not in k} == {"b": "2"}
    run(tmp_path, "plan", file, "--detailed-exitcode")

    gone = "{state: absent, allow: [drop_namespace]}"
    deep = [namespace(name, "db", spec=gone), table(name, "db", "t", spec="state: absent")]
    write(tmp_path, start, namespace(name, spec=gone), *deep)
    home.server.requests.clear()
    run(tmp_path, "apply", file, "--yes")
    assert [o for o, _ in written(home)] == ["DeleteTable", "DeleteDatabase", "DeleteCatalog"]
    assert f"{HOME}:{name}" not in home.server.catalogs
    run(tmp_path, "plan", file, "--detailed-exitcode")


@pytest.mark.slow
def test_an_empty_catalog_says_what_it_is(home: Account, name: str, tmp_path: Path) -> None:
    """Saved plans too, which are applied without a listing."""
    start = head(home)
    file = write(tmp_path, start, namespace(name, spec="{level: catalog}"))
    run(tmp_path, "plan", file, "-o", "plan.json")
    home.server.requests.clear()
    run(tmp_path, "apply", "--plan", "plan.json", "--yes")
    assert [o for o, _ in written(home)] == ["CreateCatalog"]
    run(tmp_path, "plan", file, "--detailed-exitcode")
    write(tmp_path, start, namespace(name, spec="{level: catalog, state: absent, allow: [drop_namespace]}"))
    run(tmp_path, "plan", file, "-o", "plan.json")
    run(tmp_path, "apply", "--plan", "plan.json", "--yes")
    assert f"{HOME}:{name}" not in home.server.catalogs


@pytest.mark.slow
def test_the_hint_of_a_missing_parent_leads_to_a_catalog(home: Account, name: str, tmp_path: Path) -> None:
    """Following it made a database at the root."""
    start = head(home)
    file = write(tmp_path, start, namespace(name, "db"))
    said = run(tmp_path, "plan", file, code=1)
    assert f"needs catalog {name}" in said.err + said.out
    assert f"declare a Namespace with id [{name}] and `level: catalog`" in said.err + said.out
    file = write(tmp_path, start, namespace(name, spec="{level: catalog}"), namespace(name, "db"))
    run(tmp_path, "apply", file, "--yes")
    assert [d["Name"] for d in home.glue.get_databases(CatalogId=HOME)["DatabaseList"]].count(name) == 0
    assert [d["Name"] for d in home.glue.get_databases(CatalogId=f"{HOME}:{name}")["DatabaseList"]] == ["db"]
    write(tmp_path, start, namespace(name, "inner", "db"))
    said = run(tmp_path, "plan", file, code=1)
    assert "CreateCatalog" in said.err + said.out
    assert "declare a Namespace" not in said.err + said.out
    write(tmp_path, start, namespace(name, "inner"), namespace(name, "inner", "db"))
    said = run(tmp_path, "plan", file, "--detailed-exitcode", code=2)
    assert "unsupported" in said.out
    assert "CreateCatalog" in said.out


@pytest.mark.slow
def test_a_database_is_no_catalog_and_a_catalog_no_database(home: Account, name: str, tmp_path: Path) -> None:
    start = head(home)
    home.make_database(name)
    file = write(tmp_path, start, namespace(name, "db"))
    assert f"{name} is a database, and holds tables only" in run(tmp_path, "plan", file).out
    file = write(tmp_path, start, namespace(name, spec="{level: catalog, properties: {a: b}}"))
    assert "is a database, not a catalog" in run(tmp_path, "plan", file, "--adopt").out
    new = next(_names)
    file = write(tmp_path, start, namespace(new), namespace(new, "db"), table(new, "t"))
    assert f"{new} is a catalog, and holds namespaces only" in run(tmp_path, "plan", file).out
    other = next(_names)
    home.server.add_catalog(HOME, other)
    file = write(tmp_path, head(home, "  catalogs: true\n"), table(other, "t"))
    assert f"{other} is a catalog, and holds namespaces only" in run(tmp_path, "plan", file).out
    home.server.requests.clear()
    run(tmp_path, "apply", file, "--yes", code=3)
    assert written(home) == []


@pytest.mark.parametrize(
    ("documents", "word"),
    [
        ([namespace("c", spec="{level: catalog}"), table("c", "t")], "c is a catalog"),
        ([namespace("c", spec="{level: database}"), namespace("c", "db")], "c is a database"),
        ([namespace("c" * 65), namespace("c" * 65, "db")], "64 is the limit"),
        ([table("a.b", "db", "t")], "must not contain a dot"),
    ],
)
def test_kinds_that_do_not_go_together_are_errors_of_validate(
    home: Account, tmp_path: Path, documents: list[str], word: str
) -> None:
    file = write(tmp_path, head(home), *documents)
    said = run(tmp_path, "validate", file, code=1)
    assert "M408" in said.out + said.err
    assert word in said.out + said.err


def test_level_is_for_catalogs_that_have_levels(tmp_path: Path) -> None:
    lake = "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\nspec: {type: dir, path: ./l}\n"
    file = write(tmp_path, lake, namespace("n", spec="{level: catalog}"))
    said = run(tmp_path, "validate", file, code=1)
    assert "all namespaces are alike" in said.out + said.err


@pytest.mark.parametrize("inside", ["database", "catalog", "late database"])
def test_a_catalog_that_holds_anything_is_not_dropped(home: Account, name: str, inside: str) -> None:
    """The service would take it all along."""
    id_ = home.server.add_catalog(HOME, name)
    catalog = home.connect(catalogs="true")
    if inside == "catalog":
        home.server.add_catalog(HOME, name, "inner")
    elif inside == "database":
        home.make_database("db", id_)
    else:  # Between the two looks.
        home.server.before("GetDatabases", lambda: home.make_database("db", id_), skip=1)
    with pytest.raises(CatalogError) as caught:
        apply(catalog, c.DropNamespace((name,), "catalog"))
    assert caught.value.code is Code.NAMESPACE_NOT_EMPTY
    assert home.server.calls["DeleteCatalog"] == 0


def test_an_update_of_a_catalog_keeps_every_field_of_others(home: Account, name: str) -> None:
    theirs = {
        "Parameters": {"theirs": "1"},
        "CatalogProperties": {"CustomProperties": {"aws:PermissionsModel": "x"}},
        "AllowFullTableExternalDataAccess": "True",
        "ResourceArn": "arn:aws:glue:us-east-1:1:catalog",
    }
    id_ = home.server.add_catalog(HOME, name, **theirs)
    catalog = home.connect(catalogs="true")
    apply(catalog, c.AdoptNamespace((name,), OURS, "catalog"))
    live = home.glue.get_catalog(CatalogId=id_)["Catalog"]
    assert live["Parameters"] == {"theirs": "1", "reconciler.owner": "us"}
    assert live["CatalogProperties"] == theirs["CatalogProperties"]
    assert live["AllowFullTableExternalDataAccess"] == "True"


@pytest.mark.parametrize(
    "more",
    [
        {"FederatedCatalog": {"Identifier": "x"}},
        {"TargetRedshiftCatalog": {"CatalogArn": "arn"}},
        {"CatalogProperties": {"DataLakeAccessProperties": {"DataLakeAccess": True, "CatalogType": "aws:redshift"}}},
    ],
)
def test_a_catalog_with_data_of_another_service_is_left_alone(home: Account, name: str, more: dict[str, Any]) -> None:
    home.server.add_catalog(HOME, name, **more)
    catalog = home.connect(catalogs="true")
    state = found(catalog, "Namespace", (name,))
    assert isinstance(state, Present)
    assert isinstance(state.state, NamespaceState)
    assert state.state.container
    for change in (c.AdoptNamespace((name,), OURS, "catalog"), c.DropNamespace((name,), "catalog")):
        with pytest.raises(CatalogError) as caught:
            apply(catalog, change)
        assert caught.value.code is Code.UNSUPPORTED
    assert written(home) == []


def test_a_catalog_is_made_in_no_other_account(home: Account, name: str) -> None:
    """CreateCatalog takes no account: it would be made in that of the credentials."""
    other = Account(home.server, "444455556666", home.root, home.glue)
    with pytest.raises(CatalogError, match="444455556666") as caught:
        apply(other.connect(), c.CreateNamespace((name,), {}, OURS, "catalog"))
    assert caught.value.code is Code.UNSUPPORTED
    assert written(home) == []


def test_a_drop_of_a_catalog_never_takes_a_database_of_that_name(home: Account, name: str) -> None:
    home.make_database(name)
    catalog = home.connect(catalogs="true")
    with pytest.raises(CatalogError) as caught:
        apply(catalog, c.DropNamespace((name,), "catalog"))
    assert caught.value.code is Code.CONCURRENT_MODIFICATION
    home.glue.delete_database(CatalogId=HOME, Name=name)
    home.server.add_catalog(HOME, name)
    with pytest.raises(CatalogError) as caught:
        apply(catalog, c.DropNamespace((name,)))
    assert caught.value.code is Code.CONCURRENT_MODIFICATION
    home.server.requests.clear()


def test_a_create_whose_answer_is_lost_and_one_that_is_there(home: Account, name: str) -> None:
    catalog = home.connect()
    home.server.fail("CreateCatalog", "OperationTimeoutException")
    with pytest.raises(CatalogError) as caught:
        apply(catalog, c.CreateNamespace((name,), {}, OURS, "catalog"))
    assert caught.value.unknown_outcome
    assert isinstance(found(catalog, "Namespace", (name,)), Absent)
    apply(catalog, c.CreateNamespace((name,), {}, OURS, "catalog"))
    assert isinstance(found(catalog, "Namespace", (name,)), Present)
    with pytest.raises(CatalogError) as caught:
        apply(catalog, c.CreateNamespace((name,), {}, OURS, "catalog"))
    assert caught.value.code is Code.NAMESPACE_ALREADY_EXISTS
    home.server.fail("GetCatalog", "AccessDeniedException")
    with pytest.raises(CatalogError) as caught:
        apply(catalog, c.DropNamespace((name,), "catalog"))
    assert caught.value.code is Code.PERMISSION_DENIED
