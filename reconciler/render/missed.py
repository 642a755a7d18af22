"""The last words of an import that could not read everything."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.text import listing, plural
from reconciler.model.missed import Missed


def missed_lines(missed: Missed, folder: str, dry_run: bool = False) -> Iterator[str]:
    """The most dangerous one comes last."""
    if missed.unread:
        told = f"{plural(missed.unread, 'object')} could not be read, and {_be(missed.unread, dry_run)} in the files"
        yield f"warning: {told} without content: plans hold back what is unreadable; import again when it can be read"
    if missed.kept:
        declared = "the document stays as it was" if missed.kept == 1 else "the documents stay as they were"
        yield f"warning: {plural(missed.kept, 'declared object')} could not be read: {declared}"
    beyond = []
    if missed.left_out:
        beyond.append(f"{plural(missed.left_out, 'object')} of it {_be(missed.left_out, dry_run)} in no file")
    if missed.listings:
        beyond.append(f"not everything could be listed ({listing(missed.listings)})")
    if beyond:
        yield f"warning: the files in {folder} are not all that is live: {'; '.join(beyond)}: do not --prune with them"


def _be(number: int, dry_run: bool) -> str:
    return "would be" if dry_run else "is" if number == 1 else "are"
