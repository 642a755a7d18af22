"""Identifiers: the Lance list identifier under a catalog's root namespace."""

from __future__ import annotations

from typing import Literal, NamedTuple

Ident = tuple[str, ...]
Kind = Literal["Namespace", "Table"]

ROOT: Ident = ()


class ObjectKey(NamedTuple):
    """One object of one catalog. Orders by catalog, then identifier, then kind."""

    catalog: str
    ident: Ident
    kind: Kind

    def __str__(self) -> str:
        return f"{self.catalog}:{dotted(self.ident)}"


def dotted(ident: Ident) -> str:
    """The printed form. A name that contains a dot or a quote is quoted, and a quote in it doubled, so that the text
    stays unambiguous."""
    return ".".join(_quoted(n) if "." in n or '"' in n or not n else n for n in ident)


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def parent(ident: Ident) -> Ident:
    return ident[:-1]


def is_below(ident: Ident, ancestor: Ident) -> bool:
    """True for a proper descendant."""
    return len(ident) > len(ancestor) and ident[: len(ancestor)] == ancestor
