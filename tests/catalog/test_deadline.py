"""Bounds of single calls: the time of the run, answers that no second sending makes better, tokens nobody gives."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

import pytest
from servers.hostile import BEHAVIOURS, Hostile
from test_http import Server, client, cut, say, server

from reconciler.catalog import deadline, strict_json
from reconciler.catalog.http import Http
from reconciler.catalog.http_auth import ClientCredentials
from reconciler.catalog.http_transport import Timeouts
from reconciler.catalog.paging import LONGEST_NAME, MOST_IDLE, MOST_NAMES, Pages
from reconciler.model.errors import CatalogError, Code

__all__ = ["server"]


def wrapped(body: bytes, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", headers.get("length", str(len(body))))
        handler.end_headers()
        handler.wfile.write(body)

    return act


def test_no_call_starts_after_the_deadline(server: Server) -> None:
    server.script = [say(200, {})]
    with deadline.deadline(0.001):
        time.sleep(0.01)
        with pytest.raises(CatalogError, match=r"the --timeout of 0.001 s is over"):
            client(server).get("/x")
    assert server.seen == []
    assert client(server).get("/x").ok, "the next run has no deadline"


def test_a_failed_read_is_not_repeated_after_the_deadline(server: Server) -> None:
    server.script = [cut]
    with deadline.deadline(0.05), pytest.raises(CatalogError):
        client(server, sleep=lambda seconds: time.sleep(0.1)).get("/x")
    assert len(server.seen) == 1


def test_a_running_step_may_still_ask_once(server: Server) -> None:
    """What was sent has to be re-read."""
    server.script = [say(200, {"a": 1})]
    with deadline.deadline(0.001), deadline.writing():
        time.sleep(0.01)
        assert client(server).get("/x").body == {"a": 1}
        assert deadline.is_over()
        server.script = [say(503)]
        with pytest.raises(CatalogError):
            client(server).get("/x")
    assert len(server.seen) == 2


def test_whatever_is_late_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many do not answer; what has answered counts."""
    monkeypatch.setattr(deadline, "_SLACK", 0.3)
    monkeypatch.setattr(deadline, "_ABANDONED", [])
    over = threading.Event()
    began = time.monotonic()
    with deadline.deadline(0.2):
        found = deadline.answers(lambda n: n if n < 2 else over.wait(), range(20), 4, lambda n: -n, "test")
    took = time.monotonic() - began
    over.set()
    assert found == [0, 1, *(-n for n in range(2, 20))]
    assert took < 2
    assert deadline.abandoned()


def test_without_a_deadline_all_are_waited_for() -> None:
    assert deadline.answers(lambda n: time.sleep(0.3) or n, [1, 2], 2, pytest.fail, "test") == [1, 2]
    assert deadline.answers(str, [], 8, pytest.fail, "test") == []


@pytest.mark.parametrize("body", [b'{"a": 1, "a": 2}', b'{"a": NaN}', b'{"a": "\xff"}', b"[" * 100_000], ids=str)
def test_an_answer_that_will_be_no_better_is_asked_for_once(server: Server, body: bytes) -> None:
    server.script = [wrapped(body)]
    with pytest.raises(CatalogError) as caught:
        client(server).get("/x")
    assert (caught.value.code, len(server.seen)) == (Code.INTERNAL, 1)
    with pytest.raises(CatalogError) as caught:
        client(server).send("POST", "/x", {})
    assert caught.value.unknown_outcome, "the write may have landed all the same"


def test_what_follows_an_answer_is_not_the_next_answer(server: Server) -> None:
    forged = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n{"forged": true}'
    server.script = [wrapped(b"{}" + forged, length="2"), say(200, {"real": True})]
    http = client(server)
    assert http.get("/x").body == {}
    time.sleep(0.1)
    assert http.get("/x").body == {"real": True}


def test_a_connection_with_half_an_answer_is_not_used_again(server: Server) -> None:
    server.script = [wrapped(b'{"half":', length="100"), say(200, {"real": True})]
    assert client(server, timeouts=Timeouts(2, 0.3)).get("/x").body == {"real": True}
    assert len(server.connections) == 2


@pytest.mark.slow
def test_all_who_wait_for_a_token_share_its_failure() -> None:
    """Else sixteen threads would wait for it one after the other."""
    with Hostile("rest", BEHAVIOURS["silent"], everywhere=True) as tokens:
        auth = ClientCredentials(f"{tokens.address}/token", "me:x", timeouts=Timeouts(1, 1), max_retries=0)
        http = Http("http://127.0.0.1:9", timeouts=Timeouts(1, 1), max_retries=0, parallel=8, auth=auth)
        failed: list[CatalogError] = []

        def ask() -> None:
            try:
                http.get("/x")
            except CatalogError as error:
                failed.append(error)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [error.code for error in failed] == [Code.SERVICE_UNAVAILABLE] * 8
    assert len(tokens.requests) <= 2


def test_pages_end() -> None:
    pages = Pages("list")
    assert pages.new(["a", "a", "b"]) == ["a", "b"]
    assert pages.following("1") == "1"
    assert pages.new(["b", "c"]) == ["c"]
    assert pages.following("") is None
    for number in range(MOST_IDLE - 1):
        pages.new([])
        assert pages.following(f"p{number}") is not None, "a service may have many pages that the caller may not see"
    pages.new([])
    with pytest.raises(CatalogError, match="hold nothing new"):
        pages.following("last")


@pytest.mark.parametrize("text", ["{", '{"a": ', "", "nope", '{"a": 1} more'])
def test_what_may_be_cut_is_not_malformed(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        strict_json.loads(text.encode())


def test_a_pause_that_the_server_asks_for_ends_with_the_run(server: Server) -> None:
    server.script = [say(429, **{"retry-after": "60"})]
    paused: list[float] = []

    def sleep(seconds: float) -> None:
        paused.append(seconds)
        time.sleep(min(seconds, 0.5))

    with deadline.deadline(0.3), pytest.raises(CatalogError):
        client(server, sleep=sleep).send("POST", "/x", {})
    assert paused
    assert max(paused) <= 0.3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": "\\ud800"}', "half of a surrogate pair"),
        ('{"\\uDFFF": 1}', "half of a surrogate pair"),
        ('{"a": [' + "0," * strict_json.MOST_VALUES + "0]}", "more than 2000000 values"),
        ('{"a": {"b": {"c": 1, "c": 2}}}', "'c' twice"),
    ],
    ids=["value", "key", "values", "nested"],
)
def test_json_that_nobody_should_believe(text: str, why: str) -> None:
    with pytest.raises(strict_json.Malformed, match=why):
        strict_json.loads(text.encode())


def test_whole_pairs_are_characters() -> None:
    assert strict_json.loads(b'{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}


def test_names_end() -> None:
    with pytest.raises(CatalogError, match="a name of 4097 characters"):
        Pages("list").new(["x" * (LONGEST_NAME + 1)])
    with pytest.raises(CatalogError, match="more than 1000000 names"):
        Pages("list").new(str(number) for number in range(MOST_NAMES + 1))
