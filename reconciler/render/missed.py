"""The last words of an import that could not read everything."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.text import listing, plural
from reconciler.model.missed import Missed
from reconciler.render.safe_text import safe

MOST_PATHS = 50


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


_KINDS = {
    "subfolder": (
        "in subfolders",
        "declare each as a Table with its `location` in a namespace, or import a Catalog whose `path` is the folder "
        "that holds it",
    ),
    "no_suffix": (
        "in folders without the suffix .lance",
        "set `plain_folders: true` in the Catalog, declare it as a Table with its `location` in a namespace, or rename "
        "the folder",
    ),
    "unregistered": (
        "in folders that this layout does not list",
        "declare it as a Table with its `location`, or set `dir_listing_enabled: true` in the Catalog",
    ),
}


def unlisted_lines(missed: Missed) -> Iterator[str]:
    """What was seen and left out, where it is, and what to do."""
    for catalog, unlisted in missed.unlisted:
        for kind, (where, to_do) in _KINDS.items():
            paths = [data.path for data in unlisted.found if data.kind == kind]
            if paths:
                said = (
                    f"{plural(len(paths), 'dataset')} {where} {'was' if len(paths) == 1 else 'were'} seen and left out"
                )
                yield f"note: catalog {safe(catalog)}: {said}: {to_do}"
                yield from (f"note:   {safe(path)}" for path in paths[:MOST_PATHS])
                if len(paths) > MOST_PATHS:
                    yield f"note:   and {len(paths) - MOST_PATHS} more"
        yield from (f"note: catalog {safe(catalog)}: {safe(problem)}" for problem in unlisted.problems[:MOST_PATHS])


def _be(number: int, dry_run: bool) -> str:
    return "would be" if dry_run else "is" if number == 1 else "are"
