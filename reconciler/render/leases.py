"""Leases, for `unlock`."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.lease import HeldLease, Liveness
from reconciler.model.plan import Json
from reconciler.render.safe_text import safe

_PROCESS: dict[Liveness, str] = {
    "running": "still running on this machine",
    "ended": "no longer running: the next apply takes the lease over at once",
    "unknown": "not of this machine, or not to be seen from here",
}


def leases_text(held: Sequence[HeldLease]) -> str:
    return "".join(_one(lease) for lease in held) or "No lease is held.\n"


def _one(held: HeldLease) -> str:
    lease, holder = held.lease, held.lease.holder
    rows = [
        ("held by", f"{holder.user}@{holder.host}" if holder.host else holder.named),
        ("process", f"{holder.pid}, {_PROCESS[held.process]}" if holder.pid else ""),
        ("command", holder.command),
        ("run", holder.url),
        ("plan", holder.plan_id),
        ("since", lease.since),
        ("expires", f"{lease.expires}, unless it is renewed"),
        ("kept in", held.place),
    ]
    lines = [f"  {name:8} {safe(value)}\n" for name, value in rows if value]
    return f"Lease of catalog {safe(held.catalog)}\n{''.join(lines)}"


def leases_value(held: Sequence[HeldLease], removed: Sequence[HeldLease]) -> dict[str, Json]:
    gone = {(h.place, h.number) for h in removed}
    return {"leases": [{**h.to_json(), "removed": (h.place, h.number) in gone} for h in held]}
