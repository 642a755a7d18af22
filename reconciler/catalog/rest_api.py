"""The Lance REST namespace protocol on the wire: routes, identifiers, pages, and what its errors mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Literal
from urllib.parse import quote

from reconciler.catalog.http import Http, Reply
from reconciler.catalog.lease_records import created
from reconciler.catalog.paging import Pages
from reconciler.catalog.rest_capabilities import DELIMITER
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, dotted

What = Literal["namespace", "table"]
_MISSING = frozenset({Code.NAMESPACE_NOT_FOUND, Code.TABLE_NOT_FOUND})


def code_of(reply: Reply) -> Code | None:
    """The Lance code in the body of an error. None without one: a gateway's 404 is not the server's."""
    code = reply.body.get("code") if isinstance(reply.body, dict) else None
    if isinstance(code, bool) or not isinstance(code, int) or code not in _CODES:
        return None
    return Code(code)


_CODES = frozenset(int(c) for c in Code)


class RestApi:
    """`http` has been made with `code_of`, so that its errors carry the server's own codes."""

    def __init__(self, http: Http, delimiter: str = DELIMITER) -> None:
        self.http = http
        self._delimiter = delimiter
        self._params = {} if delimiter == DELIMITER else {"delimiter": delimiter}

    # reads

    def pages(self, ident: Ident, what: What) -> Iterator[list[str]]:
        """The names directly inside, page by page. A namespace that is missing may be an empty list here (pylance's
        server) or NAMESPACE_NOT_FOUND: who needs to know asks `namespace`."""
        path = self._path("namespace", ident, "list" if what == "namespace" else "table/list")
        doing = f"list the {what}s of {_shown(ident)}"
        pages, token = Pages(doing), None
        while True:
            reply = self.http.get(path, {**self._params, **({"page_token": token} if token else {})})
            body = self._body(reply, doing)
            yield pages.new(self._names(body, what + "s", doing))
            token = pages.following(body.get("page_token"))
            if token is None:
                return

    def names(self, ident: Ident, what: What) -> list[str]:
        return sorted({name for page in self.pages(ident, what) for name in page})

    def namespace(self, ident: Ident) -> dict[str, str] | None:
        """Its properties; None when the server answered that it has no such namespace."""
        body = self._describe("namespace", ident, {})
        return None if body is None else _properties(body, f"describe namespace {_shown(ident)}")

    def table(self, ident: Ident) -> dict[str, Any] | None:
        return self._describe("table", ident, {"load_detailed_metadata": False})

    def _describe(self, what: What, ident: Ident, more: Mapping[str, object]) -> dict[str, Any] | None:
        reply = self.http.ask(self._path(what, ident, "describe"), {"id": list(ident), **more}, self._params)
        if reply.status == 404 and code_of(reply) in _MISSING:
            return None
        return self._body(reply, f"describe {what} {_shown(ident)}")

    # writes

    def create_namespace(self, ident: Ident, properties: Mapping[str, str]) -> None:
        self._send("namespace", ident, "create", {"properties": dict(properties)} if properties else {})

    def make_namespaces(self, ident: Ident, properties: Mapping[str, str]) -> None:
        """It, and what is missing above it. Looks before each: in a repeated step, one that is there is not sent again,
        and does not spend the sendings of its call."""
        for length in range(1, len(ident) + 1):
            above = ident[:length]
            if self.namespace(above) is None:
                created(partial(self.create_namespace, above, properties))

    def drop_namespace(self, ident: Ident) -> None:
        """The behaviour is the protocol's default, and said all the same: nothing may ever cascade."""
        self._send("namespace", ident, "drop", {"behavior": "Restrict"})

    def declare(self, ident: Ident, properties: Mapping[str, str]) -> str | None:
        """The location that the server chose, if the answer says so."""
        answer = self._send("table", ident, "declare", {"properties": dict(properties)} if properties else {})
        location = answer.body.get("location") if isinstance(answer.body, dict) else None
        return location if isinstance(location, str) and location else None

    def register(self, ident: Ident, location: str, properties: Mapping[str, str]) -> None:
        more = {"properties": dict(properties)} if properties else {}
        self._send("table", ident, "register", {"location": location, **more})

    def deregister(self, ident: Ident) -> None:
        self._send("table", ident, "deregister", {})

    def _send(self, what: What, ident: Ident, action: str, more: Mapping[str, object]) -> Reply:
        reply = self.http.send("POST", self._path(what, ident, action), {"id": list(ident), **more}, self._params)
        if not reply.ok:
            raise self.http.error(reply, f"{action} {what} {_shown(ident)}", write=True)
        return reply

    # the wire

    def _path(self, what: What, ident: Ident, action: str) -> str:
        """Every name is encoded by itself, so that only the delimiter is one. A dot alone would be taken for a folder
        by clients and gateways."""
        joined = _encoded(self._delimiter).join(_encoded(n) for n in ident) if ident else _encoded(self._delimiter)
        return f"/v1/{what}/{joined.replace('.', '%2E')}/{action}"

    def _body(self, reply: Reply, doing: str) -> dict[str, Any]:
        if not reply.ok:
            raise self.http.error(reply, doing)
        if not isinstance(reply.body, dict):
            raise CatalogError(Code.INTERNAL, f"{doing}: the answer is no JSON object: {self.http.unlike()}")
        return reply.body

    def _names(self, body: Mapping[str, Any], key: str, doing: str) -> list[str]:
        names = body.get(key)
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise CatalogError(Code.INTERNAL, f"{doing}: the answer holds no list {key!r}: {self.http.unlike()}")
        return names


def text_map(value: object, doing: str) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise CatalogError(Code.INTERNAL, f"{doing}: the properties are not a map of strings")
    return dict(value)


def _properties(body: Mapping[str, Any], doing: str) -> dict[str, str]:
    return text_map(body.get("properties"), doing)


def _encoded(name: str) -> str:
    return quote(name, safe="")


def _shown(ident: Ident) -> str:
    return dotted(ident) or "the root"
