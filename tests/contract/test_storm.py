"""Retries on every catalog service, counted by a proxy: a call is sent `max_retries` + 1 times at most, a step of
several calls gives each its own budget, and a run through which half of the writes fail ends well."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from servers.proxy import (
    Exchange,
    Fault,
    Proxy,
    Request,
    answer,
    cut_answer,
    cut_before,
    reset_after,
    reset_before,
)

from contract.backends import BACKENDS, Backend
from contract.lake import Doc, Lake, _document, table
from contract.outsider_rest import RestOutsider

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from cli_runs import Run, reconciler

SERVICES = [b for b in BACKENDS if b.name in ("rest", "iceberg", "unity", "glue")]
REST_WRITES = ("/create", "/drop", "/declare", "/register", "/deregister")
RETRIES = 8
STORM: Sequence[Fault] = (
    answer(503),
    answer(500, forward=True),
    answer(429),
    reset_before,
    reset_after,
    cut_before,
    cut_answer,
)


def is_write(request: Request) -> bool:
    if request.operation is not None:
        return request.operation.startswith(("Create", "Update", "Delete"))
    path = request.path.partition("?")[0]
    if path.startswith("/v1/") and "/" + path.rpartition("/")[2] in (*REST_WRITES, "/describe", "/list"):
        return path.endswith(REST_WRITES)
    return request.method != "GET" and request.method != "HEAD"


def _name(request: Request) -> str:
    """The call, without what differs from run to run."""
    body = json.loads(request.body or b"{}")
    named = [body.get(k) for k in ("name", "namespace", "Name")]
    named += [body.get(k, {}).get("Name") for k in ("TableInput", "DatabaseInput")]
    return f"{request.operation or request.method} {request.path} {named}"


@dataclass
class Stormy:
    """A catalog, and the command line with a proxy between the two."""

    lake: Lake
    proxy: Proxy

    def run(self, *arguments: str, docs: Sequence[Doc] = (), **spec: object) -> Run:
        key = "uri" if "uri" in self.lake.site.options else "endpoint"
        options = {**self.lake.site.options, key: self.proxy.endpoint, **spec, "management": {"owner": "team-a"}}
        documents = [_document("Catalog", {"name": "lake"}, options), *docs]
        (self.lake.folder / "m.yaml").write_text(yaml.safe_dump_all(documents))
        return reconciler(self.lake.folder, *arguments)

    def storm(self, seed: int) -> None:
        """Half of the writes are refused or cut, before or after they landed: the same ones for each seed, whichever
        thread is first, and none more than RETRIES times in a row."""
        sent: Counter[str] = Counter()
        row: Counter[str] = Counter()

        async def act(exchange: Exchange) -> None:
            name = _name(exchange.request)
            sent[name] += 1
            chance = random.Random(f"{seed} {name} {sent[name]}")
            if chance.random() < 0.5 and row[name] < RETRIES:
                row[name] += 1
                await chance.choice(STORM)(exchange)
            else:
                row[name] = 0
                await exchange.give(await exchange.forward())

        self.proxy.fault(act, where=is_write, times=None)

    def calls(self) -> Counter[tuple[str, str, bytes]]:
        """How often each write was sent."""
        writes = [r for r in self.proxy.requests() if is_write(r)]
        return Counter((r.operation or r.method, r.path, r.body) for r in writes)

    def failed(self) -> float:
        writes = [r for r in self.proxy.requests() if is_write(r)]
        return sum(r.status is None or r.status >= 429 for r in writes) / max(1, len(writes))


@pytest.fixture(params=[pytest.param(b, id=b.name) for b in SERVICES])
def stormy(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stormy]:
    """Nobody waits here: how long the pauses are is not what is tested."""
    monkeypatch.setattr("random.uniform", lambda least, most: 0.0)
    monkeypatch.setattr("reconciler.engine.retry.BASE", 0.0)
    monkeypatch.setattr("reconciler.catalog.unity_store._FIRST", 0.0, raising=False)
    monkeypatch.setattr("reconciler.catalog.pace._PAUSE", 0.0)
    backend: Backend = request.param
    lake = Lake(backend, backend.make(tmp_path, request.getfixturevalue), tmp_path)
    key = "uri" if "uri" in lake.site.options else "endpoint"
    with Proxy(lake.site.options[key]) as proxy:
        yield Stormy(lake, proxy)


def _documents(lake: Lake) -> list[Doc]:
    columns = {"id": "int64"}
    names = [table(lake.t(name), columns, **lake.with_properties(a="1")) for name in ("one", "two", "three")]
    return [*lake.home(), *names, table(lake.t("found"), columns)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_half_of_the_writes_fail_and_apply_and_prune_succeed(stormy: Stormy, seed: int) -> None:
    import pyarrow as pa

    lake = stormy.lake
    lake.outsider.create_namespace(lake.at)
    lake.outsider.create_table(lake.t("found"), pa.schema([pa.field("id", pa.int64())]))
    docs = _documents(lake)
    stormy.storm(seed)
    made = stormy.run("apply", "m.yaml", "--yes", "--adopt", docs=docs, max_retries=RETRIES)
    assert made.code == 0, made.out + made.err
    assert set(lake.outsider.state().tables) == {lake.t(n) for n in ("one", "two", "three", "found")}
    gone = stormy.run(
        "apply", "m.yaml", "--yes", "--prune", "--allow", "drop_namespace", docs=docs[:1], max_retries=RETRIES
    )
    assert gone.code == 0, gone.out + gone.err
    assert lake.outsider.state().tables == {}
    assert stormy.failed() > 0.1, "there was no storm"
    of_objects = {call: sent for call, sent in stormy.calls().items() if b"__reconciler" not in call[2]}
    assert max(of_objects.values()) <= RETRIES + 1
    if isinstance(lake.outsider, RestOutsider):
        left = {key: r for key, r in lake.outsider._records().items() if key[0] == "Table"}
        assert {r.get("reconciler.owner") for r in left.values()} == {None}, "a record still names an owner"


@pytest.mark.slow
@pytest.mark.parametrize("retries", [0, 3])
@pytest.mark.parametrize("fault", [answer(503), answer(429), reset_before], ids=["503", "429", "reset"])
def test_a_write_that_always_fails_is_sent_once_more_than_max_retries(
    stormy: Stormy, fault: Fault, retries: int
) -> None:
    lake = stormy.lake
    docs = [*lake.home(), table(lake.t("one"), {"id": "int64"})]
    stormy.proxy.fault(fault, where=lambda r: is_write(r) and b"one" in r.body + r.path.encode(), times=None)
    run = stormy.run("apply", "m.yaml", "--yes", "--format", "json", docs=docs, max_retries=retries)
    assert run.code == 5
    table_writes = [count for call, count in stormy.calls().items() if b"one" in call[2] + call[1].encode()]
    assert table_writes == [retries + 1]
    assert lake.outsider.state().tables == {}


@pytest.mark.slow
def test_a_lease_that_cannot_be_written_is_asked_for_once_more_than_max_retries(stormy: Stormy) -> None:
    """Unity keeps its lease in the storage."""
    stormy.proxy.fault(answer(503), where=is_write, times=None)
    run = stormy.run("apply", "m.yaml", "--yes", docs=stormy.lake.home(), max_retries=2)
    assert run.code == 1, run.err
    assert set(stormy.calls().values()) == {3}


@pytest.mark.slow
def test_what_holds_our_records_is_made_once_and_before_them(stormy: Stormy) -> None:
    """A call that cannot succeed, or that has succeeded, would spend sendings for nothing in a storm."""
    lake = stormy.lake
    docs = [*lake.home(), *(table(lake.t(name), {"id": "int64"}) for name in ("one", "two"))]
    own = [r"__reconciler%24lease/create$", r"__reconciler%24[0-9a-f]/create$"]
    for path in own:
        stormy.proxy.fault(reset_after, path=path, times=2)
        stormy.proxy.fault(reset_before, path=path, times=2)
    made = stormy.run("apply", "m.yaml", "--yes", docs=docs, max_retries=3)
    assert made.code == 0, made.out + made.err
    gone = stormy.run("apply", "m.yaml", "--yes", "--prune", docs=docs[:1], max_retries=3)
    assert gone.code == 0, gone.out + gone.err
    creates = [r for r in stormy.proxy.requests() if is_write(r) and b"__reconciler" in r.body]
    assert [r.path for r in creates if r.status in (400, 404)] == []
    assert sum(r.path == "/v1/namespace/__reconciler/create" for r in creates) <= 1
    assert sum(r.operation == "CreateDatabase" for r in creates) <= 1


def reads_it(request: Request) -> bool:
    """Table `one` by itself."""
    if request.operation == "GetTable":
        return json.loads(request.body).get("Name") == "one"
    path = request.path.partition("?")[0].removesuffix("/describe")
    return not is_write(request) and "/table" in path and path.endswith(("/one", ".one", "%24one"))


@pytest.mark.slow
@pytest.mark.parametrize("others", [0, 3])
@pytest.mark.parametrize("fault", [answer(503), reset_before], ids=["503", "reset"])
def test_a_read_that_always_fails_is_sent_once_more_than_max_retries(stormy: Stormy, fault: Fault, others: int) -> None:
    """Also where other objects are read at the same time."""
    lake = stormy.lake
    names = ["one", *(f"more{n}" for n in range(others))]
    docs = [*lake.home(), *(table(lake.t(name), {"id": "int64"}) for name in names)]
    stormy.proxy.fault(fault, where=reads_it, times=None)
    run = stormy.run("apply", "m.yaml", "--yes", "--format", "json", docs=docs, max_retries=3)
    assert (run.code, run.json["outcome"]) == (1, "failed")
    assert sum(reads_it(r) for r in stormy.proxy.requests()) == 4
    assert lake.outsider.state().tables == {}


@pytest.mark.slow
@pytest.mark.parametrize("status", [403, 400, 500, 503])
@pytest.mark.parametrize("verb", [["plan"], ["plan", "--prune"], ["apply", "--yes"]], ids=" ".join)
def test_a_root_that_cannot_be_listed_fails_the_run(stormy: Stormy, status: int, verb: list[str]) -> None:
    """One rule for all: below it, a namespace that cannot be listed is a gap."""

    def lists_the_root(request: Request) -> bool:
        path = request.path.partition("?")[0]
        roots = ("/v1/namespace/%24/list", "/v1/namespaces", "/unity-catalog/schemas")
        return request.operation == "GetDatabases" or (path.endswith(roots) and "parent=" not in request.path)

    lake = stormy.lake
    stormy.proxy.fault(answer(status), where=lists_the_root, times=None)
    if lake.backend.name == "rest":  # Its root has two lists.
        stormy.proxy.fault(answer(status), path="/v1/namespace/%24/table/list", times=None)
    run = stormy.run(*verb[:1], "m.yaml", *verb[1:], docs=lake.home(), max_retries=0)
    assert run.code == 1, run.out
    assert "catalog lake cannot be read" in run.err
    assert not any(is_write(r) for r in stormy.proxy.requests())


@pytest.mark.slow
def test_a_read_that_fails_in_the_middle_of_a_step_is_not_asked_for_again(stormy: Stormy) -> None:
    """A step reads its object before the write, while it writes and after it; whichever of these reads fails first, the
    step does not begin anew with the next."""
    lake = stormy.lake
    docs = [*lake.home(), table(lake.t("one"), {"id": "int64"}), table(lake.t("two"), {"id": "int64"})]
    for reads in (1, 2, 3):
        stormy.proxy.forget()
        stormy.proxy.fault(answer(503), where=reads_it, skip=reads, times=None)
        run = stormy.run("apply", "m.yaml", "--yes", "--format", "json", docs=docs, max_retries=2)
        assert sum(reads_it(r) and r.status == 503 for r in stormy.proxy.requests()) == 3, (reads, run.out)
        wrong = [(s["object"]["id"][-1], s["error"]["code"]) for s in run.json["steps"] if s["error"]]
        assert wrong == [("one", 17)], reads
    stormy.proxy.forget()
    assert stormy.run("apply", "m.yaml", "--yes", docs=docs).code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "parallelism", "errors"), [(reset_before, 1, 1), (reset_before, 4, 4), (answer(503), 1, 2)]
)
def test_a_service_that_dies_is_noticed_once(
    stormy: Stormy, fault: Fault, parallelism: int, errors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing more is asked of it for the other steps. Of those under way the ones that may have written are unknown.
    Where a gateway answers for it, it takes a second call to tell that from one damaged object."""
    monkeypatch.setenv("RECONCILER_LEASE_TTL", "3")
    lake = stormy.lake
    names = [f"t{n:02d}" for n in range(12)]
    docs = [*lake.home(), *(table(lake.t(name), {"id": "int64"}) for name in names)]
    dead: list[Request] = []

    def died(request: Request) -> bool:
        if dead or (is_write(request) and b"t04" in request.body + request.path.encode()):
            dead.append(request)
        return bool(dead)

    stormy.proxy.fault(fault, where=died, times=None)
    run = stormy.run(
        "apply", "m.yaml", "--yes", "--format", "json", "--parallelism", str(parallelism), docs=docs, max_retries=1
    )
    assert run.code == 5, run.err
    status = Counter(s["status"] for s in run.json["steps"])
    assert status["failed"] <= 1, run.json["message"]
    assert 1 <= status["failed"] + status["unknown"] <= errors, run.json["message"]
    assert status["not_run"] >= 8, status
    assert f"catalog lake does not answer any more: {status['not_run']} steps were not run" in run.json["message"]
    stormy.proxy.forget()
    again = stormy.run("apply", "m.yaml", "--yes", "--lock-timeout", "90", docs=docs)
    assert again.code == 0, again.err
    assert set(lake.outsider.state().tables) == {lake.t(name) for name in names}
