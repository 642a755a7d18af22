"""The three layouts, against pylance's own DirectoryNamespace in both directions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import lance_namespace as ln
import pytest
from dir_support import (
    DEFAULT,
    FIELDS,
    LAYOUTS,
    OURS,
    V1,
    V2,
    create_namespace,
    data,
    dataset,
    declare,
    detail,
    find,
    make_table,
    open_catalog,
    peer,
    peer_namespaces,
    peer_table,
    peer_tables,
    rows_ipc,
    run,
    scanned,
    table,
)

from reconciler.model.change import (
    AdoptNamespace,
    AdoptTable,
    DeregisterTable,
    DropNamespace,
    RenameNamespace,
    RenameTable,
    UpdateNamespace,
    UpdateTable,
)
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Absent, Detached, Present
from reconciler.model.state import UNKNOWN, Marks, NamespaceState, TableState

BOTH = pytest.mark.parametrize("layout", [DEFAULT, V2], ids=["default", "v2"])
EVERY = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())


def ident_of(layout: dict[str, str]) -> tuple[str, ...]:
    return ("t",) if layout == V1 else ("n", "t")


@EVERY
def test_a_new_table_is_what_was_asked_for(layout: dict[str, str], tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path / "lake", **layout)
    ident = ident_of(layout)
    assert scanned(catalog) == {}
    if layout != V1:
        run(catalog, create_namespace("n", team="vision"))
    run(catalog, declare(*ident))
    assert table(catalog, *ident).dataset is None
    config, applied = {"lance.auto_cleanup.interval": "20"}, ("config:lance.auto_cleanup.interval",)
    run(catalog, dataset(*ident, config=config, applied=applied, schema_metadata={"a": "b"}))
    live = data(catalog, *ident)
    assert (live.fields, live.config, live.schema_metadata) == (FIELDS, config, {"a": "b"})
    assert (live.owner, live.applied, live.version) == ("team-a", applied, 2)
    assert table(catalog, *ident).marks == OURS
    assert scanned(catalog, detail(ident))["Table", ident] == find(catalog, *ident)
    listed = scanned(catalog)["Table", ident]
    assert isinstance(listed, Present)
    assert isinstance(listed.state, TableState)
    assert listed.state.dataset is UNKNOWN


@BOTH
def test_pylance_sees_what_we_wrote(layout: dict[str, str], tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, **layout)
    run(catalog, create_namespace("n", team="vision"), create_namespace("n", "deep"))
    make_table(catalog, "n", "t")
    make_table(catalog, "n", "deep", "t")
    run(catalog, declare("root", colour="red"))
    theirs = peer(tmp_path, **layout)
    assert peer_namespaces(theirs) == {"n"}
    assert peer_namespaces(theirs, "n") == {"deep"}
    assert peer_tables(theirs, "n") == {"t"}
    assert peer_tables(theirs) == {"root"}
    described = theirs.describe_namespace(ln.DescribeNamespaceRequest(id=["n"]))
    assert described.properties == {"team": "vision", "reconciler.owner": "team-a"}
    for ident in (("n", "t"), ("n", "deep", "t")):
        opened = lance.dataset(namespace_client=theirs, table_id=list(ident))
        assert opened.schema.names == ["id", "embedding"]
    declared = theirs.describe_table(ln.DescribeTableRequest(id=["root"], check_declared=True))
    assert declared.is_only_declared is True
    theirs.create_table(ln.CreateTableRequest(id=["root"]), rows_ipc())
    assert data(catalog, "root").fields[0].name == "id"


@BOTH
def test_we_see_what_pylance_wrote(layout: dict[str, str], tmp_path: Path) -> None:
    theirs = peer(tmp_path, **layout)
    theirs.create_namespace(ln.CreateNamespaceRequest(id=["n"], properties={"team": "y"}))
    theirs.create_namespace(ln.CreateNamespaceRequest(id=["n", "m"]))
    theirs.create_table(ln.CreateTableRequest(id=["n", "m", "t"], properties={"a": "b"}), rows_ipc())
    theirs.declare_table(ln.DeclareTableRequest(id=["n", "d"], properties={"c": "d"}))
    theirs.create_table(ln.CreateTableRequest(id=["root"]), rows_ipc())
    catalog = open_catalog(tmp_path, **layout)
    found = scanned(catalog, detail(("n", "m", "t"), ("n", "d"), ("root",)))
    assert found["Namespace", ("n",)] == Present(NamespaceState({"team": "y"}))
    assert found["Namespace", ("n", "m")] == Present(NamespaceState())
    assert set(found) == {
        ("Namespace", ("n",)), ("Namespace", ("n", "m")),
        ("Table", ("n", "m", "t")), ("Table", ("n", "d")), ("Table", ("root",)),
    }  # fmt: skip
    assert table(catalog, "n", "m", "t").properties == {"a": "b"}
    assert table(catalog, "n", "m", "t").marks == Marks()
    assert (table(catalog, "n", "d").properties, table(catalog, "n", "d").dataset) == ({"c": "d"}, None)
    assert data(catalog, "root").owner is None
    run(catalog, dataset("n", "d"))
    assert lance.dataset(namespace_client=theirs, table_id=["n", "d"]).count_rows() == 0


def test_v1_both_ways(tmp_path: Path) -> None:
    theirs = peer(tmp_path, **V1)
    theirs.create_table(ln.CreateTableRequest(id=["theirs"]), rows_ipc())
    theirs.declare_table(ln.DeclareTableRequest(id=["declared"]))
    theirs.create_table(ln.CreateTableRequest(id=["gone"]), rows_ipc())
    theirs.deregister_table(ln.DeregisterTableRequest(id=["gone"]))
    catalog = open_catalog(tmp_path, **V1)
    make_table(catalog, "ours")
    assert peer_tables(theirs) == {"theirs", "declared", "ours"}
    assert {i for _, i in scanned(catalog)} == {("theirs",), ("declared",), ("ours",)}
    assert table(catalog, "declared").dataset is None
    assert isinstance(find(catalog, "gone"), Detached)
    run(catalog, DeregisterTable(("ours",)))
    assert peer_tables(theirs) == {"theirs", "declared"}
    assert not (tmp_path / "__manifest").exists()


@EVERY
def test_deregister_keeps_the_data_and_reattach_finds_it(layout: dict[str, str], tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, **layout)
    ident = ident_of(layout)
    if layout != V1:
        run(catalog, create_namespace("n"))
    make_table(catalog, *ident)
    before = table(catalog, *ident)
    lance.write_dataset(rows_table(), str(before.location), mode="append")
    run(catalog, DeregisterTable(ident))
    gone = find(catalog, *ident)
    assert isinstance(gone, Detached)
    assert gone.location == before.location
    assert scanned(catalog, detail(ident))["Table", ident] == gone
    assert ("Table", ident) not in scanned(catalog)
    assert find(catalog, *ident, scope=detail()) == Absent()
    with pytest.raises(CatalogError) as again:
        run(catalog, DeregisterTable(ident))
    assert again.value.code is Code.TABLE_NOT_FOUND
    run(catalog, declare(*ident, location=gone.location))
    assert data(catalog, *ident).version == gone.dataset.version
    assert lance.dataset(str(before.location)).count_rows() == 3
    assert table(catalog, *ident).marks == OURS
    assert catalog.storage.list_deep("__reconciler/detached") == ()


def rows_table() -> Any:
    import pyarrow as pa

    return pa.table(
        {"id": pa.array([1, 2, 3], pa.int64()), "embedding": pa.array([[0.0] * 8] * 3, pa.list_(pa.float32(), 8))},
        schema=pa.schema(
            [pa.field("id", pa.int64(), nullable=False), pa.field("embedding", pa.list_(pa.float32(), 8))]
        ),
    )


@pytest.mark.parametrize("layout", [DEFAULT, V1], ids=["default", "v1"])
def test_root_tables_leave_and_return(layout: dict[str, str], tmp_path: Path) -> None:
    """pylance alone never gets a root table out of the default layout's listing."""
    catalog = open_catalog(tmp_path, **layout)
    make_table(catalog, "r")
    assert peer_tables(peer(tmp_path, **layout)) == {"r"}
    run(catalog, DeregisterTable(("r",)))
    assert peer_tables(peer(tmp_path, **layout)) == set()
    with pytest.raises(CatalogError) as refused:
        run(catalog, declare("r"))
    assert refused.value.code is Code.TABLE_ALREADY_EXISTS
    gone = find(catalog, "r")
    assert isinstance(gone, Detached)
    run(catalog, declare("r", location=gone.location))
    assert peer_tables(peer(tmp_path, **layout)) == {"r"}
    assert peer_table(peer(tmp_path, **layout), "r").location == gone.location


@pytest.mark.parametrize("layout", [DEFAULT, V1], ids=["default", "v1"])
def test_a_declared_root_table_without_data_can_be_declared_again(layout: dict[str, str], tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, **layout)
    run(catalog, declare("r"), DeregisterTable(("r",)))
    assert find(catalog, "r") == Absent()
    run(catalog, declare("r"))
    assert table(catalog, "r").dataset is None
    assert table(catalog, "r").marks == OURS


@BOTH
def test_properties_and_marks_are_kept_apart(layout: dict[str, str], tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, **layout)
    marks = Marks("team-a", True, ("a", "b"))
    run(catalog, create_namespace("n", marks=marks, a="1", b="2"))
    assert find(catalog, "n", kind="Namespace") == Present(NamespaceState({"a": "1", "b": "2"}, marks))
    changed = Marks("team-a", False, ("a",))
    run(catalog, UpdateNamespace(("n",), {"a": "3", "c": "4"}, ("b",), changed))
    assert find(catalog, "n", kind="Namespace") == Present(NamespaceState({"a": "3", "c": "4"}, changed))
    for ident in (("n", "t"), ("r",)):
        run(catalog, declare(*ident, marks=marks, a="1", b="2"))
        assert (table(catalog, *ident).properties, table(catalog, *ident).marks) == ({"a": "1", "b": "2"}, marks)
        run(catalog, UpdateTable(ident, {"a": "é'\"$"}, ("b",), changed))
        assert (table(catalog, *ident).properties, table(catalog, *ident).marks) == ({"a": "é'\"$"}, changed)
        run(catalog, UpdateTable(ident, {}, ("a",), OURS))
        assert (table(catalog, *ident).properties, table(catalog, *ident).marks) == ({}, OURS)


@EVERY
def test_adopting(layout: dict[str, str], tmp_path: Path) -> None:
    theirs = peer(tmp_path, **layout)
    ident = ident_of(layout)
    if layout != V1:
        theirs.create_namespace(ln.CreateNamespaceRequest(id=["n"], properties={"x": "y"}))
    theirs.create_table(ln.CreateTableRequest(id=list(ident)), rows_ipc())
    theirs.declare_table(ln.DeclareTableRequest(id=[*ident[:-1], "empty"]))
    catalog = open_catalog(tmp_path, **layout)
    if layout != V1:
        run(catalog, AdoptNamespace(("n",), OURS))
        assert find(catalog, "n", kind="Namespace") == Present(NamespaceState({"x": "y"}, OURS))
    before = data(catalog, *ident)
    run(catalog, AdoptTable(ident, OURS, ("config:a",)), AdoptTable((*ident[:-1], "empty"), OURS))
    after = data(catalog, *ident)
    assert (after.owner, after.applied, after.fields) == ("team-a", ("config:a",), before.fields)
    assert table(catalog, *ident).marks == OURS
    assert table(catalog, *ident[:-1], "empty").marks == OURS
    version = after.version
    run(catalog, AdoptTable(ident, OURS, ("config:a",)))
    assert data(catalog, *ident).version == version


@BOTH
def test_parents_and_names_are_checked(layout: dict[str, str], tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, **layout)
    run(catalog, create_namespace("n"))
    run(catalog, declare("n", "t"), declare("r"))
    expected = [
        (create_namespace("n"), Code.NAMESPACE_ALREADY_EXISTS),
        (create_namespace("x", "y"), Code.NAMESPACE_NOT_FOUND),
        (create_namespace("n", "t"), Code.TABLE_ALREADY_EXISTS),
        (create_namespace("n", "t", "u"), Code.INVALID_TABLE_STATE),
        (declare("n", "t"), Code.TABLE_ALREADY_EXISTS),
        (declare("r"), Code.TABLE_ALREADY_EXISTS),
        (declare("x", "t"), Code.NAMESPACE_NOT_FOUND),
        (declare("n", "t", "u"), Code.INVALID_TABLE_STATE),
        (declare("__x"), Code.INVALID_INPUT),
        (declare("n", "a$b"), Code.INVALID_INPUT),
        (create_namespace("a/b"), Code.INVALID_INPUT),
        (DropNamespace(("x",)), Code.NAMESPACE_NOT_FOUND),
        (DropNamespace(("n", "t")), Code.NAMESPACE_NOT_FOUND),
        (DropNamespace(("n",)), Code.NAMESPACE_NOT_EMPTY),
        (DeregisterTable(("x",)), Code.TABLE_NOT_FOUND),
        (UpdateTable(("x",), {}, (), OURS), Code.TABLE_NOT_FOUND),
        (UpdateNamespace(("x",), {}, (), OURS), Code.NAMESPACE_NOT_FOUND),
        (dataset("n", "x"), Code.TABLE_NOT_FOUND),
    ]  # fmt: skip
    before = sorted(p.name for p in tmp_path.iterdir())
    for change, code in expected:
        with pytest.raises(CatalogError) as refused:
            run(catalog, change)
        assert refused.value.code is code, change
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_one_name_one_object_in_the_default_layout(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    make_table(catalog, "a")
    run(catalog, create_namespace("b"))
    for change in (create_namespace("a"), declare("b")):
        with pytest.raises(CatalogError) as refused:
            run(catalog, change)
        assert refused.value.code in (Code.INVALID_TABLE_STATE, Code.TABLE_ALREADY_EXISTS)
    assert not (tmp_path / "b.lance").exists()


@BOTH
def test_renames_move_names_not_data(layout: dict[str, str], tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, **layout)
    run(catalog, create_namespace("a", x="y"), create_namespace("a", "in"), create_namespace("b"))
    make_table(catalog, "a", "in", "t")
    make_table(catalog, "a", "u")
    before = table(catalog, "a", "in", "t")
    run(catalog, RenameTable(("b", "moved"), ("a", "in", "t")))
    assert table(catalog, "b", "moved") == before
    assert find(catalog, "a", "in", "t") == Absent()
    run(catalog, RenameNamespace(("c",), ("a",)))
    assert {(k, i) for k, i in scanned(catalog)} == {
        ("Namespace", ("b",)), ("Namespace", ("c",)), ("Namespace", ("c", "in")),
        ("Table", ("b", "moved")), ("Table", ("c", "u")),
    }  # fmt: skip
    theirs = peer(tmp_path, **layout)
    assert peer_tables(theirs, "c") == {"u"}
    assert lance.dataset(namespace_client=theirs, table_id=["b", "moved"]).version == 2
    for change, code in [
        (RenameTable(("b", "moved"), ("c", "u")), Code.TABLE_ALREADY_EXISTS),
        (RenameTable(("x", "t"), ("c", "u")), Code.NAMESPACE_NOT_FOUND),
        (RenameTable(("b", "z"), ("c", "zz")), Code.TABLE_NOT_FOUND),
        (RenameNamespace(("b",), ("c",)), Code.NAMESPACE_ALREADY_EXISTS),
        (RenameNamespace(("c", "in", "x"), ("c",)), Code.INVALID_INPUT),
    ]:
        with pytest.raises(CatalogError) as refused:
            run(catalog, change)
        assert refused.value.code is code, change


def test_root_tables_are_renamed_only_in_v2(tmp_path: Path) -> None:
    v2 = open_catalog(tmp_path / "v2", **V2)
    make_table(v2, "a")
    run(v2, RenameTable(("b",), ("a",)))
    assert data(v2, "b").version == 2
    for layout in (DEFAULT, V1):
        catalog = open_catalog(tmp_path / "other", **layout)
        change = RenameTable(("b",), ("a",))
        assert "root table" in (catalog.capabilities.refuses(change) or "")
        with pytest.raises(CatalogError) as refused:
            run(catalog, change)
        assert refused.value.code is Code.UNSUPPORTED


ODD_NAMES = [
    "a.b",
    "a b",
    "50%",
    "a%20b",
    "c++",
    "#1",
    "why?",
    "naïve",
    "日本",
    "it's",
    'say "hi"',
    "a&b=c",
    "Ünï~x",
    "[x]",
]


@pytest.mark.slow
@BOTH
def test_odd_names_work(layout: dict[str, str], tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, **layout)
    theirs = peer(tmp_path, **layout)
    for name in ODD_NAMES:
        run(catalog, create_namespace(name, p=name))
        make_table(catalog, name, name)
    assert peer_namespaces(theirs) == set(ODD_NAMES)
    for name in ODD_NAMES:
        if "'" not in name:  # pylance 14 does not quote it in its own filter
            assert peer_tables(theirs, name) == {name}
            assert lance.dataset(namespace_client=theirs, table_id=[name, name]).version == 2
        state = table(catalog, name, name)
        run(catalog, DeregisterTable((name, name)))
        gone = find(catalog, name, name)
        assert isinstance(gone, Detached)
        run(catalog, declare(name, name, location=gone.location))
        assert table(catalog, name, name) == state
        run(catalog, DeregisterTable((name, name)), DropNamespace((name,)))
    assert scanned(catalog) == {}


@pytest.mark.parametrize("layout", [DEFAULT, V1], ids=["default", "v1"])
def test_odd_root_names_work(layout: dict[str, str], tmp_path: Path) -> None:
    """pylance's V1 client cannot find its own tables named like this; opening them by path works."""
    catalog = open_catalog(tmp_path, **layout)
    for name in ODD_NAMES:
        make_table(catalog, name)
        assert lance.dataset(str(tmp_path / f"{name}.lance")).version == 2
        assert table(catalog, name).marks == OURS
    assert {i for _, (i,) in scanned(catalog)} == set(ODD_NAMES)
    for name in ODD_NAMES:
        run(catalog, DeregisterTable((name,)))
        assert isinstance(find(catalog, name), Detached)


@BOTH
def test_tables_of_others_with_odd_names_are_opened(layout: dict[str, str], tmp_path: Path) -> None:
    theirs = peer(tmp_path, **layout)
    theirs.create_namespace(ln.CreateNamespaceRequest(id=["n"]))
    for name in ODD_NAMES:
        theirs.create_table(ln.CreateTableRequest(id=["n", name]), rows_ipc())
    catalog = open_catalog(tmp_path, **layout)
    for name in ODD_NAMES:
        assert data(catalog, "n", name).fields[0].name == "id"
