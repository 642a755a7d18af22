"""Property changes of several tables in one call: fewer calls, and never one table's trouble for another."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from iceberg_rig import Rig, iceberg_rest, rig
from iceberg_support import UUID, Call, Scripted, apply, error, loaded, open_catalog, scripted
from servers.proxy import Exchange, Fault, answer, before, cut_answer, edited, reset_after

from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.catalog.iceberg_group import Commit, GroupCommit
from reconciler.catalog.iceberg_store import IcebergStore
from reconciler.catalog.iceberg_wire import COMMIT, TRANSACTION
from reconciler.model.change import CreateNamespace, DeclareTable, UpdateTable
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident
from reconciler.model.state import Marks

__all__ = ["iceberg_rest", "rig", "scripted"]
OURS = Marks("team-a")
TABLES = [("wh", "n", f"t{i}") for i in range(6)]
SINGLE, GROUP = r"/tables/t\d$", "/transactions/commit$"


def waits(group: GroupCommit, count: int) -> Callable[[], None]:
    """Holds a commit until so many others wait for it. Never for ever: a test that fails must end."""

    def hold() -> None:
        until = time.monotonic() + 20
        while group.waiting < count and time.monotonic() < until:
            time.sleep(0.005)

    return hold


def group_of(catalog: EntryCatalog) -> GroupCommit:
    store = catalog.store
    assert isinstance(store, IcebergStore)
    return store.group(store._client.warehouse("wh"))


def update_all(catalog: EntryCatalog, tables: Sequence[Ident] = TABLES) -> dict[Ident, CatalogError | None]:
    """All at once; the outcome of each."""

    def one(ident: Ident) -> CatalogError | None:
        try:
            apply(catalog, UpdateTable(ident, {"k": "2"}, (), OURS))
        except CatalogError as failed:
            return failed
        return None

    with ThreadPoolExecutor(len(tables)) as pool:
        return dict(zip(tables, pool.map(one, tables), strict=True))


def filled(rig: Rig) -> None:
    """The tables are there, and the next commit waits until all others are behind it: one alone, then a group."""
    apply(rig.catalog, CreateNamespace(("wh", "n"), {}, OURS))
    for ident in TABLES:
        apply(rig.catalog, DeclareTable(ident, {"k": "1"}, OURS))
    rig.proxy.forget()
    hold = waits(group_of(rig.catalog), len(TABLES) - 1)
    rig.proxy.fault(before(hold), method="POST", path=SINGLE)


def values(rig: Rig) -> list[str]:
    entries = rig.outsider.entries()
    return [entries[ident].properties["k"] for ident in TABLES]


@pytest.mark.slow
def test_changes_that_come_together_are_sent_together(rig: Rig) -> None:
    filled(rig)
    assert set(update_all(rig.catalog).values()) == {None}
    assert (rig.proxy.count("POST", SINGLE), rig.proxy.count("POST", GROUP)) == (1, 1)
    assert values(rig) == ["2"] * 6
    body = rig.proxy.requests("POST", GROUP)[0].body.decode()
    assert body.count("assert-table-uuid") == 5


@pytest.mark.slow
def test_a_server_that_does_not_announce_it_gets_one_commit_each(rig: Rig) -> None:
    filled(rig)
    rig.proxy.forget()
    without = edited(lambda c: {**c, "endpoints": [e for e in c["endpoints"] if e != TRANSACTION]})
    rig.proxy.fault(without, method="GET", path="/v1/config")
    assert set(update_all(rig.open()).values()) == {None}
    assert (rig.proxy.count("POST", SINGLE), rig.proxy.count("POST", GROUP)) == (6, 0)
    assert values(rig) == ["2"] * 6


@pytest.mark.slow
def test_one_bad_member_fails_nobody_else(rig: Rig) -> None:
    """Replaced by somebody else right before: the server refuses the group for it."""
    filled(rig)
    bad: list[Ident] = []

    async def replaced(exchange: Exchange) -> None:
        bad.append(next(t for t in TABLES if f'"name":"{t[2]}"' in exchange.request.body.decode().replace(" ", "")))

        def replace() -> None:
            rig.outsider.drop(bad[0])
            rig.outsider.put_table(bad[0], f"{rig.folder}/theirs", {"k": "theirs"})

        await asyncio.to_thread(replace)
        await exchange.give(await exchange.forward())

    rig.proxy.fault(replaced, method="POST", path=GROUP)
    ended = update_all(rig.catalog)
    failed = {ident: e.code for ident, e in ended.items() if e is not None}
    assert failed == {bad[0]: Code.CONCURRENT_MODIFICATION}
    assert sorted(values(rig)) == ["2"] * 5 + ["theirs"]
    assert rig.proxy.count("POST", GROUP) == 1


@pytest.mark.slow
def test_a_group_that_was_carried_out_by_half_is_finished_one_by_one(rig: Rig) -> None:
    """And what has landed is not sent again."""
    filled(rig)
    landed: list[Ident] = []

    async def half(exchange: Exchange) -> None:
        text = exchange.request.body.decode().replace(" ", "")
        landed.extend([t for t in TABLES if f'"name":"{t[2]}"' in text][:2])
        for ident in landed:
            await asyncio.to_thread(rig.outsider.set_properties, "Table", ident, {"k": "2"})
        await answer(409, '{"error": {"message": "x", "type": "CommitFailedException", "code": 409}}')(exchange)

    rig.proxy.fault(half, method="POST", path=GROUP)
    assert set(update_all(rig.catalog).values()) == {None}
    assert values(rig) == ["2"] * 6
    assert rig.proxy.count("POST", SINGLE) == 1 + 3
    assert not any(rig.proxy.count("POST", f"/tables/{ident[2]}$") for ident in landed)


FAULTS: dict[str, tuple[Fault, bool]] = {
    "cut": (cut_answer, True),
    "reset": (reset_after, True),
    "500, done": (answer(500, forward=True), True),
    "500": (answer(500), True),
    "429": (answer(429), False),
    "401": (answer(401), False),
    "409": (answer(409), False),
    "400": (answer(400), False),
    "501": (answer(501), False),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_an_unknown_outcome_is_unknown_for_each_and_a_run_ends_well(rig: Rig, fault: str) -> None:
    act, unknown = FAULTS[fault]
    filled(rig)
    rig.proxy.fault(act, method="POST", path=GROUP, times=None)
    ended = [e for e in update_all(rig.catalog).values() if e is not None]
    assert [e.unknown_outcome for e in ended] == ([True] * 5 if unknown else [False] * 5 if fault == "429" else [])
    again = update_all(rig.catalog)  # what a run does after it has read each of them again
    assert set(again.values()) == {None}
    assert values(rig) == ["2"] * 6
    sendings = 4 if fault == "429" else 1  # A refusal for now is sent again by the call itself.
    assert rig.proxy.count("POST", GROUP) == sendings, "a group that failed is not tried again"


@pytest.mark.slow
def test_a_run_with_many_changes_makes_fewer_commits_than_tables(rig: Rig) -> None:
    assert rig.run(rig.manifests(tables=12, k="1")).outcome == "applied"
    rig.proxy.forget()
    rig.proxy.fault(before(waits(group_of(rig.catalog), 3)), method="POST", path=r"/tables/t\d+$")
    rig.proxy.fault(cut_answer, method="POST", path=GROUP)
    assert rig.run(rig.manifests(tables=12, k="2")).outcome == "applied"
    assert rig.proxy.count("POST", GROUP) >= 1
    assert rig.proxy.count("POST", r"/tables/t\d+$") + rig.proxy.count("POST", GROUP) < 12
    assert {e.properties["k"] for e in rig.outsider.entries().values()} == {"2"}
    assert rig.run(rig.manifests(tables=12, k="2")).outcome == "no_changes"


# without a server


def test_two_changes_of_one_table_are_never_in_one_call() -> None:
    """Servers lose one of them, or refuse both."""
    sent: list[list[Any]] = []
    group = GroupCommit(lambda ident, commit: one(commit), lambda commits: sent.append([c["n"] for c in commits]))

    def one(commit: Commit) -> None:
        if not sent:
            waits(group, 4)()
        sent.append([commit["n"]])

    first = threading.Thread(target=group.commit, args=(("first",), {"n": "first"}))
    first.start()
    others = [threading.Thread(target=group.commit, args=((i,), {"n": f"{i}{n}"})) for i in "ab" for n in (1, 2)]
    for number, thread in enumerate(others, 1):
        thread.start()
        waits(group, number)()
    for thread in (first, *others):
        thread.join()
    assert sent == [["first"], ["a1", "b1"], ["a2", "b2"]]


def test_a_group_has_an_idempotency_key_of_its_own(scripted: Scripted) -> None:
    tables = [("wh", "n", name) for name in "abc"]
    scripted.config(endpoints=[COMMIT, TRANSACTION], **{"idempotency-key-lifetime": "PT30M"})
    scripted.on("GET /v1/namespaces/n/tables/.", (200, loaded(properties={"k": "1", "reconciler.owner": "team-a"})))
    catalog = open_catalog(scripted.endpoint)
    hold = waits(group_of(catalog), 2)

    def commit(call: Call) -> tuple[int, object]:
        if not scripted.requests("transactions"):
            hold()
        return 200, loaded()

    scripted.on("POST /v1/namespaces/n/tables/.", commit)
    scripted.on("POST /v1/transactions/commit", (409, error(409, "CommitFailedException")))
    assert set(update_all(catalog, tables).values()) == {None}
    (group,) = scripted.requests("transactions")
    required = [{"type": "assert-table-uuid", "uuid": UUID}]
    assert [c["requirements"] for c in group.body["table-changes"]] == [required] * 2
    keys = [c.headers["idempotency-key"] for c in scripted.requests("POST")]
    assert len(keys) == len(set(keys)) == 4


def test_what_is_known_of_an_error_is_known_of_it_in_a_group() -> None:
    """Each caller gets an error of its own; that earlier writes of the step have landed must not be lost with it."""
    said = CatalogError(
        Code.SERVICE_UNAVAILABLE, "why", unknown_outcome=True, landed=True, retry_after=2.0, gave_up=True
    )

    def refuse(*_: object) -> None:
        raise said

    with pytest.raises(CatalogError) as told:
        GroupCommit(refuse, refuse).commit(("wh", "n", "t"), {})
    assert told.value is not said
    assert vars(told.value) == vars(said)
