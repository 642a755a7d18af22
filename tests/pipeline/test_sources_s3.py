"""Sources on an object store: a real moto server, with the storage options as Lance names them."""

from __future__ import annotations

import io
import itertools
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from servers.moto import Moto

from reconciler.pipeline.file_reader import FileError, read_batches
from reconciler.pipeline.listing import SourceError
from reconciler.pipeline.sources import Listing, list_source, source_schema

pytestmark = pytest.mark.slow
_numbers = itertools.count()
ROWS = pa.table({"id": [1, 2, 3], "s": ["a", "b", None]})
ODD = "in/a b+ü%20&=/part 1.parquet"


@pytest.fixture
def bucket(moto: Moto) -> str:
    return moto.make_bucket(f"source-{next(_numbers)}")


def put(moto: Moto, bucket: str, key: str, data: bytes | pa.Table = b"x") -> None:
    if isinstance(data, pa.Table):
        file = io.BytesIO()
        pq.write_table(data, file)
        data = file.getvalue()
    moto.client.put_object(Bucket=bucket.removeprefix("s3://"), Key=key, Body=data)


def listing(moto: Moto, path: Any, format_: str = "parquet", **more: Any) -> Listing:
    return list_source({"format": format_, "path": path, **more}, moto.storage_options)


def test_files_folders_and_patterns(moto: Moto, bucket: str) -> None:
    for key in ("in/", "in/a.csv", "in/x/", "in/x/b.csv", "in/_SUCCESS", "in/.tmp/c.csv", "inside/d.csv", "in/x/e"):
        put(moto, bucket, key, b"" if key.endswith("/") else b"x")
    for path, wanted in {
        "in": ["a.csv", "x/b.csv", "x/e"],
        "in/": ["a.csv", "x/b.csv", "x/e"],
        "in/*.csv": ["a.csv"],
        "in/**/*.csv": ["a.csv", "x/b.csv"],
        "*/x": ["in/x/b.csv", "in/x/e"],
        "in/a.csv": ["a.csv"],
        "in/_SUCCESS": ["_SUCCESS"],
        "": ["in/a.csv", "in/x/b.csv", "in/x/e", "inside/d.csv"],
    }.items():
        assert [f.name for f in listing(moto, f"{bucket}/{path}").files] == wanted, path
    (one,) = listing(moto, f"{bucket.replace('s3:', 's3a:')}/in/a.csv").files
    assert (one.uri, one.size) == (f"{bucket}/in/a.csv", 1)


def test_the_digest_is_that_of_the_etags(moto: Moto, bucket: str) -> None:
    put(moto, bucket, "in/a")
    put(moto, bucket, "copy/a")
    before = listing(moto, f"{bucket}/in").digest
    assert listing(moto, f"{bucket}/copy").digest == before
    put(moto, bucket, "in/a", b"y")
    assert listing(moto, f"{bucket}/in").digest != before, "of the same size and perhaps the same second"


def test_what_cannot_be_listed_is_never_empty(moto: Moto, bucket: str) -> None:
    for path in (f"{bucket}/gone", f"{bucket}/*.csv", bucket):
        with pytest.raises(SourceError, match="there is no file"):
            listing(moto, path)
    for path in ("s3://no-such-bucket/x", "s3://no-such-bucket", "s3://no-such-bucket/*"):
        with pytest.raises(SourceError, match="no-such-bucket"):
            listing(moto, path)
    nobody = {**moto.storage_options, "aws_endpoint": "http://127.0.0.1:1", "client_max_retries": "0"}
    with pytest.raises(SourceError) as caught:
        list_source({"format": "parquet", "path": f"{bucket}/in"}, nobody)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("key", ["in/a.parquet", ODD])
def test_a_file_is_read_with_the_same_options(moto: Moto, bucket: str, key: str) -> None:
    put(moto, bucket, key, ROWS)
    found = listing(moto, f"{bucket}/in")
    (file,) = found.files
    assert source_schema(found, {"format": "parquet"}, moto.storage_options) == ROWS.schema
    target = pa.schema([("id", pa.int32()), ("s", pa.large_string())])
    batches = read_batches(file.uri, "parquet", {}, moto.storage_options, target, {}, size=file.size)
    assert pa.Table.from_batches(batches, target).to_pylist() == ROWS.to_pylist()


def test_texts_are_read_with_the_same_options(moto: Moto, bucket: str) -> None:
    put(moto, bucket, "a.csv", b"id\n1\n2\n")
    (file,) = listing(moto, f"{bucket}/a.csv", "csv").files
    target = pa.schema([("id", pa.int64())])
    batches = read_batches(file.uri, "csv", {}, moto.storage_options, target, {}, size=file.size)
    assert pa.Table.from_batches(batches).to_pydict() == {"id": [1, 2]}


def test_a_file_that_is_gone_or_shorter(moto: Moto, bucket: str) -> None:
    target = pa.schema([("id", pa.int64())])
    put(moto, bucket, "a.csv", b"id\n1\n")
    for uri, size in ((f"{bucket}/gone.csv", 5), (f"{bucket}/a.csv", 50)):
        with pytest.raises(FileError, match=uri) as caught:
            list(read_batches(uri, "csv", {}, moto.storage_options, target, {}, size=size))
        assert "canary" not in str(caught.value)


def test_lance_and_delta(moto: Moto, bucket: str) -> None:
    lance.write_dataset(ROWS, f"{bucket}/t.lance", storage_options=moto.storage_options)
    found = listing(moto, f"{bucket}/t.lance", "lance")
    assert found.version == 1
    assert source_schema(found, {"format": "lance", "path": f"{bucket}/t.lance"}, moto.storage_options) == ROWS.schema
    with pytest.raises(SourceError, match="no Lance table"):
        listing(moto, f"{bucket}/gone.lance", "lance")
    put(moto, bucket, "d/_delta_log/00000000000000000003.json")
    assert listing(moto, f"{bucket}/d", "delta").version == 3
