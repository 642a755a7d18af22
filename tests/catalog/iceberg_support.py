"""A scripted Iceberg REST server for what real ones cannot be made to do, and short ways to look at a catalog."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from reconciler.catalog.base import WriteContext
from reconciler.catalog.entry_catalog import EntryCatalog
from reconciler.catalog.iceberg import connect
from reconciler.model.change import Change
from reconciler.model.ident import Ident, Kind
from reconciler.model.observed import Finding, Gap, Observation, Occupied, Scope

Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]
Route = Callable[["Call"], Answer]
CONFIG: dict[str, Any] = {"defaults": {}, "overrides": {}}
UUID = "7b1c9a7e-6f0e-4f5e-9a1e-1d3f6f7f9b10"


class Call:
    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        self.method = handler.command
        self.path = parts.path
        """As it was sent, percent-encoded."""
        self.query = {k: v[0] for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
        self.headers = {k.lower(): v for k, v in handler.headers.items()}
        raw = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        is_json = "json" in self.headers.get("content-type", "")
        self.body: Any = json.loads(raw) if raw and is_json else raw.decode()


class Scripted:
    """The first route whose pattern matches `METHOD /path` answers."""

    def __init__(self) -> None:
        self.routes: list[tuple[re.Pattern[str], Route]] = []
        self.calls: list[Call] = []
        lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or each answer waits 40 ms for an acknowledgement

            def log_message(self, *args: object) -> None:
                """Nobody reads it."""

            def answer(self) -> None:
                call = Call(self)
                with lock:
                    outer.calls.append(call)
                status, body, *more = outer._answer(call)
                data = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "text/html" if isinstance(body, str) else "application/json")
                self.send_header("content-length", str(len(data)))
                for key, value in (more[0] if more else {}).items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_DELETE = do_HEAD = answer

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def on(self, pattern: str, route: Route | Answer) -> None:
        """Later routes win."""
        self.routes.insert(0, (re.compile(pattern), route if callable(route) else lambda call: route))

    def config(self, **said: Any) -> None:
        self.on(r"GET /v1/config$", (200, {**CONFIG, **said}))

    def requests(self, pattern: str) -> list[Call]:
        return [c for c in self.calls if re.search(pattern, f"{c.method} {c.path}")]

    def _answer(self, call: Call) -> Answer:
        for pattern, route in self.routes:
            if pattern.search(f"{call.method} {call.path}"):
                return route(call)
        return 400, error(400, "BadRequestException", f"no route for {call.method} {call.path}")


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    """Says yes to the configuration and has nothing in it."""
    server = Scripted()
    server.on(r"GET .*/namespaces$", (200, {"namespaces": [], "next-page-token": None}))
    server.on(r"GET .*/(tables|views)$", (200, {"identifiers": [], "next-page-token": None}))
    server.config()
    yield server
    server.server.shutdown()
    server.server.server_close()


def error(status: int, type_: str, message: str = "as scripted") -> dict[str, Any]:
    return {"error": {"message": message, "type": type_, "code": status}}


def loaded(location: str = "/nowhere", properties: dict[str, str] | None = None) -> dict[str, Any]:
    """A Lance table as `loadTable` shows it."""
    said = {"table_type": "lance", **(properties or {})}
    return {"metadata": {"table-uuid": UUID, "location": location, "properties": said}}


def open_catalog(endpoint: str, **options: str) -> EntryCatalog:
    return connect({"endpoint": endpoint, "warehouse": "wh", "max_retries": "0", **options})


def scan(catalog: EntryCatalog, scope: Scope | None = None) -> dict[tuple[str, Ident], Finding | Gap | Occupied]:
    found: dict[tuple[str, Ident], Finding | Gap | Occupied] = {}
    for item in catalog.scan(scope or Scope()):
        if isinstance(item, Observation):
            found[item.kind, item.ident] = item.finding
        else:
            found[type(item).__name__, item.ident] = item
    return found


def find(catalog: EntryCatalog, kind: Kind, *ident: str) -> Finding:
    (observation,) = catalog.read([(kind, ident)], Scope())
    return observation.finding


def apply(catalog: EntryCatalog, change: Change) -> None:
    catalog.apply(change, WriteContext("sha256:test", "s1"))
