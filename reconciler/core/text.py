"""Short reasons for steps."""

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
