"""The version of a dataset before its rows change, and the name that leads back to it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reconciler.catalog.fence import may_write
from reconciler.catalog.lance_data import STEP_PROPERTY
from reconciler.catalog.lance_errors import translated
from reconciler.catalog.lance_rows import transactions
from reconciler.catalog.lance_write import set_tag
from reconciler.model.errors import CatalogError
from reconciler.pipeline.claims import Held


def version_before(held: Held) -> int:
    """The version before the first claim, if nothing but claims came after it: no claim is to come back with the rows.
    Otherwise the pinned one, so that nobody's rows are lost on the way."""
    since = held.version - held.claim.base
    found = transactions(held.dataset, since)
    claims = [t for t in found if t is not None and STEP_PROPERTY in (t.transaction_properties or {})]
    only = len(claims) == since and all(type(t.operation).__name__ in ("UpdateConfig", "Project") for t in claims)
    return held.claim.base if only else held.version


@contextmanager
def tagged(dataset: Any, tag: str | None, version: int) -> Iterator[None]:
    """The way back has the tag while there is something to come back from. This step is one commit: a tag that is there
    already is of an attempt that committed nothing, or of an earlier time that the same plan was applied."""
    if tag is None:
        yield
        return
    with translated(f"tag version {version} of {dataset.uri}", write=False):
        set_tag(dataset, tag, version)
    try:
        yield
    except CatalogError as error:
        if not error.unknown_outcome:
            with contextlib.suppress(Exception):  # The failure itself is what has to be told.
                may_write()
                dataset.tags.delete(tag)
        raise
