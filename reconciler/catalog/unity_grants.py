"""May the principal make again what a replacement removes? With authorization on, Unity asks two different things: to
remove an entry one has to own it, its schema or its catalog; to make one, to own the schema or to have CREATE TABLE and
USE SCHEMA, and where its data is in an external location, to own that or to have CREATE EXTERNAL TABLE on it.

The server is asked as far as it answers. What it does not say (no token, no authorization, no such path) is no refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, TypeVar

from reconciler.catalog.unity_client import UnityClient, Wire
from reconciler.model.errors import CatalogError
from reconciler.model.ident import Ident, dotted

NEEDED = ("CREATE TABLE", "USE SCHEMA")
EXTERNAL = "CREATE EXTERNAL TABLE"
T = TypeVar("T")


class Grants:
    """Of one principal in one catalog, as they are now: for one scan, or for one write. Thread-safe."""

    def __init__(self, client: UnityClient) -> None:
        self._client = client
        self._lock = Lock()
        self._known: dict[str, Any] = {}

    def refusal(self, table: Ident, entry: Mapping[str, Any], schema: Mapping[str, Any] | None) -> str | None:
        """Why this table must not be removed to be made again, or None. `entry` and `schema`: as the server shows
        them."""
        owner = (schema or {}).get("owner")
        if not owner or not (us := self._once("us", self._client.principal)):
            return None
        if not {owner, entry.get("owner")} & us and not self._owns_catalog(table[0], us):
            return None  # It cannot be removed either: the server says so, and nothing is lost.
        lacking = None if owner in us else self._lacking(table, us)
        lacking = lacking or self._closed(str(entry.get("storage_location")), us)
        if lacking is None:
            return None
        who = ", ".join(sorted(us))
        return f"{who} may remove the entry of {dotted(table)} and may not make it again: grant {lacking}"

    def _lacking(self, table: Ident, us: frozenset[str]) -> str | None:
        above = self._privileges("catalog", table[:1], us)
        here = self._privileges("schema", table[:2], us)
        if above is None or here is None:
            return None
        lacking = [p for p in NEEDED if p not in above | here]
        return f"{' and '.join(lacking)} on schema {dotted(table[:2])}" if lacking else None

    def _closed(self, location: str, us: frozenset[str]) -> str | None:
        """No two external locations are nested, so at most one holds the data."""
        for found in self._once("external locations", self._client.external_locations) or ():
            if not f"{location}/".startswith(f"{str(found.get('url')).rstrip('/')}/") or found.get("owner") in us:
                continue
            held = self._privileges("external_location", (found["name"],), us)
            if held is not None and EXTERNAL not in held:
                return f"{EXTERNAL} on external location {found['name']}"
        return None

    def _owns_catalog(self, name: str, us: frozenset[str]) -> bool:
        found: Wire | None = self._once("catalog", lambda: self._client.catalog(name))
        return found is not None and found.get("owner") in us

    def _privileges(self, kind: str, ident: Ident, us: frozenset[str]) -> frozenset[str] | None:
        found = self._once(f"{kind} {dotted(ident)}", lambda: self._client.privileges(kind, ident))
        return None if found is None else frozenset(p for who, held in found.items() if who in us for p in held)

    def _once(self, key: str, ask: Callable[[], T]) -> T | None:
        """None when the server does not say."""
        with self._lock:
            if key not in self._known:
                try:
                    self._known[key] = ask()
                except CatalogError:
                    self._known[key] = None
            known: T | None = self._known[key]
        return known
