"""HTTP/1.1 messages on asyncio streams: as much as a proxy needs, byte for byte, so that faults can be put anywhere."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

Headers = list[tuple[str, str]]


@dataclass
class Message:
    """A request or an answer, its body complete and no longer chunked."""

    start: str
    headers: Headers = field(default_factory=list)
    body: bytes = b""

    def get(self, name: str) -> str | None:
        return next((v for k, v in self.headers if k.lower() == name), None)

    def without(self, *names: str) -> Headers:
        return [(k, v) for k, v in self.headers if k.lower() not in names]

    def head(self, headers: Headers) -> bytes:
        lines = [self.start, *(f"{k}: {v}" for k, v in headers), "", ""]
        return "\r\n".join(lines).encode("latin-1")


async def read_message(reader: asyncio.StreamReader, *, bodyless: bool = False, until_end: bool = False) -> Message:
    """Raises IncompleteReadError when the other side went away. `until_end`: an answer without a length goes on until
    the connection ends."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    start, *lines = head[:-4].split("\r\n")
    message = Message(start, [(k.strip(), v.strip()) for k, _, v in (line.partition(":") for line in lines)])
    if start.startswith("HTTP/") and start.split(" ")[1].startswith("1"):
        return await read_message(reader, bodyless=bodyless, until_end=until_end)  # 100 Continue
    length = message.get("content-length")
    if bodyless:
        return message
    if "chunked" in (message.get("transfer-encoding") or "").lower():
        message.body = await _chunks(reader)
    elif length is not None:
        message.body = await reader.readexactly(int(length))
    elif until_end:
        message.body = await reader.read()
    return message


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    parts = []
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers
    return b"".join(parts)


def has_no_body(method: str, status: int) -> bool:
    return method == "HEAD" or status in (204, 304) or status < 200
