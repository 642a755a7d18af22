"""Links and closed folders: what cannot be looked into is unreadable, never absent, and its neighbours are fine."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from dir_support import (
    LAYOUTS,
    OURS,
    V1,
    V2,
    create_namespace,
    data,
    declare,
    detail,
    find,
    make_table,
    open_catalog,
    run,
    scanned,
    table,
)

from reconciler.model.change import AdoptTable, DeregisterTable, UpdateTable
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident
from reconciler.model.observed import Absent, Detached, Finding, Present, Scope, Unreadable

NOBODY = 65534


def elsewhere(folder: Path) -> Path:
    return folder.parent / f"{folder.name}-elsewhere"


def linked_out(folder: Path) -> None:
    shutil.move(folder, elsewhere(folder.parent))
    folder.symlink_to(elsewhere(folder.parent))


def dangling(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.symlink_to(folder.parent / "not-mounted")


def looping(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.symlink_to(folder)


def both_ways(root: Path, layout: dict[str, str], ident: Ident, **scope: dict[Ident, str]) -> list[Finding]:
    """The table by scan and by read."""
    wanted = Scope(detail=frozenset([ident]), **scope)  # type: ignore[arg-type]
    by_scan = scanned(open_catalog(root, **layout), wanted).get(("Table", ident), Absent())
    return [by_scan, find(open_catalog(root, **layout), *ident, scope=wanted)]


@pytest.mark.parametrize("damage", [linked_out, dangling, looping])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_a_table_behind_a_link_is_unreadable(
    layout: dict[str, str], damage: Callable[[Path], None], tmp_path: Path
) -> None:
    root = tmp_path / "lake"
    catalog = open_catalog(root, **layout)
    for name in ("bad", "good"):
        make_table(catalog, name)
    folder = Path(str(table(catalog, "bad").location))
    damage(folder)
    for found in both_ways(root, layout, ("bad",)):
        assert isinstance(found, Unreadable)
        assert str(folder) in found.message
    assert data(catalog, "good").version == 2
    assert ("Table", ("bad",)) in scanned(open_catalog(root, **layout))
    with pytest.raises(CatalogError):
        run(catalog, declare("bad"))
    assert folder.is_symlink()


@pytest.mark.parametrize("layout", [{}, V2], ids=["default", "v2"])
def test_deregistered_data_on_a_disk_that_is_not_mounted(layout: dict[str, str], tmp_path: Path) -> None:
    """Otherwise an empty table would be made in its place."""
    catalog = open_catalog(tmp_path, **layout)
    run(catalog, create_namespace("n"))
    make_table(catalog, "n", "t")
    folder = Path(str(table(catalog, "n", "t").location))
    run(catalog, DeregisterTable(("n", "t")))
    dangling(folder)
    for found in both_ways(tmp_path, layout, ("n", "t")):
        assert isinstance(found, Unreadable)
        assert "mount the disk" in found.message


def test_a_record_behind_a_dangling_link_is_not_no_record(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    make_table(catalog, "t")
    record = tmp_path / "__reconciler" / "tables" / "t.json"
    record.unlink()
    record.symlink_to(tmp_path / "not-mounted")
    for found in both_ways(tmp_path, {}, ("t",)):
        assert isinstance(found, Unreadable)
        assert "mount the disk" in found.message


def test_a_location_that_leads_out_cannot_be_registered(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    catalog = open_catalog(root)
    run(catalog, create_namespace("n"))
    make_table(open_catalog(tmp_path / "theirs", **V1), "t")
    (root / "out").symlink_to(tmp_path / "theirs" / "t.lance")
    (root / "deep").symlink_to(tmp_path / "theirs")
    before = sorted(str(p) for p in (tmp_path / "theirs").rglob("*"))
    for location in ("out", "deep/t.lance", str(root / "out")):
        for found in both_ways(root, {}, ("n", "t"), locations={("n", "t"): location}):
            assert isinstance(found, Unreadable)
        with pytest.raises(CatalogError, match="leads out of") as refused:
            run(catalog, declare("n", "t", location=location))
        assert refused.value.code is Code.INVALID_INPUT
    assert find(catalog, "n", "t") == Absent()
    assert sorted(str(p) for p in (tmp_path / "theirs").rglob("*")) == before


def test_a_link_inside_the_root_is_named_by_its_folder(tmp_path: Path) -> None:
    """Or two tables could share one dataset unseen."""
    catalog = open_catalog(tmp_path)
    run(catalog, create_namespace("n"))
    make_table(catalog, "r")
    (tmp_path / "again").symlink_to("r.lance")
    with pytest.raises(CatalogError, match=r"link to 'r\.lance'") as refused:
        run(catalog, declare("n", "t", location="again"))
    assert refused.value.code is Code.INVALID_INPUT


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "lake").symlink_to("disk")
    for layout, ident in ((V1, ("t",)), (V2, ("u",))):
        catalog = open_catalog(tmp_path / "lake", **layout)
        make_table(catalog, *ident)
        assert data(catalog, *ident).version == 2
    (tmp_path / "disk").rename(tmp_path / "unmounted")
    with pytest.raises(CatalogError, match="mount the disk"):
        scanned(open_catalog(tmp_path / "lake"))


@pytest.fixture
def ordinary() -> Iterator[Path]:
    """A folder, and nobody's rights: no file mode stops root."""
    folder = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    if root:
        os.chown(folder, NOBODY, NOBODY)
        make_table(open_catalog(folder / "warm"), "t")  # everything is imported while it can be read
        shutil.rmtree(folder / "warm")
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if root:
            os.seteuid(0)
        for path in (folder, *folder.rglob("*")):
            if path.is_dir():
                path.chmod(0o700)
        shutil.rmtree(folder)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("closed", ["", "_versions", "data"])
def test_a_closed_table(closed: str, layout: dict[str, str], ordinary: Path) -> None:
    root = ordinary / "lake"
    catalog = open_catalog(root, **layout)
    for name in ("bad", "good"):
        make_table(catalog, name)
    folder = Path(str(table(catalog, "bad").location))
    (folder / closed).mkdir(exist_ok=True)
    (folder / closed).chmod(0)
    for found in both_ways(root, layout, ("bad",)):
        if closed == "data":  # nothing of it is needed to know the table
            assert isinstance(found, Present)
        else:
            assert isinstance(found, Unreadable)
            assert str(folder) in found.message
    assert data(open_catalog(root, **layout), "good").version == 2


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("closed", ["", "__manifest", "__manifest/_versions", "__manifest/data", "__reconciler"])
def test_a_closed_catalog(closed: str, layout: dict[str, str], ordinary: Path) -> None:
    root = ordinary / "lake"
    catalog = open_catalog(root, **layout)
    make_table(catalog, "t")
    if layout != V1:
        run(catalog, create_namespace("n"))
    if not (root / closed).exists():
        (root / closed).mkdir(parents=True)
    (root / closed).chmod(0)
    if closed.startswith("__manifest") and layout == V1:  # not part of that catalog
        assert isinstance(scanned(open_catalog(root, **layout))["Table", ("t",)], Present)
        return
    with pytest.raises(CatalogError) as failed:
        scanned(open_catalog(root, **layout), detail(("t",), ("n", "t")))
    assert str(root / closed) in failed.value.message


def test_data_left_behind_in_a_closed_folder(ordinary: Path) -> None:
    for layout in ({}, V2):
        catalog = open_catalog(ordinary / "lake", **layout)
        ident = ("n", f"t{len(layout)}")
        if not layout:
            run(catalog, create_namespace("n"))
        make_table(catalog, *ident)
        folder = Path(str(table(catalog, *ident).location))
        run(catalog, DeregisterTable(ident))
        assert isinstance(find(catalog, *ident), Detached)
        folder.chmod(0)
        for found in both_ways(ordinary / "lake", layout, ident):
            assert isinstance(found, Unreadable)


OUTSIDE = [
    "{other}/x.lance",
    "file://{other}/x.lance",
    "../other/x.lance",
    "s3://bucket/x.lance",
    "{root}/in.lance",
    "in/../../other/x.lance",
    ".",
    "./",
    "x\0.lance",
]
RESERVED = ["__manifest", "./__manifest/", "__manifest/data", "__reconciler", "__reconciler/tables/x"]


@pytest.mark.parametrize("ident", [("n", "t"), ("t",)], ids=["in a namespace", "in the root"])
@pytest.mark.parametrize("location", OUTSIDE)
def test_a_row_that_names_a_location_outside_is_unreadable(tmp_path: Path, location: str, ident: Ident) -> None:
    """pylance joins such a location to the root. No step on it may be allowed, and the data there is not touched."""
    root, other = tmp_path / "lake", tmp_path / "other"
    catalog = open_catalog(root)
    run(catalog, create_namespace("n"))
    make_table(catalog, *ident)
    theirs = lance.write_dataset(pa.table({"id": [1]}), other / "x.lance")
    manifest = lance.dataset(str(root / "__manifest"))
    where = location.format(other=other, root=root)
    rows = manifest.to_table().to_pylist()
    if ident == ("t",):
        shutil.rmtree(root / "t.lance")
        rows = [r for r in rows if r["object_id"] != "t"]
        rows.append({"object_id": "t", "object_type": "table", "location": where, "metadata": None})
    else:
        rows = [{**r, "location": where} if r["object_id"] == "n$t" else r for r in rows]
    lance.write_dataset(pa.Table.from_pylist(rows, schema=manifest.schema), str(root / "__manifest"), mode="overwrite")
    for found in both_ways(root, {}, ident):
        assert isinstance(found, Unreadable)
        assert "not a path below the catalog's root" in found.message
    with pytest.raises(CatalogError):
        run(open_catalog(root), UpdateTable(ident, {"a": "b"}, (), OURS))
    assert lance.dataset(str(other / "x.lance")).version == theirs.version


@pytest.mark.parametrize("location", RESERVED)
def test_a_row_that_names_the_records_of_the_catalog_is_unreadable(tmp_path: Path, location: str) -> None:
    """`__manifest` is a Lance dataset without our mark: `--adopt` must not take it for the table's data."""
    root = tmp_path / "lake"
    catalog = open_catalog(root, **V2)
    run(catalog, create_namespace("n"))
    make_table(catalog, "n", "t")
    manifest = lance.dataset(str(root / "__manifest"))
    rows = [{**r, "location": location} if r["object_id"] == "n$t" else r for r in manifest.to_table().to_pylist()]
    lance.write_dataset(pa.Table.from_pylist(rows, schema=manifest.schema), str(root / "__manifest"), mode="overwrite")
    for found in both_ways(root, V2, ("n", "t")):
        assert isinstance(found, Unreadable)
        assert "is reserved" in found.message
    version = lance.dataset(str(root / "__manifest")).version
    for change in (AdoptTable(("n", "t"), OURS), UpdateTable(("n", "t"), {"a": "b"}, (), OURS)):
        with pytest.raises(CatalogError, match="is reserved"):
            run(open_catalog(root, **V2), change)
    assert lance.dataset(str(root / "__manifest")).version == version
