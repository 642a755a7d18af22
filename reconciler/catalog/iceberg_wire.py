"""The words of the Iceberg REST protocol: paths, requests, answers, errors. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from reconciler.catalog.entries import BrokenEntry, NamespaceEntry, TableEntry
from reconciler.catalog.http import Reply
from reconciler.catalog.iceberg_capabilities import LANCE, LOCATION, TABLE_TYPE, shown
from reconciler.catalog.marks import split
from reconciler.catalog.service import unlike
from reconciler.model.change import (
    AdoptNamespace,
    AdoptTable,
    CreateNamespace,
    DeclareTable,
    DeregisterTable,
    DropNamespace,
    RenameTable,
    UpdateNamespace,
    UpdateTable,
)
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind, dotted
from reconciler.model.observed import Unsupported

RENAME = "POST /v1/{prefix}/tables/rename"
VIEWS = "GET /v1/{prefix}/namespaces/{namespace}/views"
CREATE_NAMESPACE = "POST /v1/{prefix}/namespaces"
DROP_NAMESPACE = "DELETE /v1/{prefix}/namespaces/{namespace}"
SET_PROPERTIES = "POST /v1/{prefix}/namespaces/{namespace}/properties"
CREATE_TABLE = "POST /v1/{prefix}/namespaces/{namespace}/tables"
COMMIT = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}"
TRANSACTION = "POST /v1/{prefix}/transactions/commit"
DROP_TABLE = "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}"
_NEEDS = {
    CreateNamespace: CREATE_NAMESPACE,
    UpdateNamespace: SET_PROPERTIES,
    AdoptNamespace: SET_PROPERTIES,
    DropNamespace: DROP_NAMESPACE,
    DeclareTable: CREATE_TABLE,
    UpdateTable: COMMIT,
    AdoptTable: COMMIT,
    RenameTable: RENAME,
    DeregisterTable: DROP_TABLE,
}
"""What each change calls. All others are made to the dataset alone."""

_UNIT_SEPARATOR = "%1F"
_KEPT_IN_PREFIX = "/%:@!$&'()*+,;=~|"
_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "dummy", "required": False, "type": "string"}],
}
_TYPES = {
    "NoSuchNamespaceException": Code.NAMESPACE_NOT_FOUND,
    "NoSuchTableException": Code.TABLE_NOT_FOUND,
    "NoSuchIcebergTableException": Code.TABLE_NOT_FOUND,
    "NoSuchWarehouseException": Code.INVALID_INPUT,
    "NamespaceNotEmptyException": Code.NAMESPACE_NOT_EMPTY,
    "CommitFailedException": Code.CONCURRENT_MODIFICATION,
    "UnsupportedOperationException": Code.UNSUPPORTED,
    "NotAuthorizedException": Code.UNAUTHENTICATED,
    "AuthenticationTimeoutException": Code.UNAUTHENTICATED,
    "ForbiddenException": Code.PERMISSION_DENIED,
}


@dataclass(frozen=True, slots=True)
class Warehouse:
    """How one warehouse is reached, as its server's configuration says."""

    name: str
    root: str
    """The path of the server and `/v1`, then the prefix where there is one."""
    separator: str = _UNIT_SEPARATOR
    """Between the levels of a namespace, percent-encoded."""
    endpoints: frozenset[str] | None = None
    """None: the server does not say, and the protocol's default set holds: all that we call but the views."""
    key_lifetime: float | None = None
    """Seconds for which the server remembers an Idempotency-Key; None: it does not."""

    def offers(self, endpoint: str) -> bool:
        return endpoint != VIEWS if self.endpoints is None else endpoint in self.endpoints

    @property
    def groups(self) -> bool:
        """Commits of several tables at once: only where the server says so itself."""
        return self.endpoints is not None and TRANSACTION in self.endpoints

    def namespaces(self) -> str:
        return f"{self.root}/namespaces"

    def namespace(self, levels: Sequence[str]) -> str:
        self.check(levels)
        return f"{self.root}/namespaces/" + self.separator.join(quote(level, safe="") for level in levels)

    def tables(self, levels: Sequence[str]) -> str:
        return f"{self.namespace(levels)}/tables"

    def table(self, levels: Sequence[str], name: str) -> str:
        return f"{self.tables(levels)}/{quote(name, safe='')}"

    def parent(self, levels: Sequence[str]) -> dict[str, str]:
        """The query that lists what is below."""
        self.check(levels)
        return {"parent": unquote(self.separator).join(levels)} if levels else {}

    def separates(self, name: str) -> bool:
        """Two different namespaces must never have one address."""
        return unquote(self.separator) in name or name in ("", ".", "..")

    def why_not(self, name: str) -> str:
        return (
            f"the namespace {name!r} cannot be addressed: this server separates the levels of a namespace by "
            f"{unquote(self.separator)!r}, use a name without it"
        )

    def check(self, levels: Sequence[str]) -> None:
        for level in levels:
            if self.separates(level):
                raise CatalogError(Code.INVALID_INPUT, self.why_not(level))


def warehouse_of(name: str, endpoint: str, body: Any, forced_prefix: str | None) -> Warehouse:
    """From the answer of `/v1/config`. `endpoint` is the address we were given."""
    if not isinstance(body, Mapping) or not ("defaults" in body or "overrides" in body):
        raise CatalogError(Code.INVALID_INPUT, f"{unlike(endpoint, 'an Iceberg REST catalog')}: check spec.endpoint")
    defaults, overrides = _strings(body.get("defaults")), _strings(body.get("overrides"))
    said = {**defaults, **overrides}
    prefix = (forced_prefix if forced_prefix is not None else said.get("prefix", "")).strip("/")
    root = f"{_path(endpoint, overrides.get('uri'))}/v1"
    return Warehouse(
        name,
        f"{root}/{quote(prefix, safe=_KEPT_IN_PREFIX)}" if prefix else root,
        said.get("namespace-separator") or _UNIT_SEPARATOR,
        _endpoints(body.get("endpoints")),
        _lifetime(body.get("idempotency-key-lifetime")),
    )


def _path(endpoint: str, uri: str | None) -> str:
    """Credentials go to the address that the user gave: a server may name another path, not another host."""
    here = urlsplit(endpoint)
    try:
        there = urlsplit(uri or endpoint)
    except ValueError as error:
        raise CatalogError(
            Code.INTERNAL, f"the configuration that {endpoint} answers with has a `uri` that is no address: {error}"
        ) from None
    same = (here.scheme, here.netloc.lower()) == (there.scheme, there.netloc.lower())
    return (there if same else here).path.rstrip("/")


def unsupported(at: Warehouse) -> Iterator[Unsupported]:
    for change, endpoint in _NEEDS.items():
        if not at.offers(endpoint):
            yield Unsupported(
                (at.name,), change.__name__, f"the server does not offer {endpoint!r} for warehouse {at.name}"
            )


def _endpoints(value: Any) -> frozenset[str] | None:
    """None, as Iceberg's own clients have it, for an empty list too."""
    if not isinstance(value, list) or not value:
        return None
    found = set()
    for item in value:
        verb, _, path = str(item).partition(" ")
        found.add(f"{verb.upper()} /{path.strip().lstrip('/')}")
    return frozenset(found)


def _lifetime(value: Any) -> float | None:
    if not value:
        return None
    match = _DURATION.fullmatch(str(value))
    if match is None:
        return float("inf")
    days, hours, minutes, seconds = (float(g or 0) for g in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _strings(value: Any) -> dict[str, str]:
    return {str(k): str(v) for k, v in value.items() if v is not None} if isinstance(value, Mapping) else {}


# tables


def create_request(name: str, location: str | None, properties: Mapping[str, str]) -> dict[str, Any]:
    """The companion table of a Lance dataset. `stage-create` is said because Nessie fails without it."""
    body: dict[str, Any] = {"name": name, "schema": _SCHEMA, "stage-create": False}
    said = {**properties, TABLE_TYPE: LANCE}
    if location is not None:
        body["location"] = said[LOCATION] = location
    return {**body, "properties": said}


def commit_request(ident: Ident, uuid: str, old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, Any]:
    set_, gone = difference(old, new)
    updates: list[dict[str, Any]] = []
    if set_:
        updates.append({"action": "set-properties", "updates": set_})
    if gone:
        updates.append({"action": "remove-properties", "removals": gone})
    return {
        "identifier": identifier(ident),
        "requirements": [{"type": "assert-table-uuid", "uuid": uuid}],
        "updates": updates,
    }


def difference(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """What to set and what to remove; never a key in both."""
    return {k: v for k, v in new.items() if old.get(k) != v}, sorted(k for k in old if k not in new)


def identifier(ident: Ident) -> dict[str, Any]:
    return {"namespace": list(ident[1:-1]), "name": ident[-1]}


def visible(kind: Kind, properties: Mapping[str, str], added: Collection[str] = ()) -> dict[str, str]:
    """What users and we have set. `added`: what the server was seen to add to this object by itself."""
    applied = split(properties)[1].applied
    return {k: v for k, v in properties.items() if shown(kind, k, applied) and (k not in added or k in applied)}


def namespace_from(ident: Ident, body: Mapping[str, Any], added: Collection[str] = ()) -> NamespaceEntry | BrokenEntry:
    levels = body.get("namespace")
    if levels != list(ident[1:]):
        message = f"the server answered with namespace {levels} when asked for {list(ident[1:])}"
        return BrokenEntry("Namespace", ident, Code.INTERNAL, message)
    if not isinstance(body.get("properties"), Mapping | None):
        return BrokenEntry("Namespace", ident, Code.INTERNAL, _no_map(ident))
    return NamespaceEntry(ident, visible("Namespace", _strings(body.get("properties")), added))


def table_from(ident: Ident, body: Any, added: Collection[str] = ()) -> TableEntry | BrokenEntry:
    """From a loaded table. `raw` is the table's uuid."""
    metadata = body.get("metadata") if isinstance(body, Mapping) else None
    if not isinstance(metadata, Mapping):
        return BrokenEntry("Table", ident, Code.INTERNAL, f"the server's answer for {dotted(ident)} holds no metadata")
    if not isinstance(metadata.get("properties"), Mapping | None):
        return BrokenEntry("Table", ident, Code.INTERNAL, _no_map(ident))
    properties = _strings(metadata.get("properties"))
    if properties.get(TABLE_TYPE, "").lower() != LANCE:
        why = f"{dotted(ident)} is an Iceberg table, not a Lance table"
        return BrokenEntry("Table", ident, Code.INVALID_INPUT, why, foreign=True)
    location = properties.get(LOCATION) or str(metadata.get("location") or "")
    uuid = metadata.get("table-uuid")
    if not location or not isinstance(uuid, str):
        return BrokenEntry("Table", ident, Code.INTERNAL, f"{dotted(ident)} has no location or no uuid in the catalog")
    return TableEntry(ident, location, visible("Table", properties, added), raw=uuid)


def _no_map(ident: Ident) -> str:
    return f"the server's answer for {dotted(ident)} has properties that are no map"


METADATA = "metadata"
"""The folder at a table's location where servers with a file system of their own keep their record of the table."""


def is_table_metadata(name: str) -> bool:
    """What a server writes there for a table without Iceberg data, as a companion table always is. Snapshots and
    manifests (`*.avro`) mean a real Iceberg table."""
    return name.endswith((".metadata.json", ".metadata.json.gz")) or name == "version-hint.text"


# errors


def error_type(reply: Reply) -> str | None:
    """The exception's name in an error body of the protocol; None when the answer is not one."""
    error = reply.body.get("error") if isinstance(reply.body, Mapping) else None
    if not isinstance(error, Mapping) or "message" not in error:
        return None
    return str(error.get("type") or "")


def code_of(reply: Reply, conflict: Code) -> Code | None:
    """What an error answer means; None: only its status says. `conflict`: the meaning of a 409 to this request."""
    type_ = error_type(reply)
    if type_ is None or reply.status >= 500:
        return None
    if type_ in _TYPES:
        return _TYPES[type_]
    if type_ == "AlreadyExistsException" or (reply.status == 409 and not type_):
        return conflict
    return None


def says_missing(reply: Reply) -> bool:
    """Only the catalog's own word counts: a 404 of a proxy or of a wrong address says nothing about the object."""
    known = (Code.NAMESPACE_NOT_FOUND, Code.TABLE_NOT_FOUND)
    return reply.status == 404 and _TYPES.get(error_type(reply) or "") in known


def may_be_missing(reply: Reply) -> bool:
    """A 404 in the protocol's own form that does not say what is missing (the object, or a file of it): the list of
    what is there can tell."""
    return reply.status == 404 and error_type(reply) is not None and not says_missing(reply)
