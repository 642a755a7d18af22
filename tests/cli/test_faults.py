"""Faults of disks and files, seen from the command line: what, where, what to do; the right exit code; nothing lost."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from cli_runs import Run, catalog, environment, namespace, reconciler, table, write

LAKE = (catalog(), namespace("a"), table("a", "bad"), table("a", "good"))
NEW_COLUMN = "[{name: id, type: int64}, {name: n, type: string}]"
CHANGED = (catalog(), namespace("a"), table("a", "bad", schema=NEW_COLUMN), table("a", "good", schema=NEW_COLUMN))
NO_OVERRIDE = "import ctypes\nfor capability in (1, 2): ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)\n"
"""Takes CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH away: file modes then hold for root as for anybody."""
SMALL_FILES = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))\n"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A folder with m.yaml and the lake it describes, one row in each table."""
    write(tmp_path, *LAKE)
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    for name in ("bad", "good"):
        lance.write_dataset(pa.table({"id": pa.array([1], pa.int64())}), str(place(tmp_path, name)), mode="append")
    return tmp_path


def place(folder: Path, name: str) -> Path:
    return next(p for p in (folder / "lake").iterdir() if p.name.endswith(f"a${name}"))


def content(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def refused(run: Run, code: int, *words: str) -> None:
    """The exit code, and the words a person needs to find the fault and to mend it."""
    assert run.code == code, run
    text = run.out + run.err
    for word in words:
        assert word in text, text
    assert ".rs:" not in text, "no positions in other people's sources"


def limited(folder: Path, limit: str, *arguments: str) -> Run:
    """The program in a process that first gives up some of its rights."""
    script = f"{limit}import os, sys\nos.execv(sys.executable, [sys.executable, '-m', 'reconciler', *sys.argv[1:]])"
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Run(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("command", [("plan",), ("apply", "--yes"), ("drift",)])
def test_a_wrong_path(tmp_path: Path, command: Sequence[str]) -> None:
    write(tmp_path, catalog(path="./not/there"), namespace("a"))
    run = reconciler(tmp_path, *command, "m.yaml")
    refused(run, 1, "catalog lake cannot be read", str(tmp_path / "not/there"), "does not exist", "correct spec.path")
    assert not (tmp_path / "not").exists()


@pytest.mark.parametrize("path", ["file", "file/below"])
def test_a_path_that_is_a_file(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_text("theirs")
    write(tmp_path, catalog(path=f"./{path}"), namespace("a"))
    for command in (("plan",), ("apply", "--yes")):
        refused(reconciler(tmp_path, *command, "m.yaml"), 1, str(tmp_path / path), "spec.path")
    assert (tmp_path / "file").read_text() == "theirs"


@pytest.mark.parametrize("damage", ["garbage", "empty", "newer"])
def test_a_table_that_cannot_be_read_is_held_back_alone(lake: Path, damage: str) -> None:
    spoil(place(lake, "bad"), damage)
    before = content(place(lake, "bad"))
    write(lake, *CHANGED)
    planned = reconciler(lake, "plan", "m.yaml")
    refused(
        planned, 0, "blocked", str(place(lake, "bad")), "upgrade pylance" if damage == "newer" else "cannot be read"
    )
    refused(reconciler(lake, "apply", "m.yaml", "--yes"), 3, str(place(lake, "bad")))
    assert content(place(lake, "bad")) == before
    good = lance.dataset(str(place(lake, "good")))
    assert (good.schema.names, good.count_rows()) == (["id", "n"], 1), "the others are applied"
    assert reconciler(lake, "drift", "m.yaml").code == 2


def spoil(folder: Path, damage: str) -> None:
    versions = sorted((folder / "_versions").glob("*.manifest"))
    if damage == "newer":
        set_reader_flag(versions[0])
        return
    for version in versions:
        version.write_bytes(b"garbage" * 20 if damage == "garbage" else b"")


def set_reader_flag(newest: Path) -> None:
    """Appends `reader_feature_flags = 2^40` (field 9) to the message: the last value of a field wins in protobuf. The
    file ends with the message's offset and its magic bytes."""
    raw = newest.read_bytes()
    position = int.from_bytes(raw[-16:-8], "little")
    size = int.from_bytes(raw[position : position + 4], "little")
    message = raw[position + 4 : position + 4 + size] + b"\x48\x80\x80\x80\x80\x80\x20"
    newest.write_bytes(raw[:position] + len(message).to_bytes(4, "little") + message + raw[-16:])


@pytest.mark.parametrize("damage", ["garbage", "empty", "newer", "data gone"])
def test_a_catalog_that_cannot_be_read(lake: Path, damage: str) -> None:
    folder = lake / "lake" / "__manifest"
    if damage == "data gone":
        shutil.rmtree(folder / "data")
    else:
        spoil(folder, damage)
    before = content(lake / "lake")
    write(lake, *CHANGED)
    mend = "upgrade pylance" if damage == "newer" else "restore"
    for command in (("plan",), ("apply", "--yes", "--prune"), ("drift",)):
        refused(reconciler(lake, *command, "m.yaml"), 1, "catalog lake cannot be read", str(folder), mend)
    assert content(lake / "lake") == before


@pytest.fixture
def closed(lake: Path) -> Iterator[Path]:
    """For tests that take file modes away: given back at the end, or the folder could not be removed."""
    yield lake
    for folder, _, _ in os.walk(lake):
        os.chmod(folder, 0o755)


@pytest.mark.slow
def test_no_permission_to_read(closed: Path) -> None:
    os.chmod(closed / "lake", 0)
    for command in (("plan",), ("apply", "--yes"), ("drift",)):
        run = limited(closed, NO_OVERRIDE, *command, "m.yaml")
        refused(run, 1, "PermissionDenied", str(closed / "lake"), "read and write access")


@pytest.mark.slow
def test_no_permission_to_read_one_table(closed: Path) -> None:
    os.chmod(place(closed, "bad") / "_versions", 0)
    write(closed, *CHANGED)
    run = limited(closed, NO_OVERRIDE, "apply", "m.yaml", "--yes")
    refused(run, 3, "a.bad", "cannot be read", "ermission denied")
    assert lance.dataset(str(place(closed, "good"))).schema.names == ["id", "n"]


@pytest.mark.slow
def test_no_permission_to_write(closed: Path) -> None:
    before = content(closed / "lake")
    write(closed, *CHANGED, namespace("b"))
    for folder, _, _ in os.walk(closed / "lake"):
        os.chmod(folder, 0o555)
    run = limited(closed, NO_OVERRIDE, "apply", "m.yaml", "--yes")
    refused(run, 1, "Failed", "PermissionDenied", str(closed / "lake"))
    assert content(closed / "lake") == before
    assert limited(closed, NO_OVERRIDE, "plan", "m.yaml").code == 0, "reading is enough for a plan"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A disk of 1 MB where one may be mounted, else a process that may write small files only."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(mounting, capture_output=True).returncode == 0
    yield folder, "" if mounted else SMALL_FILES.format(12_000)
    if mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk(tmp_path: Path, small_disk: tuple[Path, str]) -> None:
    disk, limit = small_disk
    many = [table("a", f"t{i:03}") for i in range(150)]
    write(tmp_path, catalog(path="./disk/lake"), namespace("a"), table("a", "first"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    first = next(str(p) for p in (disk / "lake").iterdir() if p.name.endswith("a$first"))
    lance.write_dataset(pa.table({"id": pa.array([1], pa.int64())}), first, mode="append")
    filler = disk / "filler"
    if not limit:
        filler.write_bytes(b"x" * 400_000)
    write(tmp_path, catalog(path="./disk/lake"), namespace("a"), table("a", "first"), *many)
    run = limited(tmp_path, limit, "apply", "m.yaml", "--yes", "--report", "r.json")
    if limit:
        refused(run, 5, "no further step was started", "File too large")  # The journal is the first to grow too large.
    else:
        refused(run, 5, "FAILED", "the disk is full: free some space")
    assert lance.dataset(first).count_rows() == 1
    filler.unlink(missing_ok=True)
    if not limit:
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0, "it goes on where it stopped"
    assert reconciler(tmp_path, "drift", "m.yaml").code == 0
    assert lance.dataset(first).count_rows() == 1


def test_a_narrowing_that_does_not_fit_leaves_no_tag(lake: Path) -> None:
    good = str(place(lake, "good"))
    lance.write_dataset(pa.table({"id": pa.array([2], pa.int64())}), good, mode="append")
    narrow = table("a", "good", schema="[{name: id, type: int32}]", spec="allow: [narrow_type]")
    write(lake, catalog(), namespace("a"), table("a", "bad"), narrow)
    assert reconciler(lake, "plan", "m.yaml", "-o", "p.json").code == 0
    lance.write_dataset(pa.table({"id": pa.array([2**40], pa.int64())}), good, mode="append")
    version = lance.dataset(good).version
    run = reconciler(lake, "apply", "--plan", "p.json", "--yes", "--format", "json")
    assert run.code == 1, run
    [step] = run.json["steps"]
    assert (step["status"], step["tag"], step["version_before"], step["version_after"]) == (
        "failed", None, version, version,
    )  # fmt: skip
    assert lance.dataset(good).tags.list() == {}
    lance.dataset(good).delete("id > 5")
    run = reconciler(lake, "apply", "m.yaml", "--yes", "--format", "json")
    assert run.code == 0, run
    assert list(lance.dataset(good).tags.list()) == [run.json["steps"][0]["tag"]]


def test_a_table_that_is_deregistered_keeps_its_versions_and_gets_no_tag(lake: Path) -> None:
    bad = str(place(lake, "bad"))
    write(lake, catalog(), namespace("a"), table("a", "good"))
    run = reconciler(lake, "apply", "m.yaml", "--yes", "--prune", "--format", "json")
    assert run.code == 0, run
    [step] = run.json["steps"]
    assert (step["action"], step["tag"]) == ("deregister_table", None), "the report names no tag that is not there"
    assert step["version_before"] == lance.dataset(bad).version
    assert lance.dataset(bad).tags.list() == {}


def test_a_store_that_cannot_be_reached_is_not_damaged(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = {
        "storage__aws_endpoint": f"http://127.0.0.1:{port}",
        "storage__allow_http": "true",
        "storage__aws_access_key_id": "someone",
        "storage__aws_secret_access_key": "something",
        "storage__aws_region": "us-east-1",
        "storage__client_max_retries": "0",
    }
    write(tmp_path, catalog(path="s3://bucket/lake", **options), namespace("a"))
    run = reconciler(tmp_path, "plan", "m.yaml")
    refused(run, 1, "ServiceUnavailable (17)", "Check the endpoint in storage.aws_endpoint, the network, and the "
            "credentials in storage.aws_access_key_id, storage.aws_secret_access_key")  # fmt: skip
    assert "backup" not in run.err
    assert str(port) not in run.err, "what is under storage.* is secret"
