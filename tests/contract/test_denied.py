"""The right to use a service ends in the middle of a run: from some call on, every answer is 403. Nothing that was
there is taken for absent, nothing is deleted on half the facts, and the next run with the right goes on."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import pytest
from servers.proxy import Exchange, answer

from contract.lake import Doc, Lake, table
from contract.test_storm import Stormy, stormy  # noqa: F401

WHERE = [0.0, 0.25, 0.5, 0.75, 0.95]


def _before(lake: Lake) -> list[Doc]:
    return [*lake.home(), *(table(lake.t(n), {"id": "int64"}) for n in ("stays", "grows", "leaves"))]


def _after(lake: Lake) -> list[Doc]:
    grown = table(lake.t("grows"), {"id": "int64", "more": "string"})
    return [*lake.home(), table(lake.t("stays"), {"id": "int64"}), grown, table(lake.t("fresh"), {"id": "int64"})]


@pytest.fixture
def right(stormy: Stormy, monkeypatch: pytest.MonkeyPatch) -> Right:  # noqa: F811
    monkeypatch.setenv("RECONCILER_LEASE_TTL", "3")
    found = Right(stormy)
    stormy.proxy.fault(found.act, where=lambda request: True, times=None)
    return found


@dataclass
class Right:
    """`left`: so many calls may still be made."""

    stormy: Stormy
    left: float = math.inf

    async def act(self, exchange: Exchange) -> None:
        self.left -= 1
        await (exchange.give(await exchange.forward()) if self.left >= 0 else answer(403)(exchange))

    def calls(self, *arguments: str, docs: list[Doc]) -> int:
        """Of a run that may make them all."""
        before = len(self.stormy.proxy.requests())
        assert self.stormy.run(*arguments, docs=docs).code == 0
        return len(self.stormy.proxy.requests()) - before


@pytest.mark.slow
def test_a_plan_takes_nothing_for_absent(stormy: Stormy, right: Right) -> None:  # noqa: F811
    docs = _before(stormy.lake)
    assert stormy.run("apply", "m.yaml", "--yes", docs=docs).code == 0
    total = right.calls("plan", "m.yaml", "--prune", "--detailed-exitcode", docs=docs)
    out = stormy.lake.folder / "p.json"
    for share in WHERE:
        right.left = int(total * share)
        out.unlink(missing_ok=True)
        run = stormy.run("plan", "m.yaml", "--prune", "-o", "p.json", docs=docs)
        steps = json.loads(out.read_text())["steps"] if out.exists() else []
        assert [s for s in steps if s["verdict"] == "allowed"] == [], share
        assert run.code == 1 or steps, f"{share}: {run.out}"
        assert "403" in run.out + run.err, run.out + run.err


@pytest.mark.slow
@pytest.mark.parametrize("share", WHERE[::2])
def test_an_apply_ends_and_the_next_one_goes_on(stormy: Stormy, right: Right, share: float) -> None:  # noqa: F811
    """The lease could not be given back: the next run waits until it is over."""
    lake = stormy.lake
    prune = ("apply", "m.yaml", "--yes", "--prune", "--lock-timeout", "60")
    assert stormy.run(*prune, docs=_before(lake)).code == 0
    right.left = int(3 * right.calls("plan", "m.yaml", "--prune", docs=_after(lake)) * share)
    run = stormy.run(*prune, docs=_after(lake))
    assert run.code != 0, run.out
    assert "403" in run.out + run.err, run.out + run.err
    assert lake.t("stays") in lake.outsider.state().tables
    right.left = math.inf
    again = stormy.run(*prune, docs=_after(lake))
    assert again.code == 0, again.out + again.err
    assert set(lake.outsider.state().tables) == {lake.t(n) for n in ("stays", "grows", "fresh")}
    assert stormy.run("plan", "m.yaml", "--prune", "--detailed-exitcode", docs=_after(lake)).code == 0
