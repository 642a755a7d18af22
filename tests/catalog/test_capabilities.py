"""What `validate` can say about a directory catalog without opening it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from dir_support import OURS, declare, field

from reconciler.catalog.directory_capabilities import directory_capabilities
from reconciler.catalog.registry import capabilities_of, connect
from reconciler.model.change import AddColumns, CreateNamespace, RenameTable, UpdateTable
from reconciler.model.desired import CatalogSpec, Management
from reconciler.model.diagnostic import Source
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Kind

DEFAULT = directory_capabilities({"path": "/lake"})
V2 = directory_capabilities({"path": "/lake", "dir_listing_enabled": False})
V1 = directory_capabilities({"path": "/lake", "manifest_enabled": "false"})


@pytest.mark.parametrize("name", ["", ".", "..", "a$b", "a/b", "a\\b", "a\nb", "a\x7f", "\ud800"])
@pytest.mark.parametrize("kind", ["Namespace", "Table"])
def test_bad_names(name: str, kind: Kind) -> None:
    for capabilities in (DEFAULT, V2):
        assert capabilities.ident_problem(kind, (name,))
        assert capabilities.ident_problem(kind, ("n", name))
    assert V1.ident_problem("Table", (name,))


@pytest.mark.parametrize("name", ["a.b", "a b", "50%", "c++", "#1", "why?", "naïve", "it's", "CASE", "_x", "a.lance.b"])
def test_good_names(name: str) -> None:
    for capabilities in (DEFAULT, V2, V1):
        assert capabilities.ident_problem("Table", (name,)) is None
    assert DEFAULT.ident_problem("Namespace", (name, name)) is None


def test_reserved_root_names() -> None:
    for name in ("__manifest", "__reconciler", "__x", ".git"):
        assert "reserved" in (DEFAULT.ident_problem("Table", (name,)) or "")
        assert DEFAULT.ident_problem("Table", ("n", name)) is None
    assert ".lance" in (DEFAULT.ident_problem("Table", ("t.lance",)) or "")
    assert V2.ident_problem("Table", ("t.lance",)) is None


def test_folder_names_have_a_limit() -> None:
    assert DEFAULT.ident_problem("Table", ("t" * 249,)) is None
    assert "bytes" in (DEFAULT.ident_problem("Table", ("t" * 250,)) or "")
    assert DEFAULT.ident_problem("Table", ("n", "t" * 244)) is None
    assert "bytes" in (DEFAULT.ident_problem("Table", ("n", "t" * 245)) or "")
    assert "bytes" in (V2.ident_problem("Table", ("é" * 124,)) or "")


def test_v1_holds_root_tables_only() -> None:
    assert "manifest_enabled" in (V1.ident_problem("Namespace", ("n",)) or "")
    assert "manifest_enabled" in (V1.ident_problem("Table", ("n", "t")) or "")
    assert not V1.holds_properties("Table", ("t",))
    assert DEFAULT.holds_properties("Table", ("t",))
    assert "manifest_enabled" in (V1.refuses(declare("t", a="b")) or "")
    assert "manifest_enabled" in (V1.refuses(UpdateTable(("t",), {}, ("a",), OURS)) or "")
    assert "manifest_enabled" in (V1.refuses(CreateNamespace(("n",), {}, OURS)) or "")
    assert V1.refuses(declare("t")) is None
    assert V1.refuses(UpdateTable(("t",), {}, (), OURS)) is None
    assert V1.refuses(AddColumns(("t",), (field("a", "int8"),))) is None


def test_renames() -> None:
    assert DEFAULT.refuses(RenameTable(("n", "b"), ("n", "a"))) is None
    assert DEFAULT.refuses(RenameTable(("b",), ("n", "a")))
    assert DEFAULT.refuses(RenameTable(("n", "b"), ("a",)))
    assert V2.refuses(RenameTable(("b",), ("a",))) is None


def test_locations() -> None:
    for good in ("old/events", "/lake/old", "file:///lake/old", "./x/../y"):
        assert DEFAULT.location_problem(("n", "t"), good) is None, good
    for bad in ("/elsewhere", "../x", "/lake", ".", "s3://lake/x", "/lake/../x", "__manifest", "/lakes/x"):
        assert DEFAULT.location_problem(("n", "t"), bad), bad
    assert DEFAULT.location_problem(("t",), "other")
    assert DEFAULT.location_problem(("t",), "t.lance") is None
    assert DEFAULT.location_problem(("t",), "t") is None, "the folder of a table may lack the suffix"
    plain = directory_capabilities({"path": "/lake", "plain_folders": True})
    assert plain.location_problem(("t",), "t") is None
    bucket = directory_capabilities({"path": "s3://b/lake/"})
    assert bucket.location_problem(("n", "t"), "s3://b/lake/x%20y") is None
    for bad in ("s3://b/other", "s3://c/lake/x", "gs://b/lake/x", "/lake/x", "s3://b/lakes"):
        assert bucket.location_problem(("n", "t"), bad), bad
    unknown = directory_capabilities({"path": "${env:ROOT}"})
    assert unknown.location_problem(("n", "t"), "/anywhere") is None


def test_the_registry() -> None:
    def spec(type_: str) -> CatalogSpec:
        return CatalogSpec("c", type_, {"path": "/lake", "manifest_enabled": False}, Management(), Source("f", 1))

    capabilities = capabilities_of(spec("dir"))
    assert capabilities is not None
    assert capabilities.type == "dir"
    assert capabilities.ident_problem("Namespace", ("n",))
    assert capabilities_of(spec("nope")) is None
    with pytest.raises(CatalogError) as refused:
        connect(spec("nope"), {})
    assert refused.value.code is Code.UNSUPPORTED


def test_capabilities_load_no_heavy_library() -> None:
    code = (
        "import sys, reconciler.catalog.registry;"
        "print([m for m in ('lance', 'pyarrow', 'obstore', 'boto3', 'numpy') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
