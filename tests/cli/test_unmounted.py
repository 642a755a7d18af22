"""A disk that is not mounted is no empty lake: not before a plan, not in the middle of one, not in the middle of an
apply. A new lake needs no word."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from cli_runs import catalog, namespace, reconciler, table, write

from reconciler.catalog import mounts
from reconciler.catalog.directory import DirectoryCatalog
from reconciler.catalog.directory_manifest import Manifest
from reconciler.catalog.storage_local import LocalStorage
from reconciler.model.errors import CatalogError

MANY = [namespace("n"), *(table("n", f"t{i}") for i in range(12))]
FEW = [namespace("n"), table("n", "t")]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    write(tmp_path, catalog(), *MANY)
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    return tmp_path


def unmount(folder: Path) -> None:
    """What is left is the mount point."""
    (folder / "lake").rename(folder / "disk")
    (folder / "lake").mkdir()


@pytest.mark.parametrize("words", [("plan",), ("apply", "--yes"), ("drift",), ("status",), ("plan", "--prune")])
def test_an_empty_mount_point_is_no_lake(lake: Path, words: tuple[str, ...]) -> None:
    unmount(lake)
    run = reconciler(lake, words[0], "m.yaml", *words[1:])
    assert run.code == 1, run.out
    assert "mount point of a disk that is not mounted" in run.err
    assert "create" not in run.out
    assert list((lake / "lake").iterdir()) == []


def test_files_in_the_mount_point_make_no_lake_of_it(lake: Path) -> None:
    """Such as the one that says so: people leave a note there."""
    unmount(lake)
    (lake / "lake" / "NOT-MOUNTED").touch()
    run = reconciler(lake, "plan", "m.yaml")
    assert (run.code, run.out) == (1, "")
    assert "mount point of a disk that is not mounted" in run.err


def test_what_every_ext_disk_has_makes_no_lake_of_it(lake: Path) -> None:
    unmount(lake)
    (lake / "lake" / "lost+found").mkdir()
    run = reconciler(lake, "apply", "m.yaml", "--yes")
    assert (run.code, run.out) == (1, "")
    assert "mount point of a disk that is not mounted" in run.err


def test_objects_are_counted_and_not_their_steps(tmp_path: Path) -> None:
    """What the plan may create in an empty root, apply creates."""
    (tmp_path / "lake").mkdir()
    index = "indexes: [{column: id, type: btree}]"
    write(tmp_path, catalog(), *(table(f"t{i}", spec=index) for i in range(9)))
    plan = reconciler(tmp_path, "plan", "m.yaml", "--format", "json")
    assert len(plan.json["steps"]) > 10
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes")
    assert run.code == 0, run.out + run.err


@pytest.mark.parametrize(("wanted", "code"), [(10, 0), (11, 1)])
def test_ten_objects_are_few(tmp_path: Path, wanted: int, code: int) -> None:
    (tmp_path / "lake").mkdir()
    write(tmp_path, catalog(), *(table(f"t{i}") for i in range(wanted)))
    run = reconciler(tmp_path, "plan", "m.yaml")
    assert (run.code, "may be the mount point of a disk" in run.err) == (code, True), run.err


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """Manifests in `job`, where the program runs; the lake is to be in `disk/lake`."""
    for name in ("job", "disk", "tmp"):
        (tmp_path / name).mkdir()
    write(tmp_path / "job", catalog(path=f"{tmp_path}/disk/lake"), *MANY)
    with patch.object(tempfile, "gettempdir", lambda: str(tmp_path / "tmp")):
        yield tmp_path


def test_a_root_below_the_mount_point(elsewhere: Path) -> None:
    """Then the root itself is missing, and the folder above it is empty."""
    job, disk = elsewhere / "job", elsewhere / "disk"
    assert "not mounted" in reconciler(job, "plan", "m.yaml").err
    (disk / "other").mkdir()
    assert reconciler(job, "apply", "m.yaml", "--yes").code == 0
    disk.rename(elsewhere / "away")
    disk.mkdir()
    for words in (("plan",), ("apply", "--yes"), ("drift",), ("status",)):
        run = reconciler(job, words[0], "m.yaml", *words[1:])
        assert (run.code, "create" in run.out) == (1, False), run.out
        assert "may be the mount point of a disk that is not mounted" in run.err
        assert os.listdir(disk) == []


@pytest.mark.parametrize("made", [False, True])
def test_the_command_of_the_message_makes_a_new_lake(elsewhere: Path, made: bool) -> None:
    job, root = elsewhere / "job", elsewhere / "disk" / "lake"
    if made:
        root.mkdir()
    said = reconciler(job, "plan", "m.yaml")
    command = " ".join(said.err.split()).partition("say so with `")[2].partition("`")[0]
    assert command == f"mkdir -p {root}/__reconciler"
    (root / "__reconciler").mkdir(parents=True)
    assert reconciler(job, "apply", "m.yaml", "--yes").code == 0
    assert reconciler(job, "plan", "m.yaml", "--detailed-exitcode").code == 0


@pytest.mark.parametrize("path", ["{0}/tmp/lake", "{0}/tmp/new/lake", "./lake", "./new/lake"])
def test_no_new_lake_is_a_false_alarm_where_people_try_things_out(elsewhere: Path, path: str) -> None:
    job, manifests = elsewhere / "job", elsewhere / "manifests"
    job.rename(manifests)
    for folder in (elsewhere / "tmp" / "new", job if path == "./lake" else job / "new"):
        folder.mkdir(parents=True)
    write(manifests, catalog(path=path.format(elsewhere)), *MANY)
    run = reconciler(job, "apply", "../manifests", "--yes")
    assert (run.code, run.err) == (0, "")


@pytest.mark.parametrize("where", [".", "job", "/"])
@pytest.mark.parametrize("relative", [False, True])
def test_the_folder_that_it_runs_in_makes_no_lake_of_a_mount_point(elsewhere: Path, where: str, relative: bool) -> None:
    """A container runs everything in `/`, or in a folder that disks are mounted in."""
    folder, disk = (elsewhere / where).resolve(), elsewhere / "disk"
    inside = folder == elsewhere
    if relative:
        write(elsewhere / "job", catalog(path=os.path.relpath(disk / "lake", folder)), *MANY)
    run = reconciler(folder, "plan", elsewhere / "job" / "m.yaml")
    if relative and inside:
        assert "to create" in run.out, "a checkout"
        return
    assert (run.code, run.out) == (1, "")
    assert "may be the mount point of a disk that is not mounted" in run.err


def test_a_saved_plan_is_not_applied_there_either(tmp_path: Path) -> None:
    write(tmp_path, catalog(), *MANY)
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json").code == 0
    (tmp_path / "lake").mkdir()
    run = reconciler(tmp_path, "apply", "--plan", "p.json", "--yes")
    assert run.code == 1, run.out
    assert "not mounted" in run.out
    assert not any(n.endswith(".lance") for n in os.listdir(tmp_path / "lake"))


def test_an_empty_lake_of_ours_is_one(lake: Path) -> None:
    """What an apply leaves behind says so, also when nothing else is in it."""
    for path in (lake / "lake").iterdir():
        if path.name not in ("__reconciler", "__manifest"):
            shutil.rmtree(path)
    shutil.rmtree(lake / "lake" / "__manifest")
    assert "13 to create" in reconciler(lake, "plan", "m.yaml").out


@pytest.mark.parametrize("made", [False, True], ids=["no folder", "an empty folder"])
def test_a_new_lake_needs_no_word(tmp_path: Path, made: bool) -> None:
    write(tmp_path, catalog(), *FEW)
    if made:
        (tmp_path / "lake").mkdir()
    run = reconciler(tmp_path, "apply", "m.yaml", "--yes")
    assert run.code == 0, run.err
    assert ("may be the mount point" in run.err) == made
    assert reconciler(tmp_path, "plan", "m.yaml").err == ""


def test_a_large_new_lake_needs_no_folder(tmp_path: Path) -> None:
    write(tmp_path, catalog(), *MANY)
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0


def test_a_new_disk_is_a_new_lake(tmp_path: Path) -> None:
    """A file system that is mounted there is a disk, however empty."""
    write(tmp_path, catalog(), *MANY)
    (tmp_path / "lake").mkdir()
    table_of_mounts = tmp_path / "mountinfo"
    table_of_mounts.write_text(f"36 35 98:0 / {tmp_path / 'lake'} rw - ext4 /dev/sdb rw\n")
    with patch.object(mounts, "MOUNTS", str(table_of_mounts)):
        assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0


def test_a_root_below_a_disk_of_the_table_that_is_not_mounted(tmp_path: Path) -> None:
    write(tmp_path, catalog(path="./mnt a/disk/lake"), *FEW)
    (tmp_path / "mnt a" / "disk").mkdir(parents=True)
    listed = tmp_path / "fstab"
    listed.write_text(
        f"# disks\nUUID=1 {str(tmp_path).replace(' ', chr(92) + '040')}/mnt\\040a/disk ext4 defaults 0 2\n"
    )
    with patch.object(mounts, "TABLE", str(listed)):
        run = reconciler(tmp_path, "plan", "m.yaml")
    assert run.code == 1
    assert "which is not mounted: mount the disk" in run.err
    assert reconciler(tmp_path, "plan", "m.yaml").code == 0


def once(action: Callable[[], None], real: Callable[..., Any], times: int = 1) -> Callable[..., Any]:
    """The `times`-th call of `real` finds the disk unmounted."""
    count = iter(range(1, 10_000))

    def acted(*args: Any, **kwargs: Any) -> Any:
        if next(count) == times:
            action()
        return real(*args, **kwargs)

    return acted


SEAMS: dict[str, tuple[Any, str]] = {
    "before the folders are listed": (LocalStorage, "list"),
    "before the rows are read": (Manifest, "rows"),
    "before the records are listed": (LocalStorage, "list_deep"),
}


@pytest.mark.parametrize("gone", [False, True], ids=["mount point left", "mount point gone"])
@pytest.mark.parametrize("seam", SEAMS)
def test_unmounted_in_the_middle_of_a_plan(lake: Path, seam: str, gone: bool) -> None:
    """The listing finds nothing, or half: that is no plan."""

    def action() -> None:
        unmount(lake)
        if gone:
            (lake / "lake").rmdir()

    owner, name = SEAMS[seam]
    with patch.object(owner, name, once(action, getattr(owner, name))):
        run = reconciler(lake, "plan", "m.yaml")
    assert run.code == 1, run.out
    assert "create" not in run.out
    assert "was there when this run began" in run.err


@pytest.fixture
def more(lake: Path) -> Path:
    write(lake, catalog(), *MANY, *(namespace(f"m{i}") for i in range(4)))
    return lake


@pytest.mark.parametrize("times", [1, 2, 4])
def test_unmounted_in_the_middle_of_an_apply(more: Path, times: int) -> None:
    """No step writes into the mount point; what is on the disk stays as it is, the lease of the run included: it is
    waited for."""
    short = {"RECONCILER_LEASE_TTL": "10"}
    with patch.object(DirectoryCatalog, "apply", once(lambda: unmount(more), DirectoryCatalog.apply, times)):
        run = reconciler(more, "apply", "m.yaml", "--yes", "--parallelism", "1", "--lock-timeout", "1", env=short)
    assert run.code in (1, 5), run.out + run.err
    assert "was there when this run began" in run.out + run.err
    left = [p for p in (more / "lake").rglob("*") if "__reconciler" not in p.parts]
    assert left == []
    (more / "lake").rename(more / "mount-point")
    (more / "disk").rename(more / "lake")
    assert reconciler(more, "apply", "m.yaml", "--yes", "--lock-timeout", "90").code == 0
    assert reconciler(more, "plan", "m.yaml", "--detailed-exitcode").code == 0


@pytest.mark.parametrize("empty", [False, True], ids=["missing", "empty"])
def test_a_root_that_another_step_creates_meanwhile_is_not_gone(tmp_path: Path, empty: bool) -> None:
    """Two steps of one run look at a new root at once: the slower one saw it missing, or empty, and the faster one has
    noted it since."""
    root = tmp_path / "lake"
    storage = LocalStorage(str(root))
    if empty:
        root.mkdir()

    name = "scandir" if empty else "stat"
    real = getattr(os, name)
    first = iter([True])

    def slow(path: Any, *args: Any, **kwargs: Any) -> Any:
        if str(path) != str(root) or not next(first, False):
            return real(path, *args, **kwargs)
        (root / "__manifest").mkdir(parents=True)
        storage.check_root()
        if empty:
            return nullcontext(iter(()))
        raise FileNotFoundError(path)

    with patch.object(storage, "check"), patch.object(os, name, slow):
        storage.check_root()
    shutil.rmtree(root)
    with patch.object(storage, "check"), pytest.raises(CatalogError, match="it is gone"):
        storage.check_root()
