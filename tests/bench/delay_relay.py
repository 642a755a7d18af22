"""A relay that adds a delay to every call and else only passes bytes on: on a machine with few cores a proxy that reads
HTTP would take as much of them as what is measured."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit


class _Side(asyncio.Protocol):
    """One end of a connection: what comes in goes to `other`."""

    transport: asyncio.Transport
    other: _Side | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert self.other is not None
        self.other.transport.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self.other is not None:
            self.other.transport.close()


class _Client(_Side):
    """`changed`: the peer puts the warehouse into every path, and Iceberg's own server knows none there. A request
    starts a piece of data, because no client here sends one before the answer to the last."""

    def __init__(self, host: str, port: int, seconds: float, changed: Mapping[bytes, bytes]) -> None:
        self._to, self._seconds, self._changed = (host, port), seconds, changed
        self._loop = asyncio.get_running_loop()
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._task = self._loop.create_task(self._reach())

    async def _reach(self) -> None:
        _, server = await self._loop.create_connection(_Side, *self._to)
        server.other, self.other = self, server
        for data in self._early:
            server.transport.write(data)

    def data_received(self, data: bytes) -> None:
        for old, new in self._changed.items():
            if old in data[:40]:
                data = data.replace(old, new, 1)
        if self._seconds:
            self._loop.call_later(self._seconds, self._forward, data)
        else:
            self._forward(data)

    def _forward(self, data: bytes) -> None:
        if self.other is None:
            self._early.append(data)
        else:
            self.other.transport.write(data)


@contextmanager
def relayed(target: str, seconds: float, changed: Mapping[bytes, bytes]) -> Iterator[str]:
    """The address of a relay to `target` (`http://host:port`) that holds every request back for so long."""
    there = urlsplit(target)
    assert there.hostname is not None
    assert there.port is not None
    host, port = there.hostname, there.port
    loop = asyncio.new_event_loop()

    async def listen() -> asyncio.Server:
        return await loop.create_server(lambda: _Client(host, port, seconds, changed), "127.0.0.1", 0, backlog=512)

    server = loop.run_until_complete(listen())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
