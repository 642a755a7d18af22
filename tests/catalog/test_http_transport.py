"""What the transport does below the retries: proxies of the environment, kept connections, compressed answers."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler

import pytest
from servers.proxy import Proxy
from servers.tls import Authority, authority
from test_http import Server, client, say, server

from reconciler.catalog.http import Http
from reconciler.catalog.http_transport import NeverSent, Timeouts, Transport, _readable
from reconciler.catalog.options import tls
from reconciler.model.errors import CatalogError, Code

__all__ = ["authority", "server"]

SECONDS = Timeouts(5, 5)


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def packed(damaged: bool = False) -> Callable[[BaseHTTPRequestHandler], None]:
    def act(handler: BaseHTTPRequestHandler) -> None:
        data = gzip.compress(json.dumps({"a": "ü" * 100}).encode())
        data = data[:-12] if damaged else data
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return act


def hangs_up(handler: BaseHTTPRequestHandler) -> None:
    """Answers, and closes without having said so."""
    say(200, {})(handler)
    handler.close_connection = True


def hints(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
    say(200, {"of": "the first request"})(handler)


# answers


def test_compressed_answers_are_asked_for_and_read(server: Server) -> None:
    server.script = [packed()]
    assert client(server).get("/x").body == {"a": "ü" * 100}
    assert server.seen[0][2]["accept-encoding"] == "gzip"


def test_a_damaged_compressed_answer_is_like_a_cut_one(server: Server) -> None:
    server.script = [packed(damaged=True), packed()]
    assert client(server).get("/x").ok
    server.script = [packed(damaged=True)]
    with pytest.raises(CatalogError, match="damaged") as caught:
        client(server).send("POST", "/x", {})
    assert caught.value.unknown_outcome


def test_a_redirect_is_an_answer_and_not_followed(server: Server) -> None:
    server.script = [say(302, None, Location="http://127.0.0.1:1/elsewhere")]
    assert client(server).get("/x").status == 302
    assert len(server.seen) == 1


def test_an_interim_answer_is_never_taken_for_an_answer(server: Server) -> None:
    server.script = [hints, say(200, {"of": "the second"})]
    assert client(server, max_retries=1).get("/x").body == {"of": "the second"}
    assert len(server.connections) == 2


@pytest.mark.parametrize("line", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/2 200\r\n", b'{"namespaces":[]}\n'])
def test_what_speaks_no_http_is_said_to_do_so(server: Server, line: bytes) -> None:
    def speaks(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(line)
        handler.close_connection = True

    server.script = [speaks]
    with pytest.raises(CatalogError, match="does not begin like one of HTTP/1") as caught:
        client(server, max_retries=0).get("/x")
    assert line.decode().split()[0] in caught.value.message


def test_a_header_of_the_request_takes_the_place_of_the_user_s(server: Server) -> None:
    server.script = [say(200, {})]
    http = client(server, headers={"if-none-match": "user's", "ACCEPT": "text/x", "Host": "name.example"})
    http.get("/x", headers={"If-None-Match": "ours"})
    sent = server.seen[0][2]
    assert (sent["if-none-match"], sent["accept"], sent["host"]) == ("ours", "text/x", "name.example")


# connections


def test_a_write_does_not_go_out_on_a_connection_that_the_server_has_closed(server: Server) -> None:
    server.script = [hangs_up, say(200, {"a": 1})]
    http = client(server, max_retries=0)
    http.get("/x")
    assert http._transport is not None
    while not _readable(http._transport._idle[0].connection.sock):
        time.sleep(0.005)
    assert http.send("POST", "/x", {}).body == {"a": 1}
    assert len(server.seen) == 2


def test_a_name_that_does_not_exist_has_seen_nothing() -> None:
    http = Http("http://nobody.invalid", timeouts=SECONDS, max_retries=0, parallel=1)
    with pytest.raises(CatalogError) as caught:
        http.send("POST", "/x", {})
    assert (caught.value.code, caught.value.unknown_outcome) == (Code.SERVICE_UNAVAILABLE, False)


# proxies


def test_a_proxy_gets_the_whole_address_and_its_password(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.script = [say(200, {"a": 1})]
    monkeypatch.setenv("http_proxy", server.base.replace("://", "://me:pass%20word@"))
    http = Http("http://lake.invalid:8080/api", timeouts=SECONDS, max_retries=0, parallel=1)
    assert http.get("/x", {"q": "1 2"}).body == {"a": 1}
    _, path, headers, _ = server.seen[0]
    assert path == "http://lake.invalid:8080/api/x?q=1%202"
    assert headers["host"] == "lake.invalid:8080"
    assert headers["proxy-authorization"] == "Basic bWU6cGFzcyB3b3Jk"


def test_no_proxy_exempts_a_host(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.script = [say(200, {})]
    monkeypatch.setenv("all_proxy", "http://nobody.invalid:1")
    monkeypatch.setenv("no_proxy", "elsewhere.example,127.0.0.1")
    assert client(server).get("/x").ok
    assert server.seen[0][1] == "/x"


@pytest.mark.parametrize("proxy", ["socks5://me:s3cret@h:1", "https://me:s3cret@h:1", "http://me:s3cret@h:abc"])
def test_a_proxy_we_cannot_speak_to_is_an_error_without_its_password(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(CatalogError, match="NO_PROXY") as caught:
        Transport("https://lake.example", SECONDS)
    assert caught.value.code is Code.INVALID_INPUT
    assert "s3cret" not in str(caught.value)


@contextmanager
def tunnel(refuse: bool = False) -> Iterator[tuple[str, list[str]]]:
    """A proxy that knows CONNECT only: its address, and the heads of what it was asked."""
    asked: list[str] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):  # either end may go away first
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def serve(one: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += one.recv(65536)
        asked.append(head.decode())
        if refuse:
            one.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            one.close()
            return
        host, _, port = head.split()[1].decode().partition(":")
        there = socket.create_connection((host, int(port)))
        one.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        threading.Thread(target=pump, args=(there, one), daemon=True).start()
        pump(one, there)

    def accept() -> None:
        while True:
            try:
                one, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(one,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"me:pw@127.0.0.1:{listener.getsockname()[1]}", asked
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def test_tls_goes_through_a_tunnel_and_the_name_is_checked(
    server: Server, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = [say(200, {"a": 1})]
    knows = tls({"tls.ca_file": str(authority.ca_file)})
    with Proxy(server.base, tls=authority.server_context()) as there, tunnel() as (address, asked):
        monkeypatch.setenv("https_proxy", address)
        transport = Transport(there.endpoint, SECONDS, knows)
        for _ in range(2):
            assert transport.exchange("GET", "/x", {}).status == 200
        transport.close()
        assert len(asked) == 1
        assert asked[0].startswith("CONNECT localhost:")
        assert "proxy-authorization: basic bwu6chc=" in asked[0].lower()
        assert all("proxy-authorization" not in r.headers for r in there.requests())
        with pytest.raises(NeverSent, match=r"(?i)certificate"):
            Transport(there.endpoint, SECONDS).exchange("GET", "/x", {})


def test_a_tunnel_that_is_refused_has_carried_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with tunnel(refuse=True) as (address, asked):
        monkeypatch.setenv("https_proxy", address)
        http = Http("https://lake.example", timeouts=SECONDS, max_retries=1, parallel=1, sleep=lambda s: None)
        with pytest.raises(CatalogError, match="407") as caught:
            http.send("POST", "/x", {})
        assert not caught.value.unknown_outcome
        assert len(asked) == 2
