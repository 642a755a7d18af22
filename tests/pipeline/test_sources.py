"""What a source is: its files or its version, the digest of it, and whether its columns fit. On a disk; S3 is in
`test_sources_s3`."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconciler.pipeline.conform import TEXT, Rules
from reconciler.pipeline.listing import SourceError
from reconciler.pipeline.source_fit import fits
from reconciler.pipeline.sources import Listing, list_source, source_schema, storage_of


def put(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def listing(path: Any, format_: str = "parquet", **more: Any) -> Listing:
    return list_source({"format": format_, "path": path, **more}, {})


def names(path: Any) -> list[str]:
    return [f.name for f in listing(path).files]


FILES = ("a.csv", "b.csv", "x/c.csv", "x/y/d.csv", "x/y/e.txt", "_SUCCESS", ".hidden", "_temporary/f.csv", "x/.g/h.csv")
PATTERNS = {
    "": ["a.csv", "b.csv", "x/c.csv", "x/y/d.csv", "x/y/e.txt"],
    "x/": ["c.csv", "y/d.csv", "y/e.txt"],
    "a.csv": ["a.csv"],
    "_SUCCESS": ["_SUCCESS"],
    "_temporary": ["f.csv"],
    "*.csv": ["a.csv", "b.csv"],
    "*": ["a.csv", "b.csv", "x/c.csv", "x/y/d.csv", "x/y/e.txt"],
    "**/*.csv": ["a.csv", "b.csv", "x/c.csv", "x/y/d.csv"],
    "x/**/d*": ["y/d.csv"],
    "x/**": ["c.csv", "y/d.csv", "y/e.txt"],
    "*/y": ["x/y/d.csv", "x/y/e.txt"],
    "**/y/*.csv": ["x/y/d.csv"],
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_files_folders_and_patterns(tmp_path: Path, pattern: str) -> None:
    put(tmp_path, *FILES)
    assert names(f"{tmp_path}/{pattern}") == PATTERNS[pattern]


def test_files_have_paths_sizes_and_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "in/b", "in/a b")
    monkeypatch.chdir(tmp_path)
    for path in ("in", "./in/", str(tmp_path / "in"), (tmp_path / "in").as_uri()):
        first, second = listing(path).files
        assert (first.uri, first.size) == (str(tmp_path / "in" / "a b"), 6)
        assert first.stamp == str((tmp_path / "in" / "a b").stat().st_mtime_ns)
        assert second.name == "b"
    assert names(["in/b", "in", "in/a b"]) == ["a b", "b"], "each file once"


def test_the_digest_is_that_of_the_files(tmp_path: Path) -> None:
    put(tmp_path, "in/a", "in/b")
    before = listing(f"{tmp_path}/in").digest
    assert before.startswith("sha256:")
    assert before == listing(f"{tmp_path}/in").digest == listing([f"{tmp_path}/in/b", f"{tmp_path}/in/a"]).digest
    assert before != listing(f"{tmp_path}/in", "csv").digest
    assert listing(f"{tmp_path}/in", "csv", header=False).digest != listing(f"{tmp_path}/in", "csv").digest
    secret = {"storage.aws_secret_access_key": "x"}
    assert before == listing(f"{tmp_path}/in", **secret).digest, "a new password is no new data"

    (tmp_path / "in").rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "_new").write_text("skipped")
    assert before == listing(f"{tmp_path}/elsewhere").digest, "the same files, moved"
    os.utime(tmp_path / "elsewhere" / "a", ns=(0, 1))
    touched = listing(f"{tmp_path}/elsewhere").digest
    (tmp_path / "elsewhere" / "a").rename(tmp_path / "elsewhere" / "c")
    assert len({before, touched, listing(f"{tmp_path}/elsewhere").digest}) == 3


def test_links_are_followed_and_circles_left(tmp_path: Path) -> None:
    put(tmp_path, "data/x", "databank/y")
    (tmp_path / "data" / "loop").symlink_to(tmp_path / "data")
    (tmp_path / "data" / "more").symlink_to(tmp_path / "databank")
    assert names(f"{tmp_path}/data") == ["more/y", "x"]


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("a*" * 24 + "b", "a" * 200),
        ("*a" * 24 + "b", "a" * 200),
        ("**/" * 24 + "b", "/".join("a" * 60)),
        ("**/a*a*/" * 12 + "b", "/".join(["aaaa"] * 40)),
    ],
)
def test_no_pattern_takes_more_than_a_moment(tmp_path: Path, pattern: str, name: str) -> None:
    """Each of them took longer than anybody waits: the test would not come to its end."""
    put(tmp_path, name, "b")
    with pytest.raises(SourceError, match="there is no file"):
        names(f"{tmp_path}/{pattern}x")


def test_links_beside_each_other_do_not_multiply_without_end(tmp_path: Path) -> None:
    """Twenty folders with two links each, to the next folder, are a million paths."""
    for number in range(20):
        put(tmp_path, f"{number}/f")
        for link in ("a", "b"):
            (tmp_path / str(number) / link).symlink_to(tmp_path / str(number + 1))
    put(tmp_path, "20/f")
    with pytest.raises(SourceError, match="through links"):
        listing(f"{tmp_path}/0")


def test_links_stay_in_a_folder_that_is_somebody_elses(tmp_path: Path) -> None:
    put(tmp_path, "home/raw/x", "home/more/y", "home/.git/config", "away/z", "away/deep/z")
    raw = tmp_path / "home" / "raw"

    def found(path: str = f"{tmp_path}/home/raw") -> list[str]:
        return [f.name for f in list_source({"format": "csv", "path": path}, {}, True).files]

    (raw / "inside").symlink_to(tmp_path / "home" / "more")
    assert found() == ["inside/y", "x"]
    assert found(f"{tmp_path}/away") == ["deep/z", "z"], "a folder outside is named, and no link leads to it"
    for to in ("away", "away/z", "home/.git", "home/.git/config"):
        (raw / "link").symlink_to(tmp_path / to)
        for path in (f"{raw}", f"{raw}/*", f"{raw}/link", f"{raw}/link/**", f"file://{raw}/link"):
            with pytest.raises(SourceError, match="a link leads out of"):
                found(path)
        for other in ({"format": "lance"}, {"format": "delta"}, {"format": "sql", "sql": "x", "views": {}}):
            source = {**other, "path": f"{raw}/link"}
            if "views" in other:
                source["views"] = {"v": {"format": "csv", "path": f"{raw}/link"}}
            with pytest.raises(SourceError, match="a link leads out of"):
                list_source(source, {}, True)
        (raw / "link").unlink()


def test_links_inside_of_a_lance_table_stay_there_too(tmp_path: Path) -> None:
    put(tmp_path, "home/.git/config", "away/1.manifest")
    source = {"format": "lance", "path": f"{tmp_path}/home/t.lance"}
    lance.write_dataset(pa.table({"id": [1]}), source["path"])
    assert list_source(source, {}, True).version == 1
    (data,) = (tmp_path / "home" / "t.lance" / "data").iterdir()
    data.rename(tmp_path / "away" / data.name)
    data.symlink_to(tmp_path / "away" / data.name)
    assert list_source(source, {}).version == 1
    with pytest.raises(SourceError, match="a link leads out of"):
        list_source(source, {}, True)


def test_links_behind_a_link_of_a_lance_table_stay_there_too(tmp_path: Path) -> None:
    """Its data is in another folder of the checkout, and a file there is a link out of it."""
    put(tmp_path, "home/.git/config", "home/other/x", "away/x")
    source = {"format": "lance", "path": f"{tmp_path}/home/t.lance"}
    lance.write_dataset(pa.table({"id": [1]}), source["path"])
    data = tmp_path / "home" / "t.lance" / "data"
    data.rename(tmp_path / "home" / "other" / "data")
    data.symlink_to(tmp_path / "home" / "other" / "data")
    (data / "round").symlink_to(tmp_path / "home" / "t.lance")
    assert list_source(source, {}, True).version == 1
    (file,) = data.glob("*.lance")
    file.rename(tmp_path / "away" / file.name)
    file.symlink_to(tmp_path / "away" / file.name)
    with pytest.raises(SourceError, match="a link leads out of"):
        list_source(source, {}, True)


def test_what_cannot_be_listed_is_never_empty(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    put(tmp_path, "only/_x", "f")
    (tmp_path / "only" / "y").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "pipe")
    cases = {
        "empty": "there is no file",
        "no-such": "No such file",
        "no-such/*": "No such file",
        "f/*": "Not a directory",
        "*.nothing": "there is no file",
        "only": "No such file",
        "pipe": "no regular file",
    }
    for path, shown in cases.items():
        with pytest.raises(SourceError, match=shown):
            listing(f"{tmp_path}/{path}")
    with pytest.raises(SourceError, match="no-such"):
        listing([f"{tmp_path}/f", f"{tmp_path}/no-such"])


NOBODY = 65534


@pytest.fixture
def ordinary() -> Iterator[Path]:
    """A folder, and nobody's rights: no file mode stops root."""
    folder = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    if root:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if root:
            os.seteuid(0)
        (folder / "locked").chmod(0o700)
        shutil.rmtree(folder)


def test_a_folder_that_may_not_be_read(ordinary: Path) -> None:
    put(ordinary, "a", "locked/b")
    (ordinary / "locked").chmod(0)
    with pytest.raises(SourceError, match="Permission denied"):
        listing(str(ordinary))
    with pytest.raises(SourceError, match="Permission denied"):
        listing(str(ordinary / "locked" / "b"))


def test_lance(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    rows = pa.table({"id": [1, 2]})
    dataset = lance.write_dataset(rows, path)
    first = listing(path, "lance")
    assert (first.version, first.files) == (1, ())
    dataset.tags.create("gold", 1)
    dataset.update_config({"a": "b"})
    assert listing(path, "lance").digest == first.digest, "the rows are the same"
    lance.write_dataset(rows, path, mode="append")
    newest = listing(path, "lance")
    assert newest.version == 3
    assert newest.digest != first.digest
    for version in (1, "1", "gold"):
        assert listing(path, "lance", version=version) == first
    lance.dataset(path).delete("id = 1")
    assert listing(path, "lance").digest != newest.digest
    again = str(tmp_path / "again.lance")
    lance.write_dataset(rows, again)
    assert listing(again, "lance").digest != first.digest, "made anew"
    assert source_schema(first, {"format": "lance", "path": path}, {}) == rows.schema
    for version in (99, "silver"):
        with pytest.raises(SourceError, match=f"at version {version}"):
            listing(path, "lance", version=version)
    with pytest.raises(SourceError, match="no Lance table"):
        listing(str(tmp_path / "gone"), "lance")


def test_delta(tmp_path: Path) -> None:
    log = tmp_path / "t" / "_delta_log"
    put(log, "00000000000000000000.json", "00000000000000000010.checkpoint.parquet", "_last_checkpoint")
    assert listing(str(tmp_path / "t"), "delta").version == 10
    put(log, "00000000000000000009.json", "00000000000000000011.json", "00000000000000000011.crc")
    newest = listing(f"{tmp_path}/t/", "delta")
    assert newest.version == 11
    old = listing(str(tmp_path / "t"), "delta", options={"versionAsOf": "9"})
    assert old.version == 9
    put(log, "00000000000000000012.json")
    assert listing(str(tmp_path / "t"), "delta").digest != newest.digest
    assert listing(str(tmp_path / "t"), "delta", options={"versionAsOf": "9"}) == old
    put(tmp_path / "other" / "_delta_log", "notes.txt")
    with pytest.raises(SourceError, match="no Delta table"):
        listing(str(tmp_path / "other"), "delta")
    with pytest.raises(SourceError, match="No such file"):
        listing(str(tmp_path / "gone"), "delta")


def test_what_nobody_can_list_is_what_it_says(tmp_path: Path) -> None:
    put(tmp_path, "in/a")
    jdbc = {"format": "jdbc", "url": "jdbc:x", "table": "t", "token": "1"}
    view = {"format": "parquet", "path": f"{tmp_path}/in"}
    sql = {"format": "sql", "sql": "select 1 from v", "views": {"v": view}}

    def found(source: dict[str, Any], **change: Any) -> str:
        return list_source({**source, **change}, {}).digest

    assert found(jdbc) == found(jdbc, password="x", user="u", options={"fetchsize": "1"})
    assert len({found(jdbc), found(jdbc, token="2"), found(jdbc, table="u"), found(jdbc, format="iceberg")}) == 4
    before = found(sql)
    assert before != found(sql, sql="select 2 from v")
    put(tmp_path, "in/b")
    assert found(sql) != before
    with pytest.raises(SourceError, match="gone"):
        found(sql, views={"v": {**view, "path": f"{tmp_path}/gone"}})


def test_storage_options() -> None:
    assert storage_of({"format": "parquet", "path": "x", "storage.a": "b", "storage.c.d": "e"}) == {
        "a": "b",
        "c.d": "e",
    }


# columns


def test_the_schema_of_the_first_file(tmp_path: Path) -> None:
    rows = pa.table({"id": [1]})
    pq.write_table(rows, tmp_path / "b.parquet")
    pq.write_table(pa.table({"other": ["x"]}), tmp_path / "c.parquet")
    found = listing(f"{tmp_path}/*.parquet")
    assert source_schema(found, {"format": "parquet"}, {}) == rows.schema
    (tmp_path / "a.parquet").write_text("no parquet")
    with pytest.raises(SourceError, match=r"a\.parquet"):
        source_schema(listing(f"{tmp_path}/*.parquet"), {"format": "parquet"}, {})
    (tmp_path / "x.json").write_text(json.dumps({"id": 1}))
    assert source_schema(listing(f"{tmp_path}/x.json", "json"), {"format": "json"}, {}) is None


VECTOR = pa.list_(pa.float32(), 4)
FITS: list[tuple[pa.DataType, pa.DataType]] = [
    (pa.int64(), pa.int64()),
    (pa.int64(), pa.int8()),
    (pa.float64(), pa.int32()),
    (pa.date64(), pa.date32()),
    (pa.large_string(), pa.string()),
    (pa.int64(), pa.decimal128(5, 2)),
    (pa.list_(pa.float64()), VECTOR),
    (pa.large_list(pa.float32()), VECTOR),
    (VECTOR, pa.list_(pa.float16(), 4)),
    (pa.string(), pa.dictionary(pa.int8(), pa.string())),
    (pa.dictionary(pa.int32(), pa.string()), pa.string()),
    (pa.struct([("a", pa.int32()), ("b", pa.int8())]), pa.struct([("a", pa.int64())])),
    (pa.timestamp("ns"), pa.timestamp("us", "UTC")),
    (pa.binary(), lance.blob_field("b").type),
    (pa.null(), VECTOR),
]
FITS_NOT: list[tuple[pa.DataType, pa.DataType, str]] = [
    (pa.list_(pa.float32(), 3), VECTOR, "a list of 3 items"),
    (pa.list_(pa.float64(), 3), VECTOR, "a list of 3 items"),
]
OTHER_FAMILY: list[tuple[pa.DataType, pa.DataType]] = [
    (pa.int32(), pa.date32()),
    (pa.int64(), pa.bool_()),
    (pa.bool_(), pa.int8()),
    (pa.bool_(), pa.date32()),
    (pa.string(), pa.int64()),
    (pa.string(), pa.float32()),
    (pa.string(), pa.decimal128(5, 2)),
    (pa.string(), pa.timestamp("us")),
    (pa.string(), pa.time64("us")),
    (pa.int64(), pa.string()),
    (pa.timestamp("us"), pa.date32()),
    (pa.date32(), pa.timestamp("us")),
    (pa.binary(), pa.string()),
    (pa.string(), pa.binary()),
    (pa.dictionary(pa.int8(), pa.string()), pa.int64()),
    (pa.float32(), VECTOR),
    (pa.list_(pa.string()), VECTOR),
    (pa.list_(pa.string()), pa.string()),
    (pa.struct([("a", pa.string())]), pa.struct([("a", pa.int64())])),
    (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.string())),
    (pa.map_(pa.string(), pa.int8()), pa.struct([("a", pa.int8())])),
]
CASTS: list[tuple[pa.DataType, pa.DataType]] = [
    (pa.int32(), pa.date32()),
    (pa.int64(), pa.bool_()),
    (pa.string(), pa.int64()),
    (pa.string(), pa.date32()),
    (pa.int64(), pa.string()),
    (pa.timestamp("us"), pa.date32()),
    (pa.binary(), pa.string()),
]
TYPED = Rules(typed=True)


def misfits(source: pa.DataType, target: pa.DataType, rules: Rules = TYPED) -> list[str]:
    return fits(pa.schema([("c", source)]), pa.schema([("c", target)]), {}, "parquet", rules)


@pytest.mark.parametrize("pair", FITS, ids=str)
def test_types_that_fit(pair: tuple[pa.DataType, pa.DataType]) -> None:
    assert misfits(*pair) == []


@pytest.mark.parametrize("case", FITS_NOT, ids=str)
def test_types_that_do_not_fit(case: tuple[pa.DataType, pa.DataType, str]) -> None:
    (problem,) = misfits(case[0], case[1])
    assert "column 'c'" in problem
    assert re.search(case[2], problem)


@pytest.mark.parametrize("pair", OTHER_FAMILY, ids=str)
def test_types_of_another_family(pair: tuple[pa.DataType, pa.DataType]) -> None:
    (problem,) = misfits(*pair)
    assert problem.startswith("column 'c': the source has ")
    assert "columns: {c: {cast: true}}" in problem


@pytest.mark.parametrize("pair", CASTS, ids=str)
def test_types_of_another_family_that_are_asked_for(pair: tuple[pa.DataType, pa.DataType]) -> None:
    assert misfits(*pair, Rules(typed=True, casts=frozenset("c"))) == []
    (problem,) = misfits(*pair, Rules(typed=True, casts=frozenset("d")))
    assert "cast: true" in problem


def test_a_cast_that_nobody_can_do() -> None:
    (problem,) = misfits(pa.float32(), VECTOR, Rules(typed=True, casts=frozenset("c")))
    assert "float cannot become" in problem


def test_a_struct_without_a_declared_field() -> None:
    source, target = pa.struct([("x", pa.int8())]), pa.struct([("x", pa.int8()), ("y", pa.int8())])
    (problem,) = misfits(source, target)
    assert "no field 'y'; it has x" in problem
    assert misfits(source, target, Rules(typed=True, nulls=frozenset("c"))) == []


def test_columns_that_are_missing() -> None:
    target = pa.schema([pa.field("id", pa.int64(), nullable=False), ("product", pa.string())])

    def said(columns: dict[str, str], rules: Rules, *names: str) -> list[str]:
        return fits(pa.schema([(name, pa.null()) for name in names]), target, columns, "parquet", rules)

    assert said({"id": "ID"}, TYPED, "ID", "product") == []
    assert said({}, TYPED, "id", "sku", "qty") == [
        "the source has no column 'product'; it has id, sku, qty: map it with `columns`, or `missing: null`"
    ]
    assert said({}, TYPED, "id", "Products") == [
        "the source has no column 'product'; it has id, Products: map it with `columns: {product: Products}`, or "
        "`missing: null`"
    ]
    assert said({"product": "sku"}, TYPED, "id") == [
        "the source has no column 'sku'; it has id: map it with `columns`, or `missing: null`"
    ]
    lenient = Rules(typed=True, nulls=frozenset({"id", "product"}))
    assert said({}, lenient, "id") == []
    assert said({}, lenient, "product") == [
        "the source has no column 'id'; it has product: map it with `columns` (id is NOT NULL)"
    ]
    (problem,) = said({}, lenient, "x")
    assert problem.startswith("the source has no columns 'id', 'product'; it has x"), "another source altogether"


def test_what_texts_cannot_hold() -> None:
    deep = pa.schema([("c", pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.int8()))])))])
    assert fits(None, deep, {}, "json", TEXT) == [f"column 'c' ({deep.field(0).type}): json holds no such values"]
    assert fits(None, pa.schema([("c", VECTOR)]), {}, "json", TEXT) == []
    (problem,) = fits(pa.schema([("c", pa.null())]), pa.schema([("c", VECTOR)]), {}, "csv", TEXT)
    assert problem.endswith("csv holds no lists and structs")
    lacking = fits(
        pa.schema([("a", pa.null())]),
        pa.schema([("a", pa.int8()), ("c", VECTOR)]),
        {},
        "csv",
        Rules(nulls=frozenset("c")),
    )
    assert lacking == [], "what is not there holds nothing"
    assert fits(pa.schema([("c", pa.null())]), pa.schema([("c", pa.date32())]), {}, "csv", TEXT) == []
