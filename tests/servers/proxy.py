"""An HTTP reverse proxy in a thread, between us and a real server, whose faults are scripted.

    with Proxy(server.endpoint) as proxy:
        catalog = connect({"uri": proxy.endpoint, ...})
        proxy.fault(cut_answer, method="POST", path="/tables")       # the next POST whose path matches, once
        proxy.fault(answer(429, retry_after=1), times=3)             # the next three requests of any kind
        proxy.fault(answer(503), method="GET", skip=2, times=None)   # from the third GET on, for ever
        proxy.fault(truncate, operation="GetTables")                 # AWS: by the name in X-Amz-Target
        proxy.latency = 0.02                                         # every call
        ...
        assert proxy.count("POST", "/tables") == 1                   # what reached the proxy
        assert proxy.most_in_flight <= 8 and proxy.connections <= 8
        proxy.forget()                                               # counters and script start anew

The first rule that matches and is not used up acts. `path` is a regular expression searched in the path with its query,
as it was sent (percent-encoded). Faults: `cut_before`, `reset_before` (never reaches the server), `cut_answer`,
`reset_after` (the server did it), `truncate`, `delay(s)`, `answer(status, ...)`, `answer(..., forward=True)`,
`edited(f)` (the server's own JSON, changed by a function), and `before(f)` / `after(f)`, which run any function around
the forwarding (somebody else is quicker than we are).
With `tls=` it speaks TLS to the client (see tls.py).
"""

from __future__ import annotations

import asyncio
import gzip
import json as json_module
import re
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from servers.proxy_wire import Message, has_no_body, read_message

_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length", "expect", "proxy-connection")


@dataclass
class Request:
    method: str
    path: str
    """With the query, as sent."""
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    status: int | None = None
    """What the client was told; None when it was told nothing."""

    @property
    def operation(self) -> str | None:
        """The AWS name of the call."""
        target = self.headers.get("x-amz-target")
        return target.rpartition(".")[2] if target else None


class Exchange:
    """One request on its way: what a fault works with."""

    def __init__(self, proxy: Proxy, request: Request, message: Message, writer: asyncio.StreamWriter) -> None:
        self.request = request
        self._proxy, self._message, self._writer = proxy, message, writer
        self._open = True

    async def forward(self) -> Message:
        """A new connection each time: what a server does with idle ones is not what is tested."""
        reader, writer = await asyncio.open_connection(self._proxy.host, self._proxy.port, limit=1 << 20)
        try:
            sent = self._message
            headers = [*sent.without(*_HOP), ("Connection", "close")]
            if sent.body or self.request.method in ("POST", "PUT", "PATCH"):
                headers.append(("Content-Length", str(len(sent.body))))
            writer.write(sent.head(headers) + sent.body)
            await writer.drain()
            bodyless = self.request.method == "HEAD"
            return await read_message(reader, bodyless=bodyless, until_end=True)
        finally:
            writer.close()

    async def give(self, reply: Message, part: float = 1.0) -> None:
        """Answers the client; with `part` < 1 the body ends early, though its whole length was announced."""
        status = int(reply.start.split(" ")[1])
        headers = reply.without(*_HOP)
        if self.request.method == "HEAD" and (length := reply.get("content-length")) is not None:
            headers.append(("Content-Length", length))
        elif not has_no_body(self.request.method, status):
            headers.append(("Content-Length", str(len(reply.body))))
        self.request.status = status
        self.over()
        self._writer.write(reply.head(headers) + reply.body[: int(len(reply.body) * part)])
        await self._writer.drain()

    def over(self) -> None:
        """No longer in flight: said before the client can know it, or its next request would be counted beside this."""
        if self._open:
            self._open = False
            self._proxy.leave()

    def cut(self) -> None:
        self.over()
        self._writer.close()

    def reset(self) -> None:
        """RST instead of FIN, as a crashed process or a firewall does it."""
        self.over()
        raw = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


Fault = Callable[[Exchange], Awaitable[None]]


async def cut_before(exchange: Exchange) -> None:
    exchange.cut()


async def cut_answer(exchange: Exchange) -> None:
    await exchange.forward()
    exchange.cut()


async def reset_before(exchange: Exchange) -> None:
    exchange.reset()


async def reset_after(exchange: Exchange) -> None:
    await exchange.forward()
    exchange.reset()


async def truncate(exchange: Exchange) -> None:
    await exchange.give(await exchange.forward(), part=0.5)
    exchange.cut()


def delay(seconds: float) -> Fault:
    """The server does it at once; its answer comes late."""

    async def act(exchange: Exchange) -> None:
        reply = await exchange.forward()
        await asyncio.sleep(seconds)
        await exchange.give(reply)

    return act


def answer(
    status: int, body: str = "", *, retry_after: float | None = None, json: bool = True, forward: bool = False
) -> Fault:
    """An answer of the proxy's own; `forward=True`: the server did it, and the answer is wrong."""
    headers = [("Content-Type", "application/json" if json else "text/plain")] if body else []
    if retry_after is not None:
        headers.append(("Retry-After", f"{retry_after:g}"))

    async def act(exchange: Exchange) -> None:
        if forward:
            await exchange.forward()
        await exchange.give(Message(f"HTTP/1.1 {status} Scripted", headers, body.encode()))

    return act


def edited(edit: Callable[[Any], Any]) -> Fault:
    """The server's JSON answer as the function returns it."""

    async def act(exchange: Exchange) -> None:
        reply = await exchange.forward()
        packed = (reply.get("content-encoding") or "") == "gzip"
        value = json_module.loads(gzip.decompress(reply.body) if packed else reply.body)
        await exchange.give(
            Message(reply.start, reply.without("content-encoding"), json_module.dumps(edit(value)).encode())
        )

    return act


def before(action: Callable[[], object]) -> Fault:
    """Runs the function (in a thread, so it may itself use the proxy), then forwards as usual."""

    async def act(exchange: Exchange) -> None:
        await asyncio.to_thread(action)
        await exchange.give(await exchange.forward())

    return act


def after(action: Callable[[], object]) -> Fault:
    """Forwards, runs the function, then answers."""

    async def act(exchange: Exchange) -> None:
        reply = await exchange.forward()
        await asyncio.to_thread(action)
        await exchange.give(reply)

    return act


@dataclass
class Rule:
    act: Fault
    method: str | None
    path: re.Pattern[str]
    operation: str | None
    where: Callable[[Request], bool] | None
    skip: int
    times: int | None
    used: int = 0
    """How often it acted."""

    def takes(self, request: Request) -> bool:
        if self.times is not None and self.used >= self.times:
            return False
        fits = self.method in (None, request.method) and self.operation in (None, request.operation)
        if not fits or not self.path.search(request.path) or not (self.where is None or self.where(request)):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.used += 1
        return True


@dataclass
class Proxy:
    target: str
    """`http://host:port`; a path in it is ignored."""
    tls: ssl.SSLContext | None = None
    latency: float = 0.0
    """Seconds added to every call."""
    seen: list[Request] = field(default_factory=list)
    most_in_flight: int = 0
    """The most requests that were between arrival and answer at one time."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.target)
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 80
        self._rules: list[Rule] = []
        self._clients: set[object] = set()
        self._now = 0
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    # what tests use

    @property
    def endpoint(self) -> str:
        scheme, name = ("https", "localhost") if self.tls else ("http", "127.0.0.1")
        return f"{scheme}://{name}:{self._server.sockets[0].getsockname()[1]}"

    def fault(
        self,
        act: Fault,
        *,
        method: str | None = None,
        path: str = "",
        operation: str | None = None,
        where: Callable[[Request], bool] | None = None,
        skip: int = 0,
        times: int | None = 1,
    ) -> Rule:
        """Adds to the script. `skip`: so many matching requests pass first; `times=None`: for ever."""
        rule = Rule(act, method, re.compile(path), operation, where, skip, times)
        with self._lock:
            self._rules.append(rule)
        return rule

    def requests(self, method: str | None = None, path: str = "", operation: str | None = None) -> list[Request]:
        with self._lock:
            return [
                r
                for r in self.seen
                if method in (None, r.method) and operation in (None, r.operation) and re.search(path, r.path)
            ]

    def count(self, method: str | None = None, path: str = "", operation: str | None = None) -> int:
        return len(self.requests(method, path, operation))

    @property
    def counts(self) -> Counter[str]:
        """By method and path without query (by method and operation for AWS)."""
        return Counter(f"{r.method} {r.operation or r.path.partition('?')[0]}" for r in self.requests())

    @property
    def connections(self) -> int:
        """Distinct connections of clients that carried a request."""
        return len(self._clients)

    def forget(self) -> None:
        """Counters and script start anew; connections that are open stay open and count again once they are used."""
        with self._lock:
            self.seen, self._rules, self._clients, self.most_in_flight = [], [], set(), 0

    def close(self) -> None:
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
            self._loop.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # the proxy itself

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._client, "127.0.0.1", 0, ssl=self.tls, limit=1 << 20, backlog=512)

    async def _stop(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = object()
        try:
            while not writer.is_closing():
                message = await read_message(reader)
                await self._exchange(message, writer, name)
                if (message.get("connection") or "").lower() == "close":
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError, ssl.SSLError):
            pass  # the client went away, or the proxy is closing
        finally:
            writer.close()

    async def _exchange(self, message: Message, writer: asyncio.StreamWriter, client: object) -> None:
        method, path, _ = message.start.split(" ", 2)
        request = Request(method, path, {k.lower(): v for k, v in message.headers}, message.body)
        with self._lock:
            self._clients.add(client)
            self.seen.append(request)
            self._now += 1
            self.most_in_flight = max(self.most_in_flight, self._now)
            rule = next((r for r in self._rules if r.takes(request)), None)
        exchange = Exchange(self, request, message, writer)
        try:
            if self.latency:
                await asyncio.sleep(self.latency)
            if rule is not None:
                await rule.act(exchange)
            else:
                await exchange.give(await exchange.forward())
        except (ConnectionRefusedError, asyncio.IncompleteReadError) as error:
            await exchange.give(Message("HTTP/1.1 502 Bad Gateway", [], f"proxy: {error!r}".encode()))
        finally:
            exchange.over()

    def leave(self) -> None:
        with self._lock:
            self._now -= 1
