"""The record of which keys are ours, and when it is brought up to date.

A key that is given up is noted at once: recorded any longer it would be removed when others set it. What cannot come to
that waits, and is noted together with another change of the same object: a key that is taken up while it is live with
the declared value; and one that is gone, as long as the manifest leaves it to others (`ignoreDifferences`). So the plan
is empty after `import` wrote down what others added to an object of ours and what they took away. Until the record
follows, what they added is theirs: it stays when the manifest loses it again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

from reconciler.core.draft import Draft


def gives_up(
    recorded: Iterable[str], wanted: Container[str], live: Container[str], left_to_others: Callable[[str], bool]
) -> bool:
    """Is there something to note at once?"""
    return any(key not in wanted and (key in live or not left_to_others(key)) for key in recorded)


def go_along(drafts: Sequence[Draft]) -> bool:
    """Is there a step that the record can go with?"""
    return any(d.verdict == "allowed" for d in drafts)
