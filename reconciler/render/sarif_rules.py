"""What the rules of a SARIF file stand for. Codes of diagnostics and policies come from their explanations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from reconciler.model import plan as p
from reconciler.render.safe_text import bounded, printable

BLOCKED: Final = "blocked/"
"""Before the word that says why a step is held back. `explain` takes the rule as well as the word."""
_HELD_BACK: Final[dict[str, tuple[str, str]]] = {
    p.ADOPT: (
        "nobody owns the object",
        "It is live, differs from its manifest, and carries no owner mark. Nothing that is not ours is changed: pass "
        "--adopt, or set management.adopt: true on the catalog, to take it over.",
    ),
    p.FOREIGN_OWNER: (
        "the object has another owner",
        "It carries the owner mark of somebody else. Only --take-over OWNER takes it from them.",
    ),
    p.OWNER_NOT_SET: (
        "no owner is set",
        "Nothing is deleted for the default owner: set management.owner on the catalog.",
    ),
    p.NOT_OWNED: ("the object is not ours", "Only what carries our owner mark is deleted."),
    p.PROTECTED: (
        "the object is protected",
        "It carries the protect mark: set protect: false, apply, and then delete it.",
    ),
    p.THRESHOLD: (
        "too many deletes",
        "More would be deleted than the catalog's thresholds allow, so nothing at all is applied. If it is meant, "
        "raise management.thresholds.",
    ),
    p.UNREADABLE: (
        "the object cannot be read",
        "It exists, and reading it failed. It is taken neither for absent nor for unchanged: mend it, then plan again.",
    ),
    p.INCOMPLETE: (
        "the listing is incomplete",
        "A part of the catalog could not be listed, so the object may be there: mend the listing, then plan again.",
    ),
    p.NOT_EMPTY: (
        "the namespace is not empty",
        "Something is inside that would not be deleted with it, and nothing is ever deleted by cascade.",
    ),
    p.TWO_APPLIES: ("two applies are needed", "A delete would have to come before a create: apply the delete first."),
    p.RENAME_CONFLICT: (
        "the rename is ambiguous",
        "Both the old and the new object are there: remove renamedFrom, or one of them.",
    ),
    p.PARENT_BLOCKED: ("it waits for a step that is held back", "Resolve what holds that step back."),
    p.DATA_PLANE_MISSING: (
        "the step moves data, which takes Spark",
        "Install the extra `spark` and Java, or run the step where they are.",
    ),
    p.LOCATION_CONFLICT: (
        "the location is inside, or around, somebody's data",
        "Give the table a location of its own.",
    ),
    p.STRANGE_LOCATION: (
        "the location is not looked at",
        "It is not among those of the manifests that are trusted: bring it there first.",
    ),
    p.SOURCE_PROBLEM: ("the source of the rows cannot be used", "The reason says what is wrong with it."),
    p.VALUES: (
        "values in the table do not fit",
        "The column holds values that have no counterpart in the declared type, or nulls that are no longer to be "
        "allowed. Change them, or declare a new column with a backfill and let it replace this one.",
    ),
    p.DATA_UNKNOWN: (
        "it is not known which rows are in already",
        "Neither the table's ledger nor its whole history is there: appending could double rows.",
    ),
}
_UNSUPPORTED = ("the catalog cannot do this", "The backend has no way to make this change; the reason says which.")
_PLAIN_WORD = re.compile(r"[a-z]+(?![^ ,.;:])")

Explained = Mapping[str, tuple[str, str]]
"""Code -> its title, and what it means with the fix."""


def help_of(rule: str, explained: Explained) -> tuple[str, str]:
    """Title and help text of a rule, for any rule: one that nobody described is shown by its name."""
    title, text = _known(rule, explained)
    return _sentence(title), text


def _known(rule: str, explained: Explained) -> tuple[str, str]:
    if rule == "unsupported":
        return _UNSUPPORTED
    if rule.startswith(BLOCKED):
        word = rule.removeprefix(BLOCKED)
        if word.startswith(p.ALLOW):
            allow = printable(bounded(word.removeprefix(p.ALLOW)))
            how = f"Add `allow: [{allow}]` to the table, or pass --allow {allow}, if it is meant."
            return f"not allowed: {allow}", f"The change could lose something. {how}"
        title = f"the step is held back: {printable(bounded(word))}"
        return _HELD_BACK.get(word, (title, "The reason in the message says why, and what to do."))
    if rule in explained:
        return explained[rule]
    title = printable(bounded(rule)) or "(empty)"
    return title, f"{title}. The message of each result says what is wrong there and how to fix it."


def _sentence(text: str) -> str:
    """A name keeps its spelling."""
    return text[:1].upper() + text[1:] if _PLAIN_WORD.match(text) else text
