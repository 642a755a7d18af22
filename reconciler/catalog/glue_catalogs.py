"""Child catalogs: the levels above a database. AWS makes them from other sources; here they are only found."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from reconciler.catalog.glue_api import GlueApi
from reconciler.model.errors import Code
from reconciler.model.ident import ROOT, Ident, dotted


class ChildCatalogs:
    """`root` is spec.catalog_id, None for the caller's account. A catalog's id never changes, so found ones are kept;
    whether it still exists is answered by the calls that use the id."""

    def __init__(self, api: GlueApi, root: str | None) -> None:
        self._api = api
        self._root = root
        self._lock = threading.Lock()
        self._ids: dict[Ident, str] = {}

    def arguments(self, chain: Ident) -> dict[str, str] | None:
        """`CatalogId` for calls about what is in this catalog; None when there is no such catalog."""
        if chain == ROOT:
            return {"CatalogId": self._root} if self._root else {}
        with self._lock:
            known = self._ids.get(chain)
        if known is None:
            found = self.find(chain)
            known = found["CatalogId"] if found is not None else None
        return {"CatalogId": known} if known is not None else None

    def find(self, chain: Ident) -> dict[str, Any] | None:
        return next((c for name, c in self.children(chain[:-1]) if name == chain[-1]), None)

    def children(self, chain: Ident) -> Iterator[tuple[str, dict[str, Any]]]:
        """The catalogs directly inside, all pages; nothing when `chain` itself does not exist. IncludeRoot is never
        sent: together with a parent it is refused."""
        above = self.arguments(chain)
        if above is None:
            return
        parent = {"ParentCatalogId": above["CatalogId"]} if above else {}
        doing = f"list the catalogs of {dotted(chain) or 'the account'}"
        missing = Code.NAMESPACE_NOT_FOUND
        for page in self._api.pages(doing, "get_catalogs", "CatalogList", {**parent, "Recursive": False}, missing):
            for catalog in page:
                name = catalog["Name"]
                identified = {"CatalogId": _id(above.get("CatalogId"), name), **catalog}
                with self._lock:
                    self._ids[*chain, name] = identified["CatalogId"]
                yield name, identified


def _id(parent: str | None, name: str) -> str:
    """For a service that gives no id: `account:parent/child` is how AWS writes it."""
    if parent is None:
        return name
    return f"{parent}/{name}" if ":" in parent else f"{parent}:{name}"
