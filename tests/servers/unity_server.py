"""A stand-in for Unity Catalog 0.6.0, which cannot be had as a package. That it answers as the real one does is shown
by replaying `tests/recordings/unity-0.6.0-*.jsonl` (tests/catalog/test_unity_replay.py).

`RECONCILER_TEST_UNITY=<endpoint>` makes the tests use a real server instead, where they do not need a switch of this
one.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from servers.unity_checks import Refused, check_name, invalid, parsed
from servers.unity_state import LEAVES, Object, State

API = "/api/2.1/unity-catalog"
CONTROL = "/api/1.0/unity-control"
_MODELS = {"catalogs": "CreateCatalog", "schemas": "CreateSchema", "tables": "CreateTable"}
_OLD = {"CATALOG_NOT_FOUND": "NOT_FOUND", "SCHEMA_NOT_FOUND": "NOT_FOUND", "TABLE_NOT_FOUND": "NOT_FOUND"}
DELTA = {
    "CATALOG_NOT_FOUND": "NoSuchCatalogException", "SCHEMA_NOT_FOUND": "NoSuchSchemaException",
    "TABLE_NOT_FOUND": "NoSuchTableException", "TABLE_ALREADY_EXISTS": "AlreadyExistsException",
    "INVALID_ARGUMENT": "InvalidParameterValueException", "INTERNAL": "InternalServerErrorException",
    "PERMISSION_DENIED": "PermissionDeniedException",
}  # fmt: skip
"""The same errors in the words of the Delta API."""
_OLDER = dict.fromkeys(("CATALOG_ALREADY_EXISTS", "SCHEMA_ALREADY_EXISTS", "TABLE_ALREADY_EXISTS"), "ALREADY_EXISTS")


class UnityServer:
    """Switches: `token` (a bearer token is needed), `old` (the error codes of 0.4.0), `missing` (paths this server does
    not have), `principal` (whose token it is: with it the rights to make and to remove a table are checked, by the
    `owner` of objects and by `grants`: securable to principal to privileges), `state.race`, `state.only_delta`,
    `state.lenient`, `state.visible`. `requests` is what came in."""

    def __init__(self, folder: str = "/server") -> None:
        self.state = State(folder)
        self.token: str | None = None
        self.principal: str | None = None
        self.grants: dict[str, dict[str, list[str]]] = {}
        self.external: list[Object] = []
        self.old = False
        self.missing: set[str] = set()
        self.requests: list[tuple[str, str]] = []
        self._ids = {"metastore": "00000000-0000-4000-8000-000000000000"}
        handler = type("Handler", (_Handler,), {"unity": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # one request

    def answer(self, method: str, target: str, raw: bytes, token: str | None) -> tuple[int, Any]:
        """A string is answered as text, anything else as JSON."""
        self.requests.append((method, target))
        try:
            if self.token is not None and token != f"Bearer {self.token}":
                raise Refused(401, "UNAUTHENTICATED", "Missing or invalid authentication token")
            parts = urlsplit(target)
            path = [unquote(p) for p in parts.path.removeprefix(API).strip("/").split("/")]
            query = {k: v[0] for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
            if parts.path == f"{CONTROL}/scim2/Me" and self.principal is not None:
                return 200, {"userName": self.principal, "emails": [{"value": self.principal, "primary": True}]}
            if not parts.path.startswith(API + "/") or path[0] in self.missing:
                return _plain(404, "Not Found")
            return self._route(method, path, query, raw)
        except Refused as refused:
            return self._refusal(refused)

    def _refusal(self, refused: Refused) -> tuple[int, Any]:
        status, code = refused.status, refused.code
        if self.old and code in _OLDER:
            status, code = 409, _OLDER[code]
        code = _OLD.get(code, code) if self.old else code
        details = [{"reason": code, "@type": "google.rpc.ErrorInfo"}]
        return status, {"error_code": code, "details": details, "message": refused.message}

    def _route(self, method: str, path: list[str], query: dict[str, str], raw: bytes) -> tuple[int, Any]:
        kind = path[0]
        if kind == "delta" and not self.old:
            return self._delta(method, path, raw)
        if kind == "external-locations" and method == "GET":
            return 200, {"external_locations": self.external, "next_page_token": None}
        if kind == "permissions":
            held = self.grants.get("/".join(path[1:]), {})
            told = held if self._owns(*path[1:3]) else {p: v for p, v in held.items() if p == self.principal}
            return 200, {"privilege_assignments": [{"principal": p, "privileges": v} for p, v in told.items()]}
        if kind == "metastore_summary":
            return 200, {"metastore_id": self._ids["metastore"]}
        if kind not in ("catalogs", "schemas", *LEAVES) or len(path) > 2:
            return _plain(404, "Not Found")
        if len(path) == 1:
            if method == "POST":
                return 200, self._create(kind, parsed(raw, _MODELS.get(kind, "Create")))
            return (200, self._list(kind, query)) if method == "GET" else _plain(405, "Method Not Allowed")
        names = self._names(kind, path[1])
        if kind == "tables" and method == "DELETE":
            self._check_may_delete(names)
        if method == "GET":
            return 200, self._get(kind, names)
        if method == "DELETE":
            self._delete(kind, names, query.get("force"))
            return 200, "200 OK"
        if method == "PATCH" and kind in ("catalogs", "schemas"):
            return 200, self._patch(kind, names, parsed(raw, "Update"))
        return _plain(405, "Method Not Allowed")

    def _delta(self, method: str, path: list[str], raw: bytes) -> tuple[int, Any]:
        """Of the Delta API only the rename, which does not look at the format of the table."""
        if len(path) != 9 or path[1:3] + path[4:9:2] != ["v1", "catalogs", "schemas", "tables", "rename"]:
            return _plain(404, "Not Found")
        if method != "POST":
            return _plain(405, "Method Not Allowed")
        try:
            self.state.rename_table(path[3], path[5], path[7], json.loads(raw).get("new-name"))
        except Refused as refused:
            status = 409 if refused.code.endswith("ALREADY_EXISTS") else refused.status
            error = {"message": refused.message, "type": DELTA[refused.code], "code": status, "stack": None}
            return status, {"error": error}
        return 204, ""

    # what the principal may do

    def _owns(self, kind: str, full: str) -> bool:
        if kind == "external_location":
            return any(e["owner"] == self.principal for e in self.external if e["name"] == full)
        names = full.split(".")
        with self.state.lock:
            info = self.state.catalog(names[0]).info if kind == "catalog" else self.state.schema(*names[:2]).info
        return info["owner"] == self.principal

    def _check_may_create(self, names: list[str], location: str) -> None:
        if self.principal is None:
            return
        above = (f"catalog/{names[0]}", f"schema/{'.'.join(names)}")
        if not self._owns("schema", ".".join(names)) and not self._held(*above) >= {"CREATE TABLE", "USE SCHEMA"}:
            raise Refused(403, "PERMISSION_DENIED", "Access denied.")
        for outer in (e for e in self.external if location.startswith(e["url"] + "/")):
            of = f"external_location/{outer['name']}"
            if outer["owner"] != self.principal and "CREATE EXTERNAL TABLE" not in self._held(of):
                raise Refused(403, "PERMISSION_DENIED", "Access denied.")

    def _held(self, *securables: str) -> set[str]:
        return {p for of in securables for p in self.grants.get(of, {}).get(self.principal or "", ())}

    def _check_may_delete(self, names: list[str]) -> None:
        if self.principal is None or self._owns("catalog", names[0]) or self._owns("schema", ".".join(names)):
            return
        if self._get("tables", names)["owner"] != self.principal:
            raise Refused(403, "PERMISSION_DENIED", "Access denied.")

    def _names(self, kind: str, full: str) -> list[str]:
        if kind == "catalogs":
            return [full]
        names = re.split(r"[.\x1f]", full)
        if kind == "schemas" and len(names) != 2:
            raise invalid(f"Invalid schema full name: {full}")
        if kind not in ("schemas", "catalogs") and len(names) != 3:
            raise invalid(f"Invalid table name: {full}")
        return names

    def _create(self, kind: str, body: Object) -> Object:
        if kind == "catalogs":
            return self.state.create_catalog(body)
        if kind == "schemas":
            check_name(body.get("name"))
            return self.state.create_schema(body)
        if kind == "tables":
            self._check_may_create([body["catalog_name"], body["schema_name"]], f"{body.get('storage_location')}/")
        return self.state.create_table(body) if kind == "tables" else self.state.create_leaf(kind, body)

    def _list(self, kind: str, query: dict[str, str]) -> Object:
        state = self.state
        try:
            size = int(query.get("max_results", "0"))
        except ValueError:
            raise invalid(f'For input string: "{query["max_results"]}"') from None
        with state.lock:
            if kind == "catalogs":
                items, key = [c.info for c in state.catalogs.values()], "catalogs"
            elif kind == "schemas":
                items = [s.info for s in state.catalog(_needed(query, "catalog_name")).schemas.values()]
                key = "schemas"
            else:
                schema = state.schema(_needed(query, "catalog_name"), _needed(query, "schema_name"))
                items, key = list(schema.leaves[kind]), LEAVES[kind]
        page, token = state.page(items, size, query.get("page_token", ""))
        left_out = {k: v for k, v in (("properties", {}), ("columns", [])) if query.get(f"omit_{k}") == "true"}
        return {key: [{**item, **left_out} for item in page], "next_page_token": token}

    def _get(self, kind: str, names: list[str]) -> Object:
        state = self.state
        with state.lock:
            if kind == "catalogs":
                return state.catalog(names[0]).info
            schema = state.schema(names[0], names[1])
            return schema.info if kind == "schemas" else state.one(schema.leaves[kind], names[2], ".".join(names))

    def _patch(self, kind: str, names: list[str], body: Object) -> Object:
        if kind == "schemas":
            return self.state.update_schema(names[0], names[1], body)
        with self.state.lock:
            return self.state.update(self.state.catalog(names[0]).info, body)

    def _delete(self, kind: str, names: list[str], force: str | None) -> None:
        if force not in (None, "true", "false"):
            raise invalid(f"Can't convert '{force}' to type 'Boolean'.")
        state = self.state
        with state.lock:
            if kind == "catalogs":
                state.delete_catalog(names[0], force == "true")
            elif kind == "schemas":
                state.delete_schema(names[0], names[1], force == "true")
            else:
                leaves = state.schema(names[0], names[1]).leaves[kind]
                leaves.remove(state.one(leaves, names[2], names[2]))


def _needed(query: dict[str, str], key: str) -> str:
    if key not in query:
        raise invalid(f"Mandatory parameter/header is missing: {key}")
    return query[key]


def _plain(status: int, words: str) -> tuple[int, str]:
    return status, f"Status: {status}\nDescription: {words}\n"


class _Handler(BaseHTTPRequestHandler):
    unity: UnityServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def _serve(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, body = self.unity.answer(self.command, self.path, raw, self.headers.get("Authorization"))
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def unity_server(folder: str = "/server") -> Iterator[UnityServer]:
    server = UnityServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
