"""Every write to a local disk asks first, the tidying up too."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from reconciler.catalog.fence import fenced
from reconciler.catalog.storage_local import LocalStorage
from reconciler.model.errors import CatalogError

WRITES: dict[str, Callable[[LocalStorage], object]] = {
    "create": lambda storage: storage.create("new/file", b"x"),
    "replace": lambda storage: storage.replace("file", b"y"),
    "delete": lambda storage: storage.delete("file"),
    "prune": lambda storage: storage.prune("empty"),
}


@pytest.mark.parametrize("how", WRITES)
def test_nothing_changes_behind_a_closed_fence(tmp_path: Path, how: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    storage = LocalStorage(str(tmp_path))

    def found() -> dict[str, str]:
        return {str(p.relative_to(tmp_path)): p.read_text() if p.is_file() else "" for p in tmp_path.rglob("*")}

    before = found()
    with fenced(lambda: "the lease was lost"), suppress(CatalogError):
        WRITES[how](storage)
    assert found() == before
    with fenced(lambda: None):
        WRITES[how](storage)
    assert found() != before
