"""The record of which keys are ours, and when it is brought up to date: with another change of the same object.

A manifest that begins to declare what is live anyway, or ceases to declare what is gone anyway, asks for no change, and
is none: after `import` brought manifests up to date with what others did, the plan is empty. Until the record follows,
it says what it always said: the keys that we set. What others set and the manifest loses again stays; what we set, is
gone, and comes back without being declared, is removed. A live key that is left to others (`ignoreDifferences`) does
not wait: it would be removed once the manifest no longer says so.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from reconciler.core.draft import Draft


def due(recorded: Iterable[str], wanted: Container[str], live: Container[str]) -> bool:
    """Is a key given up that is live? Then the record is changed, whatever else is."""
    return any(key not in wanted and key in live for key in recorded)


def go_along(drafts: Sequence[Draft]) -> bool:
    """Is there a step that the record can go with?"""
    return any(d.verdict == "allowed" for d in drafts)
