"""The record of which keys are ours, and when it is brought up to date.

A key that is given up is noted at once: recorded any longer it would be removed when others set it. A key that is taken
up while it is live with the declared value asks for no change, and is none: it is noted together with another change of
the same object. So the plan is empty after `import` wrote down what others added to an object of ours, and until the
record follows, what they added is theirs: it stays when the manifest loses it again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from reconciler.core.draft import Draft


def gives_up(recorded: Iterable[str], wanted: Container[str]) -> bool:
    return any(key not in wanted for key in recorded)


def go_along(drafts: Sequence[Draft]) -> bool:
    """Is there a step that the record can go with?"""
    return any(d.verdict == "allowed" for d in drafts)
