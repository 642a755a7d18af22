"""Against Apache's own REST server, through a proxy that counts and disturbs."""

from __future__ import annotations

import lance
import pytest
from iceberg_rig import Rig, iceberg_rest, rig
from iceberg_support import apply, find, scan
from servers.proxy import Fault, answer, before, cut_answer, delay, reset_after, truncate

from reconciler.model.arrow import Field, Scalar
from reconciler.model.change import (
    CreateDataset,
    CreateNamespace,
    DeclareTable,
    DeregisterTable,
    DropNamespace,
    RenameTable,
    UpdateNamespace,
    UpdateTable,
)
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Absent, Detached, Gap, Present, Scope, Unreadable
from reconciler.model.state import Marks, NamespaceState, TableState

__all__ = ["iceberg_rest", "rig"]
pytestmark = pytest.mark.slow
OURS = Marks("team-a")
T = ("wh", "n", "t")


def test_the_companion_table_is_what_the_specification_says(rig: Rig) -> None:
    apply(rig.catalog, CreateNamespace(("wh", "n"), {"team": "x"}, OURS))
    apply(rig.catalog, DeclareTable(T, {"pii": "no"}, OURS))
    apply(rig.catalog, CreateDataset(T, (Field("id", Scalar("int64")),), {}, {}, "team-a", ()))
    metadata = rig.outsider.metadata(T)
    place = f"{rig.folder}/data/wh/n/t"
    assert metadata["location"] == place
    assert metadata["properties"].items() >= {
        "table_type": "lance", "lance.location": place, "pii": "no", "reconciler.owner": "team-a",
    }.items()  # fmt: skip
    (schema,) = metadata["schemas"]
    assert [(f["name"], f["type"], f["required"]) for f in schema["fields"]] == [("dummy", "string", False)]
    assert lance.dataset(place).schema.names == ["id"]


def test_properties_are_set_and_removed_and_those_of_others_stay(rig: Rig) -> None:
    apply(rig.catalog, CreateNamespace(("wh", "n"), {"a": "1", "b": "2"}, OURS))
    apply(rig.catalog, DeclareTable(T, {"a": "1", "b": "2"}, OURS))
    for kind, ident in (("Namespace", T[:2]), ("Table", T)):
        rig.outsider.set_properties(kind, ident, {"theirs": "x"})
    uuid = rig.outsider.metadata(T)["table-uuid"]
    apply(rig.catalog, UpdateNamespace(T[:2], {"a": "3"}, ("b", "not there"), OURS))
    apply(rig.catalog, UpdateTable(T, {"a": "3"}, ("b", "not there"), OURS))
    expected = {"a": "3", "theirs": "x", "reconciler.owner": "team-a"}
    assert rig.outsider.namespaces()[T[:2]] == expected
    assert rig.outsider.entries()[T].properties == expected
    (commit,) = rig.proxy.requests("POST", "/tables/t$")
    assert f'"assert-table-uuid","uuid":"{uuid}"'.replace(" ", "") in commit.body.decode().replace(" ", "")


def test_a_table_that_was_replaced_meanwhile_is_not_changed(rig: Rig) -> None:
    apply(rig.catalog, CreateNamespace(("wh", "n"), {}, OURS))
    apply(rig.catalog, DeclareTable(T, {}, OURS))

    def replace() -> None:
        rig.outsider.drop(T)
        rig.outsider.put_table(T, f"{rig.folder}/theirs", {})

    rig.proxy.fault(before(replace), method="POST", path="/tables/t$")
    with pytest.raises(CatalogError) as caught:
        apply(rig.catalog, UpdateTable(T, {"a": "1"}, (), OURS))
    assert caught.value.code is Code.CONCURRENT_MODIFICATION
    assert rig.outsider.entries()[T].properties == {}


def test_a_drop_never_purges_and_the_data_is_found_again_where_it_was(rig: Rig) -> None:
    place = f"{rig.folder}/somewhere/else"
    apply(rig.catalog, CreateNamespace(("wh", "n"), {}, OURS))
    apply(rig.catalog, DeclareTable(T, {}, OURS, place))
    apply(rig.catalog, CreateDataset(T, (Field("id", Scalar("int64")),), {}, {}, "team-a", ()))
    moved = ("wh", "n", "moved")
    apply(rig.catalog, RenameTable(moved, T))
    assert rig.outsider.entries()[moved].location == place
    apply(rig.catalog, DeregisterTable(moved))
    assert [r.path.partition("?")[2] for r in rig.proxy.requests("DELETE")] == ["purgeRequested=false"]
    (found,) = rig.open().read([("Table", moved)], Scope(detail=frozenset({moved})))
    assert isinstance(found.finding, Detached)
    assert found.finding.location == place
    assert lance.dataset(place).count_rows() == 0


def test_what_is_inside_keeps_a_namespace(rig: Rig) -> None:
    for name in ("n", "m", "k"):
        apply(rig.catalog, CreateNamespace(("wh", name), {}, OURS))
    rig.outsider.foreign_table(("wh", "n", "native"))
    rig.outsider.foreign_view(("wh", "m", "view"))
    apply(rig.catalog, CreateNamespace(("wh", "k", "below"), {}, OURS))
    found = scan(rig.catalog)
    native, view = "wh.n.native is an Iceberg table, not a Lance table", "wh.m.view is a view, not a table"
    assert found["Table", ("wh", "n", "native")] == Unreadable(Code.INVALID_INPUT, native, foreign=True)
    assert found["Table", ("wh", "m", "view")] == Unreadable(Code.INVALID_INPUT, view, foreign=True)
    for name in ("n", "m", "k"):
        with pytest.raises(CatalogError) as caught:
            apply(rig.catalog, DropNamespace(("wh", name)))
        assert caught.value.code is Code.NAMESPACE_NOT_EMPTY
    assert rig.proxy.count("DELETE") == 0, "our own look comes first"


def test_the_servers_own_refusal_is_the_last_word(rig: Rig) -> None:
    apply(rig.catalog, CreateNamespace(("wh", "n"), {}, OURS))
    rig.proxy.fault(before(lambda: rig.outsider.foreign_table(("wh", "n", "native"))), method="DELETE")
    with pytest.raises(CatalogError) as caught:
        apply(rig.catalog, DropNamespace(("wh", "n")))
    assert (caught.value.code, caught.value.unknown_outcome) == (Code.NAMESPACE_NOT_EMPTY, False)


def test_names_are_taken_by_one_only(rig: Rig) -> None:
    apply(rig.catalog, CreateNamespace(("wh", "n"), {}, OURS))
    apply(rig.catalog, DeclareTable(T, {}, OURS))
    rig.outsider.foreign_view(("wh", "n", "v"))
    cases = [
        (CreateNamespace(("wh", "n"), {}, OURS), Code.NAMESPACE_ALREADY_EXISTS),
        (DeclareTable(T, {}, OURS), Code.TABLE_ALREADY_EXISTS),
        (DeclareTable(("wh", "n", "v"), {}, OURS), Code.TABLE_ALREADY_EXISTS),
        (DeclareTable(("wh", "none", "t"), {}, OURS), Code.NAMESPACE_NOT_FOUND),
        (CreateNamespace(("wh", "none", "b"), {}, OURS), Code.NAMESPACE_NOT_FOUND),
        (RenameTable(("wh", "none", "t"), T), Code.NAMESPACE_NOT_FOUND),
        (RenameTable(("wh", "n", "v"), T), Code.TABLE_ALREADY_EXISTS),
        (DeregisterTable(("wh", "n", "none")), Code.TABLE_NOT_FOUND),
        (DropNamespace(("wh", "none")), Code.NAMESPACE_NOT_FOUND),
    ]
    for change, code in cases:
        with pytest.raises(CatalogError) as caught:
            apply(rig.catalog, change)
        assert caught.value.code is code, change
    assert set(rig.outsider.namespaces()) == {("wh", "n")}


# calls


def test_a_plan_without_changes_asks_for_each_thing_once(rig: Rig) -> None:
    file = rig.manifests(tables=5, k="v")
    assert rig.run(file).outcome == "applied"
    apply(rig.catalog, CreateNamespace(("wh", "n", "deep"), {}, OURS))
    rig.catalog = rig.open()
    rig.proxy.forget()
    assert rig.run(file).outcome == "no_changes"
    counts = rig.proxy.counts
    assert set(counts.values()) <= {1, 3}  # the lists of child namespaces of three parents are one path
    assert counts["GET /v1/namespaces"] == 3
    namespaces = 2
    # configuration, lists of the root, (read, children, tables, views) of each namespace, one load of each table
    assert sum(counts.values()) == 1 + 1 + 4 * namespaces + 5
    assert {key.split()[0] for key in counts} == {"GET"}


def test_connections_are_reused_and_never_more_than_allowed(rig: Rig) -> None:
    apply(rig.catalog, CreateNamespace(("wh", "n"), {}, OURS))
    for number in range(40):
        rig.outsider.put_table(("wh", "n", f"t{number}"), f"/nowhere/{number}", {})
    rig.proxy.forget()
    rig.proxy.latency = 0.01
    scan(rig.catalog)
    scan(rig.catalog)
    limit = rig.catalog.capabilities.max_parallelism
    assert 1 < rig.proxy.most_in_flight <= limit
    assert rig.proxy.connections <= limit


def test_an_unchanged_table_is_not_sent_again_and_a_changed_one_is(rig: Rig) -> None:
    apply(rig.catalog, CreateNamespace(("wh", "n"), {}, OURS))
    apply(rig.catalog, DeclareTable(T, {}, OURS))
    first = find(rig.catalog, "Table", *T)
    assert find(rig.catalog, "Table", *T) == first
    assert [r.status for r in rig.proxy.requests("GET", "/tables/t")][-2:] == [200, 304]
    rig.outsider.set_properties("Table", T, {"a": "1"})
    changed = find(rig.catalog, "Table", *T)
    assert isinstance(changed, Present)
    assert isinstance(changed.state, TableState)
    assert changed.state.properties == {"a": "1"}


# faults

LOST: dict[str, Fault] = {
    "cut": cut_answer,
    "reset": reset_after,
    "truncated": truncate,
    "500": answer(500, forward=True),
    "503": answer(503, forward=True, retry_after=0),
    "504": answer(504, "<html>", json=False, forward=True),
}
NOT_SENT: dict[str, Fault] = {
    "429": answer(429),
    "429 wait": answer(429, retry_after=0.1),
    "503 wait": answer(503, retry_after=0.1),
    "502": answer(502),
}


@pytest.mark.parametrize("fault", [*LOST, *NOT_SENT])
def test_every_write_with_a_bad_answer_converges_and_is_not_doubled(rig: Rig, fault: str) -> None:
    act = {**LOST, **NOT_SENT}[fault]
    for path in ("/namespaces$", "/namespaces/n/tables$", "/tables/t0$", "/properties$"):
        rig.proxy.fault(act, method="POST", path=path)
    assert rig.run(rig.manifests(k="1")).outcome == "applied"
    assert rig.run(rig.manifests(k="2")).outcome == "applied"
    assert rig.run(rig.manifests(k="2")).outcome == "no_changes"
    tries = 1 if fault in LOST else 2  # what has landed is not sent again
    for path in ("/namespaces", "/namespaces/n/tables", "/namespaces/n/tables/t0", "/namespaces/n/properties"):
        assert rig.proxy.counts[f"POST /v1{path}"] == tries, path
    assert rig.outsider.namespaces()[("wh", "n")]["k"] == "2"
    assert rig.outsider.entries()[("wh", "n", "t0")].properties["k"] == "2"


@pytest.mark.parametrize("fault", [*LOST, *NOT_SENT])
def test_every_read_with_a_bad_answer_is_asked_again(rig: Rig, fault: str) -> None:
    rig.run(rig.manifests(tables=2))
    whole = scan(rig.open())
    for path in ("/config", r"/namespaces\?", "/namespaces/n$", "/n/tables\\?", "/tables/t0", "/views"):
        rig.proxy.fault({**LOST, **NOT_SENT}[fault], method="GET", path=path)
    assert scan(rig.open()) == whole


def test_a_late_answer_is_an_unknown_outcome(rig: Rig) -> None:
    rig.proxy.fault(delay(1.0), method="POST")
    with pytest.raises(CatalogError) as caught:
        apply(rig.open(read_timeout="200"), CreateNamespace(("wh", "n"), {}, OURS))
    assert caught.value.unknown_outcome
    assert find(rig.catalog, "Namespace", "wh", "n") == Present(NamespaceState({}, OURS))


@pytest.mark.parametrize("status", [403, 500, 503])
def test_a_read_that_stays_bad_hides_nothing(rig: Rig, status: int) -> None:
    rig.run(rig.manifests(tables=2))
    catalog = rig.open()
    rig.proxy.fault(answer(status), method="GET", path="/tables/t0", times=None)
    found = scan(catalog)
    assert isinstance(found["Table", ("wh", "n", "t0")], Unreadable)
    assert isinstance(found["Table", ("wh", "n", "t1")], Present)
    rig.proxy.fault(answer(status), method="GET", path="/tables\\?", times=None)
    found = scan(rig.open())
    assert isinstance(found["Gap", ("wh", "n")], Gap)
    assert not any(k == "Table" for k, _ in found)


def test_an_answer_of_the_proxy_is_not_absence(rig: Rig) -> None:
    rig.run(rig.manifests(tables=1))
    rig.proxy.fault(answer(404, "<html>not found</html>", json=False), method="GET", path="/tables/t0", times=None)
    assert isinstance(find(rig.catalog, "Table", "wh", "n", "t0"), Unreadable)
    rig.proxy.forget()
    assert find(rig.catalog, "Table", "wh", "n", "none") == Absent()


# another client


def test_pyiceberg_sees_our_table(rig: Rig) -> None:
    rest = pytest.importorskip("pyiceberg.catalog.rest", reason="pyiceberg is missing: it comes with the extra `dev`")
    rig.run(rig.manifests(tables=1, k="v"))
    theirs = rest.RestCatalog("x", uri=rig.server.endpoint, warehouse="wh")
    assert theirs.list_tables(("n",)) == [("n", "t0")]
    table = theirs.load_table(("n", "t0"))
    assert table.properties["table_type"] == "lance"
    assert table.location() == f"{rig.folder}/data/wh/n/t0"
    assert table.schema().column_names == ["dummy"]
    assert lance.dataset(table.location()).schema.names == ["id"]
    theirs.create_table(("n", "native"), table.schema())
    theirs.drop_table(("n", "t0"))
    found = scan(rig.catalog)
    assert ("Table", ("wh", "n", "t0")) not in found
    assert isinstance(found["Table", ("wh", "n", "native")], Unreadable)
