"""The calls of the Iceberg REST protocol that we need, with its errors as CatalogError."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from reconciler.catalog.entries import BrokenEntry, NamespaceEntry, TableEntry
from reconciler.catalog.http import Http, Reply
from reconciler.catalog.iceberg_keys import WriteKeys
from reconciler.catalog.iceberg_wire import (
    Warehouse,
    code_of,
    error_type,
    may_be_missing,
    namespace_from,
    says_missing,
    table_from,
    warehouse_of,
)
from reconciler.catalog.paging import Pages
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind, dotted

_PAGE = "1000"
_REMEMBERED = 4096
"""Tables whose ETag is kept: enough for the tables of an apply, and no burden in a scan of a hundred thousand."""


class MaybeMissing(CatalogError):
    """The catalog answered 404 and did not say what is missing."""


class IcebergClient:
    """`endpoint` is the address in the manifest; `http` has its origin as base."""

    def __init__(self, http: Http, endpoint: str, prefix: str | None) -> None:
        self.http = http
        self.endpoint = endpoint
        self._prefix = prefix
        self._lock = threading.Lock()
        self._warehouses: dict[str, Warehouse] = {}
        self._keys = WriteKeys()
        self._tags = _Tags()
        self._added: dict[tuple[Kind, Ident], frozenset[str]] = {}

    def close(self) -> None:
        self.http.close()

    def warehouse(self, name: str) -> Warehouse:
        """Asked for once: a server's configuration does not change under a run."""
        with self._lock:
            if name not in self._warehouses:
                self._warehouses[name] = self._configure(name)
            return self._warehouses[name]

    def _configure(self, name: str) -> Warehouse:
        doing = f"open warehouse {name!r}"
        try:
            reply = self.http.get(f"{urlsplit(self.endpoint).path.rstrip('/')}/v1/config", {"warehouse": name})
        except CatalogError as error:
            raise error.reworded(f"cannot {doing}: {error.message}") from error
        if not reply.ok:
            code = Code.INVALID_INPUT if reply.status in (400, 404) else None
            failure = self.error(reply, doing, code=code)
            if reply.status in (400, 404) and error_type(reply) is not None:
                hint = "no such warehouse: check spec.endpoint and the warehouse"
                failure = failure.reworded(f"{failure.message} ({hint})")
            raise failure
        return warehouse_of(name, self.endpoint, reply.body, self._prefix)

    # reads

    def namespace(self, at: Warehouse, ident: Ident) -> NamespaceEntry | BrokenEntry | None:
        """Raises CatalogError."""
        doing = f"read namespace {dotted(ident)}"
        reply = self.http.get(at.namespace(ident[1:]))
        if says_missing(reply):
            return None
        return namespace_from(ident, self._body(reply, doing), self.added("Namespace", ident))

    def table(self, at: Warehouse, ident: Ident) -> TableEntry | BrokenEntry | None:
        """Raises CatalogError. An unchanged table is not sent again by a server that knows ETags."""
        doing = f"read table {dotted(ident)}"
        path = at.table(ident[1:-1], ident[-1])
        tag, known = self._tags.get(path)
        reply = self.http.get(path, {"snapshots": "refs"}, {"If-None-Match": tag} if tag else None)
        if reply.status == 304 and known is not None:
            return known
        if says_missing(reply):
            return None
        entry = table_from(ident, self._body(reply, doing), self.added("Table", ident))
        if isinstance(entry, TableEntry):
            self._tags.put(path, reply.headers.get("etag"), entry)
        return entry

    def child_namespaces(self, at: Warehouse, ident: Ident) -> Listing:
        return Listing(self, at.namespaces(), at.parent(ident[1:]), "namespaces", ident)

    def tables(self, at: Warehouse, ident: Ident) -> Listing:
        return Listing(self, at.tables(ident[1:]), {}, "identifiers", ident)

    def views(self, at: Warehouse, ident: Ident) -> Listing:
        return Listing(self, f"{at.namespace(ident[1:])}/views", {}, "identifiers", ident)

    # writes

    def added(self, kind: Kind, ident: Ident) -> frozenset[str]:
        return self._added.get((kind, ident), frozenset())

    def learn(self, kind: Kind, ident: Ident, asked: Mapping[str, str], got: Mapping[str, str]) -> None:
        """What the server added to an object that we have just made: not a change by somebody else."""
        if keys := frozenset(got) - frozenset(asked):
            self._added[kind, ident] = keys

    def need(self, at: Warehouse, endpoint: str, doing: str) -> None:
        if not at.offers(endpoint):
            raise CatalogError(Code.UNSUPPORTED, f"cannot {doing}: the server does not offer {endpoint!r}")

    def write(
        self,
        at: Warehouse,
        endpoint: str,
        path: str,
        doing: str,
        json: Any = None,
        *,
        params: Mapping[str, str] | None = None,
        conflict: Code = Code.CONCURRENT_MODIFICATION,
    ) -> Reply:
        """`endpoint` as servers announce it. `conflict`: what a 409 means. Raises CatalogError unless it was done."""
        self.need(at, endpoint, doing)
        method = endpoint.split(" ", 1)[0]
        headers = None
        if at.key_lifetime is not None:
            headers = {"Idempotency-Key": self._keys.key(method, path, json, at.key_lifetime)}
        try:
            reply = self.http.send(method, path, json, params, headers)
        except CatalogError as error:
            if not error.unknown_outcome:
                self._keys.settled(method, path, json)
            raise
        self._keys.settled(method, path, json)
        if not reply.ok:
            raise self.error(reply, doing, code=code_of(reply, conflict))
        return reply

    # errors

    def error(self, reply: Reply, doing: str, *, code: Code | None = None) -> CatalogError:
        return self.http.error(reply, f"cannot {doing}: {self.http.base}", code=code)

    def _body(self, reply: Reply, doing: str) -> dict[str, Any]:
        if not reply.ok:
            error = self.error(reply, doing, code=code_of(reply, Code.CONCURRENT_MODIFICATION))
            raise MaybeMissing(error.code, error.message) if may_be_missing(reply) else error
        if not isinstance(reply.body, dict):
            raise CatalogError(Code.INTERNAL, f"cannot {doing}: the answer is no JSON object: {self.http.unlike()}")
        return reply.body


class Listing:
    """One list, page by page."""

    def __init__(self, client: IcebergClient, path: str, query: Mapping[str, str], field: str, ident: Ident) -> None:
        self._client, self._path, self._query, self._field, self._ident = client, path, query, field, ident
        self._doing = f"cannot list {path.rsplit('/', 1)[1]} of {dotted(ident)}"
        self._pages = Pages(self._doing)
        self._token: str | None = ""
        self.finished = False

    def page(self) -> list[str]:
        """The names on the next page that were on none before. Raises CatalogError."""
        http = self._client.http
        reply = http.get(self._path, {**self._query, "pageToken": self._token or "", "pageSize": _PAGE})
        body = self._client._body(reply, self._doing.removeprefix("cannot "))
        items = body.get(self._field)
        if not isinstance(items, list):
            raise CatalogError(Code.INTERNAL, f"{self._doing}: the answer holds no {self._field!r}: {http.unlike()}")
        fresh = self._pages.new(self._name(item) for item in items)
        self._token = self._pages.following(body.get("next-page-token"))
        self.finished = self._token is None
        return fresh

    def all(self) -> list[str]:
        names: list[str] = []
        while not self.finished:
            names += self.page()
        return names

    def _name(self, item: Any) -> str:
        """The last name; the rest must be where we asked."""
        above, name = None, None
        if isinstance(item, Mapping):
            above, name = item.get("namespace"), item.get("name")
        elif isinstance(item, list) and item:
            above, name = item[:-1], item[-1]
        if above != list(self._ident[1:]) or not isinstance(name, str):
            raise CatalogError(
                Code.INTERNAL, f"{self._doing}: the answer names {repr(item)[:80]}, which is not directly inside"
            )
        return name


class _Tags:
    """The last answers that carried an ETag."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[str, TableEntry]] = OrderedDict()

    def get(self, path: str) -> tuple[str | None, TableEntry | None]:
        with self._lock:
            return self._known.get(path, (None, None))

    def put(self, path: str, tag: str | None, entry: TableEntry) -> None:
        """Jetty marks the tag of a compressed answer and does not know that mark again."""
        with self._lock:
            self._known.pop(path, None)
            if tag:
                self._known[path] = (tag.removesuffix("--gzip"), entry)
                if len(self._known) > _REMEMBERED:
                    self._known.popitem(last=False)
