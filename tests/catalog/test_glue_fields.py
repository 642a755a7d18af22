"""Properties that Glue has as fields of their own, and parameters of others that have the same names."""

from __future__ import annotations

from catalog.glue_support import Account, account, apply, found, glue_client, glue_server

from reconciler.model import change as c
from reconciler.model.observed import Present
from reconciler.model.state import Marks, NamespaceState

__all__ = ["account", "glue_client", "glue_server"]

OURS = Marks("team-a")
T = ("db", "t")


def test_a_namespace_shows_a_parameter_where_the_field_is_empty(account: Account) -> None:
    account.make_database(Parameters={"description": "old way"})
    catalog = account.connect()
    assert found(catalog, "Namespace", ("db",)) == Present(NamespaceState({"description": "old way"}))
    apply(catalog, c.UpdateNamespace(("db",), {"description": "new"}, (), OURS))
    assert account.database()["Description"] == "new"
    assert account.database()["Parameters"] == {"reconciler.owner": "team-a"}


def test_parameters_of_others_that_are_named_like_a_field_stay(account: Account) -> None:
    theirs = {"description": "theirs", "location": "their place"}
    account.make_database(Description="shown", LocationUri="s3://b/x", Parameters=theirs)
    account.make_table(Description="shown", Parameters={"table_type": "lance", **theirs})
    catalog = account.connect()
    apply(catalog, c.UpdateNamespace(("db",), {"a": "1"}, (), OURS))
    apply(catalog, c.UpdateTable(T, {"a": "1"}, (), OURS))
    ours = {"a": "1", "reconciler.owner": "team-a"}
    database, table = account.database(), account.table()
    assert database["Parameters"] == {**theirs, **ours}
    assert (database["Description"], database["LocationUri"]) == ("shown", "s3://b/x")
    assert table["Parameters"] == {"table_type": "lance", **theirs, **ours}
    assert table["Description"] == "shown"
    apply(catalog, c.UpdateNamespace(("db",), {"description": "new"}, (), OURS))
    apply(catalog, c.UpdateTable(T, {"description": "new"}, (), OURS))
    database, table = account.database(), account.table()
    assert (database["Description"], database["Parameters"]["description"]) == ("new", "theirs")
    assert (table["Description"], table["Parameters"]["description"]) == ("new", "theirs")


def test_a_description_that_is_removed_does_not_uncover_a_parameter_of_others(account: Account) -> None:
    theirs = {"description": "theirs", "location": "their place"}
    account.make_database(Description="shown", Parameters=theirs)
    account.make_table(Description="shown", Parameters={"table_type": "lance", **theirs})
    catalog = account.connect()
    for more in ({}, {"a": "1"}):  # and it stays covered
        apply(catalog, c.UpdateNamespace(("db",), more, ("description",), OURS))
        apply(catalog, c.UpdateTable(T, more, ("description",), OURS))
        for kind, ident in (("Namespace", ("db",)), ("Table", T)):
            finding = found(catalog, kind, ident)  # type: ignore[arg-type]
            assert isinstance(finding, Present)
            assert finding.state.properties == {"location": "their place", **more}
    for live in (account.database(), account.table()):
        assert live["Parameters"]["description"] == "theirs"


def test_a_parameter_that_is_shown_is_not_moved_by_another_change(account: Account) -> None:
    account.make_database(Parameters={"description": "old way", "location": "s3://b/x"})
    account.make_table(Parameters={"table_type": "lance", "description": "old way"})
    catalog = account.connect()
    apply(catalog, c.UpdateNamespace(("db",), {"a": "1"}, (), OURS))
    apply(catalog, c.UpdateTable(T, {"a": "1"}, (), OURS))
    assert account.database()["Parameters"]["description"] == account.table()["Parameters"]["description"] == "old way"
    assert account.database()["Parameters"]["location"] == "s3://b/x"
    assert not any(account.database().get(k) for k in ("Description", "LocationUri"))
    assert not account.table().get("Description")
    apply(catalog, c.UpdateNamespace(("db",), {}, ("description", "location"), OURS))
    assert found(catalog, "Namespace", ("db",)) == Present(NamespaceState({"a": "1"}, OURS))
