"""An object store that is slow and answers 503 SlowDown: before it does anything, and after it did what was asked. Rows
are in once, or the run says that it does not know, and the next one finds out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pipeline.external_runs import around_the_commit
from pipeline.filled_table import APPEND, REPLACE, FilledTable, declared
from servers.moto import Moto
from servers.proxy import Proxy, Request, answer
from servers.spark import need_java

from reconciler.catalog.lance_data import CLAIM_KEY

pytestmark = pytest.mark.slow
BODY = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


@dataclass(frozen=True)
class Through(Moto):
    """The same server behind a proxy."""

    proxy: Proxy | None = None
    retries: int = 6

    @property
    def storage_options(self) -> dict[str, str]:
        assert self.proxy is not None
        options = {**super().storage_options, "aws_endpoint": self.proxy.endpoint}
        return {**options, "client_max_retries": str(self.retries)}


@pytest.fixture
def proxy(moto: Moto) -> Iterator[Proxy]:
    with Proxy(moto.endpoint) as made:
        yield made


def table(folder: Path, moto: Moto, proxy: Proxy, mode: str, retries: int) -> FilledTable:
    need_java()
    through = Through(moto._process, moto._ports, proxy, retries)
    return declared(folder, lambda name: {"moto": through}[name], "dir-s3", mode)


class Every:
    """Some of the requests, none of them twice in a row."""

    def __init__(self, nth: int) -> None:
        self._count, self._nth = itertools.count(1), nth

    def __call__(self, request: Request) -> bool:
        return next(self._count) % self._nth == 0


@pytest.mark.parametrize("done", [False, True], ids=["not-done", "done-all-the-same"])
def test_it_slows_down_all_the_time(tmp_path: Path, moto: Moto, proxy: Proxy, done: bool) -> None:
    t = table(tmp_path, moto, proxy, APPEND, 6)
    proxy.latency = 0.005
    which = "" if not done else "/data/|_versions/|_transactions/"  # As our own records are written: test_storage_*.
    rule = proxy.fault(
        answer(503, BODY, json=False, forward=done), method="PUT" if done else None, path=which, where=Every(4),
        times=None,
    )  # fmt: skip
    t.apply()
    assert rule.used > 3
    assert t.ids() == list(range(20))
    t.source(2)
    t.apply()
    assert t.ids() == list(range(30))
    assert CLAIM_KEY not in t.dataset().metadata
    t.need_settled()


@pytest.mark.parametrize(("mode", "done"), [(APPEND, False), (REPLACE, True)], ids=["not-done", "done-all-the-same"])
def test_no_commit_is_answered(tmp_path: Path, moto: Moto, proxy: Proxy, mode: str, done: bool) -> None:
    """From the commit of the rows on, no version can be written, or none is confirmed."""
    t = table(tmp_path, moto, proxy, mode, 1)
    t.apply()
    t.source(2)

    def slow() -> Any:
        return proxy.fault(answer(503, BODY, json=False, forward=done), method="PUT", path=r"/_versions/", times=None)

    with around_the_commit(before=slow):
        run = t.run("apply", "m.yaml", "--yes")
    proxy.forget()
    assert run.code in (0, 1, 5), run.out
    assert t.ids() in (list(range(20)), list(range(30))), "all or nothing"
    if run.code == 0:
        assert t.ids() == list(range(30))
    elif run.code == 1:
        assert t.ids() == list(range(20))
    t.apply()
    assert t.ids() == list(range(30))
    assert CLAIM_KEY not in t.dataset().metadata
    t.need_settled()
