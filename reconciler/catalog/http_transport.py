"""HTTP/1.1 to one address: connections that are kept, and for each request that failed whether it can have arrived.

On the connections of the standard library: with many requests at a time they take a tenth of the processor time of a
general client, and they let us connect apart from sending, so that "it never left" is known and not guessed.
"""

from __future__ import annotations

import base64
import gzip
import http.client
import select
import socket
import ssl
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from functools import cache
from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from reconciler.catalog.lance_errors import clean
from reconciler.model.errors import CatalogError, Code

_KEPT_IN_PATH = "/%:@!$&'()*+,;=~|"
_HEADERS = {"accept": "*/*", "accept-encoding": "gzip", "user-agent": "lance-reconciler"}


class NeverSent(Exception):
    """No connection: the server has seen nothing."""


class Broken(Exception):
    """The answer is missing or cut: the server may have done what was asked."""


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    content: bytes
    """No longer compressed."""

    @property
    def text(self) -> str:
        charset = self.headers.get("content-type", "").lower().partition("charset=")[2].partition(";")[0].strip(' "')
        try:
            return self.content.decode(charset or "utf-8", "replace")
        except LookupError:
            return self.content.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: until there is a connection, then for each piece of the answer."""

    connect: float = 10.0
    read: float = 30.0


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
    ) -> None:
        """`base`: the address that the paths of requests go on from. Raises CatalogError when it is none."""
        try:
            parts = urlsplit(base)
            host = (parts.hostname or "").encode("idna").decode()
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as error:
            raise CatalogError(Code.INVALID_INPUT, f"the address {base} is not valid: {error}") from error
        if parts.scheme not in ("http", "https") or not host:
            raise CatalogError(Code.INVALID_INPUT, f"the address {base} is not valid: http(s)://host[:port]/...")
        self._host, self._port, self._timeouts = host, port, timeouts
        self._proxy = _proxy_of(parts.scheme, host, port)
        self._tls = _context(verify) if parts.scheme == "https" else None
        self._headers = {**_HEADERS, **_lowered(headers or {})}
        self._prefix = quote(parts.path, safe=_KEPT_IN_PATH)
        if self._proxy is not None and self._tls is None:
            self._headers |= _credentials(self._proxy)
            shown = (f"[{host}]" if ":" in host else host) + (f":{port}" if parts.port else "")
            self._prefix = f"http://{shown}{self._prefix}"
        self._idle: list[http.client.HTTPConnection] = []

    def close(self) -> None:
        while (connection := self._kept()) is not None:
            connection.close()

    def exchange(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        """`target`: the path below the base, and the query, percent-encoded. Raises NeverSent, Broken."""
        connection = self._connected()
        try:
            connection.request(method, self._prefix + target or "/", body, {**self._headers, **_lowered(headers)})
            answer = connection.getresponse()
            content = answer.read()
            if answer.status < 200:  # its real answer would be taken for that of the next request
                raise Broken(f"the server answered {answer.status}, which is no answer")
        except BaseException as error:
            connection.close()
            if isinstance(error, (OSError, http.client.HTTPException, ValueError)):
                raise Broken(_why(error, "ReadTimeout")) from error
            raise
        if connection.sock is not None:
            self._idle.append(connection)
        found = _lowered(answer.headers)
        return Answer(answer.status, found, _plain(content, found.get("content-encoding")))

    # connections

    def _kept(self) -> http.client.HTTPConnection | None:
        try:
            return self._idle.pop()  # the last used: the others may end by themselves
        except IndexError:
            return None

    def _connected(self) -> http.client.HTTPConnection:
        """An idle connection on which there is something to read was closed by the server, or holds what nobody asked
        for: no request goes out on it."""
        while (connection := self._kept()) is not None:
            if not _readable(connection.sock):
                return connection
            connection.close()
        connection = self._new()
        try:
            connection.connect()
            connection.sock.settimeout(self._timeouts.read)
        except (OSError, http.client.HTTPException, ValueError) as error:
            connection.close()
            raise NeverSent(_why(error, "ConnectTimeout")) from error
        connection.auto_open = 0  # a request never connects by itself: see NeverSent
        return connection

    def _new(self) -> http.client.HTTPConnection:
        host, port, seconds = self._host, self._port, self._timeouts.connect
        if self._proxy is not None:
            host, port = self._proxy.hostname or "", self._proxy.port or 80
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=seconds)
        connection = http.client.HTTPSConnection(host, port, timeout=seconds, context=self._tls)
        if self._proxy is not None:
            connection.set_tunnel(self._host, self._port, _credentials(self._proxy))
        return connection


def _lowered(headers: Mapping[str, str] | Message) -> dict[str, str]:
    """One spelling: a header of the request takes the place of the user's."""
    return {name.lower(): value for name, value in headers.items()}


def _readable(sock: socket.socket) -> bool:
    if hasattr(select, "poll"):  # select() has no room for the handles of a large process
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([sock], [], [], 0)[0])


def _plain(content: bytes, encoding: str | None) -> bytes:
    if not content or encoding in (None, "", "identity"):
        return content
    if encoding not in ("gzip", "x-gzip"):
        raise Broken(f"the answer is encoded as {encoding!r}, which was not asked for")
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise Broken(f"the compressed answer is damaged: {error}") from error


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
        return f"no answer in time ({timeout})"
    return clean(str(error)) or type(error).__name__
