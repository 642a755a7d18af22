"""Short reasons for steps, and parts of lines."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core.diff_properties import MapDiff


def listing(names: Sequence[str], most: int = 4) -> str:
    """At most `most` names, then how many more."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def changed_keys(what: str, diff: MapDiff) -> str:
    """`what` with its verb ("properties differ"); empty when nothing differs."""
    keys = sorted((*diff.set, *diff.unset))
    return f"{what}: {listing(keys)}" if keys else ""


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def speed(size: int, seconds: float) -> str:
    """`, 2 MB/s`; empty while there is nothing that would say how fast it is."""
    rate = size / 1e6 / seconds if seconds >= 1 else 0.0
    return f", {rate:.0f} MB/s" if rate >= 1 else f", {rate:.1f} MB/s" if rate >= 0.1 else ""
