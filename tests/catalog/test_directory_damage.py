"""What is damaged or does not add up is unreadable, never absent and never repaired by guessing."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from dir_support import (
    DEFAULT,
    V1,
    V2,
    create_namespace,
    dataset,
    detail,
    find,
    make_table,
    open_catalog,
    run,
    scanned,
    table,
)

from reconciler.catalog.directory_manifest import manifest_schema
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Present, Unreadable


@pytest.mark.slow
@pytest.mark.parametrize("layout", [DEFAULT, V2], ids=["default", "v2"])
def test_a_table_whose_folder_vanished_is_not_made_anew(layout: dict[str, str], tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, **layout)
    run(catalog, create_namespace("n"))
    make_table(catalog, "n", "t")
    [folder] = tmp_path.glob("*_n$t")
    shutil.move(folder, tmp_path.parent / f"{tmp_path.name}-elsewhere")
    for finding in (find(catalog, "n", "t"), scanned(catalog, detail(("n", "t")))["Table", ("n", "t")]):
        assert isinstance(finding, Unreadable)
        assert "is gone" in finding.message
    with pytest.raises(CatalogError) as refused:
        run(catalog, dataset("n", "t"))
    assert refused.value.code is Code.INVALID_TABLE_STATE
    assert not folder.exists()


def test_a_record_with_wrong_types_blocks_only_its_table(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    make_table(catalog, "r")
    make_table(catalog, "s")
    record = tmp_path / "__reconciler" / "tables" / "r.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "owner": ["x"]}))
    found = scanned(catalog, detail(("r",), ("s",)))
    assert isinstance(found["Table", ("r",)], Unreadable)
    assert isinstance(found["Table", ("s",)], Present)


@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_what_is_in_the_place_of_the_versions_is_named(tmp_path: Path, kind: str) -> None:
    """Whoever reads "permission denied" looks at the wrong thing."""
    catalog = open_catalog(tmp_path)
    make_table(catalog, "r")
    versions = tmp_path / "r.lance" / "_versions"
    shutil.rmtree(versions)
    if kind == "pipe":
        os.mkfifo(versions)
    else:
        versions.write_text("x")
    found = scanned(catalog, detail(("r",)))["Table", ("r",)]
    assert isinstance(found, Unreadable)
    assert "permission denied" not in found.message
    assert f"_versions: it is a {'named pipe' if kind == 'pipe' else 'file'}, not a folder" in found.message


def test_a_row_that_leads_out_of_the_catalog_is_not_followed(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"id": [1]}), str(tmp_path / "outside"))
    root = tmp_path / "lake"
    row = {"object_id": "t", "object_type": "table", "location": "../outside", "metadata": None, "base_objects": None}
    lance.write_dataset(pa.Table.from_pylist([row], manifest_schema()), str(root / "__manifest"))
    finding = scanned(open_catalog(root, **V2), detail(("t",)))["Table", ("t",)]
    assert isinstance(finding, Unreadable)
    assert "not a path below the catalog's root" in finding.message


def test_a_link_to_nowhere_is_not_an_empty_catalog(tmp_path: Path) -> None:
    (tmp_path / "lake").symlink_to(tmp_path / "unmounted")
    with pytest.raises(CatalogError, match="is a link to"):
        scanned(open_catalog(tmp_path / "lake"))


def test_a_file_uri_with_a_host_is_refused() -> None:
    with pytest.raises(CatalogError, match="names a host"):
        open_catalog("file://relative/lake")


def test_a_record_of_a_newer_version_asks_for_an_upgrade_only(tmp_path: Path) -> None:
    """Without the record the table would be nobody's: removing it must not be the advice."""
    catalog = open_catalog(tmp_path)
    make_table(catalog, "r")
    record = tmp_path / "__reconciler" / "tables" / "r.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "version": 2}))
    finding = find(catalog, "r")
    assert isinstance(finding, Unreadable)
    assert finding.message.endswith("upgrade reconciler")
    assert "remove" not in finding.message
    record.write_text(json.dumps({**json.loads(record.read_text()), "version": "x"}))
    finding = find(catalog, "r")
    assert isinstance(finding, Unreadable)
    assert "repair or remove it" in finding.message


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "ident"), [(DEFAULT, ("t",)), (DEFAULT, ("n", "t")), (V1, ("t",)), (V2, ("t",))])
def test_a_table_that_lost_its_versions_is_to_be_restored(
    layout: dict[str, str], ident: tuple[str, ...], tmp_path: Path
) -> None:
    catalog = open_catalog(tmp_path, **layout)
    if len(ident) > 1:
        run(catalog, create_namespace("n"))
    make_table(catalog, *ident)
    where = Path(str(table(catalog, *ident).location))
    schema = lance.dataset(str(where)).schema
    lance.write_dataset(
        pa.table([pa.array([1]), pa.array([None], schema.field(1).type)], schema=schema), str(where), mode="append"
    )
    shutil.rmtree(where / "_versions")
    for marker in (True, False):
        finding = find(catalog, *ident)
        assert isinstance(finding, Unreadable)
        assert "versions of the dataset are missing" in finding.message
        assert "from a backup" in finding.message
        assert "move the folder away" not in finding.message
        if marker:
            (where / ".lance-reserved").unlink()


@pytest.mark.slow
@pytest.mark.parametrize("rows", [True, False], ids=["rows", "empty"])
@pytest.mark.parametrize(("layout", "ident"), [(DEFAULT, ("t",)), (DEFAULT, ("n", "t")), (V1, ("t",)), (V2, ("t",))])
def test_a_table_that_lost_versions_and_data_is_not_made_anew(
    layout: dict[str, str], ident: tuple[str, ...], rows: bool, tmp_path: Path
) -> None:
    """Only its transactions tell it from a create that was cut short."""
    catalog = open_catalog(tmp_path, **layout)
    if len(ident) > 1:
        run(catalog, create_namespace("n"))
    make_table(catalog, *ident)
    where = Path(str(table(catalog, *ident).location))
    if rows:
        schema = lance.dataset(str(where)).schema
        lance.write_dataset(
            pa.table([pa.array([1]), pa.array([None], schema.field(1).type)], schema=schema), str(where), mode="append"
        )
        shutil.rmtree(where / "data")
    shutil.rmtree(where / "_versions")
    before = sorted(where.rglob("*"))
    for finding in (find(catalog, *ident), scanned(catalog, detail(ident))["Table", ident]):
        assert isinstance(finding, Unreadable)
        assert "is gone" in finding.message
    with pytest.raises(CatalogError) as refused:
        run(catalog, dataset(*ident))
    assert refused.value.code is Code.INVALID_TABLE_STATE
    assert sorted(where.rglob("*")) == before


def test_a_folder_with_data_that_nobody_registered(tmp_path: Path) -> None:
    (tmp_path / "t.lance" / "data").mkdir(parents=True)
    finding = find(open_catalog(tmp_path), "t")
    assert isinstance(finding, Unreadable)
    assert "from a backup, or move the folder away" in finding.message
