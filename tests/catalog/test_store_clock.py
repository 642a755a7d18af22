"""What time it is where the data is."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from servers.moto import Moto

from reconciler.catalog import store_clock
from reconciler.catalog.storage import Storage, open_storage
from reconciler.catalog.store_clock import TOLERANCE, need_right_clock
from reconciler.model.errors import CatalogError

A_MINUTE = 60


def _told(storage: Storage) -> None:
    before = storage.list_deep("")
    assert abs(storage.time() - time.time()) < A_MINUTE
    assert storage.list_deep("") == before, "nothing is left behind"


def test_a_disk(tmp_path: Path) -> None:
    (tmp_path / "t.lance").mkdir()
    _told(open_storage(str(tmp_path / "t.lance"), {}))


@pytest.mark.slow
def test_a_bucket(moto: Moto) -> None:
    _told(open_storage(f"{moto.make_bucket('clock')}/t.lance", moto.storage_options))


@pytest.mark.parametrize("skew", [-5 * 3600, -TOLERANCE - 60, 0, 60, TOLERANCE + 60, 5 * 3600])
def test_only_a_clock_that_is_ahead_is_too_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skew: int) -> None:
    storage = open_storage(str(tmp_path), {})
    wrong = time.time() + skew
    monkeypatch.setattr(store_clock, "time", SimpleNamespace(time=lambda: wrong))
    if skew <= TOLERANCE:
        need_right_clock(storage)
        return
    with pytest.raises(CatalogError, match=r"the clock of this machine is .* ahead of that of "):
        need_right_clock(storage)
