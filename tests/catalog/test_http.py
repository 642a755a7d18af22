"""The shared HTTP client against a real socket whose answers are scripted."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import Any

import pytest

from reconciler.catalog.fence import fenced
from reconciler.catalog.http import Http
from reconciler.catalog.http_auth import ClientCredentials, bearer
from reconciler.catalog.http_transport import Timeouts, Transport
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Scope


class Server:
    """Each request takes the next answer of the script; the last one stays."""

    def __init__(self) -> None:
        self.script: list[Callable[[BaseHTTPRequestHandler], None]] = []
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.most = 0
        self.connections: set[object] = set()
        self._now = 0
        lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or each answer waits 40 ms for an acknowledgement

            def log_message(self, *args: object) -> None:
                pass

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                with lock:
                    outer.connections.add(self.client_address)
                    outer.seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                    outer._now += 1
                    outer.most = max(outer.most, outer._now)
                    act = outer.script.pop(0) if len(outer.script) > 1 else outer.script[0]
                try:
                    act(self)
                finally:
                    with lock:
                        outer._now -= 1

            do_GET = do_POST = do_DELETE = do_HEAD = answer

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign] # A client that gave up is no news.
        self.base = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


def say(status: int, body: object = None, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def act(handler: BaseHTTPRequestHandler) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(data)))
        for key, value in headers.items():
            handler.send_header(key.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return act


def written(text: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """A 200 whose body is no JSON."""

    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/html; charset=utf-8")
        handler.send_header("content-length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text.encode())

    return act


def cut(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def truncated(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", "5")
    handler.end_headers()
    handler.wfile.write(b'{"a":')


def slow(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(1.0)
    say(200, {})(handler)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.server.shutdown()
    made.server.server_close()


def client(server: Server, **options: object) -> Http:
    settings = {"timeouts": Timeouts(2, 2), "max_retries": 3, "parallel": 4, "sleep": lambda s: None, **options}
    return Http(server.base, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fault", [say(408), say(425), say(429), say(500), say(503, {"message": "later"}), say(529), cut, truncated]
)
def test_a_read_is_repeated_until_it_is_answered(server: Server, fault: Callable[..., None]) -> None:
    server.script = [fault, fault, say(200, {"a": 1})]
    assert client(server).get("/x").body == {"a": 1}
    assert len(server.seen) == 3


def test_a_read_gives_up_after_max_retries(server: Server) -> None:
    server.script = [say(503, {"message": "closed for lunch"})]
    with pytest.raises(CatalogError, match="closed for lunch") as caught:
        client(server, max_retries=2).get("/x")
    assert caught.value.code is Code.SERVICE_UNAVAILABLE
    assert len(server.seen) == 3


@pytest.mark.parametrize("fault", [say(408), say(500), say(503), say(504), say(529), cut, truncated, slow])
def test_a_write_is_sent_once_and_its_outcome_is_unknown(server: Server, fault: Callable[..., None]) -> None:
    server.script = [fault]
    with pytest.raises(CatalogError) as caught:
        client(server, timeouts=Timeouts(2, 0.3)).send("POST", "/x", {"a": 1})
    assert caught.value.unknown_outcome
    assert len(server.seen) == 1


def test_a_login_page_is_no_answer_to_a_write(server: Server) -> None:
    server.script = [written("\n<!doctype html><title>Sign in</title>")]
    with pytest.raises(CatalogError, match="not an answer of the service") as caught:
        client(server).send("POST", "/x", {})
    assert (caught.value.code, caught.value.unknown_outcome) == (Code.SERVICE_UNAVAILABLE, True)
    assert len(server.seen) == 1


@pytest.mark.parametrize("text", ["", "200 OK"])
def test_a_write_may_be_answered_in_words(server: Server, text: str) -> None:
    server.script = [written(text)]
    assert client(server).send("DELETE", "/x").ok


def test_a_refused_write_is_an_answer(server: Server) -> None:
    server.script = [say(409, {"message": "taken"})]
    reply = client(server).send("POST", "/x", {})
    assert (reply.status, reply.body) == (409, {"message": "taken"})


def test_a_throttled_write_is_not_unknown(server: Server) -> None:
    """It was not carried out, so it is sent again, as often as a read."""
    server.script = [say(429, None, Retry_After="7")]
    with pytest.raises(CatalogError) as caught:
        client(server).send("POST", "/x", {})
    error = caught.value
    assert (error.code, error.unknown_outcome, error.retry_after) == (Code.THROTTLING, False, 7.0)
    assert (error.spent, len(server.seen)) == (True, 4)
    server.script = [say(429), say(429), say(200, {})]
    assert client(server).send("POST", "/x", {}).ok


def test_a_write_is_not_sent_again_once_the_turn_is_lost(server: Server) -> None:
    """The server asked to wait, and meanwhile another run got the lease."""
    server.script = [say(429), say(200, {})]
    with fenced(lambda: "the lease was lost" if server.seen else None), pytest.raises(CatalogError) as caught:
        client(server).send("POST", "/x", {})
    assert caught.value.gave_up
    assert len(server.seen) == 1


def test_a_write_that_never_left_is_repeated_and_then_known_to_have_failed() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    slept: list[float] = []
    http = Http(f"http://127.0.0.1:{port}", timeouts=Timeouts(1, 1), max_retries=2, parallel=1, sleep=slept.append)
    with pytest.raises(CatalogError) as caught:
        http.send("POST", "/x", {})
    assert not caught.value.unknown_outcome
    assert len(slept) == 2


def test_the_server_s_wish_is_waited_for(server: Server) -> None:
    server.script = [say(503, None, Retry_After="3"), say(200, {})]
    slept: list[float] = []
    client(server, sleep=slept.append).get("/x")
    assert max(slept) >= 3.0


def test_429_lowers_the_number_under_way(server: Server) -> None:
    server.script = [say(429, None, Retry_After="0"), say(200, {})]
    http = client(server, parallel=8)
    http.get("/x")
    assert http._pace.limit == 4
    for _ in range(100):
        http.get("/x")
    assert http._pace.limit == 8


def test_connections_are_reused_and_bounded(server: Server) -> None:
    server.script = [say(200, {})]
    http = client(server, parallel=3)
    threads = [threading.Thread(target=lambda: [http.get("/x") for _ in range(20)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.seen) == 160
    assert server.most <= 3
    assert len(server.connections) <= 3


def test_a_token_goes_with_every_request_and_into_no_message(server: Server) -> None:
    server.script = [say(403, {"message": "no"})]
    http = client(server, auth=bearer("s3cret-token"))
    reply = http.get("/x")
    assert server.seen[0][2]["authorization"] == "Bearer s3cret-token"
    assert "s3cret" not in str(http.error(reply, "GET /x"))


def test_client_credentials_are_fetched_once_and_renewed_after_a_401(server: Server) -> None:
    server.script = [
        say(200, {"access_token": "one", "expires_in": 3600}),
        say(200, {}),
        say(401, {}),
        say(200, {"access_token": "two"}),
        say(200, {"ok": 1}),
    ]
    http = client(server, auth=ClientCredentials(server.base + "/token", "me:pass word", scope="catalog"))
    http.get("/a")
    assert http.get("/b").body == {"ok": 1}
    assert [s[1] for s in server.seen] == ["/token", "/a", "/b", "/token", "/b"]
    assert server.seen[0][3] == b"grant_type=client_credentials&client_id=me&client_secret=pass+word&scope=catalog"
    assert [s[2].get("authorization") for s in server.seen[1:]] == ["Bearer one", "Bearer one", None, "Bearer two"]


def test_an_expired_token_is_renewed_before_it_is_used(server: Server) -> None:
    server.script = [say(200, {"access_token": "short", "expires_in": 0.001}), say(200, {"access_token": "next"})]
    auth = ClientCredentials(server.base + "/token", "me:secret")
    auth.headers()
    time.sleep(0.01)
    assert auth.headers() == {"Authorization": "Bearer next"}


def test_refused_credentials_are_an_error_without_the_secret(server: Server) -> None:
    server.script = [say(401, {"error": "invalid_client"})]
    with pytest.raises(CatalogError, match="invalid_client") as caught:
        ClientCredentials(server.base + "/token", "me:hunter2hunter2").headers()
    assert caught.value.code is Code.UNAUTHENTICATED
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("status", [408, 425, 429, 503, 529])
def test_a_token_is_asked_for_again_when_the_refusal_may_pass(server: Server, status: int) -> None:
    server.script = [say(status), say(200, {"access_token": "one"})]
    auth = ClientCredentials(server.base + "/token", "me:secret", sleep=lambda s: None)
    assert auth.headers() == {"Authorization": "Bearer one"}


@pytest.mark.parametrize("uri", ["http://127.0.0.1:abc/t", "http://[::1/t", "http://xn--\u00fc.invalid/t"])
def test_a_token_address_that_is_none_is_an_error_of_the_user(uri: str) -> None:
    with pytest.raises(CatalogError, match="not valid") as caught:
        ClientCredentials(uri, "me:hunter2hunter2", sleep=lambda s: None).headers()
    assert caught.value.code is Code.INVALID_INPUT
    assert "hunter2" not in str(caught.value)


def test_a_token_that_no_header_can_carry_is_refused_without_showing_it(server: Server) -> None:
    for token in ("s3cret-\u00fc", "s3cret\ns3cret"):
        with pytest.raises(CatalogError, match=r"spec\.auth_token") as caught:
            bearer(token)
        assert caught.value.code is Code.INVALID_INPUT
        assert "s3cret" not in str(caught.value)
        server.script = [say(200, {"access_token": token})]
        with pytest.raises(CatalogError, match="no HTTP header can carry") as caught:
            client(server, auth=ClientCredentials(server.base + "/token", "me:x")).get("/x")
        assert caught.value.code is Code.UNAUTHENTICATED
        assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(("type_", "key"), [("rest", "uri"), ("iceberg", "endpoint")])
def test_the_time_outs_of_the_catalog_are_those_of_the_token_request(
    type_: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection that takes longest is often the one to the sign-in service."""
    asked: list[Timeouts] = []

    class Recorded(Transport):
        def __init__(self, base: str, timeouts: Timeouts, *more: Any, **rest: Any) -> None:
            asked.append(timeouts)
            super().__init__(base, timeouts, *more, **rest)

    monkeypatch.setattr("reconciler.catalog.http_auth.Transport", Recorded)
    options = {
        key: "http://127.0.0.1:9", "credential": "me:secret", "max_retries": "0", "connect_timeout": "1500",
        "read_timeout": "2500", "oauth2_server_uri": "http://127.0.0.1:9/token", "warehouse": "wh",
    }  # fmt: skip
    connect = import_module(f"reconciler.catalog.{type_}").connect
    with pytest.raises(CatalogError, match="no token from"):
        list(connect(options).scan(Scope()))
    assert {(t.connect, t.read) for t in asked} == {(1.5, 2.5)}
