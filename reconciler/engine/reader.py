"""Reads of single objects, put together: what several threads want at the same time becomes one call of the catalog."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping

from reconciler.catalog.base import Catalog
from reconciler.engine.observe import observe
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind, dotted
from reconciler.model.observed import Finding, Scope, Snapshot

Key = tuple[Kind, Ident]


class _Batch:
    def __init__(self) -> None:
        self.keys: set[Key] = set()
        self.found: Mapping[Key, Finding] | None = None
        self.finished = False


class Reader:
    """A read answers only for the time after it was asked for: a call that is already under way is never joined."""

    def __init__(self, catalog: Catalog, scope: Scope) -> None:
        self._catalog = catalog
        self._scope = scope
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._open = _Batch()

    def read(self, keys: Collection[Key]) -> Mapping[Key, Finding]:
        """Raises CatalogError only."""
        with self._lock:
            batch = self._open
            batch.keys.update(keys)
        with self._turn:
            if not batch.finished:
                with self._lock:
                    self._open = _Batch()
                try:
                    batch.found = self._ask(batch.keys)
                except CatalogError:
                    if batch.keys == set(keys):
                        raise
                finally:
                    batch.finished = True
        if batch.found is None:  # Another object of the batch may be the culprit.
            return self._ask(keys)
        return {key: batch.found[key] for key in keys}

    def covers(self, key: Key, namespaces: Collection[Ident]) -> bool:
        """Whether a plan about these namespaces has looked for it."""
        return self._catalog.capabilities.covers(*key, namespaces)

    def children(self, ident: Ident) -> tuple[str, ...]:
        """Raises CatalogError only."""
        try:
            return tuple(self._catalog.children(ident))
        except CatalogError:
            raise
        except Exception as error:
            raise bug(error) from error

    def listing(self, namespaces: frozenset[Ident]) -> Snapshot:
        """The whole catalog now, without its datasets; of one with many parts those that these namespaces are in.
        Raises CatalogError only."""
        try:
            return observe(self._catalog, Scope(namespaces=namespaces))
        except CatalogError:
            raise
        except Exception as error:
            raise bug(error) from error

    def _ask(self, keys: Iterable[Key]) -> Mapping[Key, Finding]:
        wanted = sorted(keys)
        try:
            found: dict[Key, Finding] = {(o.kind, o.ident): o.finding for o in self._catalog.read(wanted, self._scope)}
        except CatalogError:
            raise
        except Exception as error:
            raise bug(error) from error
        for kind, ident in wanted:
            if (kind, ident) not in found:
                raise CatalogError(Code.INTERNAL, f"the catalog gave no answer for {kind} {dotted(ident)}")
        return found


def bug(error: Exception) -> CatalogError:
    """A catalog raises CatalogError only: anything else is a defect of ours, reported as such."""
    return CatalogError(Code.INTERNAL, f"internal error: {type(error).__name__}: {error}")
