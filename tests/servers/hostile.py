"""A catalog service that answers as no service should. It knows just enough of each protocol to show one namespace,
`n`; the listing of the tables in it, or every answer, is one of the named behaviours.

    with Hostile("rest", BEHAVIOURS["drip_body"]) as server:
        connect({**server.options, "max_retries": "0"})
        assert len(server.requests) < 10

Raw sockets: what is sent is what is written here, byte for byte. A behaviour gets the connection and the listing that
an honest server would give (`Page`).
"""

from __future__ import annotations

import gzip
import itertools
import json
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from types import TracebackType
from typing import Any
from urllib.parse import unquote

_LIST = {"rest": "tables", "iceberg": "identifiers", "unity": "tables", "glue": "TableList"}
_TOKEN = {"rest": "page_token", "iceberg": "next-page-token", "unity": "next_page_token", "glue": "NextToken"}
FOR_EVER = 90.0
"""Seconds: longer than any test allows, so that one that is not ended by us fails and does not hang."""
_BLOCK = b" " * 65536
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@dataclass(frozen=True)
class Page:
    """The listing of the tables in `n`, in the words of one protocol."""

    kind: str
    number: int
    """How many pages were asked for before this one."""
    path: bytes = b""
    """What was asked for."""

    def body(self, *names: str, token: str | None = None) -> bytes:
        value: dict[str, Any] = {_LIST[self.kind]: [self._item(name) for name in names]}
        if token is not None:
            value[_TOKEN[self.kind]] = token
        return json.dumps(value).encode()

    def twice(self) -> bytes:
        """The list is there, and once more, empty."""
        return self.body("t")[:-1] + b", " + self.body()[1:]

    def _item(self, name: str) -> object:
        if self.kind == "rest":
            return name
        return {"iceberg": {"namespace": ["n"], "name": name}, "unity": {"name": name}, "glue": {"Name": name}}[
            self.kind
        ]


Behaviour = Callable[[socket.socket, Page], None]


def plain(body: bytes, head: bytes = _HEAD, length: int | None = None) -> bytes:
    return head + b"Content-Length: %d\r\n\r\n" % (len(body) if length is None else length) + body


def _says(make: Callable[[Page], bytes]) -> Behaviour:
    return lambda connection, page: connection.sendall(make(page))


def _drips(data: bytes, connection: socket.socket) -> None:
    for byte in data:
        connection.sendall(bytes([byte]))
        time.sleep(0.3)


def _for_ever(connection: socket.socket, data: bytes, every: float = 0.0) -> None:
    end = time.monotonic() + FOR_EVER
    while time.monotonic() < end:
        connection.sendall(data)
        if every:
            time.sleep(every)


def _silent(connection: socket.socket, page: Page) -> None:
    time.sleep(FOR_EVER)


def _drip_body(connection: socket.socket, page: Page) -> None:
    body = page.body() + b" " * 300
    connection.sendall(_HEAD + b"Content-Length: %d\r\n\r\n" % len(body))
    _drips(body, connection)


def _long_json(connection: socket.socket, page: Page) -> None:
    """500 MB, announced."""
    connection.sendall(_HEAD + b"Content-Length: %d\r\n\r\n" % (500 << 20))
    for _ in range((500 << 20) // len(_BLOCK)):
        connection.sendall(_BLOCK)


def _long_chunks(connection: socket.socket, page: Page) -> None:
    """Without an end, and without a length."""
    connection.sendall(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    _for_ever(connection, b"%x\r\n" % len(_BLOCK) + _BLOCK + b"\r\n")


def _one_huge_chunk(connection: socket.socket, page: Page) -> None:
    connection.sendall(_HEAD + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFF\r\n")
    _for_ever(connection, _BLOCK)


def _endless_trailers(connection: socket.socket, page: Page) -> None:
    connection.sendall(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n")
    _for_ever(connection, b"X-More: and more\r\n" * 1000)


def _endless_body(connection: socket.socket, page: Page) -> None:
    """A body that ends with the connection, which never ends."""
    connection.sendall(_HEAD + b"\r\n")
    _for_ever(connection, _BLOCK)


def _never_closes(connection: socket.socket, page: Page) -> None:
    """The whole listing is there, and only the end of the connection would say so."""
    connection.sendall(_HEAD + b"\r\n" + page.body())
    time.sleep(FOR_EVER)


@cache
def bomb() -> bytes:
    """4 GB of spaces in 4 MB: after a full flush a block can be repeated."""
    pack = zlib.compressobj(9, wbits=31)
    head = pack.compress(b"") + pack.flush(zlib.Z_FULL_FLUSH)
    block = pack.compress(b" " * (1 << 20)) + pack.flush(zlib.Z_FULL_FLUSH)
    return head + block * 4096 + pack.flush()


@cache
def members() -> bytes:
    """The same as many files in one."""
    return gzip.compress(b" " * (1 << 20)) * 4096


def _encoded(encoding: bytes, body: bytes) -> bytes:
    return plain(body, _HEAD + b"Content-Encoding: " + encoding + b"\r\n")


def endless_bucket(connection: socket.socket, page: Page) -> None:
    """A bucket without objects, whose listings go on and on. What asks whether it is one gets an honest answer."""
    truncated = b"nowhere" not in page.path
    more = b"<NextContinuationToken>p%d</NextContinuationToken>" % time.monotonic_ns() if truncated else b""
    head = b'<?xml version="1.0"?><ListBucketResult><Name>bucket</Name><KeyCount>0</KeyCount><IsTruncated>'
    listing = head + (b"true" if truncated else b"false") + b"</IsTruncated>" + more + b"</ListBucketResult>"
    missing = b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>'
    found = b"list-type=2" in page.path
    status = b"HTTP/1.1 200 OK\r\n" if found else b"HTTP/1.1 404 Not Found\r\n"
    connection.sendall(plain(listing if found else missing, status + b"Content-Type: application/xml\r\n"))


def _error(body: bytes, content_type: bytes = b"application/json", status: bytes = b"400 Bad Request") -> bytes:
    return plain(body, b"HTTP/1.1 " + status + b"\r\nContent-Type: " + content_type + b"\r\n")


def _leads(connection: socket.socket, page: Page) -> None:
    """To itself, for ever."""
    connection.sendall(plain(b"", b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /\r\n"))


@cache
def many_values() -> bytes:
    """45 MB that are a hundred times as many bytes in objects."""
    return b',"x":[' + b"[]," * 15_000_000 + b"0]}"


@cache
def many_keys() -> bytes:
    """The last of them twice: a comparison of each with all takes hours."""
    return b"{" + b",".join(b'"%d":0' % n for n in range(400_000)) + b',"399999":0}'


BEHAVIOURS: dict[str, Behaviour] = {
    # time
    "silent": _silent,
    "drip_head": lambda connection, page: _drips(plain(page.body()), connection),
    "drip_body": _drip_body,
    "drip_interim": lambda connection, page: _for_ever(connection, b"HTTP/1.1 100 Continue\r\n\r\n", 0.2),
    "never_closes": _never_closes,
    # size
    "endless_100": lambda connection, page: _for_ever(connection, b"HTTP/1.1 100 Continue\r\nX-A: b\r\n\r\n" * 100),
    "endless_103": lambda connection, page: _for_ever(connection, b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "huge_header": lambda connection, page: _for_ever(connection, _HEAD + b"X-Long: " + b"x" * 1_000_000),
    "many_headers": lambda connection, page: _for_ever(connection, _HEAD + b"X-One: more\r\n" * 1000),
    "long_json": _long_json,
    "long_chunks": _long_chunks,
    "one_huge_chunk": _one_huge_chunk,
    "endless_trailers": _endless_trailers,
    "endless_body": _endless_body,
    "gzip_bomb": _says(lambda page: _encoded(b"gzip", bomb())),
    "gzip_members": _says(lambda page: _encoded(b"gzip", members())),
    "many_values": _says(lambda page: plain(page.body("t")[:-1] + many_values())),
    # time of our own processor
    "empty_members": _says(lambda page: _encoded(b"gzip", gzip.compress(b"") * 2_000_000)),
    "many_keys": _says(lambda page: plain(many_keys())),
    "long_error": _says(lambda page: _error(b"x" * 30_000_000, b"text/plain", b"500 Internal Server Error")),
    "long_message": _says(lambda page: _error(b'{"message": "' + b"a/" * 1_000_000 + b'"}')),
    "slow_charset": _says(lambda page: _error(b"a-" + b"b" * 30_000_000, b"text/plain; charset=punycode")),
    "charset_of_names": _says(lambda page: _error(b"hello", b"text/plain; charset=idna")),
    # form
    "truncated": lambda connection, page: connection.sendall(plain(page.body(), length=5000)),
    "duplicate_keys": _says(lambda page: plain(page.twice())),
    "deep_json": _says(lambda page: plain(b'{"a":' * 100_000 + b"1" + b"}" * 100_000)),
    "nan": _says(lambda page: plain(page.body()[:-1] + b', "x": NaN}')),
    "long_number": _says(lambda page: plain(page.body()[:-1] + b', "x": ' + b"9" * 100_000 + b"}")),
    "not_utf8": _says(lambda page: plain(page.body()[:-1] + b', "x": "\xff\xfe"}')),
    "half_pair": _says(lambda page: plain(page.body("a\ud800b"))),
    "long_name": _says(lambda page: plain(page.body("x" * 5_000_000))),
    "nested_encodings": _says(lambda page: _encoded(b"gzip, gzip", gzip.compress(gzip.compress(page.body())))),
    "deflate": _says(lambda page: _encoded(b"deflate", zlib.compress(page.body()))),
    "redirect": _leads,
    "half_json": _says(lambda page: plain(page.body()[:-2])),
    "empty_object": _says(lambda page: plain(b"{}")),
    "null": _says(lambda page: plain(b"null")),
    "nothing": _says(lambda page: plain(b"")),
    "no_content": _says(lambda page: b"HTTP/1.1 204 No Content\r\n\r\n"),
    "wrong_type": _says(lambda page: plain(b"<html></html>", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")),
    "unasked_encoding": _says(lambda page: _encoded(b"br", page.body())),
    "half_gzip": _says(lambda page: _encoded(b"gzip", gzip.compress(page.body())[:-9])),
    "two_lengths": _says(lambda page: _HEAD + b"Content-Length: 3\r\nContent-Length: 900\r\n\r\n" + page.body()),
    "no_http": _says(lambda page: b"220 mail.example.com ESMTP\r\n" * 3),
    # pages
    "same_token": _says(lambda page: plain(page.body(token="again"))),
    "two_tokens": _says(lambda page: plain(page.body(token=str(page.number % 2)))),
    "always_new_token": _says(lambda page: plain(page.body(token=f"p{page.number}"))),
    "same_names_again": _says(lambda page: plain(page.body("a", token=f"p{page.number}"))),
    "always_new_names": _says(lambda page: plain(page.body(f"t{page.number}", token=f"p{page.number}"))),
    "token_no_text": _says(lambda page: plain(page.body()[:-1] + b', "%s": 7}' % _TOKEN[page.kind].encode())),
}
TIMED = ("silent", "drip_head", "drip_body", "drip_interim", "never_closes")
LONG = ("long_json", "long_chunks", "one_huge_chunk", "endless_body", "gzip_bomb", "gzip_members")
"""What is cut off by its length. Like these, the rest of the work that a server can make for us has time enough."""
WORK = ("many_values", "long_name", "empty_members", "many_keys", "long_error", "long_message", "slow_charset")


@dataclass
class Hostile:
    kind: str
    behaviour: Behaviour
    everywhere: bool = False
    """Every answer is hostile, not only the listing of tables."""
    tls: ssl.SSLContext | None = None
    silent_handshake: bool = False
    """The address is https, and nobody ever speaks TLS there."""
    bottomless: int = 0
    """Every namespace holds so many others, for ever."""
    requests: list[str] = field(default_factory=list)
    connections: int = 0

    def __post_init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._open: list[socket.socket] = []
        self._pages = itertools.count()
        self._lock = threading.Lock()

    def __enter__(self) -> Hostile:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # Closing alone does not end the thread that accepts.
        self._socket.close()
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    @property
    def address(self) -> str:
        scheme, name = ("https", "localhost") if self.tls or self.silent_handshake else ("http", "127.0.0.1")
        return f"{scheme}://{name}:{self._socket.getsockname()[1]}"

    @property
    def options(self) -> dict[str, Any]:
        """Of a Catalog document, with the shortest times there are where they end it; other ends have more, because a
        busy machine may not answer an honest call within a second."""
        timed = [BEHAVIOURS[name] for name in TIMED]
        seconds = (
            1 if self.behaviour in timed else 20 if self.behaviour in [BEHAVIOURS[n] for n in (*LONG, *WORK)] else 5
        )
        thousand = {"connect_timeout": 1000, "read_timeout": seconds * 1000}
        one = {"connect_timeout": 1, "read_timeout": seconds}
        return {
            "rest": {"type": "rest", "uri": self.address, **thousand},
            "iceberg": {"type": "iceberg", "endpoint": self.address, "warehouse": "lake", **thousand},
            "unity": {"type": "unity", "endpoint": self.address, "catalog": "lake", **one},
            "glue": {"type": "glue", "endpoint": self.address, "region": "us-east-1", "access_key_id": "a",
                     "secret_access_key": "b", **one},
        }[self.kind]  # fmt: skip

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            if not self.silent_handshake:
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError):
            if self.tls is not None:
                connection = self.tls.wrap_socket(connection, server_side=True)
            for line, headers, body in _requests(connection):
                with self._lock:
                    self.requests.append(f"{line} {headers.get('x-amz-target', '')}".strip())
                    number = next(self._pages) if self._is_listing(line, headers) else 0
                if self.everywhere or self._is_listing(line, headers):
                    self.behaviour(connection, Page(self.kind, number, line.split(" ")[1].encode()))
                    if self.behaviour is not BEHAVIOURS["no_content"] and line.startswith("HEAD"):
                        return
                else:
                    connection.sendall(self._honest(line, headers, body))
        with suppress(OSError):
            connection.close()

    def _is_listing(self, line: str, headers: dict[str, str]) -> bool:
        path = line.split(" ")[1].partition("?")[0]
        return {
            "rest": path == "/v1/namespace/n/table/list",
            "iceberg": path == "/v1/namespaces/n/tables",
            "unity": path.endswith("/tables"),
            "glue": headers.get("x-amz-target", "").endswith(".GetTables"),
        }[self.kind]

    def _honest(self, line: str, headers: dict[str, str], body: bytes) -> bytes:
        found = getattr(self, f"_{self.kind}")(line.split(" ")[1], headers)
        if found is not None:
            return plain(json.dumps(found).encode())
        missing = {
            "rest": {"code": 4, "error": "not found"},
            "iceberg": {"error": {"type": "NoSuchTableException", "code": 404, "message": "no"}},
            "unity": {"error_code": "TABLE_NOT_FOUND", "message": "no"},
            "glue": {"__type": "EntityNotFoundException", "Message": "no"},
        }[self.kind]
        status = b"400 Bad Request" if self.kind == "glue" else b"404 Not Found"
        return plain(json.dumps(missing).encode(), _HEAD.replace(b"200 OK", status))

    def _rest(self, path: str, headers: dict[str, str]) -> object:
        names = {"/v1/namespace/%24/list": ["n"]}
        inside = [f"n{number}" for number in range(self.bottomless)]
        if self.bottomless and "__reconciler" not in path:
            if path.endswith("/describe"):
                return {"properties": {}} if "/namespace/" in path else None
            names[path] = inside
        if path.endswith("/table/list"):
            return {"tables": []}
        if path.endswith("/list"):
            return {"namespaces": names.get(path, [])}
        return {"properties": {}} if path == "/v1/namespace/n/describe" else None

    def _iceberg(self, path: str, headers: dict[str, str]) -> object:
        if path.startswith("/v1/config"):
            return {"defaults": {}, "overrides": {}}
        if path.startswith("/v1/namespaces?"):
            above = unquote(path.partition("parent=")[2].partition("&")[0])
            levels = above.split("\x1f") if above else []
            inside = [f"n{number}" for number in range(self.bottomless)] or ([] if levels else ["n"])
            return {"namespaces": [[*levels, name] for name in inside]}
        path = path.partition("?")[0]
        if path.endswith(("/views", "/tables")):
            return {"identifiers": []}
        name = unquote(path.removeprefix("/v1/namespaces/"))
        return {"namespace": name.split("\x1f"), "properties": {}} if "/" not in name else None

    def _unity(self, path: str, headers: dict[str, str]) -> object:
        schema = {"name": "n", "catalog_name": "lake", "full_name": "lake.n", "properties": {}}
        path = path.partition("?")[0].removeprefix("/api/2.1/unity-catalog")
        return {"/schemas": {"schemas": [schema]}, "/schemas/lake.n": schema, "/catalogs/lake": {"name": "lake"}}.get(
            path
        )

    def _glue(self, path: str, headers: dict[str, str]) -> object:
        inside = [{"Name": f"c{number}", "CatalogId": f"1:c{number}"} for number in range(self.bottomless)]
        return {
            "AWSGlue.GetCatalogs": {"CatalogList": inside},
            "AWSGlue.GetDatabases": {"DatabaseList": [{"Name": "n"}]},
            "AWSGlue.GetDatabase": {"Database": {"Name": "n"}},
            "AWSGlue.GetUserDefinedFunctions": {"UserDefinedFunctions": []},
        }.get(headers.get("x-amz-target", ""))


def _requests(connection: socket.socket) -> Iterator[tuple[str, dict[str, str], bytes]]:
    data = b""
    while True:
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                return
            data += more
        head, _, data = data.partition(b"\r\n\r\n")
        line, *rest = head.decode("latin-1").split("\r\n")
        headers = {k.lower(): v.strip() for k, _, v in (field.partition(":") for field in rest)}
        length = int(headers.get("content-length", "0"))
        while len(data) < length:
            data += connection.recv(65536)
        yield line, headers, data[:length]
        data = data[length:]
