"""One step in the middle of what others do: what is waited for, what is believed, and whose fault it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from engine_plans import OURS, lake, ns, plan, table

from reconciler.catalog.memory import MemoryCatalog
from reconciler.engine.reader import Reader
from reconciler.engine.retry import Retry
from reconciler.engine.run_step import Ended, Tools, run_step
from reconciler.model import change as c
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind
from reconciler.model.observed import Observation, Scope, Unreadable
from reconciler.model.plan import Step

WANTED = ns("a", x="1")


def create(catalog: MemoryCatalog) -> Step:
    return plan(catalog.world, [WANTED]).steps[0]


class Rival:
    """Another run: as ours is about to write, it has made half of the namespace, and the write fails; while ours pauses
    it makes the rest."""

    def __init__(self, error: CatalogError) -> None:
        self.catalog = MemoryCatalog()
        self.step = create(self.catalog)
        self.error = error
        self.pauses: list[float] = []
        self.catalog.fault = self.half

    def half(self, point: str, subject: object) -> None:
        if point == "before":
            self.catalog.world.apply(ns("a"))
            raise self.error

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if len(self.pauses) == 2:
            self.catalog.world.apply(c.UpdateNamespace(("a",), {"x": "1"}, (), OURS))

    def run(self) -> Ended:
        tools = Tools(self.catalog, Reader(self.catalog, Scope()), Retry(0, self.pause), "sha256:ab")
        return run_step(self.step, tools)


@pytest.mark.parametrize("code", [Code.NAMESPACE_ALREADY_EXISTS, Code.CONCURRENT_MODIFICATION])
def test_a_run_that_was_faster_is_given_time_to_finish(code: Code) -> None:
    rival = Rival(CatalogError(code, "somebody was faster"))
    ended = rival.run()
    assert (ended.result.status, len(rival.pauses)) == ("done", 2)


def test_an_error_of_another_kind_is_believed_at_once() -> None:
    rival = Rival(CatalogError(Code.PERMISSION_DENIED, "no"))
    ended = rival.run()
    assert (ended.result.status, rival.pauses) == ("failed", [])
    assert ended.result.error is not None
    assert "changed since the plan was made" in ended.result.error.message


def test_a_write_without_an_answer_was_not_refused() -> None:
    """What is there now may be the half of it, or somebody else's: nobody is blamed, and it counts as written."""
    rival = Rival(CatalogError(Code.SERVICE_UNAVAILABLE, "cut off", unknown_outcome=True))
    ended = rival.run()
    assert (ended.result.status, ended.landed, ended.result.attempts) == ("unknown", True, 1)
    assert ended.result.error is not None
    assert ended.result.error.code == Code.SERVICE_UNAVAILABLE
    assert "whether lake:a was written is not known (cut off)" in ended.result.error.message
    assert "refused" not in ended.result.error.message


def test_a_run_that_is_to_stop_does_not_blame_others() -> None:
    """Its own half of a step looks like a change by somebody else; it is the lease that was lost."""
    rival = Rival(CatalogError(Code.INTERNAL, "it was not written any further: gone", landed=True, gave_up=True))
    ended = rival.run()
    assert ended.gave_up
    assert ended.landed
    assert ended.result.error is not None
    assert ended.result.error.message == "it was not written any further: gone"


def test_a_rename_whose_table_is_gone_is_not_tried() -> None:
    """Neither under the old name nor under the new one: a rename that was done would have left it at the new one."""
    catalog = lake(ns("a"), *table("a", "t"))
    (step,) = plan(catalog.world, [c.RenameTable(("a", "u"), ("a", "t"))]).steps
    catalog.world.apply(c.DeregisterTable(("a", "t")))
    tools = Tools(catalog, Reader(catalog, Scope()), Retry(0, lambda seconds: None), "sha256:ab")
    ended = run_step(step, tools)
    assert (ended.result.status, catalog.calls.writes, ended.landed) == ("failed", 0, False)
    assert ended.result.error is not None
    assert ended.result.error.code == Code.CONCURRENT_MODIFICATION


DENIED = Unreadable(Code.PERMISSION_DENIED, "http://127.0.0.1 answered 403")


class Closing(MemoryCatalog):
    """After so many more reads, each is answered with 403."""

    left = 0

    def read(self, keys: Sequence[tuple[Kind, Ident]], scope: Scope) -> Iterator[Observation]:
        self.left -= 1
        for seen in super().read(keys, scope):
            yield Observation(seen.kind, seen.ident, DENIED if self.left < 0 else seen.finding)


@pytest.mark.parametrize(("reads", "status", "landed"), [(0, "failed", False), (1, "unknown", True)])
def test_an_object_that_cannot_be_read_has_not_changed(reads: int, status: str, landed: bool) -> None:
    """Before the write nothing is written; after it the outcome is not known. Both say why, never 'it changed'."""
    catalog = Closing()
    step = create(catalog)
    catalog.left = reads
    ended = run_step(step, Tools(catalog, Reader(catalog, Scope()), Retry(0, lambda _: None), "sha256:ab"))
    assert (ended.result.status, ended.landed) == (status, landed)
    assert ended.result.error is not None
    assert ended.result.error.code == int(Code.PERMISSION_DENIED)
    assert "answered 403" in ended.result.error.message
    assert "changed" not in ended.result.error.message
