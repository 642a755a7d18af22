"""Child catalogs: the levels above a database, and the ids by which Glue knows them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from reconciler.catalog.glue_api import GlueApi
from reconciler.model.errors import CatalogError, Code
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

    def read(self, chain: Ident) -> dict[str, Any] | None:
        """As it is now. None only for the answer "not found"."""
        above = self.arguments(chain)
        if above is None:
            return None
        try:
            answer = self._api.read(
                f"read catalog {dotted(chain)}", "get_catalog", "Catalog", above, Code.NAMESPACE_NOT_FOUND
            )
        except CatalogError as error:
            if error.code is not Code.NAMESPACE_NOT_FOUND:
                raise
            self.forget(chain)
            return None
        found: dict[str, Any] = answer["Catalog"]
        return found

    def forget(self, chain: Ident) -> None:
        """It is gone, or about to be, and what was inside with it."""
        with self._lock:
            self._ids = {c: id_ for c, id_ in self._ids.items() if c[: len(chain)] != chain}

    def need_own_account(self) -> None:
        """CreateCatalog takes no account: a catalog is made in that of the credentials, which has to be the one that
        spec.catalog_id names. A service that does not show its root has one account only. Raises CatalogError."""
        if self._root is None:
            return
        doing, arguments = "read the account of the credentials", {"IncludeRoot": True, "Recursive": False}
        pages = self._api.pages(doing, "get_catalogs", "CatalogList", arguments, Code.NAMESPACE_NOT_FOUND)
        shown = [str(c.get("CatalogId") or "") for page in pages for c in page]
        roots = [id_ for id_ in shown if id_.isdecimal()]
        if roots and self._root not in roots:
            raise CatalogError(
                Code.UNSUPPORTED,
                f"Glue makes a new catalog in the account of the credentials ({roots[0]}), and spec.catalog_id is "
                f"{self._root}: take credentials of that account",
            )

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
