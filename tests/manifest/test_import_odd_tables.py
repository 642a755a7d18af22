"""Import of a folder with tables that no manifest can say in full: the file loads, and the next plan has only what
cannot be read."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa

from reconciler.app import Request, Session, plan
from reconciler.app_import import ImportRequest, import_catalogs

from .support import CATALOG


def write(folder: Path, name: str, *columns: pa.Field) -> None:
    lance.write_dataset(pa.schema(columns).empty_table(), str(folder / f"{name}.lance"), data_storage_version="2.2")


def test_odd_tables(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    key = pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true", "unit": "1"})
    write(lake, "plain", key)
    write(lake, "words", key, pa.field("pair", pa.list_(pa.string(), 2)))
    write(lake, "boxes", key, pa.field("boxes", pa.list_(pa.struct([("a", pa.int8())]), 2)))
    write(lake, "ids", pa.field("u", pa.uuid()), pa.field("j", pa.json_()))
    (lake / "broken.lance").mkdir()
    (lake / "broken.lance" / "data").write_text("not a dataset")
    catalog = tmp_path / "c.yaml"
    catalog.write_text(CATALOG.replace("./lake", str(lake)))
    said: list[str] = []
    session = Session(say=said.append)
    written = import_catalogs(ImportRequest((str(catalog),), tmp_path / "live"), session).changes
    session.close()
    left_out = [line for line in said if "left out" in line]
    assert [line.split(" is left out")[0] for line in left_out] == [
        "warning: catalog lake: table boxes: the column 'boxes' (fixed_size_list<struct<a: int8>>[2])",
        "warning: catalog lake: table words: the column 'pair' (fixed_size_list<string>[2])",
    ]
    assert [line for line in said if line not in left_out and not line.startswith("note: ")] == [
        line for line in said if line.startswith("warning: catalog lake: table broken could not be read: ")
    ]
    assert len(said) == 3 + 2  # the notes that the Catalog document is in both files, and that nobody owns the tables
    session = Session()
    found, diagnostics = plan(Request(tuple(c.path for c in written)), session)
    session.close()
    assert diagnostics == []
    assert [(s.change.ident, s.blocked_by) for s in found.steps] == [(("broken",), "unreadable")]
    assert {k.ident for k in found.unowned} == {("plain",), ("words",), ("boxes",), ("ids",)}
