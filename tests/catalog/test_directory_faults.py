"""What goes wrong on real disks: each fault says what, where and what to do, and nothing is lost."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from dir_support import (
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
    run,
    scanned,
    table,
)

from reconciler.catalog.lance_errors import clean, to_catalog_error
from reconciler.catalog.registry import capabilities_of, connect
from reconciler.model.change import DeregisterTable
from reconciler.model.desired import CatalogSpec, Management
from reconciler.model.diagnostic import Source
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Absent, Gap, Present, Scope, Unreadable


def failure(path: Path | str, **options: str) -> CatalogError:
    with pytest.raises(CatalogError) as failed:
        list(open_catalog(path, **options).scan(Scope()))
    return failed.value


def test_the_root_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("x")
    for path in (tmp_path / "lake", tmp_path / "lake" / "below"):
        error = failure(path)
        assert error.code is Code.INVALID_INPUT
        assert str(path) in error.message
        assert "spec.path" in error.message


def test_the_parent_of_the_root_is_missing(tmp_path: Path) -> None:
    error = failure(tmp_path / "not" / "there")
    assert error.code is Code.INVALID_INPUT
    assert str(tmp_path / "not") in error.message


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run as root, whom no file mode stops: the system call is made to fail instead."""
    make_table(open_catalog(tmp_path), "t")

    def denied(path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr("reconciler.catalog.storage_local.os.scandir", denied)
    error = failure(tmp_path)
    assert error.code is Code.PERMISSION_DENIED
    assert str(tmp_path) in error.message


def test_a_root_listing_that_fails_is_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = open_catalog(tmp_path)
    run(catalog, create_namespace("n"))
    make_table(catalog, "r")
    real = type(catalog.storage).list

    def broken(self: object, path: str = "") -> object:
        if path == "":
            raise CatalogError(Code.SERVICE_UNAVAILABLE, "the disk went away")
        return real(self, path)  # type: ignore[arg-type]

    monkeypatch.setattr(type(catalog.storage), "list", broken)
    found = list(catalog.scan(Scope()))
    assert Gap((), Code.SERVICE_UNAVAILABLE, "the disk went away") in found
    assert any(not isinstance(f, Gap) and f.ident == ("n",) for f in found)


def test_both_switches_off(tmp_path: Path) -> None:
    options = {"path": str(tmp_path), "manifest_enabled": "false", "dir_listing_enabled": "false"}
    spec = CatalogSpec("lake", "dir", options, Management(), Source("f", 1))
    with pytest.raises(CatalogError, match="both false"):
        connect(spec, options)
    capabilities = capabilities_of(spec)
    assert capabilities is not None
    assert "both false" in (capabilities.ident_problem("Table", ("t",)) or "")


@pytest.mark.parametrize("damage", ["garbage", "empty", "versions gone", "data gone", "versions and data gone"])
def test_a_corrupt_manifest_says_nothing_about_anything(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.catalog.directory_manifest._BIRTH", (0.001,))  # seconds to wait for a first version
    catalog = open_catalog(tmp_path)
    run(catalog, create_namespace("n"))
    make_table(catalog, "n", "t")
    folder = tmp_path / "__manifest"
    if damage.endswith("gone"):
        for name in ("versions", "data"):
            if name in damage:
                shutil.rmtree(folder / name.replace("versions", "_versions"))
    else:
        for version in (folder / "_versions").glob("*.manifest"):
            version.write_bytes(b"garbage" * 20 if damage == "garbage" else b"")
    before = sorted(str(p) for p in tmp_path.rglob("*"))
    for layout in ({}, V2):
        error = failure(tmp_path, **layout)
        assert error.code is Code.INTERNAL
        assert f"{folder} cannot be read" in error.message
        assert ".rs:" not in error.message
        again = open_catalog(tmp_path, **layout)
        for call in (
            lambda c=again: list(c.read([("Namespace", ("n",))], Scope())),
            lambda c=again: c.children(("n",)),
        ):
            with pytest.raises(CatalogError):
                call()
        with pytest.raises(CatalogError):
            run(again, create_namespace("m"))
    assert sorted(str(p) for p in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("damage", ["garbage", "empty", "versions gone"])
def test_a_corrupt_table_is_unreadable_and_alone(damage: str, tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    run(catalog, create_namespace("n"))
    for name in ("bad", "good"):
        make_table(catalog, "n", name)
    where = Path(str(table(catalog, "n", "bad").location))
    lance.write_dataset(rows(), str(where), mode="append")
    if damage == "versions gone":
        shutil.rmtree(where / "_versions")
    else:
        for version in (where / "_versions").glob("*.manifest"):
            version.write_bytes(b"garbage" * 20 if damage == "garbage" else b"")
    found = scanned(open_catalog(tmp_path), detail(("n", "bad"), ("n", "good")))
    bad = found["Table", ("n", "bad")]
    assert isinstance(bad, Unreadable)
    assert str(where) in bad.message
    assert isinstance(found["Table", ("n", "good")], Present)
    with pytest.raises(CatalogError):
        run(catalog, dataset("n", "bad"))
    files = sorted(p.name for p in (where / "data").iterdir())
    assert len(files) == 1
    run(catalog, DeregisterTable(("n", "bad")))
    assert isinstance(find(catalog, "n", "bad"), Unreadable)


def rows() -> pa.Table:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("embedding", pa.list_(pa.float32(), 8))])
    return pa.Table.from_pylist([{"id": 1, "embedding": [0.0] * 8}], schema)


def test_the_remains_of_a_killed_create_are_resumed(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    run(catalog, create_namespace("n"), declare("n", "t"))
    where = Path(str(table(catalog, "n", "t").location))
    (where / "_transactions").mkdir()
    (where / "_transactions" / "0-x.txn").write_bytes(b"x")
    (where / "_versions").mkdir()
    assert table(catalog, "n", "t").dataset is None
    run(catalog, dataset("n", "t"))
    assert data(catalog, "n", "t").version == 2


def test_a_dataset_of_a_newer_lance(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    make_table(catalog, "t")
    set_reader_flag(tmp_path / "t.lance")
    found = find(open_catalog(tmp_path), "t")
    assert isinstance(found, Unreadable)
    assert "newer version of Lance" in found.message
    assert "upgrade" in found.message


def set_reader_flag(folder: Path) -> None:
    """Appends `reader_feature_flags = 2^40` (field 9, varint) to the newest manifest message: the last value of a
    field wins in protobuf. The file ends with the message's offset and its magic bytes."""
    newest = min((folder / "_versions").glob("*.manifest"))
    raw = newest.read_bytes()
    position = int.from_bytes(raw[-16:-8], "little")
    size = int.from_bytes(raw[position : position + 4], "little")
    message = raw[position + 4 : position + 4 + size] + b"\x48" + b"\x80\x80\x80\x80\x80\x20"
    newest.write_bytes(raw[:position] + len(message).to_bytes(4, "little") + message + raw[-16:])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    mount = [*as_root, "mount", "-t", "tmpfs", "-o", "size=256k,mode=777", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small tmpfs needs the right to mount: root, or sudo without a password")
    yield folder
    subprocess.run([*as_root, "umount", "-l", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("layout", [{}, V1], ids=["default", "v1"])
def test_a_full_disk(layout: dict[str, str], small_disk: Path) -> None:
    catalog = open_catalog(small_disk / "lake", **layout)
    make_table(catalog, "before")
    filler = small_disk / "filler"
    fill(filler)
    with pytest.raises(CatalogError) as failed:
        run(catalog, *(change for i in range(200) for change in (declare(f"t{i}"), dataset(f"t{i}"))))
    assert "disk is full" in failed.value.message
    filler.unlink()
    again = open_catalog(small_disk / "lake", **layout)
    assert data(again, "before").version == 2
    make_table(again, "after")
    assert find(again, "never") == Absent()


def fill(filler: Path) -> None:
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 1024)


@pytest.mark.parametrize(
    ("text", "code", "unknown"),
    [
        ("Retryable commit conflict for version 3", Code.CONCURRENT_MODIFICATION, False),
        ("Incompatible transaction: This UpdateConfig", Code.CONCURRENT_MODIFICATION, False),
        ("Server returned 403 Forbidden: AccessDenied", Code.PERMISSION_DENIED, False),
        ("request failed with status: 429", Code.THROTTLING, True),
        ("500 Internal Server Error after 1.454013ms on port 42931", Code.SERVICE_UNAVAILABLE, True),
        ("InvalidAccessKeyId", Code.UNAUTHENTICATED, False),
        ("503 SlowDown: Please reduce your request rate", Code.THROTTLING, True),
        ("operation timed out", Code.SERVICE_UNAVAILABLE, True),
        ("error sending request for url", Code.SERVICE_UNAVAILABLE, True),
        ("No space left on device (os error 28)", Code.INTERNAL, False),
        ("Unable to create dir /x: Read-only file system (os error 30)", Code.PERMISSION_DENIED, False),
        ("Unable to create dir /x: Permission denied (os error 13)", Code.PERMISSION_DENIED, False),
        ("File too large (os error 27)", Code.INTERNAL, False),
        ("The specified bucket does not exist <Code>NoSuchBucket</Code>", Code.INVALID_INPUT, False),
        ("something else", Code.INTERNAL, False),
    ],
)
def test_texts_of_lance_become_codes(text: str, code: Code, unknown: bool) -> None:
    error = to_catalog_error(OSError(text), "write x", write=True)
    assert (error.code, error.unknown_outcome) == (code, unknown)
    assert not to_catalog_error(OSError(text), "read x", write=False).unknown_outcome


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EFBIG])
def test_a_failed_system_call_is_told_in_the_same_words_by_python_and_by_rust(number: int) -> None:
    ours = to_catalog_error(OSError(number, os.strerror(number)), "write x", write=True)
    theirs = to_catalog_error(
        OSError(f"LanceError(IO): {os.strerror(number)} (os error {number})"), "write x", write=True
    )
    assert theirs.code is ours.code
    assert theirs.message.startswith(ours.message)


def test_messages_show_no_credentials_and_no_rust() -> None:
    text = (
        "Failed, /build/lance/rust/lance-io/src/utils.rs:172:20 aws_secret_access_key=SECRET1 "
        "{'aws_access_key_id': 'SECRET2', \"session_token\": \"SECRET3\"} Authorization: Bearer-SECRET4 "
        "GET http://h/b?X-Amz-Credential=SECRET5&X-Amz-Signature=SECRET6 <StringToSign>SECRET7</StringToSign> "
        "Debug source: S3 { secret: SECRET8 }"
    )
    cleaned = clean(text)
    assert "SECRET" not in cleaned
    assert ".rs" not in cleaned
    assert cleaned.startswith("Failed")
