"""Reads of single objects, put together: what several threads want at the same time becomes one call of the catalog."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping

from reconciler.catalog.base import Catalog, NotRead
from reconciler.engine.observe import observe
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, Kind, dotted
from reconciler.model.observed import Finding, Scope, Snapshot

Key = tuple[Kind, Ident]


class _Batch:
    def __init__(self) -> None:
        self.keys: set[Key] = set()
        self.found: Mapping[Key, Finding] | None = None
        self.failed: Mapping[Key, CatalogError] = {}
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
                    batch.found, batch.failed = self._ask(batch.keys)
                except CatalogError:
                    if batch.keys == set(keys):
                        raise
                finally:
                    batch.finished = True
        found, failed = (batch.found, batch.failed) if batch.found is not None else self._ask(keys)
        if mine := {key: failed[key] for key in keys if key in failed}:  # The others of the batch have their answers.
            raise NotRead(mine)
        return {key: found[key] for key in keys}

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

    def _ask(self, keys: Iterable[Key]) -> tuple[Mapping[Key, Finding], Mapping[Key, CatalogError]]:
        """What was found, and what could not be read. Raises CatalogError when that is all of it."""
        wanted = sorted(keys)
        found: dict[Key, Finding] = {}
        failed: Mapping[Key, CatalogError] = {}
        try:
            for seen in self._catalog.read(wanted, self._scope):
                found[seen.kind, seen.ident] = seen.finding
        except NotRead as error:
            failed = error.errors
        except CatalogError:
            raise
        except Exception as error:
            raise bug(error) from error
        for kind, ident in wanted:
            if (kind, ident) not in found and (kind, ident) not in failed:
                raise CatalogError(Code.INTERNAL, f"the catalog gave no answer for {kind} {dotted(ident)}")
        return found, failed


def bug(error: Exception) -> CatalogError:
    """A catalog raises CatalogError only: anything else is a defect of ours, reported as such."""
    return CatalogError(Code.INTERNAL, f"internal error: {type(error).__name__}: {error}")
