"""Who may change what. We change only what carries our owner mark."""

from __future__ import annotations

import shlex
from typing import Literal

from reconciler.core.draft import Block, Context
from reconciler.model.desired import DEFAULT_OWNER
from reconciler.model.plan import ADOPT, FOREIGN_OWNER, NOT_OWNED, OWNER_NOT_SET, PROTECTED
from reconciler.model.state import DatasetState, Marks, NamespaceState, TableState

Standing = Literal["owned", "adopting", "held"]


def standing(context: Context, owner: str | None) -> tuple[Standing, Block | None]:
    """Ours; to be taken now; or held back, with the reason."""
    if owner == context.owner:
        return "owned", None
    if owner is None:
        if context.adopt:
            return "adopting", None
        return "held", Block(ADOPT, "nobody owns it: pass --adopt to take it over")
    if owner in context.options.take_over:
        return "adopting", None
    return "held", Block(
        FOREIGN_OWNER, f"it belongs to {owner}: pass --take-over {shlex.quote(owner)} to take it from them"
    )


def owner_of(context: Context, state: NamespaceState | TableState) -> str | None:
    return owner_seen_by(context.owner, state)


def owner_seen_by(us: str, live: NamespaceState | TableState) -> str | None:
    """The entry's mark; but the mark in its data when that is somebody else's, and the entry is ours or nobody's: one
    dataset may be in two catalogs, and who keeps his marks in the other is seen only there. Our own mark in the data
    alone is not enough."""
    dataset = live.dataset if isinstance(live, TableState) else None
    data = dataset.owner if isinstance(dataset, DatasetState) else None
    if data is not None and data != us and live.marks.owner in (None, us):
        return data
    return live.marks.owner


def delete_block(context: Context, marks: Marks) -> Block | None:
    """Why this object may not be deleted, or None."""
    if marks.owner != context.owner:
        whose = f"it belongs to {marks.owner}" if marks.owner else "nobody owns it"
        return Block(NOT_OWNED, f"{whose}, and only what we own is ever deleted")
    if context.owner == DEFAULT_OWNER:
        return Block(OWNER_NOT_SET, "set management.owner of the catalog first: nothing is deleted without an owner")
    if marks.protect:
        return Block(PROTECTED, "it is protected: apply `protect: false` first")
    return None
