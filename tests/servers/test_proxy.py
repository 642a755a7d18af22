"""The proxy does what its script says: seen by a plain HTTP client in front of a plain HTTP server."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from servers.proxy import (
    Proxy,
    after,
    answer,
    before,
    cut_answer,
    cut_before,
    delay,
    edited,
    reset_after,
    reset_before,
    truncate,
)

BODY = b"0123456789" * 10


class Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer waits 40 ms for an acknowledgement
    done: list[tuple[str, str, bytes]]

    def log_message(self, *args: object) -> None:
        pass

    def reply(self) -> None:
        sent = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.done.append((self.command, self.path, sent))
        self.send_response(204 if self.path == "/empty" else 200)
        if self.path == "/chunked":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY))
            return
        if self.path == "/packed":
            packed = gzip.compress(b'{"a": 1, "b": 2}')
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(packed)))
            self.end_headers()
            self.wfile.write(packed)
            return
        if self.path != "/empty":
            self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        if self.command != "HEAD" and self.path != "/empty":
            self.wfile.write(BODY)

    do_GET = do_POST = do_HEAD = do_DELETE = reply


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    Echo.done = []
    made = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def proxy(server: ThreadingHTTPServer) -> Iterator[Proxy]:
    with Proxy(f"http://127.0.0.1:{server.server_port}") as made:
        yield made


@pytest.fixture
def client(proxy: Proxy) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=proxy.endpoint, timeout=5) as made:
        yield made


def test_without_a_script_everything_passes(proxy: Proxy, client: httpx.Client) -> None:
    assert client.get("/a%2Fb?x=%20").content == BODY
    assert client.get("/chunked").content == BODY
    assert client.post("/p", content=b"sent").content == BODY
    assert client.head("/h").headers["content-length"] == str(len(BODY))
    assert client.delete("/empty").status_code == 204
    assert Echo.done[0] == ("GET", "/a%2Fb?x=%20", b"")
    assert Echo.done[2] == ("POST", "/p", b"sent")
    assert proxy.counts["GET /chunked"] == 1
    assert proxy.count("GET") == 2
    assert (proxy.connections, proxy.most_in_flight) == (1, 1)
    assert [r.status for r in proxy.seen] == [200, 200, 200, 200, 204]


@pytest.mark.parametrize(
    ("fault", "reached"),
    [(cut_before, 0), (reset_before, 0), (cut_answer, 1), (reset_after, 1), (truncate, 1)],
    ids=lambda v: getattr(v, "__name__", str(v)),
)
def test_a_broken_exchange(proxy: Proxy, client: httpx.Client, fault: object, reached: int) -> None:
    proxy.fault(fault, method="POST", path="^/p$")  # type: ignore[arg-type]
    assert client.get("/p").content == BODY, "another method is not meant"
    with pytest.raises(httpx.TransportError):
        client.post("/p")
    assert [d[0] for d in Echo.done] == ["GET", *["POST"] * reached]
    assert client.post("/p").content == BODY, "once is once"


def test_answers_of_its_own(proxy: Proxy, client: httpx.Client) -> None:
    proxy.fault(answer(429, retry_after=2))
    proxy.fault(answer(500, '{"message": "no"}', forward=True), method="POST")
    first = client.get("/x")
    assert (first.status_code, first.headers["retry-after"]) == (429, "2")
    assert Echo.done == []
    second = client.post("/x")
    assert (second.status_code, second.json()) == (500, {"message": "no"})
    assert "retry-after" not in second.headers
    assert [d[0] for d in Echo.done] == ["POST"]


def test_the_servers_answer_with_a_change(proxy: Proxy, client: httpx.Client) -> None:
    proxy.fault(edited(lambda value: {**value, "b": 3}))
    assert [client.get("/packed").json() for _ in range(2)] == [{"a": 1, "b": 3}, {"a": 1, "b": 2}]


def test_skip_and_times(proxy: Proxy, client: httpx.Client) -> None:
    rule = proxy.fault(answer(503), path="/t", skip=1, times=2)
    assert [client.get("/t").status_code for _ in range(4)] == [200, 503, 503, 200]
    assert rule.used == 2
    proxy.fault(answer(503), where=lambda r: r.headers.get("x-who") == "me", times=None)
    assert [client.get("/t", headers={"x-who": w}).status_code for w in ("me", "you", "me")] == [503, 200, 503]
    proxy.forget()
    assert client.get("/t", headers={"x-who": "me"}).status_code == 200
    assert proxy.count() == 1


def test_calls_by_their_aws_name(proxy: Proxy, client: httpx.Client) -> None:
    proxy.fault(answer(400), operation="GetTables")
    names = ("GetTable", "GetTables", "GetTables")
    codes = [client.post("/", headers={"X-Amz-Target": f"AWSGlue.{n}"}).status_code for n in names]
    assert codes == [200, 400, 200]
    assert proxy.counts == {"POST GetTable": 1, "POST GetTables": 2}


def test_a_late_answer_is_a_time_out_though_the_server_did_it(proxy: Proxy, client: httpx.Client) -> None:
    proxy.fault(delay(30), method="POST")
    with pytest.raises(httpx.ReadTimeout):
        client.post("/p", timeout=0.3)
    assert [d[0] for d in Echo.done] == ["POST"]


def test_somebody_else_is_quicker(proxy: Proxy, client: httpx.Client) -> None:
    proxy.fault(before(lambda: httpx.post(f"{proxy.endpoint}/first")), path="/second")
    proxy.fault(after(lambda: Echo.done.append(("after", "", b""))), path="/second")
    client.post("/second")
    client.post("/second")
    assert [d[1] for d in Echo.done] == ["/first", "/second", "/second", ""]


def test_many_at_once_are_counted(proxy: Proxy) -> None:
    everyone = threading.Barrier(6)
    proxy.fault(before(lambda: everyone.wait(10)), times=None)
    with httpx.Client(base_url=proxy.endpoint, timeout=20) as client, ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda i: client.get(f"/{i}"), range(12)))
    assert proxy.most_in_flight == 6
    assert proxy.connections == 6
    assert proxy.count() == 12


def test_a_server_that_is_gone_is_a_502(server: ThreadingHTTPServer, client: httpx.Client) -> None:
    server.shutdown()
    server.server_close()
    assert client.get("/x").status_code == 502
