"""An empty place on a local disk: is the content gone, or the disk?"""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from reconciler.catalog import mounts
from reconciler.catalog.lance_remains import DataGone
from reconciler.catalog.locations import Places
from reconciler.model.errors import CatalogError


@pytest.mark.parametrize(
    ("there", "beside", "certain"),
    [
        ("", None, False),
        ("lake", None, False),
        ("lake/n/t", None, False),
        ("lake/n/t", "lake/n/u", False),
        ("lake/n", "lake/n/u", True),
        ("lake", "lake/m", True),
    ],
)
def test_only_something_beside_it_proves_that_it_is_gone(
    there: str, beside: str | None, certain: bool, tmp_path: Path
) -> None:
    root = tmp_path / "disk"
    (root / there).mkdir(parents=True)
    if beside is not None:
        (root / beside).mkdir(parents=True)
    with pytest.raises(CatalogError, match="is gone") as error:
        Places({}).is_declared_only(f"file://{root}/lake/n/t", "n.t", ours=True)
    assert isinstance(error.value, DataGone) is certain
    assert ("may be the mount point" in error.value.message) is not certain


def test_a_mounted_disk_that_is_empty_is_no_doubt(tmp_path: Path) -> None:
    table_of_mounts = tmp_path / "mountinfo"
    (tmp_path / "disk").mkdir()
    table_of_mounts.write_text(f"36 35 98:0 / {tmp_path / 'disk'} rw - ext4 /dev/sdb rw\n")
    assert mounts.doubt_of(str(tmp_path / "disk" / "t")) is not None
    with patch.object(mounts, "MOUNTS", str(table_of_mounts)):
        assert mounts.doubt_of(str(tmp_path / "disk" / "t")) is None


def test_a_disk_of_the_table_that_is_not_mounted_is_a_doubt_whatever_is_beside(tmp_path: Path) -> None:
    (tmp_path / "disk" / "something").mkdir(parents=True)
    listed = tmp_path / "fstab"
    listed.write_text(f"UUID=1 {tmp_path / 'disk'} ext4 defaults 0 2\n")
    assert mounts.doubt_of(str(tmp_path / "disk" / "t")) is None
    with patch.object(mounts, "TABLE", str(listed)):
        assert "which is not mounted" in str(mounts.doubt_of(str(tmp_path / "disk" / "t")))
