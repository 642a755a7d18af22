"""May the principal make again what a replacement removes? With authorization on, Unity asks two different things: to
remove an entry one has to own it, or its catalog; to make one, to own the schema or to have
CREATE TABLE and USE SCHEMA.

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
        if not owner or not (us := self._once("us", self._client.principal)) or owner in us:
            return None
        if entry.get("owner") not in us and not self._owns_catalog(table[0], us):
            return None  # It cannot be removed either: the server says so, and nothing is lost.
        above = self._privileges("catalog", table[:1], us)
        here = self._privileges("schema", table[:2], us)
        if above is None or here is None:
            return None
        lacking = [p for p in NEEDED if p not in above | here]
        if not lacking:
            return None
        return (
            f"{', '.join(sorted(us))} may remove the entry of {dotted(table)} and may not make it again: grant "
            f"{' and '.join(lacking)} on schema {dotted(table[:2])}"
        )

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
