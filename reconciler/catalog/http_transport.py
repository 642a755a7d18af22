"""HTTP/1.1 to one address: connections that are kept, and for each request that failed whether it can have arrived.

On the connections of the standard library: with many requests at a time they take a tenth of the processor time of a
general client, and they let us connect apart from sending, so that "it never left" is known and not guessed.

Whoever answers may be hostile: an answer has a time for the whole of it, however it is spread, and a number of bytes,
on the wire and after decompression. Head, interim answers (1xx), trailers and the answer of a proxy count too.
"""

from __future__ import annotations

import base64
import http.client
import io
import select
import socket
import ssl
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from functools import cache, partial
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from reconciler.catalog import deadline
from reconciler.catalog.lance_errors import clean
from reconciler.model.errors import CatalogError, Code

_KEPT_IN_PATH = "/%:@!$&'()*+,;=~|"
LARGEST = 64 * 1024 * 1024
"""Bytes of one answer."""
LARGEST_CREDENTIALS = 1024 * 1024
"""Of one that gives a token or keys."""
_HEAD = 1024 * 1024
"""Bytes before the body of an answer: the status line, headers, interim answers."""
_PIECE = 1024 * 1024
_PACKED_PIECE = 64 * 1024
_MEMBERS = 100
"""Gzip files in one answer, each of which may be empty."""
_CHARSETS = ("utf-8", "us-ascii", "iso-8859-1", "windows-1252", "utf-16")
"""Python knows many more: some of them take minutes, and some are no text."""
_HEADERS = {"accept": "*/*", "accept-encoding": "gzip", "user-agent": "lance-reconciler"}


class NeverSent(Exception):
    """No connection: the server has seen nothing."""


class Broken(Exception):
    """The answer is missing or cut: the server may have done what was asked."""


class Refused(Broken):
    """An answer that will be no better when it is asked for again."""


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    content: bytes
    """No longer compressed."""

    @property
    def text(self) -> str:
        charset = self.headers.get("content-type", "").lower().partition("charset=")[2].partition(";")[0].strip(' "')
        return self.content.decode(charset if charset in _CHARSETS else "utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: until there is a connection, then for the whole answer."""

    connect: float = 10.0
    read: float = 30.0


class _Budget:
    """Until when the answer that is being read has to be there, and how long it may be."""

    def __init__(self, largest: int) -> None:
        self._end = 0.0
        self._bytes = 0
        self._largest = largest

    def start(self, seconds: float) -> float:
        """Seconds that it has, those of the run considered. Raises TimeoutError."""
        self._end, self._bytes = time.monotonic() + deadline.allowed(seconds), _HEAD
        return self.seconds()

    def body(self, announced: int | None) -> None:
        """The head is read. Raises Refused when what was announced is too long."""
        self._bytes = self._largest + _HEAD
        if announced is not None and announced > self._largest:
            raise _too_long(self._largest)

    def seconds(self) -> float:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def take(self, count: int) -> None:
        self._bytes -= count
        if self._bytes < 0:
            raise _too_long(self._largest)


class _Bounded(io.RawIOBase):
    """What comes in on a connection, as far as its budget goes."""

    def __init__(self, raw: Any, sock: socket.socket, budget: _Budget) -> None:
        self._raw, self._sock, self._budget = raw, sock, budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._budget.seconds())
        count: int = self._raw.readinto(buffer)
        self._budget.take(count)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *rest: Any, budget: _Budget, **more: Any) -> None:
        super().__init__(sock, *rest, **more)
        self.fp = io.BufferedReader(_Bounded(self.fp.detach(), sock, budget))


class _Kept(NamedTuple):
    connection: http.client.HTTPConnection
    budget: _Budget


class Transport:
    """Thread-safe. It has as many connections as there were ever requests at one time: who calls bounds those.

    Proxies are those of the environment (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`). Redirects are answers
    like others."""

    def __init__(
        self,
        base: str,
        timeouts: Timeouts,
        verify: ssl.SSLContext | bool = True,
        headers: Mapping[str, str] | None = None,
        *,
        largest: int = LARGEST,
        proxies: bool = True,
    ) -> None:
        """`base`: the address that the paths of requests go on from. `largest`: bytes of one answer. Raises
        CatalogError when the address is none."""
        try:
            parts = urlsplit(base)
            host = (parts.hostname or "").encode("idna").decode()
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as error:
            raise CatalogError(Code.INVALID_INPUT, f"the address {base} is not valid: {error}") from error
        if parts.scheme not in ("http", "https") or not host:
            raise CatalogError(Code.INVALID_INPUT, f"the address {base} is not valid: http(s)://host[:port]/...")
        self._host, self._port, self._timeouts = host, port, timeouts
        self._largest = largest
        self._proxy = _proxy_of(parts.scheme, host, port) if proxies else None
        self._tls = _context(verify) if parts.scheme == "https" else None
        self._headers = {**_HEADERS, **_lowered(headers or {})}
        self._prefix = quote(parts.path, safe=_KEPT_IN_PATH)
        if self._proxy is not None and self._tls is None:
            self._headers |= _credentials(self._proxy)
            shown = (f"[{host}]" if ":" in host else host) + (f":{port}" if parts.port else "")
            self._prefix = f"http://{shown}{self._prefix}"
        self._idle: list[_Kept] = []

    def close(self) -> None:
        while (kept := self._kept()) is not None:
            kept.connection.close()

    def exchange(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        """`target`: the path below the base, and the query, percent-encoded. Raises NeverSent, Broken."""
        connection, budget = kept = self._connected()
        try:
            connection.sock.settimeout(budget.start(self._timeouts.read))
            connection.request(method, self._prefix + target or "/", body, {**self._headers, **_lowered(headers)})
            answer = connection.getresponse()
            if answer.status < 200:  # its real answer would be taken for that of the next request
                raise Broken(f"the server answered {answer.status}, which is no answer")
            content = _content(answer, budget)
        except BaseException as error:
            connection.close()
            if isinstance(error, (OSError, http.client.HTTPException, ValueError)):
                raise Broken(_why(error, f"read_timeout: {self._timeouts.read:g} s")) from error
            raise
        if connection.sock is not None:
            self._idle.append(kept)
        found = _lowered(answer.headers)
        return Answer(answer.status, found, _plain(content, found.get("content-encoding"), self._largest))

    # connections

    def _kept(self) -> _Kept | None:
        try:
            return self._idle.pop()  # the last used: the others may end by themselves
        except IndexError:
            return None

    def _connected(self) -> _Kept:
        """An idle connection on which there is something to read was closed by the server, or holds what nobody asked
        for: no request goes out on it."""
        while (kept := self._kept()) is not None:
            if not _readable(kept.connection.sock):
                return kept
            kept.connection.close()
        budget, connection = _Budget(self._largest), None
        try:
            connection = self._new(budget.start(self._timeouts.connect))
            connection.response_class = partial(_Response, budget=budget)  # type: ignore[assignment]
            connection.connect()
        except (OSError, http.client.HTTPException, ValueError, Refused) as error:
            if connection is not None:
                connection.close()
            raise NeverSent(_why(error, f"connect_timeout: {self._timeouts.connect:g} s")) from error
        connection.auto_open = 0  # a request never connects by itself: see NeverSent
        return _Kept(connection, budget)

    def _new(self, seconds: float) -> http.client.HTTPConnection:
        host, port = self._host, self._port
        if self._proxy is not None:
            host, port = self._proxy.hostname or "", self._proxy.port or 80
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=seconds)
        connection = http.client.HTTPSConnection(host, port, timeout=seconds, context=self._tls)
        if self._proxy is not None:
            connection.set_tunnel(self._host, self._port, _credentials(self._proxy))
        return connection


def _too_long(largest: int, unpacked: bool = False) -> Refused:
    when = " when it is unpacked" if unpacked else ""
    return Refused(f"the answer is too long{when}: {largest // (1024 * 1024)} MB are read at most")


def _content(answer: http.client.HTTPResponse, budget: _Budget) -> bytes:
    """In pieces: room is made for what is there, not for what is announced."""
    budget.body(answer.length)
    content = io.BytesIO()
    while piece := answer.read(_PIECE):
        content.write(piece)
    if answer.length:
        raise Broken(f"the answer ends {answer.length} bytes early")
    return content.getvalue()


def _lowered(headers: Mapping[str, str] | Message) -> dict[str, str]:
    """One spelling: a header of the request takes the place of the user's."""
    return {name.lower(): value for name, value in headers.items()}


def _readable(sock: socket.socket) -> bool:
    if hasattr(select, "poll"):  # select() has no room for the handles of a large process
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([sock], [], [], 0)[0])


def _plain(content: bytes, encoding: str | None, largest: int = LARGEST) -> bytes:
    encoding = (encoding or "").lower()
    if not content or encoding in ("", "identity"):
        return content
    if encoding not in ("gzip", "x-gzip"):
        raise Broken(f"the answer is encoded as {encoding[:80]!r}, which was not asked for")
    try:
        return _unpacked(memoryview(content), largest)
    except zlib.error as error:
        raise Broken(f"the compressed answer is damaged: {error}") from error


def _unpacked(content: memoryview, largest: int) -> bytes:
    """Members one after the other are one file. In pieces, because zlib copies what follows a member."""
    found, at, members, unpack = io.BytesIO(), 0, 0, None
    while at < len(content):
        if unpack is None:
            unpack, members = zlib.decompressobj(wbits=31), members + 1
            if members > _MEMBERS:
                raise Refused(f"the compressed answer has more than {_MEMBERS} parts")
        piece = content[at : at + _PACKED_PIECE]
        found.write(unpack.decompress(piece, largest - found.tell() + 1))
        if found.tell() > largest:
            raise _too_long(largest, unpacked=True)
        at += len(piece) - len(unpack.unused_data)
        unpack = None if unpack.eof else unpack
    if unpack is not None:
        raise Broken("the compressed answer is damaged: it ends early")
    return found.getvalue()


def _proxy_of(scheme: str, host: str, port: int) -> SplitResult | None:
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    name = proxies.get(scheme) or proxies.get("all")
    if not name or proxy_bypass(f"{host}:{port}"):
        return None
    parts = urlsplit(name if "://" in name else f"http://{name}")
    try:
        valid = parts.scheme == "http" and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid:  # it may hold a password: not repeated
        raise CatalogError(
            Code.INVALID_INPUT,
            f"the proxy in the environment for {scheme}:// addresses cannot be used: it must be http://host:port "
            "(NO_PROXY exempts a host)",
        )
    return parts


def _credentials(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"proxy-authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def _context(verify: ssl.SSLContext | bool) -> ssl.SSLContext:
    return verify if isinstance(verify, ssl.SSLContext) else _public_authorities()


@cache
def _public_authorities() -> ssl.SSLContext:
    """Those of the system, or what SSL_CERT_FILE and SSL_CERT_DIR name."""
    return ssl.create_default_context()


def _why(error: BaseException, timeout: str) -> str:
    if isinstance(error, TimeoutError):
        return deadline.why() if deadline.is_over() else f"no answer in time ({timeout})"
    strange = isinstance(error, (http.client.BadStatusLine, http.client.UnknownProtocol))
    if strange and not isinstance(error, http.client.RemoteDisconnected):  # which has the words itself
        return f"the answer does not begin like one of HTTP/1: {clean(str(error), 80)}"
    return clean(str(error)) or type(error).__name__
