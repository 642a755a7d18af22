"""Whose answers are expected at an address, and what is said of an answer that is somebody else's: of a web server at a
wrong path, of a login page, of another service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from reconciler.model.public_url import public_url

if TYPE_CHECKING:
    from reconciler.catalog.http import Reply

_ABOUT_THE_CALLER = (401, 403, 429)
"""Whoever answers these: the credentials and the network come first."""


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    url: str
    """As the manifest has it."""
    keys: str
    """What of the manifest to check."""
    is_own: Callable[[Reply], bool]
    """An error in the service's own words."""

    def unlike(self, reply: Reply | None = None) -> str:
        """`reply`: when it is an error. Of where it leads only the host is told: there may be a token in the rest."""
        leads = _host(reply.headers.get("location", "")) if reply is not None and _redirects(reply.status) else ""
        return f"{f'it leads to {leads}; ' if leads else ''}{unlike(self.url, self.name)}: check {self.keys}"

    def is_strange(self, reply: Reply) -> bool:
        """A page of a server that fails (5xx) is none: the way is right, and its end is broken."""
        if _redirects(reply.status):
            return True
        if not 400 <= reply.status < 500 or reply.status in _ABOUT_THE_CALLER or self.is_own(reply):
            return False
        return reply.status == 404 or is_page(reply.text)


def unlike(url: str, name: str) -> str:
    return f"{public_url(url) or 'what is there'} does not answer like {name}"


def is_page(text: str) -> bool:
    return text.lstrip()[:1] == "<"


def _redirects(status: int) -> bool:
    return 300 <= status < 400 and status != 304


def _host(location: str) -> str:
    try:
        return urlsplit(location).hostname or ""
    except ValueError:
        return ""
