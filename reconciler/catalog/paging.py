"""Where a listing ends when the server does not end it. One guard for all services: a listing that is cut off here is
an error, so a gap in the scan, and never a complete one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.catalog.entries import Listed, TableEntry
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import ROOT, Ident
from reconciler.model.observed import Gap

MOST_PAGES = 10_000
"""Of one listing. At a hundred names a page that is a million."""
MOST_IDLE = 100
"""Pages in a row that bring nothing new. A service that leaves out what the caller may not see has empty ones."""
MOST_NAMES = 1_000_000
"""Of one listing: pages may be long."""
LONGEST_NAME = 4096
"""No service takes one as long, and it would be in every line about it."""
MOST_LEVELS = 64
"""Namespaces in namespaces."""
MOST_NAMESPACES = 50_000
"""Of one scan. Three namespaces in each of three are more than any machine can list, long before they are deep."""


class Pages:
    """One listing. `doing` begins its errors."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._names: set[str] = set()
        self._tokens: set[str] = set()
        self._idle = 0

    def new(self, names: Iterable[str]) -> list[str]:
        """The names of the page that were on none before. Raises CatalogError."""
        found = [name for name in dict.fromkeys(names) if name not in self._names]
        if longest := next((name for name in found if len(name) > LONGEST_NAME), None):
            raise self._endless(f"the answer holds a name of {len(longest)} characters")
        self._names.update(found)
        if len(self._names) > MOST_NAMES:
            raise self._endless(f"the listing has more than {MOST_NAMES} names")
        self._idle = 0 if found else self._idle + 1
        return found

    def following(self, token: object) -> str | None:
        """The token of the next page, after `new`; None at the end. Raises CatalogError."""
        if token is None or token == "":
            return None
        if not isinstance(token, str):
            raise self._endless("the answer has a page token that is no text")
        if token in self._tokens:
            raise self._endless("the server gave the same page token twice, so the listing does not end")
        if self._idle >= MOST_IDLE:
            raise self._endless(f"{MOST_IDLE} pages in a row hold nothing new, so the listing does not end")
        if len(self._tokens) >= MOST_PAGES - 1:
            raise self._endless(f"the listing has more than {MOST_PAGES} pages")
        self._tokens.add(token)
        return token

    def _endless(self, why: str) -> CatalogError:
        return CatalogError(Code.INTERNAL, f"{self._doing}: {why}")


def bounded(listed: Iterator[Listed]) -> Iterator[Listed]:
    """One scan. What is no table counts: a server may deny the namespaces that it has just listed."""
    count = 0
    for entry in listed:
        count += not isinstance(entry, TableEntry)
        if count > MOST_NAMESPACES:
            why = (
                f"there are more than {MOST_NAMESPACES} namespaces: the rest is not read; `management.ignore` leaves "
                "out what is not to be read"
            )
            yield Gap(ROOT, Code.INTERNAL, why)
            return
        yield entry


def too_deep(ident: Ident) -> Gap:
    """For a server that has a namespace in every namespace."""
    return Gap(ident, Code.INTERNAL, f"namespaces are nested deeper than {MOST_LEVELS} levels: they are not read")
