"""The same for `status` and for the ways back of a report."""

from __future__ import annotations

from hypothesis import given
from read_html import RENDERERS, read
from test_markdown_safety import NASTY, OURS, UNSAFE, everywhere

from reconciler.model.errors import Code, ReadError
from reconciler.model.ident import ObjectKey
from reconciler.model.plan import Summary
from reconciler.model.run_context import AppliedBy
from reconciler.model.status import CatalogStatus, FleetStatus, Pending
from reconciler.model.way_back import way_back
from reconciler.render.status import status_markdown
from reconciler.render.way_back import ways_back_as


@everywhere
@given(text=NASTY)
def test_a_status_full_of_it(how: str, text: str) -> None:
    key = ObjectKey("lake", (text, text), "Table")
    by, unread = AppliedBy(text, text, text, text), ReadError(Code.INTERNAL, text)
    one = CatalogStatus(
        text, text, text, False, (unread,), 1, 1, 1, 1, Summary(), (Pending(key, ("update_table",), "allowed"),),
        (key,), (key,), ((key, by),), ((key, text),), (key,), 1, 1,
    )  # fmt: skip
    page = read(RENDERERS[how](status_markdown(FleetStatus((one,)))))
    assert page.tags <= OURS | {"h2"}
    assert not UNSAFE.search(page.text), page.text
    head, only = page.rows
    assert (len(head), len(only)) == (8, 8)


@everywhere
@given(text=NASTY)
def test_ways_back_full_of_it(how: str, text: str) -> None:
    """A report is a file, and any of it may be somebody else's."""
    result = {"id": text, "action": text, "catalog": text, "object": {"kind": text, "id": [text]}, "status": text}
    more = {"tag": text, "location": text, "version_before": text, "version_after": text}
    ways = [way_back(result | more), way_back(result)]
    page = read(RENDERERS[how](ways_back_as(ways, "markdown")))
    assert page.tags <= OURS | {"h2"}
    assert not UNSAFE.search(page.text.replace("storage_options", "")), page.text
