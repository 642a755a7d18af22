"""What the protocol cannot change is in our inventory: the highest number counts, for the object it is about only."""

from __future__ import annotations

import io
import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import lance_namespace as ln
import pyarrow as pa
import pytest
from cli.cli_runs import namespace, reconciler, table, write
from contract.outsider_dir import LocalFiles
from rest_support import US, WRITE, Rig, rig
from servers.proxy import Proxy, answer, before, cut_answer, cut_before
from servers.rest_adapter import RestServers

from reconciler.catalog.locations import lance_uri
from reconciler.catalog.rest_inventory import key_of
from reconciler.model import change as c
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Absent, Detached, Present, Scope, Unreadable, Unsupported
from reconciler.model.state import Marks, NamespaceState, TableState

__all__ = ["rig"]

pytestmark = pytest.mark.slow

PROTECTED = replace(US, protect=True)


def state(rig: Rig, kind: str, *ident: str) -> NamespaceState | TableState:
    finding = rig.find(kind, *ident)  # type: ignore[arg-type]
    assert isinstance(finding, Present), finding
    seen = rig.scan(detail=[ident])[kind, ident].finding
    assert seen == finding  # one by one and in bulk, the same
    return finding.state


def protect(rig: Rig, *ident: str, marks: Marks = PROTECTED) -> None:
    rig.apply(c.UpdateTable(ident, {}, (), marks) if marks.owner == US.owner else c.AdoptTable(ident, marks))


def test_marks_at_creation_need_no_inventory(rig: Rig) -> None:
    marks = Marks("team-a", True, ("a", "b"))
    rig.apply(c.CreateNamespace(("n",), {"a": "1", "b": "2"}, marks), c.DeclareTable(("n", "t"), {"a": "1"}, marks))
    assert state(rig, "Namespace", "n") == NamespaceState({"a": "1", "b": "2"}, marks)
    assert state(rig, "Table", "n", "t").marks == marks
    assert rig.scan().keys() == {("Namespace", ("n",)), ("Table", ("n", "t"))}
    assert rig.records() == []


def test_later_marks_are_records_and_the_newest_counts(rig: Rig) -> None:
    rig.namespace("n", properties={"a": "1"})
    rig.table("n", "t", properties={"p": "1"}, data=False)
    for marks in (PROTECTED, US, Marks("team-b", True, ("p",))):
        protect(rig, "n", "t", marks=marks)
        rig.apply(c.UpdateNamespace(("n",), {}, (), marks))
        for seen in (state(rig, "Table", "n", "t"), state(rig, "Namespace", "n")):
            assert seen.marks == marks
    assert dict(state(rig, "Table", "n", "t").properties) == {"p": "1"}
    assert dict(state(rig, "Namespace", "n").properties) == {"a": "1"}
    about = sorted((r["reconciler.kind"], r["reconciler.id"]) for r in rig.records())
    assert about == [("Namespace", '["n"]'), ("Table", '["n", "t"]')]  # the older ones are gone


def test_the_inventory_is_not_part_of_the_catalog(rig: Rig) -> None:
    rig.namespace("n")
    rig.apply(c.AdoptNamespace(("n",), PROTECTED))
    assert len(rig.records()) == 1
    assert rig.scan().keys() == {("Namespace", ("n",))}
    assert rig.catalog.children(()) == ["n"]
    problem = rig.catalog.capabilities.ident_problem
    assert problem("Namespace", ("__reconciler",))
    assert problem("Table", ("__reconciler", "t"))
    assert problem("Namespace", ("n", "__reconciler")) is None


def test_the_same_marks_again_write_nothing(rig: Rig) -> None:
    rig.namespace("n")
    rig.table("n", "t", data=False)
    protect(rig, "n", "t")
    rig.proxy.forget()
    protect(rig, "n", "t")
    assert rig.proxy.count("POST", "/(create|drop)$") == 0


def test_a_strangers_object_of_the_same_name_is_not_ours(rig: Rig) -> None:
    rig.namespace("n", properties={"a": "1"})
    rig.table("n", "t", data=False)
    adopted = Marks("team-a")
    rig.apply(c.UpdateNamespace(("n",), {}, (), PROTECTED))
    protect(rig, "n", "t", marks=adopted)
    stranger = rig.stranger
    stranger.deregister_table(ln.DeregisterTableRequest(id=["n", "t"]))
    stranger.drop_namespace(ln.DropNamespaceRequest(id=["n"]))
    stranger.create_namespace(ln.CreateNamespaceRequest(id=["n"], properties={"b": "2"}))
    stranger.declare_table(ln.DeclareTableRequest(id=["n", "t"]))
    assert state(rig, "Namespace", "n").marks == Marks(None, protect=True)  # too much protection harms nobody
    assert state(rig, "Table", "n", "t").marks == Marks()


def register_again(rig: Rig, *ident: str, location: str) -> None:
    rig.stranger.register_table(ln.RegisterTableRequest(id=list(ident), location=Path(lance_uri(location)).name))


@pytest.mark.parametrize("held_by_record", [False, True])
def test_what_a_stranger_registers_where_we_removed_ours_is_the_strangers(rig: Rig, held_by_record: bool) -> None:
    rig.namespace("n")
    rig.table("n", "t", properties={"p": "1"})
    location = str(state(rig, "Table", "n", "t").location)  # type: ignore[union-attr]
    if held_by_record:
        protect(rig, "n", "t")
        protect(rig, "n", "t", marks=Marks("team-a", applied=("p",)))
    rig.apply(c.DeregisterTable(("n", "t")))
    gone = rig.find("Table", "n", "t")
    assert isinstance(gone, Detached)  # the place is known all the same
    assert gone.location == location
    register_again(rig, "n", "t", location=location)
    theirs = state(rig, "Table", "n", "t")
    assert (theirs.marks, dict(theirs.properties)) == (Marks(), {})


def test_a_stranger_who_registers_before_us_keeps_the_table(rig: Rig) -> None:
    rig.namespace("n")
    rig.table("n", "t")
    rig.apply(c.DeregisterTable(("n", "t")))
    gone = rig.find("Table", "n", "t")
    assert isinstance(gone, Detached)
    rig.proxy.fault(before(lambda: register_again(rig, "n", "t", location=gone.location)), path="/register$")
    with pytest.raises(CatalogError):
        rig.apply(c.DeclareTable(("n", "t"), {"p": "1"}, US, gone.location))
    theirs = state(rig, "Table", "n", "t")
    assert (theirs.marks, dict(theirs.properties)) == (Marks(), {})


@pytest.mark.parametrize("fault", [cut_before, answer(503, '{"code": 17}', retry_after=0)])
def test_a_removal_that_was_cut_off_can_be_ended(rig: Rig, fault: object) -> None:
    """The table is as it was, still ours: with its marks at the server, and with marks in a record."""
    rig.namespace("n")
    rig.table("n", "t")
    rig.table("n", "u")
    protect(rig, "n", "u")
    for name, marks in (("t", US), ("u", PROTECTED)):
        rig.proxy.fault(fault, path="/deregister$")  # type: ignore[arg-type]
        with pytest.raises(CatalogError):
            rig.apply(c.DeregisterTable(("n", name)))
        assert state(rig, "Table", "n", name).marks == marks


def test_a_dropped_namespace_leaves_no_record(rig: Rig) -> None:
    rig.namespace("n")
    rig.apply(c.UpdateNamespace(("n",), {}, (), PROTECTED), c.DropNamespace(("n",)))
    assert rig.records() == []
    assert rig.find("Namespace", "n") == Absent()


@pytest.mark.parametrize("before_us", [None, "team-b"])
def test_a_namespace_that_only_a_record_makes_ours_is_not_dropped(rig: Rig, before_us: str | None) -> None:
    """Somebody may have dropped it and created it again: the server shows the same of both."""
    properties = {"reconciler.owner": before_us} if before_us else None
    again = ln.CreateNamespaceRequest(id=["n"], properties=properties)
    rig.stranger.create_namespace(again)
    rig.apply(c.AdoptNamespace(("n",), US))
    rig.stranger.drop_namespace(ln.DropNamespaceRequest(id=["n"]))
    rig.stranger.create_namespace(again)
    rig.proxy.forget()
    with pytest.raises(CatalogError, match="was adopted") as caught:
        rig.apply(c.DropNamespace(("n",)))
    assert (caught.value.code, caught.value.unknown_outcome) == (Code.UNSUPPORTED, False)
    assert rig.proxy.count("POST", "/drop$") == 0
    assert rig.catalog.children(()) == ["n"]


def test_the_plan_knows_that_an_adopted_namespace_stays(rig: Rig) -> None:
    rig.namespace("made")
    rig.apply(c.UpdateNamespace(("made",), {}, (), PROTECTED))
    rig.stranger.create_namespace(ln.CreateNamespaceRequest(id=["found"]))
    rig.apply(c.AdoptNamespace(("found",), US))
    found, made = state(rig, "Namespace", "found"), state(rig, "Namespace", "made")
    assert isinstance(found, NamespaceState)
    assert isinstance(made, NamespaceState)
    assert "was adopted" in (found.lasting or "")
    assert made.lasting is None
    assert rig.scan()["Namespace", ("found",)].finding.state.lasting == found.lasting


def test_a_namespace_with_anything_inside_is_not_dropped(rig: Rig) -> None:
    rig.namespace("n")
    rig.table("n", "t", data=False)
    rig.proxy.forget()
    with pytest.raises(CatalogError) as caught:
        rig.apply(c.DropNamespace(("n",)))
    assert caught.value.code is Code.NAMESPACE_NOT_EMPTY
    assert rig.proxy.count("POST", "/drop$") == 0


def test_the_server_says_so_when_it_was_filled_at_the_last_moment(rig: Rig) -> None:
    rig.namespace("n")
    filling = before(lambda: rig.stranger.declare_table(ln.DeclareTableRequest(id=["n", "t"])))
    rig.proxy.fault(filling, path="/n/drop$")
    with pytest.raises(CatalogError) as caught:
        rig.apply(c.DropNamespace(("n",)))
    assert caught.value.code is Code.NAMESPACE_NOT_EMPTY
    assert not caught.value.unknown_outcome


def test_a_table_comes_back_to_its_data_as_often_as_one_likes(rig: Rig) -> None:
    rig.namespace("n")
    rig.table("n", "t", properties={"p": "1"})
    first = state(rig, "Table", "n", "t")
    assert isinstance(first, TableState)
    lance.write_dataset(pa.table({"id": [1, 2]}), str(first.place), mode="append")
    for _ in range(2):
        rig.apply(c.DeregisterTable(("n", "t")))
        gone = rig.find("Table", "n", "t")
        assert isinstance(gone, Detached)
        assert gone.location == first.location
        assert rig.scan(detail=[("n", "t")])["Table", ("n", "t")].finding == gone
        rig.apply(c.DeclareTable(("n", "t"), {"p": "1"}, PROTECTED, gone.location))
        back = state(rig, "Table", "n", "t")
        assert isinstance(back, TableState)
        assert (back.location, dict(back.properties), back.marks) == (first.location, {"p": "1"}, PROTECTED)
    assert lance.dataset(str(first.place)).count_rows() == 2
    protect(rig, "n", "t", marks=US)
    assert dict(state(rig, "Table", "n", "t").properties) == {"p": "1"}


def test_properties_of_a_registered_table_are_sent_and_only_our_note_keeps_them(rig: Rig) -> None:
    """As docs/catalogs.md says. A server that keeps them is a reason to change it there."""
    rig.namespace("n")
    rig.table("n", "t", properties={"p": "1"})
    describe = ln.DescribeTableRequest(id=["n", "t"])
    assert rig.stranger.describe_table(describe).properties["p"] == "1"
    rig.apply(c.DeregisterTable(("n", "t")))
    gone = rig.find("Table", "n", "t")
    assert isinstance(gone, Detached)
    rig.apply(c.DeclareTable(("n", "t"), {"p": "1"}, US, gone.location))
    sent = rig.proxy.requests("POST", "/register$")
    assert {json.loads(r.body)["properties"]["p"] for r in sent} == {"1"}
    assert not rig.stranger.describe_table(describe).properties
    assert dict(state(rig, "Table", "n", "t").properties) == {"p": "1"}
    readme = " ".join((Path(__file__).parents[2] / "docs" / "catalogs.md").read_text().split())
    assert "keep no properties of a registered table" in readme


def test_absolute_locations_are_tried_first_and_remembered_as_refused(rig: Rig) -> None:
    rig.namespace("n")
    for name in ("one", "two"):
        rig.table("n", name)
        rig.apply(c.DeregisterTable(("n", name)))
    for name in ("one", "two"):
        gone = rig.find("Table", "n", name)
        assert isinstance(gone, Detached)
        rig.apply(c.DeclareTable(("n", name), {}, US, gone.location))
    sent = [json.loads(r.body)["location"] for r in rig.proxy.requests("POST", "/register$")]
    assert [s.startswith("file:///") for s in sent] == [True, False, False]


def test_a_location_outside_the_servers_root_is_refused_and_nothing_stays(rig: Rig) -> None:
    rig.namespace("n")
    outside = rig.root.parent / "elsewhere"
    lance.write_dataset(pa.table({"id": [1]}), str(outside))
    with pytest.raises(CatalogError, match="below its root") as caught:
        rig.apply(c.DeclareTable(("n", "t"), {}, US, str(outside)))
    assert caught.value.code is Code.INVALID_INPUT
    assert rig.catalog.children(("n",)) == []
    assert lance.dataset(str(outside)).count_rows() == 1


def test_a_registration_that_cannot_be_looked_at_is_not_called_failed(rig: Rig) -> None:
    rig.namespace("n")
    rig.table("n", "t")
    rig.apply(c.DeregisterTable(("n", "t")))
    gone = rig.find("Table", "n", "t")
    assert isinstance(gone, Detached)
    rig.proxy.fault(answer(403, '{"code": 15}'), path="/v1/table/n%24t/describe")
    with pytest.raises(CatalogError) as caught:
        rig.apply(c.DeclareTable(("n", "t"), {}, US, gone.location))
    assert (caught.value.code, caught.value.unknown_outcome) == (Code.PERMISSION_DENIED, True)
    assert state(rig, "Table", "n", "t").marks == US


@pytest.mark.parametrize("name", ["plain", "#ü"])
def test_a_declared_table_has_its_marker_though_the_answer_was_lost(rig: Rig, name: str) -> None:
    """pylance's server puts its own marker at the wrong place when a name has such characters."""
    rig.namespace("n")
    rig.proxy.fault(cut_answer, path="/declare$")
    with pytest.raises(CatalogError) as caught:
        rig.apply(c.DeclareTable(("n", name), {}, US))
    assert caught.value.unknown_outcome
    declared = state(rig, "Table", "n", name)
    assert isinstance(declared, TableState)
    assert declared.dataset is None
    shutil.rmtree(str(declared.place))
    assert isinstance(rig.find("Table", "n", name), Unreadable)  # gone is not the same as declared only


@pytest.mark.parametrize("had_data", [False, True])
def test_the_servers_only_declared_does_not_tell_lost_data_from_none(rig: Rig, had_data: bool) -> None:
    """Killed between the declare and our marker, where the server puts none; and data that was lost. It says the same
    of both (it looks at the storage as we do), so an empty dataset is not created on its word. A person decides, and
    the message says how."""
    rig.namespace("n")
    if had_data:
        rig.table("n", "ü")
        shutil.rmtree(str(state(rig, "Table", "n", "ü").place))  # type: ignore[union-attr]
    else:
        rig.catalog.store.create_table(("n", "ü"), None, {"reconciler.owner": "team-a"}, None)
    asked = rig.stranger.describe_table(ln.DescribeTableRequest(id=["n", "ü"], check_declared=True))
    assert asked.is_only_declared is True
    finding = rig.find("Table", "n", "ü")
    assert isinstance(finding, Unreadable)
    assert "If it never had data" in finding.message
    assert "put an empty file .lance-reserved there and apply again" in finding.message
    place = Path(lance_uri(asked.location))
    place.mkdir()
    (place / ".lance-reserved").touch()
    declared = state(rig, "Table", "n", "ü")
    assert isinstance(declared, TableState)
    assert (declared.dataset, declared.marks) == (None, US)


@pytest.mark.parametrize("removed_first", [False, True], ids=["word alone", "removed first"])
def test_a_declare_that_a_kill_left_without_a_marker_is_mended_by_the_manifest_alone(
    rig: Rig, tmp_path: Path, removed_first: bool
) -> None:
    """No access to the storage is needed. Neither the entry nor our record of where the table was says whether it ever
    had data, so making it takes the word for that."""
    head = (
        "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\n"
        f"spec: {{type: rest, uri: '{rig.server}', management: {{owner: team-a}}}}\n"
    )
    rig.namespace("n")
    rig.catalog.store.create_table(("n", "ü"), None, {"reconciler.owner": "team-a"}, None)
    wanted = table("n", "ü")
    done = reconciler(tmp_path, "apply", write(tmp_path, head, wanted), "--yes")
    assert done.code == 3, done.out + done.err
    assert "needs `recreate`" in done.out
    if removed_first:
        gone = wanted[: wanted.index("spec:")] + "spec: {state: absent}\n"
        assert reconciler(tmp_path, "apply", write(tmp_path, head, gone), "--yes").code == 0
    done = reconciler(tmp_path, "apply", write(tmp_path, head, wanted), "--yes", "--allow", "recreate")
    assert done.code == 0, done.out + done.err
    assert isinstance(state(rig, "Table", "n", "ü"), TableState)
    assert reconciler(tmp_path, "plan", tmp_path / "m.yaml", "--detailed-exitcode").code == 0


def test_a_strangers_declared_table_gets_no_marker_of_ours(rig: Rig) -> None:
    rig.namespace("n")
    stranger = rig.stranger
    rig.proxy.fault(cut_before, path="/declare$")
    stranger.declare_table(ln.DeclareTableRequest(id=["n", "ü"]))
    with pytest.raises(CatalogError):
        rig.apply(c.DeclareTable(("n", "ü"), {}, US))
    location = stranger.describe_table(ln.DescribeTableRequest(id=["n", "ü"])).location
    assert not Path(lance_uri(location)).exists()


def test_two_writers_of_one_record(rig: Rig) -> None:
    """One is told to look again; what is read is the record of one of the two, whole."""
    rig.namespace("n")
    rig.table("n", "t", data=False)
    one, other = Marks("team-a", True), Marks("team-a", False, ("x",))
    codes: list[Code | None] = []

    def write(marks: Marks) -> None:
        try:
            rig.apply(c.UpdateTable(("n", "t"), {}, (), marks), catalog=rig.open())
            codes.append(None)
        except CatalogError as error:
            codes.append(error.code)

    threads = [threading.Thread(target=write, args=(m,)) for m in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert None in codes
    assert set(codes) <= {None, Code.CONCURRENT_MODIFICATION}
    assert state(rig, "Table", "n", "t").marks in (one, other)


def test_a_record_that_is_replaced_while_it_is_read(rig: Rig) -> None:
    rig.namespace("n")
    rig.table("n", "t", data=False)
    protect(rig, "n", "t")
    other = rig.open()
    replacing = before(lambda: rig.apply(c.UpdateTable(("n", "t"), {}, (), US), catalog=other))
    rig.proxy.fault(replacing, path=key_of("Table", ("n", "t")) + "-00000001/describe$")
    finding = rig.find("Table", "n", "t")
    assert isinstance(finding, Present)
    assert finding.state.marks == US


def test_a_record_that_cannot_be_read_is_its_objects_problem_only(rig: Rig) -> None:
    rig.namespace("n")
    for name in ("a", "b"):
        rig.table("n", name, data=False)
        protect(rig, "n", name)
    rig.proxy.fault(answer(403, '{"code": 15}'), path=key_of("Table", ("n", "a")), times=None)
    found = rig.scan()
    assert isinstance(found["Table", ("n", "a")].finding, Unreadable)
    assert found["Table", ("n", "b")].finding.state.marks == PROTECTED


def test_strangers_in_the_inventory_are_left_alone(rig: Rig) -> None:
    rig.namespace("n")
    rig.apply(c.AdoptNamespace(("n",), PROTECTED))
    rig.stranger.create_namespace(ln.CreateNamespaceRequest(id=["__reconciler", "notes-of-somebody"]))
    rig.apply(c.UpdateNamespace(("n",), {}, (), US))
    assert state(rig, "Namespace", "n").marks == US
    names = rig.stranger.list_namespaces(ln.ListNamespacesRequest(id=["__reconciler"])).namespaces
    assert "notes-of-somebody" in names


@pytest.mark.parametrize(
    "change",
    [
        c.UpdateNamespace(("n",), {"a": "2"}, (), US),
        c.UpdateNamespace(("n",), {}, ("a",), US),
        c.UpdateTable(("n", "t"), {"a": "2"}, (), US),
        c.UpdateTable(("n", "t"), {}, ("a",), US),
        c.RenameTable(("n", "u"), ("n", "t")),
        c.RenameNamespace(("m",), ("n",)),
    ],
)
def test_what_the_protocol_cannot_do_is_refused_with_the_reason_and_never_sent(rig: Rig, change: c.Change) -> None:
    reason = rig.catalog.capabilities.refuses(change)
    assert reason is not None
    assert "Lance REST protocol" in reason
    with pytest.raises(CatalogError) as caught:
        rig.catalog.apply(change, WRITE)
    assert (caught.value.code, caught.value.message) == (Code.UNSUPPORTED, reason)
    assert rig.proxy.count() == 0


def make_again(rig: Rig, *ident: str, schema: pa.Schema | None = None) -> None:
    """Somebody drops the table with its data, and makes another one: of a root table at the same place."""
    name = list(ident)
    rig.stranger.drop_table(ln.DropTableRequest(id=name))
    sink = io.BytesIO()
    schema = schema or pa.schema([("id", pa.int64()), ("secret", pa.string())])
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pa.table({"id": [1], "secret": ["x"]}, schema=schema))
    rig.stranger.create_table(ln.CreateTableRequest(id=name), sink.getvalue())


@pytest.fixture
def plain(rest_adapter: RestServers, tmp_path: Path) -> Iterator[Rig]:
    """A server on pylance's defaults: a root table is its folder, and has no properties."""
    endpoint = rest_adapter.serve(tmp_path / "plain", dir_listing_enabled="true")
    rig = Rig(tmp_path / "plain", endpoint, Proxy(endpoint))
    yield rig
    rig.close()
    rest_adapter.stop(endpoint)


def _manifests(rig: Rig, **spec: str) -> str:
    head = (
        "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\n"
        f"spec: {{type: rest, uri: '{rig.server}', management: {{owner: team-a}}}}\n"
    )
    return head + table("t", **spec)


def test_a_root_table_is_ours_on_a_server_that_keeps_no_properties(plain: Rig, tmp_path: Path) -> None:
    write(tmp_path, _manifests(plain, spec="properties: {a: '1'}"))
    done = reconciler(tmp_path, "apply", "m.yaml", "--yes")
    assert done.code == 0, done.out + done.err
    assert not plain.stranger.describe_table(ln.DescribeTableRequest(id=["t"])).properties
    live = state(plain, "Table", "t")
    assert (live.marks.owner, dict(live.properties)) == ("team-a", {"a": "1"})
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0


@pytest.mark.parametrize(("name", "adopted"), [("t", False), ("ü", False), ("t", True)])
def test_no_plan_promises_to_take_out_a_table_that_is_its_folder(
    plain: Rig, tmp_path: Path, name: str, adopted: bool
) -> None:
    """The server answers that it is deregistered, and goes on showing it. Other tables of the server do go."""
    if adopted:
        plain.stranger.declare_table(ln.DeclareTableRequest(id=[name]))
    ours = _manifests(plain).replace('"t"', json.dumps(name))
    write(tmp_path, ours, namespace("n"), table("n", "u"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes", "--adopt").code == 0
    head = _manifests(plain)[: _manifests(plain).index("---")]
    absent = ours.replace("schema: [{name: id, type: int64}]", "state: absent")
    for documents, more in (((absent, namespace("n"), table("n", "u")), ()), ((head, namespace("n")), ("--prune",))):
        write(tmp_path, *documents)
        plan = reconciler(tmp_path, "plan", "m.yaml", *more, "--format", "json").json
        verdicts = {tuple(s["object"]["id"]): s["verdict"] for s in plan["steps"]}
        assert verdicts == {(name,): "unsupported", **({("n", "u"): "allowed"} if more else {})}
        assert "goes on showing" in next(s["reason"] for s in plan["steps"] if s["verdict"] == "unsupported")
        assert reconciler(tmp_path, "apply", "m.yaml", "--yes", *more).code == 3
    assert state(plain, "Table", name).marks.owner == "team-a"
    assert isinstance(plain.find("Table", "n", "u"), Detached)


def test_what_stayed_once_is_not_promised_again(rig: Rig) -> None:
    """Nothing shows it beforehand of such a server; then our record does."""
    rig.namespace("n")
    for name in ("t", "u"):
        rig.table("n", name)
        protect(rig, "n", name)
    rig.proxy.fault(answer(200, "{}"), path="/deregister$")
    with pytest.raises(CatalogError) as caught:
        rig.apply(c.DeregisterTable(("n", "t")))
    assert caught.value.code is Code.UNSUPPORTED
    seen = [s for s in rig.catalog.scan(Scope()) if isinstance(s, Unsupported)]
    assert [(s.ident, s.change, s.reason) for s in seen] == [(("n", "t"), "DeregisterTable", caught.value.message)]
    assert state(rig, "Table", "n", "t").marks == PROTECTED


@pytest.mark.parametrize("adopted", [False, True], ids=["created", "adopted"])
def test_a_root_table_that_others_drop_and_make_again_is_theirs(plain: Rig, tmp_path: Path, adopted: bool) -> None:
    """Also when it was adopted, declared, or is in no manifest any more: nothing of it is changed or taken out."""
    if adopted:
        plain.stranger.declare_table(ln.DeclareTableRequest(id=["t"]))
    write(tmp_path, _manifests(plain, spec="allow: [drop_column]"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes", "--adopt").code == 0
    make_again(plain, "t")
    before = LocalFiles(plain.root / "t.lance").all()
    plan = reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json
    assert {(s["verdict"], s["blocked_by"]) for s in plan["steps"]} == {("blocked", "adopt")}
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 3
    write(tmp_path, _manifests(plain).replace('"t"', '"other"'))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes", "--prune").code == 0
    assert LocalFiles(plain.root / "t.lance").all() == before
    assert plain.stranger.list_tables(ln.ListTablesRequest(id=[])).tables == ["other", "t"]
    assert state(plain, "Table", "t").marks == Marks()


def test_a_root_table_that_others_declare_again_is_theirs(plain: Rig) -> None:
    plain.table("t", data=False)
    assert state(plain, "Table", "t").marks == US
    plain.stranger.drop_table(ln.DropTableRequest(id=["t"]))
    plain.stranger.declare_table(ln.DeclareTableRequest(id=["t"]))
    assert state(plain, "Table", "t").marks == Marks()


@pytest.mark.parametrize("fault", [cut_before, cut_answer])
def test_a_root_table_whose_declare_had_no_answer_is_not_taken_for_ours(plain: Rig, fault: Any) -> None:
    """Nothing tells it from one that somebody else declared in the same moment."""
    plain.proxy.fault(fault, path="/declare$")
    if fault is cut_before:
        plain.stranger.declare_table(ln.DeclareTableRequest(id=["t"]))
    with pytest.raises(CatalogError) as caught:
        plain.apply(c.DeclareTable(("t",), {}, US))
    assert caught.value.unknown_outcome
    assert state(plain, "Table", "t").marks == Marks()
    assert (plain.root / "t.lance" / ".lance-reserved").read_bytes() == b"reserved"


def test_a_declare_without_an_answer_is_told_as_it_is(plain: Rig, tmp_path: Path) -> None:
    """Nobody refused it, and nobody else need have been there; --adopt takes what came of it."""
    manifests = _manifests(plain).replace(plain.server, plain.proxy.endpoint)
    write(tmp_path, manifests)
    plain.proxy.fault(cut_answer, path="/declare$")
    done = reconciler(tmp_path, "apply", "m.yaml", "--yes", "--format", "json")
    assert (done.code, [s["status"] for s in done.json["steps"]]) == (5, ["unknown", "not_run"])
    assert "whether lake:t was written is not known" in done.json["steps"][0]["error"]["message"]
    assert "refused" not in done.json["steps"][0]["error"]["message"]
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 3
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes", "--adopt").code == 0
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0


def test_a_declare_that_fails_leaves_no_claim(plain: Rig) -> None:
    plain.stranger.declare_table(ln.DeclareTableRequest(id=["t"]))
    with pytest.raises(CatalogError):
        plain.apply(c.DeclareTable(("t",), {}, US))
    assert plain.records() == []
    assert state(plain, "Table", "t").marks == Marks()
