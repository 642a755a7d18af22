"""What a scan reads, how often, and what it makes of odd folders and rows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from dir_support import (
    DEFAULT,
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
    peer_tables,
    run,
    scanned,
    table,
)

from reconciler.catalog.directory_inventory import Inventory
from reconciler.catalog.directory_manifest import manifest_schema
from reconciler.catalog.stats import Stats
from reconciler.model.change import (
    AdoptTable,
    DeregisterTable,
    DropNamespace,
    RenameNamespace,
    RenameTable,
    UpdateTable,
)
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Absent, Detached, Present, Scope, Unreadable
from reconciler.model.state import UNKNOWN, Marks, TableState


def write_rows(root: Path, *rows: dict[str, Any]) -> None:
    values = [{"location": None, "metadata": None, "base_objects": None, **row} for row in rows]
    lance.write_dataset(pa.Table.from_pylist(values, manifest_schema()), str(root / "__manifest"), mode="append")


@pytest.mark.slow
@pytest.mark.parametrize("layout", [DEFAULT, V2, V1], ids=["default", "v2", "v1"])
def test_a_no_change_scan_reads_a_bounded_number_of_times(layout: dict[str, str], tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, **layout)
    idents = [(f"t{i}",) for i in range(12)]
    if layout != V1:
        run(catalog, create_namespace("n"))
        idents += [("n", f"t{i}") for i in range(12)]
    for ident in idents:
        make_table(catalog, *ident)
    catalog = open_catalog(tmp_path, **layout)
    found = scanned(catalog, detail(*idents))
    assert all(isinstance(found["Table", i], Present) for i in idents)
    assert catalog.stats.manifest_scans == (0 if layout == V1 else 1)
    assert catalog.stats.listings <= 2
    assert catalog.stats.opens == len(idents)
    assert catalog.stats.writes == 0
    catalog.stats.reset()
    scanned(catalog)
    assert catalog.stats.opens == 0
    catalog.stats.reset()
    list(catalog.read([("Table", i) for i in idents], detail(*idents)))
    assert catalog.stats.manifest_scans == 0  # the version that was scanned is still the latest
    assert (catalog.stats.opens, catalog.stats.writes) == (len(idents), 0)


def test_every_read_sees_what_others_wrote_meanwhile(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, **V2)
    run(catalog, create_namespace("n"))
    assert isinstance(scanned(catalog)["Namespace", ("n",)], Present)
    write_rows(tmp_path, {"object_id": "theirs", "object_type": "namespace"})
    assert ("Namespace", ("theirs",)) in scanned(catalog)
    version = lance.dataset(str(tmp_path / "__manifest")).version
    shutil.rmtree(tmp_path / "__manifest")
    lance.write_dataset([], str(tmp_path / "__manifest"), schema=manifest_schema(), mode="create")
    while lance.dataset(str(tmp_path / "__manifest")).version < version:
        write_rows(tmp_path, {"object_id": "anew", "object_type": "namespace"})
    assert {i for _, i in scanned(catalog)} == {("anew",)}  # the same version number, another `__manifest`


def test_a_missing_root_is_an_empty_catalog_until_the_first_write(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path / "lake")
    assert scanned(catalog, detail(("n", "t"))) == {}
    assert find(catalog, "n", "t") == Absent()
    assert catalog.children(()) == []
    assert not (tmp_path / "lake").exists()
    run(catalog, create_namespace("n"))
    assert (tmp_path / "lake" / "__manifest").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("layout", [DEFAULT, V1], ids=["default", "v1"])
def test_foreign_folders_exist_are_unreadable_and_stay(layout: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "empty.lance").mkdir()
    (tmp_path / "junk.lance").mkdir()
    (tmp_path / "junk.lance" / "notes.txt").write_text("mine")
    (tmp_path / "half.lance" / "data").mkdir(parents=True)
    (tmp_path / "half.lance" / "data" / "x.lance").write_text("mine")
    (tmp_path / "loose.txt").write_text("a file is no table")
    (tmp_path / "folder").mkdir()
    catalog = open_catalog(tmp_path, **layout)
    names = ("empty", "junk", "half")
    found = scanned(catalog, detail(*((n,) for n in names)))
    assert {i for _, i in found} == {(n,) for n in names}
    assert peer_tables(peer(tmp_path, **layout)) >= {"junk", "half"}
    for name in names:
        for finding in (found["Table", (name,)], find(catalog, name)):
            assert isinstance(finding, Unreadable)
            assert str(tmp_path / f"{name}.lance") in finding.message
        for change, code in [(declare(name), Code.TABLE_ALREADY_EXISTS), (dataset(name), Code.INVALID_TABLE_STATE)]:
            with pytest.raises(CatalogError) as refused:
                run(catalog, change)
            assert refused.value.code is code
    assert (tmp_path / "junk.lance" / "notes.txt").read_text() == "mine"
    assert sorted(p.name for p in (tmp_path / "half.lance").iterdir()) == ["data"]
    assert set(catalog.children(())) == set(names)


def test_plain_folders(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64())])
    for name in ("images", "both", "both.lance", "texts.lance"):
        lance.write_dataset([], str(tmp_path / name), schema=schema)
    (tmp_path / "_private").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "empty").mkdir()
    without = open_catalog(tmp_path)
    assert {i for _, i in scanned(without)} == {("both",), ("texts",)}
    catalog = open_catalog(tmp_path, plain_folders="true")
    run(catalog, create_namespace("n"))
    make_table(catalog, "n", "t")
    tables = {i for kind, i in scanned(catalog) if kind == "Table"}
    assert tables == {("images",), ("both",), ("texts",), ("empty",), ("n", "t")}
    assert data(catalog, "images").fields[0].name == "id"
    both = find(catalog, "both")
    assert isinstance(both, Unreadable)
    assert "both claim" in both.message
    assert isinstance(find(catalog, "empty"), Unreadable)
    with pytest.raises(CatalogError) as refused:
        run(catalog, declare("images"))
    assert refused.value.code is Code.TABLE_ALREADY_EXISTS
    run(catalog, UpdateTable(("images",), {"a": "b"}, (), OURS))
    assert (table(catalog, "images").properties, table(catalog, "images").marks.owner) == ({"a": "b"}, None)
    with pytest.raises(CatalogError, match="holds other data than the table images"):
        run(catalog, DeregisterTable(("images",)))
    run(catalog, AdoptTable(("images",), OURS))
    run(catalog, DeregisterTable(("images",)))
    gone = find(catalog, "images")
    assert isinstance(gone, Detached)
    assert ("images",) not in {i for _, i in scanned(catalog)}
    run(catalog, declare("images", location=gone.location))
    assert data(catalog, "images").version == 2
    make_table(catalog, "new")
    assert (tmp_path / "new").is_dir()


def test_hidden_names_are_never_objects(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, plain_folders="true")
    make_table(catalog, "t")
    (tmp_path / "__other.lance").mkdir()
    (tmp_path / ".hidden.lance").mkdir()
    assert {i for _, i in scanned(catalog)} == {("t",)}


def test_orphan_rows_are_seen_and_keep_their_parent_from_being_called_empty(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    run(catalog, create_namespace("n"))
    write_rows(
        tmp_path,
        {"object_id": "gone$t", "object_type": "table", "location": "aa_gone$t"},
        {"object_id": "n$lost$t", "object_type": "table", "location": "bb_n$lost$t"},
        {"object_id": "n$t$1", "object_type": "table_version"},
    )
    found = scanned(catalog, detail(("gone", "t")))
    assert set(found) == {("Namespace", ("n",)), ("Table", ("gone", "t")), ("Table", ("n", "lost", "t"))}
    assert find(catalog, "gone", kind="Namespace") == Absent()
    assert catalog.children(("n",)) == ["lost", "t"]
    with pytest.raises(CatalogError) as refused:
        run(catalog, DropNamespace(("n",)))
    assert refused.value.code is Code.NAMESPACE_NOT_EMPTY
    rows = lance.dataset(str(tmp_path / "__manifest")).to_table().to_pylist()
    assert {r["object_id"] for r in rows} == {"n", "gone$t", "n$lost$t", "n$t$1"}


def test_a_namespace_takes_no_row_that_is_below_its_new_name_already(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    run(catalog, create_namespace("n"), create_namespace("n", "m"))
    write_rows(tmp_path, {"object_id": "gone$m", "object_type": "table", "location": "aa_gone$m"})
    with pytest.raises(CatalogError, match=r"gone\.m is live below the new name already") as refused:
        run(catalog, RenameNamespace(("gone",), ("n",)))
    assert refused.value.code is Code.NAMESPACE_ALREADY_EXISTS
    rows = lance.dataset(str(tmp_path / "__manifest")).to_table().to_pylist()
    assert {(r["object_id"], r["object_type"]) for r in rows} == {
        ("n", "namespace"),
        ("n$m", "namespace"),
        ("gone$m", "table"),
    }


def test_rows_we_do_not_understand(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    run(catalog, create_namespace("n"))
    write_rows(
        tmp_path,
        {"object_id": "bad", "object_type": "namespace", "metadata": "{not json"},
        {"object_id": "n$list", "object_type": "table", "location": "x", "metadata": "[1]"},
        {"object_id": "n$nowhere", "object_type": "table"},
        {"object_id": "n$number", "object_type": "table", "location": "y", "metadata": '{"a": 1, "b": "c"}'},
    )
    found = scanned(catalog)
    for key in (("Namespace", ("bad",)), ("Table", ("n", "list")), ("Table", ("n", "nowhere"))):
        assert isinstance(found[key], Unreadable), key
    number = found["Table", ("n", "number")]
    assert isinstance(number, Present)
    assert number.state.properties == {"a": "1", "b": "c"}
    run(catalog, create_namespace("other"))
    rows = {r["object_id"]: r for r in lance.dataset(str(tmp_path / "__manifest")).to_table().to_pylist()}
    assert rows["bad"]["metadata"] == "{not json"


def test_columns_of_a_later_version_are_carried_along(tmp_path: Path) -> None:
    schema = manifest_schema().append(pa.field("later", pa.int64()))
    row = {"object_id": "n", "object_type": "namespace", "metadata": '{"a":"b"}', "base_objects": ["x"], "later": 7}
    lance.write_dataset(pa.Table.from_pylist([row], schema), str(tmp_path / "__manifest"))
    catalog = open_catalog(tmp_path)
    run(catalog, create_namespace("m"), declare("n", "t"))
    rows = {r["object_id"]: r for r in lance.dataset(str(tmp_path / "__manifest")).to_table().to_pylist()}
    assert rows["n"]["later"] == 7
    assert rows["n"]["base_objects"] == ["x"]
    assert rows["m"]["later"] is None


def test_marks_of_an_unfinished_claim_count_only_with_its_token(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, **V1)
    inventory = Inventory(catalog.storage, Stats())
    claim = inventory.claim("t", OURS)
    assert find(catalog, "t") == Absent()
    lance.write_dataset([], str(tmp_path / "t.lance"), schema=pa.schema([pa.field("id", pa.int64())]))
    assert table(catalog, "t").marks == Marks()
    catalog.storage.create("t.lance/.lance-reserved", claim.claim.encode())
    assert table(catalog, "t").marks == OURS


def test_another_owners_claim_is_not_taken(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, **V1)
    Inventory(catalog.storage, Stats()).claim("t", Marks("team-b"))
    with pytest.raises(CatalogError, match="team-b") as refused:
        run(catalog, declare("t"))
    assert refused.value.code is Code.PERMISSION_DENIED
    assert not (tmp_path / "t.lance").exists()


def test_a_record_that_cannot_be_read_makes_its_table_unreadable(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, **V1)
    make_table(catalog, "t")
    make_table(catalog, "u")
    record = tmp_path / "__reconciler" / "tables" / "t.json"
    for text in ("{", "[]", '{"version": 1}', json.dumps({"version": 99})):
        record.write_text(text)
        found = find(catalog, "t")
        assert isinstance(found, Unreadable), text
        assert str(record) in found.message
    assert table(catalog, "u").marks == OURS


def test_locations(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    lance.write_dataset([], str(root / "old" / "events"), schema=pa.schema([pa.field("id", pa.int64())]))
    catalog = open_catalog(root, **V2)
    run(catalog, create_namespace("n"))
    ident = ("n", "events")
    for text in ("old/events", str(root / "old" / "events"), f"file://{root}/old/events"):
        scope = Scope(frozenset({ident}), {ident: text})
        for found in (find(catalog, *ident, scope=scope), scanned(catalog, scope)["Table", ident]):
            assert isinstance(found, Detached)
            assert found.location == text
        run(catalog, declare(*ident, location=text))
        present = find(catalog, *ident, scope=scope)
        assert isinstance(present, Present)
        assert isinstance(present.state, TableState)
        assert present.state.location == text
        assert present.state.dataset is not UNKNOWN
        with pytest.raises(CatalogError, match="belongs to table"):
            run(catalog, declare("n", "twice", location=text))
        run(catalog, DeregisterTable(ident))
    nothing = Scope(frozenset({ident}), {ident: "old/other"})
    assert find(catalog, *ident, scope=nothing) == Absent()
    for text in ("old/other", "../outside", "s3://b/x", "/etc", "__manifest"):
        with pytest.raises(CatalogError) as refused:
            run(catalog, declare(*ident, location=text))
        assert refused.value.code is Code.INVALID_INPUT


def test_a_second_deregistration_remembers_the_first(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, **V2)
    make_table(catalog, "t")
    first = table(catalog, "t").location
    run(catalog, DeregisterTable(("t",)))
    with pytest.raises(CatalogError, match="reattached") as refused:
        run(catalog, declare("t"))
    assert refused.value.code is Code.TABLE_ALREADY_EXISTS
    make_table(catalog, "u")
    run(catalog, RenameTable(("t",), ("u",)), DeregisterTable(("t",)))
    gone = find(catalog, "t")
    assert isinstance(gone, Detached)
    assert gone.location != first
    run(catalog, declare("t", location=gone.location), DeregisterTable(("t",)))
    record = json.loads((tmp_path / "__reconciler" / "detached" / "t.json").read_text())
    assert [str(tmp_path / p) for p in record["previous"]] == [first]
