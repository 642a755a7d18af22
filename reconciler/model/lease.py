"""The lease of a catalog: whose turn it is to write. One record; whoever holds it renews it, whoever waits reads it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reconciler.model.plan import Json

FORMAT = 1
SHORTEST, LONGEST = 1.0, 3600.0
"""Seconds: what a time to live may be."""
LAST_NUMBER = 10**18 - 1
"""Of a record. No run counts so far: what has a higher one was made by something else, and would end the counting."""
DEFAULT_TTL = 60.0
MOST = 500
"""Characters of what others wrote about themselves."""
_MOST_PID = 2**32


@dataclass(frozen=True, slots=True)
class Holder:
    """For people: who to ask. For programs: `boot`, `pids`, `pid` and `started` name one process of one machine; the
    number of a process alone means another one in another container, or tomorrow."""

    user: str = ""
    host: str = ""
    pid: int = 0
    command: str = ""
    url: str = ""
    """Of the CI run."""
    plan_id: str = ""
    boot: str = ""
    pids: str = ""
    started: str = ""

    @property
    def named(self) -> str:
        if not self.host:
            return "somebody whose record cannot be read"
        what = [f"pid {self.pid}"]
        what += [f"`{self.command}`"] if self.command else []
        what += [f"plan {self.plan_id.removeprefix('sha256:')[:12]}"] if self.plan_id else []
        what += [self.url] if self.url else []
        return f"{self.user}@{self.host} ({', '.join(what)})"

    def to_json(self) -> dict[str, Json]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Lease:
    """`run`: the run that wrote the record. `held` is False once it was given back. Times are those of the holder's
    clock, written for people; what has expired is judged by watching."""

    run: str
    held: bool
    ttl: float
    since: str
    expires: str
    holder: Holder = field(default_factory=Holder)

    @property
    def sentence(self) -> str:
        if not self.holder.host:
            return f"held by {self.holder.named}"
        return f"held by {self.holder.named} since {self.since}, until {self.expires} unless it is renewed"

    def to_text(self) -> str:
        value = {
            "format": FORMAT, "run": self.run, "held": self.held, "ttl": self.ttl,
            "since": self.since, "expires": self.expires, "holder": self.holder.to_json(),
        }  # fmt: skip
        return json.dumps(value, sort_keys=True, separators=(",", ":"))


def lease_from(text: str) -> Lease:
    """Never raises. A record that cannot be read, or that a newer version wrote, is held by somebody: it is waited for
    like any other, and as nobody who is alive leaves his record unchanged, it ends like any other."""
    try:
        return _lease(json.loads(text))
    except Exception:  # Anybody may have written it: too deep, a number without end, whatever comes next.
        unread = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32]
        return Lease(unread, True, DEFAULT_TTL, "an unknown time", "an unknown time")


def _lease(value: Mapping[str, Any]) -> Lease:
    ttl, held, pid = float(value["ttl"]), value["held"], int(value["holder"]["pid"])
    if value["format"] != FORMAT or not math.isfinite(ttl) or not isinstance(held, bool) or not 0 <= pid < _MOST_PID:
        raise ValueError("it is not one of ours")
    texts = {name: _told(value["holder"][name]) for name in Holder.__slots__ if name != "pid"}
    run, since, expires = (_told(value[name]) for name in ("run", "since", "expires"))
    return Lease(run, held, min(max(ttl, SHORTEST), LONGEST), since, expires, Holder(**texts, pid=pid))


def _told(value: object) -> str:
    """On one line, whatever others wrote: it stands in the middle of a sentence."""
    return " ".join(str(value).split())[:MOST]


Ending = Literal["held", "refused", "lost"]


@dataclass(frozen=True, slots=True)
class LeaseUse:
    """What a run had to do with a lease, for its report. `holder`: who had it, when it was refused or taken over."""

    catalog: str
    place: str
    ending: Ending
    waited: float = 0.0
    token: int | None = None
    """Grows with every taking: of two holders the one with the higher number is the later."""
    holder: str = ""

    def to_json(self) -> dict[str, Json]:
        return {
            "catalog": self.catalog,
            "place": self.place,
            "ending": self.ending,
            "waited_seconds": round(self.waited, 3),
            "token": self.token,
            "holder": self.holder or None,
        }


Liveness = Literal["running", "ended", "unknown"]


@dataclass(frozen=True, slots=True)
class HeldLease:
    """For `unlock`: what is known of a lease without waiting. `process`: unknown unless it is one of this machine."""

    catalog: str
    place: str
    number: int
    lease: Lease
    process: Liveness

    def to_json(self) -> dict[str, Json]:
        holder = self.lease.holder
        return {
            "catalog": self.catalog,
            "place": self.place,
            "run": self.lease.run,
            "user": holder.user,
            "host": holder.host,
            "pid": holder.pid,
            "process": self.process,
            "command": holder.command,
            "url": holder.url or None,
            "plan_id": holder.plan_id or None,
            "since": self.lease.since,
            "expires": self.lease.expires,
        }
