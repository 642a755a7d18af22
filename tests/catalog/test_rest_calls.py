"""How many calls a scan makes, how many at once, and what becomes of pages and objects that fail."""

from __future__ import annotations

import json
import threading

import pytest
from rest_support import PRUDENT, US, Rig, rig
from servers.proxy import answer, cut_answer, truncate

from reconciler.catalog.rest_inventory import key_of
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Gap, Occupied, Present, Unreadable

__all__ = ["rig"]

pytestmark = pytest.mark.slow


@pytest.fixture
def filled(rig: Rig) -> Rig:
    """Three namespaces, six tables without data."""
    for ident in [("a",), ("b",), ("b", "c")]:
        rig.namespace(*ident)
    for ident in [("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("b", "c", "1"), ("root",)]:
        rig.table(*ident, data=False)
    rig.proxy.forget()
    return rig


EVERYTHING = {
    ("Namespace", ("a",)), ("Namespace", ("b",)), ("Namespace", ("b", "c")), ("Table", ("a", "1")),
    ("Table", ("a", "2")), ("Table", ("a", "3")), ("Table", ("b", "1")), ("Table", ("b", "c", "1")),
    ("Table", ("root",)),
}  # fmt: skip


def test_a_scan_is_two_listings_a_namespace_and_one_read_an_object(filled: Rig) -> None:
    assert filled.scan().keys() == EVERYTHING
    counts = filled.proxy.counts
    assert set(counts.values()) == {1}
    listings = 2 * 4 + 2  # of three namespaces and the root, and of our inventory, which the root table made
    assert (filled.proxy.count("GET"), filled.proxy.count("POST", "/describe$")) == (listings, 9)
    assert filled.proxy.count() == listings + 9
    assert {json.loads(r.body)["load_detailed_metadata"] for r in filled.proxy.requests(path="/v1/table/")} == {False}
    assert "vend_credentials" not in str([r.body for r in filled.proxy.requests()])


def test_one_object_is_two_calls(filled: Rig) -> None:
    filled.find("Table", "a", "1")
    noted = f"GET /v1/namespace/__reconciler%24{key_of('Table', ('a', '1'))[0]}/list"
    assert filled.proxy.counts == {"POST /v1/table/a%241/describe": 1, noted: 1}


def test_connections_are_reused_and_never_more_than_allowed(filled: Rig) -> None:
    for number in range(30):
        filled.table("a", f"t{number}", data=False)
    filled.proxy.forget()
    filled.proxy.latency = 0.005
    filled.scan()
    filled.scan()
    limit = filled.catalog.capabilities.max_parallelism
    assert 1 < filled.proxy.most_in_flight <= limit
    assert filled.proxy.connections <= limit < filled.proxy.count()


def test_busy_servers_are_waited_for(filled: Rig) -> None:
    filled.proxy.fault(answer(429, retry_after=0.01), times=3)
    assert filled.scan().keys() == EVERYTHING
    assert sum(1 for r in filled.proxy.requests() if r.status == 429) == 3


def test_every_page_is_asked_for(filled: Rig) -> None:
    """The first page of the root and of `a` end early; the rest comes from the server, after the token."""
    first = lambda r: "page_token" not in r.path  # noqa: E731
    filled.proxy.fault(answer(200, '{"namespaces": ["a"], "page_token": "a"}'), path="%24/list", where=first)
    filled.proxy.fault(answer(200, '{"tables": ["1"], "page_token": "1"}'), path="/a/table/list", where=first)
    assert filled.scan().keys() == EVERYTHING
    assert [r.path for r in filled.proxy.requests(path="page_token=")] == [
        "/v1/namespace/%24/list?page_token=a",
        "/v1/namespace/a/table/list?page_token=1",
    ]


def test_an_empty_token_and_an_empty_page_mean_what_they_say(filled: Rig) -> None:
    filled.proxy.fault(answer(200, '{"tables": [], "page_token": "0"}'), path="/a/table/list")
    filled.proxy.fault(answer(200, '{"tables": ["1", "2", "3"], "page_token": ""}'), path="/a/table/list")
    assert filled.catalog.children(("a",)) == ["1", "2", "3"]


def test_a_namespace_that_cannot_be_asked_for_hides_its_tables(rig: Rig) -> None:
    """With another delimiter its name cannot be sent: it is there, and what is in it is not known."""
    rig.namespace("a.b")
    rig.table("a.b", "theirs", data=False)
    found = rig.scan(catalog=rig.open(delimiter="."))
    assert {("Namespace", ("a.b",)), ("Gap", ("a.b",))} <= found.keys()


@pytest.mark.parametrize("reply", [answer(400, '{"code": 13, "error": "no"}'), answer(400, "no"), answer(422)])
def test_a_table_that_is_refused_may_be_any_table(filled: Rig, reply: object) -> None:
    filled.proxy.fault(reply, path="/table/a%241/describe", times=None)  # type: ignore[arg-type]
    finding = filled.scan()["Table", ("a", "1")].finding
    assert isinstance(finding, Unreadable)
    assert not finding.foreign


@pytest.mark.parametrize("page", [answer(503, retry_after=0), answer(404), truncate, cut_answer])
def test_a_page_that_fails_is_a_gap_and_hides_nothing_else(filled: Rig, page: object) -> None:
    catalog = filled.open(**PRUDENT)
    filled.proxy.fault(answer(200, '{"tables": ["1"], "page_token": "1"}'), path="/a/table/list$")
    filled.proxy.fault(page, path=r"/a/table/list\?page_token")  # type: ignore[arg-type]
    found = filled.scan(catalog=catalog)
    assert found.keys() == EVERYTHING - {("Table", ("a", "2")), ("Table", ("a", "3"))} | {("Gap", ("a",))}


def test_tokens_in_a_circle_end(filled: Rig) -> None:
    filled.proxy.fault(answer(200, '{"tables": ["1"], "page_token": "x"}'), path="/a/table/list", times=None)
    gap = filled.scan()["Gap", ("a",)]
    assert isinstance(gap, Gap)
    assert "same page token" in gap.message
    with pytest.raises(CatalogError):
        filled.catalog.children(("a",))


@pytest.mark.parametrize("fault", [answer(500, '{"code": 18}'), answer(404), answer(403, '{"code": 15}')])
def test_an_object_that_fails_is_unreadable_and_hides_nothing_else(filled: Rig, fault: object) -> None:
    catalog = filled.open(**PRUDENT)
    filled.proxy.fault(fault, path="/v1/table/a%242/describe")  # type: ignore[arg-type]
    filled.proxy.fault(fault, path="/v1/namespace/b/describe")  # type: ignore[arg-type]
    found = filled.scan(catalog=catalog)
    assert found.keys() == EVERYTHING
    broken = {key for key, seen in found.items() if isinstance(seen.finding, Unreadable)}
    assert broken == {("Table", ("a", "2")), ("Namespace", ("b",))}


def test_what_is_listed_and_not_described_is_nothing_but_in_the_way(filled: Rig) -> None:
    filled.proxy.fault(answer(404, '{"code": 4, "error": "?"}'), path="/v1/table/a%242/describe")
    filled.proxy.fault(answer(404, '{"code": 1, "error": "?"}'), path="/v1/namespace/b%24c/describe")
    found = filled.scan()
    gone = {("Table", ("a", "2")), ("Namespace", ("b", "c"))}
    assert found.keys() == EVERYTHING - gone | {("Occupied", ("a", "2")), ("Occupied", ("b", "c"))}


def test_when_nothing_can_be_said_it_is_an_error(filled: Rig) -> None:
    filled.proxy.fault(answer(401, '{"code": 16, "error": "who are you?"}'), times=None)
    with pytest.raises(CatalogError, match="who are you") as caught:
        filled.scan()
    assert caught.value.code is Code.UNAUTHENTICATED


def test_an_inventory_that_cannot_be_listed_is_an_error_too(filled: Rig) -> None:
    """Without it every mark might be an old one."""
    filled.proxy.fault(answer(403, '{"code": 15}'), path="__reconciler/list", times=None)
    with pytest.raises(CatalogError):
        filled.scan()


def test_ignored_objects_are_not_asked_for_and_not_forgotten(filled: Rig) -> None:
    found = filled.scan(ignore=["b.**", "b", "a.2"])
    assert {k for k, seen in found.items() if isinstance(seen, Occupied)} == {
        ("Occupied", ("b",)),
        ("Occupied", ("a", "2")),
    }
    assert filled.proxy.count("GET", "/v1/namespace/b") == filled.proxy.count("POST", "a%242") == 0


def test_a_table_whose_versions_the_server_manages_is_refused(filled: Rig) -> None:
    said = json.dumps({"location": str(filled.root / "x"), "managed_versioning": True})
    filled.proxy.fault(answer(200, said), path="/v1/table/a%242/describe", times=None)
    finding = filled.scan()["Table", ("a", "2")].finding
    assert isinstance(finding, Unreadable)
    assert "managed_versioning" in finding.message
    assert isinstance(filled.find("Table", "a", "2"), Unreadable)


def test_names_that_cannot_be_addressed_are_there_all_the_same(filled: Rig) -> None:
    filled.proxy.fault(answer(200, '{"tables": ["x$y", "", "1"]}'), path="/a/table/list", times=None)
    found = filled.scan()
    assert isinstance(found["Table", ("a", "x$y")].finding, Unreadable)
    assert isinstance(found["Table", ("a", "")].finding, Unreadable)
    assert isinstance(found["Table", ("a", "1")].finding, Present)


def test_losers_of_a_race_are_told_to_try_again_or_that_it_is_there(rig: Rig) -> None:
    rig.namespace("n")
    codes: list[Code | None] = []

    def declare() -> None:
        try:
            rig.table("n", "t", data=False)
            codes.append(None)
        except CatalogError as error:
            codes.append(error.code)

    threads = [threading.Thread(target=declare) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes.count(None) == 1
    assert set(codes) <= {None, Code.TABLE_ALREADY_EXISTS, Code.CONCURRENT_MODIFICATION}
    assert rig.find("Table", "n", "t").state.marks == US  # type: ignore[union-attr]
