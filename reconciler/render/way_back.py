"""How to take steps back, as text, as markdown and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reconciler.model.way_back import NEVER_ENDED, WayBack
from reconciler.render.as_json import dumped
from reconciler.render.columns import fitted, wrapped
from reconciler.render.explained import filled
from reconciler.render.safe_markdown import code
from reconciler.render.safe_text import safe

_INDENT = "    "
_NOTHING = "No step of this run has lost a version of a dataset: there is nothing to take back."
_KEEP_IN_MIND = (
    "What was written since is not in that version. Take the change back in the manifest too, or the next apply makes "
    "it again. A store that needs credentials: add storage_options={…}, the catalog's `storage.*` without that prefix."
)


def ways_back_as(ways: Sequence[WayBack], how: str, columns: int | None = None) -> str:
    """`columns`: of the terminal. The code stays as it is, for it is to be copied."""
    if how == "json":
        return dumped({"steps": [way.to_json() for way in ways]})
    if not ways:
        return fitted(f"{_NOTHING}\n", None if how == "markdown" else columns)
    if how == "markdown":
        return "\n".join("".join(f"{line}\n" for line in _lines(way, markdown=True)) for way in ways)
    shown = ((part for line in _lines(way) for part in _broken(line, columns)) for way in ways)
    return "\n".join("".join(f"{line}\n" for line in lines) for lines in shown)


def _broken(line: str, columns: int | None) -> Iterator[str]:
    if line.startswith(_INDENT):
        yield line
    elif line == _KEEP_IN_MIND:
        yield filled(line, columns)
    else:
        yield from wrapped(line, columns)


def _lines(way: WayBack, markdown: bool = False) -> Iterator[str]:
    shown = code if markdown else safe
    title = f"{shown(way.step)} {shown(way.action)} of {shown(str(way.key))}: {shown(way.status)}"
    yield f"## {title}" if markdown else title
    yield ""
    if way.restore is None or way.give_up is None:
        yield _without(way)
        return
    yield from _version(way, shown)
    if way.location is None:
        yield "This file does not say where the dataset is: LOCATION is the table's location in the catalog."
    yield ""
    yield "Back to it, as a new version:"
    yield from _code(["import lance", safe(way.restore)], markdown)
    yield ""
    yield _KEEP_IN_MIND
    yield ""
    yield "Or give the way back up, so that cleanup can go on:"
    yield from _code([safe(way.give_up)], markdown)


def _version(way: WayBack, shown: Callable[[str], str]) -> Iterator[str]:
    tag = shown(way.tag or "")
    if way.status == NEVER_ENDED:
        yield "The run was ended while this step was under way: it may be done, or not."
        yield f"If the dataset has the tag {tag}, that is the version before it. Without it no version was lost."
        return
    before, after = shown(str(way.version_before)), shown(str(way.version_after))
    made = f"; the step made version {after}" if way.version_after is not None else ""
    yield f"Version {before} of the dataset has the tag {tag}{made}."


def _code(lines: Sequence[str], markdown: bool) -> Iterator[str]:
    yield from ("", "```python", *lines, "```") if markdown else (f"{_INDENT}{line}" for line in lines)


def _without(way: WayBack) -> str:
    if way.action == "deregister_table":
        return "Its data was kept: declare the table again, and it is attached to that data."
    if way.status in ("not_run", "skipped"):
        return "This run did not do it: there is nothing to take back."
    if way.status == NEVER_ENDED:
        return "The run was ended while this step was under way: it may be done, or not. The next plan shows which."
    return "No version was tagged, because the step loses nothing: take the change back in the manifest and apply."
