"""The calls of the Unity Catalog REST API that a catalog of Lance tables needs, and what its errors mean.

Errors are told apart by `error_code`, never by status: 0.4.1 and later answer 400 where older servers answer 409. An
answer without an `error_code` is not Unity's (a wrong `api_path`, a proxy), so a 404 of that kind is never absence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from reconciler.catalog.http import Http, Reply, message_of
from reconciler.catalog.paging import Pages
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind

Wire = dict[str, Any]
KINDS = {"tables": "tables", "volumes": "volumes", "functions": "functions", "models": "registered_models"}
"""What a schema can hold: the path of each kind and the key of its list."""
_MISSING = frozenset(
    ["CATALOG_NOT_FOUND", "SCHEMA_NOT_FOUND", "TABLE_NOT_FOUND", "NOT_FOUND", "RESOURCE_DOES_NOT_EXIST",
     "CATALOG_DOES_NOT_EXIST", "SCHEMA_DOES_NOT_EXIST", "TABLE_DOES_NOT_EXIST"]
)  # fmt: skip
_CODES = {
    "INVALID_ARGUMENT": Code.INVALID_INPUT, "INVALID_PARAMETER_VALUE": Code.INVALID_INPUT,
    "OUT_OF_RANGE": Code.INVALID_INPUT, "UNSUPPORTED_TABLE_FORMAT": Code.INVALID_INPUT,
    "CATALOG_NOT_FOUND": Code.NAMESPACE_NOT_FOUND, "SCHEMA_NOT_FOUND": Code.NAMESPACE_NOT_FOUND,
    "CATALOG_DOES_NOT_EXIST": Code.NAMESPACE_NOT_FOUND, "SCHEMA_DOES_NOT_EXIST": Code.NAMESPACE_NOT_FOUND,
    "TABLE_NOT_FOUND": Code.TABLE_NOT_FOUND, "TABLE_DOES_NOT_EXIST": Code.TABLE_NOT_FOUND,
    "CATALOG_ALREADY_EXISTS": Code.NAMESPACE_ALREADY_EXISTS, "SCHEMA_ALREADY_EXISTS": Code.NAMESPACE_ALREADY_EXISTS,
    "TABLE_ALREADY_EXISTS": Code.TABLE_ALREADY_EXISTS, "FAILED_PRECONDITION": Code.INVALID_TABLE_STATE,
    "INVALID_STATE": Code.INVALID_TABLE_STATE, "ABORTED": Code.CONCURRENT_MODIFICATION,
    "UNAUTHENTICATED": Code.UNAUTHENTICATED, "PERMISSION_DENIED": Code.PERMISSION_DENIED,
    "RESOURCE_EXHAUSTED": Code.THROTTLING, "REQUEST_LIMIT_EXCEEDED": Code.THROTTLING,
    "UNIMPLEMENTED": Code.UNSUPPORTED, "INTERNAL": Code.INTERNAL, "DATA_LOSS": Code.INTERNAL,
    "UNAVAILABLE": Code.SERVICE_UNAVAILABLE, "DEADLINE_EXCEEDED": Code.SERVICE_UNAVAILABLE,
    "TEMPORARILY_UNAVAILABLE": Code.SERVICE_UNAVAILABLE,
    # The words of the Delta API, which is where the server has its rename of a table.
    "NoSuchCatalogException": Code.NAMESPACE_NOT_FOUND, "NoSuchSchemaException": Code.NAMESPACE_NOT_FOUND,
    "NoSuchTableException": Code.TABLE_NOT_FOUND, "NotFoundException": Code.TABLE_NOT_FOUND,
    "AlreadyExistsException": Code.TABLE_ALREADY_EXISTS, "BadRequestException": Code.INVALID_INPUT,
    "InvalidParameterValueException": Code.INVALID_INPUT, "UnsupportedTableFormatException": Code.UNSUPPORTED,
    "NotAuthorizedException": Code.UNAUTHENTICATED, "PermissionDeniedException": Code.PERMISSION_DENIED,
    "TooManyRequestsException": Code.THROTTLING, "ResourceExhaustedException": Code.THROTTLING,
    "NotImplementedException": Code.UNSUPPORTED, "InternalServerErrorException": Code.INTERNAL,
    "CommitStateUnknownException": Code.INTERNAL,
}  # fmt: skip
_BY_KIND: dict[str, dict[Kind, Code]] = {
    "NOT_FOUND": {"Namespace": Code.NAMESPACE_NOT_FOUND, "Table": Code.TABLE_NOT_FOUND},
    "ALREADY_EXISTS": {"Namespace": Code.NAMESPACE_ALREADY_EXISTS, "Table": Code.TABLE_ALREADY_EXISTS},
}
_BY_KIND["RESOURCE_DOES_NOT_EXIST"] = _BY_KIND["NOT_FOUND"]
_BY_KIND["RESOURCE_ALREADY_EXISTS"] = _BY_KIND["ALREADY_EXISTS"]


class UnityClient:
    def __init__(self, http: Http, control: Http | None = None) -> None:
        """`control`: the API for users of the same server, where there is a token and its address is known."""
        self._http = http
        self._control = control

    @property
    def where(self) -> str:
        return self._http.base

    @property
    def max_retries(self) -> int:
        return self._http.max_retries

    def close(self) -> None:
        self._http.close()
        if self._control is not None:
            self._control.close()

    # reads

    def catalog(self, name: str) -> Wire | None:
        return self._one(f"/catalogs/{_part(name)}", "Namespace")

    def schema(self, ident: Ident) -> Wire | None:
        return self._one(f"/schemas/{_part('.'.join(ident))}", "Namespace")

    def table(self, ident: Ident) -> Wire | None:
        return self._one(f"/tables/{_part('.'.join(ident))}", "Table")

    def principal(self) -> frozenset[str]:
        """The names of whose token it is; empty when the server does not say."""
        reply = self._control.get("/scim2/Me") if self._control is not None else None
        body = reply.body if reply is not None and reply.ok else None
        if not isinstance(body, dict):
            return frozenset()
        emails = body.get("emails")
        shown = [e.get("value") for e in emails if isinstance(e, dict)] if isinstance(emails, list) else []
        return frozenset(n for n in (body.get("userName"), *shown) if isinstance(n, str) and n)

    def privileges(self, kind: str, ident: Ident) -> Mapping[str, frozenset[str]] | None:
        """By principal: those granted on this very object. None when the server does not say."""
        reply = self._http.get(f"/permissions/{kind}/{_part('.'.join(ident))}")
        found = reply.body.get("privilege_assignments") if reply.ok and isinstance(reply.body, dict) else None
        if not isinstance(found, list) or not all(isinstance(a, dict) for a in found):
            return None
        return {str(a.get("principal")): frozenset(map(str, a.get("privileges") or ())) for a in found}

    def external_locations(self) -> list[Wire]:
        """Those that the principal may see."""
        return [w for page in self._pages("/external-locations", "external_locations", {}) for w in page]

    def schemas(self, catalog: str) -> Iterator[list[Wire]]:
        return self._pages("/schemas", "schemas", {"catalog_name": catalog})

    def inside(self, kind: str, ident: Ident) -> Iterator[list[Wire]]:
        """Page by page. A server that does not have such objects at all, and so no such path, has none in here: the
        drop of a schema is refused by the server itself while anything is in it, so nothing rests on this alone."""
        params = {"catalog_name": ident[0], "schema_name": ident[1]}
        return self._pages(f"/{kind}", KINDS[kind], params, optional=kind != "tables")

    def _one(self, path: str, kind: Kind) -> Wire | None:
        reply = self._http.get(path)
        if reply.ok and isinstance(reply.body, dict):
            return reply.body
        if reply.ok:
            raise CatalogError(Code.INTERNAL, f"GET {path}: the answer is no JSON object: {self._http.unlike()}")
        if reply.status == 404 and error_code(reply) in _MISSING:
            if error_code(reply) == "CATALOG_NOT_FOUND" and not path.startswith("/catalogs"):
                raise self.error(reply, f"GET {path}", kind)
            return None
        raise self.error(reply, f"GET {path}", kind)

    def _pages(self, path: str, key: str, params: Mapping[str, str], optional: bool = False) -> Iterator[list[Wire]]:
        """Until there is no token: with authorization on, a page may be empty and not the last. `max_results=0` is the
        longest page that the server has. Every page names its list, also an empty one, and everything in it has a
        name: an answer without them says nothing, least of all that nothing is there."""
        doing = f"GET {path} of {'.'.join(params.values())}" if params else f"GET {path}"
        pages, token = Pages(doing), None
        while True:
            asked = {**params, "max_results": "0", **({"page_token": token} if token else {})}
            reply = self._http.get(path, asked)
            if optional and not token and reply.status in (404, 501) and error_code(reply) in ("", "UNIMPLEMENTED"):
                return
            if not reply.ok:
                raise self.error(reply, doing, "Namespace")
            body = reply.body
            page = body.get(key) if isinstance(body, dict) else None
            if not isinstance(page, list):
                raise CatalogError(Code.INTERNAL, f"{doing}: the answer is not a page of {key}: {self._http.unlike()}")
            for item in page:
                if not isinstance(item, dict) or not isinstance(item.get("name"), str):
                    raise CatalogError(Code.INTERNAL, f"{doing}: the answer holds one of {key} without a name")
            pages.new(item["name"] for item in page)
            yield page
            token = pages.following(body.get("next_page_token"))
            if token is None:
                return

    # writes

    def create_schema(self, body: Wire) -> None:
        self._send("POST", "/schemas", body, "Namespace")

    def update_schema(self, ident: Ident, body: Wire) -> None:
        self._send("PATCH", f"/schemas/{_part('.'.join(ident))}", body, "Namespace")

    def delete_schema(self, ident: Ident) -> None:
        """Never with `force`: the server then refuses while anything is inside."""
        self._send("DELETE", f"/schemas/{_part('.'.join(ident))}", None, "Namespace")

    def create_table(self, body: Wire) -> None:
        self._send("POST", "/tables", body, "Table")

    def delete_table(self, ident: Ident) -> None:
        self._send("DELETE", f"/tables/{_part('.'.join(ident))}", None, "Table")

    def rename_table(self, ident: Ident, name: str) -> None:
        """Within its schema; its id, its properties and its location stay. A server before 0.6.0 has no such path."""
        catalog, schema, table = (_part(n) for n in ident)
        path = f"/delta/v1/catalogs/{catalog}/schemas/{schema}/tables/{table}/rename"
        reply = self._http.send("POST", path, {"new-name": name})
        if reply.status in (404, 405) and not error_code(reply):
            why = "this server has no rename of a table (Unity Catalog has one from 0.6.0 on)"
            raise CatalogError(Code.UNSUPPORTED, f"POST {path} answered {reply.status}: {why}")
        if not reply.ok:
            raise self.error(reply, f"POST {path}", "Table")

    def _send(self, method: str, path: str, body: Wire | None, kind: Kind) -> None:
        reply = self._http.send(method, path, body)
        if not reply.ok:
            raise self.error(reply, f"{method} {path}", kind, creating=method == "POST")

    # errors

    def error(self, reply: Reply, doing: str, kind: Kind, *, creating: bool = False) -> CatalogError:
        word = error_code(reply)
        code = _CODES.get(word) or _BY_KIND.get(word, {}).get(kind)
        if word.endswith("_CONFLICT"):
            code = Code.CONCURRENT_MODIFICATION
        if word == "FAILED_PRECONDITION" and kind == "Namespace":
            code = Code.NAMESPACE_NOT_EMPTY
        if creating and code is Code.TABLE_NOT_FOUND:
            code = Code.NAMESPACE_NOT_FOUND
        error = self._http.error(reply, doing, code=code)
        if creating and kind == "Table" and code is Code.INVALID_INPUT and _only_delta(reply):
            return CatalogError(
                Code.UNSUPPORTED,
                f"{error.message}. This server registers Delta tables only, as Databricks' own does: Lance tables need "
                "the open-source server",
            )
        return error


def error_code(reply: Reply) -> str:
    """Empty when the answer is not one of Unity's errors. The Delta API has them in a form of its own."""
    body = reply.body if isinstance(reply.body, dict) else {}
    delta = body.get("error")
    word = delta.get("type") if isinstance(delta, dict) else body.get("error_code")
    return word if isinstance(word, str) else ""


def _only_delta(reply: Reply) -> bool:
    return "DELTA" in message_of(reply).upper() and error_code(reply) != "INVALID_ARGUMENT"


def _part(name: str) -> str:
    return quote(name, safe="")
