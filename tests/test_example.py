"""manifests-example/ is what people copy from: no warning in it, and pylance can store all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.catalog.arrow_convert import from_arrow_schema, to_arrow_schema
from reconciler.catalog.registry import capabilities_of
from reconciler.manifest.load import Loaded, load
from reconciler.model.desired import DesiredTable
from reconciler.model.state import VECTOR_INDEXES

EXAMPLE = Path(__file__).resolve().parent.parent / "manifests-example"


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return load([str(EXAMPLE)], capabilities_of=capabilities_of)


def test_it_has_no_errors_and_no_warnings(loaded: Loaded) -> None:
    assert loaded.diagnostics == []
    files = [f for f in EXAMPLE.rglob("*.yaml") if "overlays" not in f.parts]
    assert loaded.documents == sum(f.read_text().count("\nkind: ") for f in files)


def test_production_differs_where_its_overlay_says_so(loaded: Loaded) -> None:
    prod = load([str(EXAMPLE)], capabilities_of=capabilities_of, environment="prod")
    assert prod.diagnostics == []
    assert prod.desired.catalogs["lake"].options["path"] == "s3://robot-lake/prod"
    assert prod.desired.catalogs["lake"].management.max_deletes == 1
    assert prod.desired.catalogs["lake"].management.max_delete_percent == 20
    differ = [i for i, t in prod.desired.tables["lake"].items() if t != loaded.desired.tables["lake"][i]]
    assert differ == [("fleet", "robots")]


def test_it_shows_what_the_format_can_do(loaded: Loaded) -> None:
    tables = loaded.desired.tables["lake"].values()
    indexes = {index.type for table in tables for index in table.indexes}
    assert {"btree", "bitmap", "label_list", "inverted", "ivf_pq", "ivf_hnsw_sq"} <= indexes
    types = " ".join(str(field.type) for table in tables for field in table.fields or ())
    assert all(word in types for word in ("blob", "struct<", "map<", "dictionary<", "decimal128", "tz=UTC", "[768]"))
    assert any(table.protect for table in tables)
    assert any(len(ident) == 3 for ident in loaded.desired.namespaces["lake"])


def test_pylance_stores_every_table_of_it(loaded: Loaded, tmp_path: Path) -> None:
    tables = list(loaded.desired.tables["lake"].values())
    assert len(tables) >= 6
    for table in tables:
        create_with_pylance(table, str(tmp_path / "-".join(table.ident)))


def create_with_pylance(table: DesiredTable, uri: str) -> None:
    """An empty dataset with the table's columns and indexes, which must read back as declared."""
    import lance

    fields = table.fields or ()
    dataset = lance.write_dataset([], uri, schema=to_arrow_schema(fields), mode="create", data_storage_version="2.2")
    for index in table.indexes:
        create = dataset.create_index if index.type in VECTOR_INDEXES else dataset.create_scalar_index
        create(index.column, index.type.upper(), name=index.name, **index.params)
    live = lance.dataset(uri)
    assert [(f.name, f.type, f.nullable) for f in from_arrow_schema(live.schema)[0]] == [
        (f.name, f.type, f.nullable) for f in fields
    ]
    assert {index.name for index in live.describe_indices()} == {index.name for index in table.indexes}
