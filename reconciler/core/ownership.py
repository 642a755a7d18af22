"""Who may change what. We change only what carries our owner mark."""

from __future__ import annotations

import shlex
from typing import Literal

from reconciler.core.draft import Block, Context
from reconciler.model.desired import DEFAULT_OWNER
from reconciler.model.plan import ADOPT, FOREIGN_OWNER, NOT_OWNED, OWNER_NOT_SET, PROTECTED
from reconciler.model.state import DatasetState, Marks, NamespaceState, TableState

Standing = Literal["owned", "adopting", "held"]


def table_standing(context: Context, live: TableState) -> tuple[Standing, Block | None]:
    """`standing`, of an entry and the data that is taken with it. Data that a third owner marked is asked for by name,
    whoever has the entry."""
    owner, data = entry_owner(context.owner, live), _mark_in_data(live)
    where, block = standing(context, owner)
    if where == "adopting" and data not in (None, context.owner, owner):
        return standing(context, data)
    return where, block


def data_standing(context: Context, owner: str | None, live: TableState) -> tuple[Standing, Block | None]:
    """`standing`, of the data of a table whose entry is ours."""
    where, block = standing(context, owner)
    if block is not None and owner is None:
        why = (
            f"the data at {live.location} does not carry our mark, so it is not ours whatever the entry says: pass "
            "--adopt to take it over, if it is this table's"
        )
        return where, Block(ADOPT, why)
    return where, block


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


def entry_owner(us: str, live: NamespaceState | TableState) -> str | None:
    """The entry's mark, or where it has none the mark in its data when that is somebody else's: marks that are kept
    beside the catalog are not seen by those who keep theirs elsewhere. Our own mark in the data alone is not enough."""
    data = _mark_in_data(live)
    return data if live.marks.owner is None and data != us else live.marks.owner


def data_owner(us: str, live: NamespaceState | TableState) -> str | None:
    """For what changes the data. An entry of ours does not make the data ours: somebody may have pointed it at another
    dataset, or taken the data over in another catalog. Only the mark in the dataset does, or that a run of ours was
    about to write it."""
    if live.marks.owner != us or not isinstance(live, TableState):
        return entry_owner(us, live)
    dataset = live.dataset
    if isinstance(dataset, DatasetState):
        return us if dataset.owner is None and dataset.begun_by in ("", us) else dataset.owner
    return live.marked_by or us


def _mark_in_data(live: NamespaceState | TableState) -> str | None:
    if not isinstance(live, TableState):
        return None
    return live.dataset.owner if isinstance(live.dataset, DatasetState) else live.marked_by


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
