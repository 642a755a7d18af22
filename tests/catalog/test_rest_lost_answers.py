"""A whole life of a catalog, and of every single write the first answer is lost: the end is the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contract.backends import Backend, Site, service_site
from contract.lake import US, Doc, Lake, namespace, steps, table
from contract.outsider_rest import RestOutsider
from contract.sample import FOREIGN
from servers.proxy import (
    Exchange,
    Fault,
    Proxy,
    Request,
    answer,
    cut_answer,
    cut_before,
    reset_after,
    truncate,
)
from servers.rest_adapter import RestServers

WRITES = "/(create|drop|declare|register|deregister)$"
COLUMNS = {"id": "int64"}


@pytest.fixture
def proxied(rest_adapter: RestServers, tmp_path: Path) -> Iterator[tuple[Lake, Proxy]]:
    """We go through the proxy, the outsider does not."""
    endpoint = rest_adapter.serve(tmp_path / "lake")
    with Proxy(endpoint) as proxy:
        options: dict[str, Any] = {"type": "rest", "uri": proxy.endpoint}
        outsider = RestOutsider(tmp_path / "lake", endpoint)

        def copy() -> Site:
            raise AssertionError("not needed here")

        def make(folder: Path, fixture: object) -> Site:
            return service_site(options, outsider, copy)

        backend = Backend("rest", make)
        yield Lake(backend, make(tmp_path, None), tmp_path), proxy
    rest_adapter.stop(endpoint)


def first_of_each() -> Any:
    seen: set[str] = set()

    def where(request: Request) -> bool:
        new = request.path not in seen
        seen.add(request.path)
        return new

    return where


def run(lake: Lake, docs: list[Doc]) -> None:
    """Once to the end, and then there is nothing left to do."""
    report = lake.apply(lake.plan(docs, adopt=True))
    assert report.outcome == "applied", report.message
    assert {s.status for s in report.steps} <= {"done", "skipped"}
    assert steps(lake.plan(docs)) == []


def whole_life(lake: Lake) -> None:
    """Every write that we ever send: our own table, one that is adopted, protection, away, back, and all away."""
    inner = ("n", "inner")
    docs = [namespace(("n",)), namespace(inner), table(("n", "t"), COLUMNS, properties={"a": "b"})]
    run(lake, docs)
    lake.outsider.create_table(("n", "theirs"), FOREIGN)
    run(lake, [*docs, table(("n", "theirs"), COLUMNS)])
    run(lake, [*docs, table(("n", "theirs"), COLUMNS, protect=True)])
    assert lake.outsider.state().tables[("n", "theirs")].owner == US
    run(lake, [namespace(("n",)), namespace(inner, state="absent"), table(("n", "t"), state="absent")])
    assert lake.outsider.state().namespaces.keys() == {("n",)}
    assert lake.outsider.state().tables.keys() == {("n", "theirs")}
    run(lake, [namespace(("n",)), table(("n", "t"), COLUMNS, properties={"a": "b"})])
    view = lake.outsider.state().tables[("n", "t")]
    assert (view.owner, view.properties) == (US, {"a": "b"})


FAULTS: list[tuple[str, Fault]] = [("cut", cut_answer)]
MORE: list[tuple[str, Fault]] = [
    ("reset", reset_after),
    ("500 though done", answer(500, '{"code": 18, "error": "boom"}', forward=True)),
    ("truncated", truncate),
    ("503 though done", answer(503, forward=True)),
    ("never sent", cut_before),
    ("500", answer(500)),
    ("503", answer(503, '{"code": 17}', retry_after=0)),
    ("429", answer(429, '{"code": 21}', retry_after=0)),
    ("conflict", answer(409, '{"code": 14, "error": "again"}')),
]


@pytest.mark.parametrize(
    "fault",
    [pytest.param(f, id=name) for name, f in FAULTS]
    + [pytest.param(f, id=name, marks=pytest.mark.slow) for name, f in MORE],
)
def test_every_first_answer_to_a_write_is_lost(proxied: tuple[Lake, Proxy], fault: Fault) -> None:
    lake, proxy = proxied
    rule = proxy.fault(fault, method="POST", path=WRITES, where=first_of_each(), times=None)
    whole_life(lake)
    assert rule.used >= 10
    assert proxy.count("POST", "/declare$") <= 2  # one table, and once more where the first never arrived
    actions = {r.path.rsplit("/", 1)[1] for r in proxy.requests("POST", WRITES)}
    assert actions == {"create", "drop", "declare", "register", "deregister"}


@pytest.mark.slow
def test_nothing_is_sent_twice_nothing_cascades_nothing_overwrites(proxied: tuple[Lake, Proxy]) -> None:
    lake, proxy = proxied
    whole_life(lake)
    accepted = [r.path for r in proxy.requests("POST", WRITES) if r.status == 200]
    assert {p for p in accepted if accepted.count(p) > 1} == set()
    for request in proxy.requests("POST", WRITES):
        body = json.loads(request.body)
        assert "mode" not in body
        assert request.path.endswith("/drop") == ("behavior" in body)
        assert body.get("behavior", "Restrict") == "Restrict"


@pytest.mark.slow
def test_a_write_that_stays_unknown_is_said_so(proxied: tuple[Lake, Proxy]) -> None:
    lake, proxy = proxied
    plan = lake.plan([namespace(("n",))])

    async def done_and_down(exchange: Exchange) -> None:
        await exchange.forward()
        proxy.fault(answer(503, retry_after=0), times=None)
        exchange.cut()

    proxy.fault(done_and_down, method="POST", path="/create$")
    report = lake.apply(plan)
    assert [s.status for s in report.steps] == ["unknown"]
    assert lake.outsider.state().namespaces.keys() == {("n",)}


def test_a_name_taken_by_others_in_between_is_not_touched(proxied: tuple[Lake, Proxy]) -> None:
    """The plan saw nothing there; before our declare arrives, somebody else's is there."""
    from servers.proxy import before

    lake, proxy = proxied
    lake.reach([namespace(("n",))])
    plan = lake.plan([namespace(("n",)), table(("n", "t"), COLUMNS)])
    proxy.fault(before(lambda: lake.outsider.create_table(("n", "t"), FOREIGN)), path="/declare$")
    report = lake.apply(plan)
    assert report.outcome != "applied"
    view = lake.outsider.state().tables[("n", "t")]
    assert (view.owner, view.notes) == (None, {})
