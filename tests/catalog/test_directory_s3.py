"""The same on an object store: a real moto server, lance and obstore with the same options."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import lance
import lance_namespace as ln
import obstore
import pyarrow as pa
import pytest
from dir_support import (
    DEFAULT,
    LAYOUTS,
    OURS,
    V1,
    create_namespace,
    data,
    dataset,
    declare,
    detail,
    find,
    make_table,
    peer,
    peer_namespaces,
    peer_tables,
    rows_ipc,
    run,
    scanned,
    table,
)
from servers.moto import Moto

from reconciler.catalog import storage_objects
from reconciler.catalog.directory import DirectoryCatalog
from reconciler.catalog.lance_dataset import Datasets
from reconciler.model.change import DeregisterTable, DropNamespace, RenameTable, UpdateTable
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Absent, Detached, Present, Scope, Unreadable

pytestmark = pytest.mark.slow
_numbers = itertools.count()


@pytest.fixture
def bucket(moto: Moto) -> str:
    return moto.make_bucket(f"lake-{next(_numbers)}")


def theirs_at(moto: Moto, path: str, **layout: str) -> object:
    options = moto.catalog_options(path, **layout)
    return peer(options.pop("path"), **options)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_the_life_of_a_table(moto: Moto, bucket: str, layout: dict[str, str]) -> None:
    path = f"{bucket}/some/lake"
    catalog = DirectoryCatalog(moto.catalog_options(path, **layout))
    assert scanned(catalog) == {}
    ident = ("t",) if layout == V1 else ("n", "t")
    if layout != V1:
        run(catalog, create_namespace("n", a="b"))
    make_table(catalog, *ident)
    run(catalog, UpdateTable(ident, {} if layout == V1 else {"x": "y"}, (), OURS))
    theirs = theirs_at(moto, path, **layout)
    assert peer_tables(theirs, *ident[:-1]) == {"t"}
    catalog.stats.reset()
    found = scanned(catalog, detail(ident))["Table", ident]
    assert (catalog.stats.listings <= 2, catalog.stats.opens, catalog.stats.writes) == (True, 1, 0)
    assert isinstance(found, Present)
    assert data(catalog, *ident).owner == "team-a"
    assert table(catalog, *ident).marks == OURS
    run(catalog, DeregisterTable(ident))
    gone = find(catalog, *ident)
    assert isinstance(gone, Detached)
    assert peer_tables(theirs, *ident[:-1]) == set()
    run(catalog, declare(*ident, location=gone.location))
    assert data(catalog, *ident).version == 2
    for change, code in [(declare(*ident), Code.TABLE_ALREADY_EXISTS), (dataset(*ident), Code.TABLE_ALREADY_EXISTS)]:
        with pytest.raises(CatalogError) as refused:
            run(catalog, change)
        assert refused.value.code is code


def test_pylance_and_we_agree(moto: Moto, bucket: str) -> None:
    theirs = theirs_at(moto, bucket)
    theirs.create_namespace(ln.CreateNamespaceRequest(id=["n"]))  # type: ignore[attr-defined]
    theirs.create_table(ln.CreateTableRequest(id=["n", "t"]), rows_ipc())  # type: ignore[attr-defined]
    catalog = DirectoryCatalog(moto.catalog_options(bucket))
    run(catalog, create_namespace("m"))
    make_table(catalog, "m", "u")
    make_table(catalog, "root")
    run(catalog, RenameTable(("m", "v"), ("m", "u")))
    assert peer_namespaces(theirs) == {"n", "m"}
    assert peer_tables(theirs, "m") == {"v"}
    assert peer_tables(theirs) == {"root"}
    assert data(catalog, "n", "t").fields[0].name == "id"
    options = moto.storage_options
    opened = lance.dataset(str(table(catalog, "m", "v").location), storage_options=options)
    assert opened.version == 2


@pytest.mark.parametrize("layout", [DEFAULT, V1], ids=["default", "v1"])
def test_odd_names_and_folders(moto: Moto, bucket: str, layout: dict[str, str]) -> None:
    catalog = DirectoryCatalog(moto.catalog_options(f"{bucket}/a b", **layout))
    names = ["a b", "50%", "a%20b", "#1", "why?", "naïve", "c+d"]
    for name in names:
        make_table(catalog, name)
        assert data(catalog, name).version == 2
    catalog.storage.create("junk.lance/notes.txt", b"mine")
    found = scanned(catalog, detail(("junk",)))
    assert {i for _, (i,) in found} == {*names, "junk"}
    assert isinstance(found["Table", ("junk",)], Unreadable)
    with pytest.raises(CatalogError) as refused:
        run(catalog, declare("junk"))
    assert refused.value.code is Code.TABLE_ALREADY_EXISTS


def test_threads_share_commits(moto: Moto, bucket: str) -> None:
    catalogs = [DirectoryCatalog(moto.catalog_options(bucket)) for _ in range(2)]
    run(catalogs[0], create_namespace("n"))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: run(catalogs[i % 2], declare("n", f"t{i}")), range(24)))
    assert len({i for kind, i in scanned(catalogs[0]) if kind == "Table"}) == 24
    with pytest.raises(CatalogError) as refused:
        run(catalogs[0], DropNamespace(("n",)))
    assert refused.value.code is Code.NAMESPACE_NOT_EMPTY


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_a_missing_bucket_is_an_error_not_an_empty_catalog(moto: Moto, layout: dict[str, str]) -> None:
    catalog = DirectoryCatalog(moto.catalog_options("s3://no-such-bucket/lake", **layout))
    for call in (lambda: list(catalog.scan(Scope())), lambda: run(catalog, declare("t"))):
        with pytest.raises(CatalogError) as failed:
            call()
        assert failed.value.code is Code.INVALID_INPUT
        assert "bucket" in failed.value.message
        assert "canary" not in failed.value.message


def test_a_table_of_a_missing_bucket_is_not_absent(moto: Moto) -> None:
    catalog = DirectoryCatalog(moto.catalog_options("s3://no-such-bucket/lake", **V1))
    with pytest.raises(CatalogError, match=r"bucket .*does not exist"):
        find(catalog, "t")


def test_what_lost_its_versions_and_data_is_not_made_anew(
    moto: Moto, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.catalog.directory_manifest._BIRTH", (0.001,))
    catalog = DirectoryCatalog(moto.catalog_options(bucket))
    make_table(catalog, "t")
    lose(moto, bucket, "t.lance/")
    finding = find(catalog, "t")
    assert isinstance(finding, Unreadable)
    assert "is gone" in finding.message
    lose(moto, bucket, "__manifest/")
    with pytest.raises(CatalogError, match="no dataset version"):
        scanned(catalog)


def lose(moto: Moto, bucket: str, folder: str) -> None:
    """All of a dataset but its transactions and marks."""
    name = bucket.removeprefix("s3://")
    for part in ("_versions", "data"):
        for item in moto.client.list_objects_v2(Bucket=name, Prefix=f"{folder}{part}/").get("Contents", []):
            moto.client.delete_object(Bucket=name, Key=item["Key"])


def test_an_unreachable_server(moto: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found out before lance is asked, which would try for seconds."""
    options = moto.catalog_options("s3://bucket/lake")
    options.update({"storage.aws_endpoint": "http://127.0.0.1:9", "storage.client_max_retries": "1"})
    options["storage.client_retry_timeout"] = "2"
    catalog = DirectoryCatalog(options)
    asked: list[str] = []
    monkeypatch.setattr(Datasets, "open", lambda self, uri: asked.append(uri))
    with pytest.raises(CatalogError) as failed:
        list(catalog.scan(Scope()))
    assert asked == []
    assert failed.value.code is Code.SERVICE_UNAVAILABLE
    assert "canary" not in failed.value.message
    assert ".rs:" not in failed.value.message


def test_a_connection_is_tried_once(moto: Moto, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the catalog is read."""
    catalog = DirectoryCatalog(moto.catalog_options(bucket))
    real, asked = obstore.get, []

    def counted(store: object, path: str) -> object:
        asked.append(path)
        return real(store, path)  # type: ignore[arg-type]

    monkeypatch.setattr(obstore, "get", counted)
    for _ in range(3):
        assert scanned(catalog) == {}
        assert find(catalog, "t") == Absent()
    assert asked.count("__reconciler/nowhere") == 1
    assert {*asked} == {"__reconciler/nowhere", "__reconciler/tables/t.json"}


@pytest.mark.parametrize("key", ["client_max_retries", "client_retry_timeout"])
@pytest.mark.parametrize("value", ["canary", "-1", "1.5", "", "9" * 30])
def test_a_number_that_is_none(key: str, value: str) -> None:
    with pytest.raises(CatalogError) as failed:
        DirectoryCatalog({"path": "s3://bucket/lake", f"storage.{key}": value})
    assert failed.value.code is Code.INVALID_INPUT
    assert f"storage.{key}" in failed.value.message
    assert "canary" not in failed.value.message


def test_options_that_only_lance_knows(moto: Moto, bucket: str) -> None:
    catalog = DirectoryCatalog(moto.catalog_options(bucket, **{"storage.download_retry_count": "2"}))
    make_table(catalog, "t")
    assert data(catalog, "t").version == 2


def test_the_search_for_other_datasets(moto: Moto, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past thousands of objects in a bounded number of requests; what was not seen is reported."""
    options = moto.catalog_options(f"{bucket}/lake")
    catalog = DirectoryCatalog(options)
    for name in ("t.lance", "plain", "raw/a/deep.lance", "raw/z/late"):
        lance.write_dataset(
            pa.table({"id": [1]}), f"{bucket}/lake/{name}", storage_options=catalog.storage.lance_options
        )
    monkeypatch.setattr(storage_objects, "_PAGE", 5)
    store = catalog.storage._store  # type: ignore[attr-defined]
    for number in range(12):
        obstore.put(store, f"raw/files/{number:03}.parquet", b"x")
        obstore.put(store, f"raw/m/{number:03}/x", b"x")
    found = catalog.unlisted()
    assert {d.path.rpartition("/lake/")[2]: d.kind for d in found.found} == {
        "plain": "no_suffix",
        "raw/a/deep.lance": "subfolder",
        "raw/z/late": "subfolder",
    }
    assert found.problems == ()
    calls: list[str] = []
    listed = obstore.list
    monkeypatch.setattr(obstore, "list", lambda *a, **k: (calls.append("list"), listed(*a, **k))[1])
    monkeypatch.setattr(storage_objects, "_MOST_PAGES", 2)
    cut = catalog.unlisted()
    assert any(p.endswith("has too many entries and was searched in part") for p in cut.problems)
    assert len(calls) <= 2 * 20 + 20
