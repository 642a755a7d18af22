"""Glue from the outside: the program on manifests."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from catalog.glue_support import Account, account, glue_client, glue_server
from cli.cli_runs import Run, namespace, reconciler, table, write
from servers.glue_moto import KEYS

__all__ = ["account", "glue_client", "glue_server"]

ENV = {"KEY": KEYS["access_key_id"], "SECRET": KEYS["secret_access_key"]}


def run(folder: Path, *arguments: str | Path) -> Run:
    return reconciler(folder, *arguments, env=ENV)


def catalog(account: Account, more: str = "") -> str:
    given = {**account.options(), "access_key_id": "${env:KEY}", "secret_access_key": "${env:SECRET}"}
    options = "".join(f"  {k}: {v!r}\n" for k, v in given.items())
    return (
        "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\nspec:\n  type: glue\n"
        f"{options}  management: {{owner: us}}\n{more}"
    )


@pytest.mark.slow
def test_child_catalogs_of_the_account_are_imported_with_what_is_in_them(account: Account, tmp_path: Path) -> None:
    """AWS makes those inside others, and those of other services: a manifest of one could be applied nowhere else."""
    account.server.add_catalog(account.id, "federated", FederatedCatalog={"Identifier": "x"})
    child = account.server.add_catalog(account.id, "parent", "child", Parameters={"k": "v"})
    account.server.add_catalog(account.id, "empty")
    account.make_database("db", child, Description="deep")
    account.make_database("flat")
    place = account.root / "parent" / "child" / "db" / "t.lance"
    lance.write_dataset(pa.table({"id": [1]}), str(place))
    account.make_table("t", catalog=child, StorageDescriptor={"Location": str(place), "Columns": []})
    head = write(tmp_path, catalog(account, "  catalogs: true\n"))
    imported = tmp_path / "imported"
    done = run(tmp_path, "import", head, "-o", imported)
    assert done.code == 0, done.err
    text = "".join(p.read_text() for p in imported.rglob("*.yaml"))
    assert text.count("kind: Namespace") == 4
    assert text.count("level: catalog") == 2
    assert "id: [parent]" in text
    assert "id: [empty]" in text
    assert "id: [parent, child, db]" in text
    assert "id: [flat]" in text
    assert "id: [parent, child, db, t]" in text
    done = run(tmp_path, "validate", imported)
    assert done.code == 0, done.out + done.err
    done = run(tmp_path, "plan", imported, "--detailed-exitcode")
    assert done.code == 0, done.out + done.err


@pytest.mark.slow
def test_a_description_goes_though_another_tool_has_a_parameter_of_that_name(account: Account, tmp_path: Path) -> None:
    theirs = {"description": "theirs"}
    described = [namespace("db", spec="{description: ours}"), table("db", "t", spec="description: ours")]
    head = catalog(account)
    file = write(tmp_path, head, *described)
    assert run(tmp_path, "apply", file, "--yes").code == 0
    database, entry = account.database(), account.table()
    account.glue.update_database(
        CatalogId=account.id,
        Name="db",
        DatabaseInput={"Name": "db", "Description": "ours", "Parameters": {**database["Parameters"], **theirs}},
    )
    members = account.glue.meta.service_model.shape_for("TableInput").members
    new = {**{k: v for k, v in entry.items() if k in members}, "Parameters": {**entry["Parameters"], **theirs}}
    account.glue.update_table(CatalogId=account.id, DatabaseName="db", TableInput=new)
    write(tmp_path, head, namespace("db"), table("db", "t"))
    done = run(tmp_path, "apply", file, "--yes")
    assert done.code == 0, done.out + done.err
    assert run(tmp_path, "plan", file, "--detailed-exitcode").code == 0
    for live in (account.database(), account.table()):
        assert live["Parameters"]["description"] == "theirs"
        assert not live.get("Description")


@pytest.mark.slow
def test_credentials_in_the_properties_of_a_live_table_are_shown_nowhere(account: Account, tmp_path: Path) -> None:
    account.make_database()
    place = account.root / "db" / "t.lance"
    lance.write_dataset(pa.table({"id": [1]}), str(place))
    theirs = {
        "storage.secret_access_key": "canary-one",
        "storage.role_arn": "arn:x",
        "storage.region": "eu-west-1",
    }
    account.make_table(Parameters={"table_type": "lance", **theirs})
    head = write(tmp_path, catalog(account))
    imported = tmp_path / "imported"
    done = run(tmp_path, "import", head, "-o", imported)
    text = done.out + done.err + "".join(p.read_text() for p in imported.rglob("*.yaml"))
    assert "canary" not in text
    assert "storage.role_arn: " not in text
    assert "storage.region: eu-west-1" in text
    for command in (("validate",), ("plan", "--adopt", "--format", "json"), ("plan", "--detailed-exitcode")):
        done = run(tmp_path, command[0], imported, *command[1:])
        assert done.code == 0, done.out + done.err
        assert "canary" not in done.out + done.err
