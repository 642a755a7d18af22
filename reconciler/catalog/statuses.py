"""What the status of an HTTP answer says about another try, the same for every service."""

from __future__ import annotations

NO_SERVICE = frozenset({502, 503, 504})
"""What a gateway answers for a service that is not there. A busy service may answer it too."""
_NOT_DONE = frozenset({425, 429})
"""Refused for now: too early, too many."""


def may_pass(status: int) -> bool:
    """True when the same request may be answered otherwise a moment later. 408 is of a server, or of a proxy before it,
    that has waited long enough; the numbers above 504 are those of proxies and content networks (520, 529, 599)."""
    return status == 408 or status in _NOT_DONE or (status >= 500 and status != 501)


def may_have_landed(status: int) -> bool:
    """True when a write with this answer is there perhaps: only a re-read can tell."""
    return may_pass(status) and status not in _NOT_DONE
