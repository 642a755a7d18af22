"""What a journal says about the leases of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

STATES = ("waiting", "taken", "refused", "lost", "unavailable")
WORRYING = ("refused", "lost", "unavailable")
"""After which steps were not run."""


@dataclass(frozen=True, slots=True)
class LeaseEvent:
    """`holder`: who had it, when another did. `why`: it was lost, or cannot be taken."""

    state: str
    catalog: str
    place: str
    time: str | None = None
    waited: float = 0.0
    token: int | None = None
    holder: str = ""
    why: str = ""

    @property
    def sentence(self) -> str:
        lease = f"the lease of catalog {self.catalog}"
        waited = f" after {self.waited:.1f} s" if self.waited >= 0.1 else ""
        match self.state:
            case "waiting":
                return f"waiting for {lease}, {self.holder}"
            case "taken":
                over = f"; it was {self.holder}, and was not renewed" if self.holder else ""
                return f"{lease} was taken{waited}, with the token {self.token}{over}"
            case "refused":
                return f"{lease} was not given{waited}: it is {self.holder}"
            case "lost":
                return f"{lease} was lost: {self.why}"
        return f"{lease} cannot be taken: {self.why}"

    def to_json(self) -> dict[str, Any]:
        return {
            "time": self.time,
            "state": self.state,
            "catalog": self.catalog,
            "place": self.place,
            "waited_seconds": self.waited,
            "token": self.token,
            "holder": self.holder or None,
            "why": self.why or None,
        }


def lease_event(line: Mapping[str, Any]) -> LeaseEvent | None:
    """From a line of a journal; None for a state that a later version has. Raises what a malformed line gives."""
    if line.get("state") not in STATES:
        return None
    token, waited = line.get("token"), float(line.get("waited_seconds") or 0)
    if not 0 <= waited < math.inf:
        raise ValueError("no time to wait")
    return LeaseEvent(
        line["state"],
        str(line["catalog"]),
        str(line.get("place") or ""),
        str(line.get("time") or "") or None,
        waited,
        None if token is None else int(token),
        str(line.get("by") or line.get("over") or ""),
        str(line.get("why") or ""),
    )
