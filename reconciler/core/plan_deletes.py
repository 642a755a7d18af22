"""The steps that remove: `state: absent`, and with --prune what we own and nobody declares. Tables before namespaces,
deepest first; never CASCADE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from reconciler.core.draft import Block, Context, Draft, Drafter, gap_block, unread_block
from reconciler.core.ownership import delete_block
from reconciler.core.plan_namespace import level_of_change
from reconciler.core.selection import outside
from reconciler.core.text import listing, plural
from reconciler.core.world import World
from reconciler.model.change import DeregisterTable, DropNamespace
from reconciler.model.codec import finding_json
from reconciler.model.desired import Management
from reconciler.model.diagnostic import Source
from reconciler.model.ident import Ident
from reconciler.model.observed import Detached, Present, Snapshot, Unreadable
from reconciler.model.plan import NOT_EMPTY, THRESHOLD, Risk
from reconciler.model.state import UNKNOWN, NamespaceState, TableState

MIN_OWNED_FOR_PERCENT = 10


@dataclass(frozen=True, slots=True)
class Removal:
    ident: Ident
    source: Source | None
    reason: str
    block: Block | None = None
    """Why it may not go now, whoever owns it."""
    allow: Mapping[str, Source | None] = field(default_factory=dict)
    """The allow words that count."""


def plan_table_delete(context: Context, world: World, snapshot: Snapshot, removal: Removal) -> Draft | None:
    """None when it is not there any more."""
    found = world.tables.get(removal.ident)
    if found is None:
        return None
    change = DeregisterTable(removal.ident)
    if isinstance(found, Unreadable):
        return _refused(context, change, removal, found)
    assert isinstance(found.state, TableState)
    plain = Present(replace(found.state, dataset=UNKNOWN))
    block = removal.block or delete_block(context, found.state.marks) or _gap(snapshot, removal.ident)
    d = Drafter(context, removal.source, plain, block=block)
    d.propose(change, "metadata", f"{removal.reason}; its data is kept", finding_json(plain))
    return _settle(d, world)


def plan_namespace_delete(context: Context, world: World, snapshot: Snapshot, removal: Removal) -> Draft | None:
    """Deepest first, after the tables: what is inside now is what would be left. Where the service would take the
    content along, our own look is all that stands against it, and the drop takes an allow word."""
    found = world.namespaces.get(removal.ident)
    if found is None:
        return None
    live = found.state if isinstance(found, Present) and isinstance(found.state, NamespaceState) else NamespaceState()
    change = DropNamespace(removal.ident, level_of_change(context.capabilities, live.level))
    if isinstance(found, Unreadable):
        return _refused(context, change, removal, found)
    assert isinstance(found, Present)
    assert isinstance(found.state, NamespaceState)
    inside = world.children(removal.ident)
    block = removal.block or delete_block(context, found.state.marks) or _gap(snapshot, removal.ident)
    if block is None and found.state.lasting:
        block = Block("", found.state.lasting, "unsupported")
    if block is None and inside:
        why = f"it still holds {listing(inside)}, and nothing is ever dropped with its content"
        block = Block(NOT_EMPTY, why + outside(context.options, context.catalog, [(*removal.ident, n) for n in inside]))
    d = Drafter(context, removal.source, found, removal.allow, block)
    word, reason = None, removal.reason
    if context.capabilities.drop_needs_allow:
        word, reason = "drop_namespace", f"{reason}; this service would delete the content with it"
    d.propose(change, "destructive", reason, finding_json(found), word)
    draft = _settle(d, world)
    draft.children = tuple(inside)
    return draft


def _settle(d: Drafter, world: World) -> Draft:
    draft = d.drafts[0]
    if draft.verdict == "allowed":
        world.apply(draft.change)
    return draft


def _refused(context: Context, change: DeregisterTable | DropNamespace, removal: Removal, found: Unreadable) -> Draft:
    d = Drafter(context, removal.source, found)
    risk: Risk = "metadata" if isinstance(change, DeregisterTable) else "destructive"
    d.refuse(change, risk, unread_block(found))
    return d.drafts[0]


def _gap(snapshot: Snapshot, ident: Ident) -> Block | None:
    gap = snapshot.gap_at(ident)
    if gap is None:
        return None
    return gap_block(gap, f"the listing is incomplete ({gap.message}): nothing is deleted on half the facts")


def hold_back_over_threshold(drafts: Iterable[Draft], management: Management, owned: int) -> None:
    """Too many deletes at once stop the whole run: a wrong path or a lost folder looks just like this."""
    deletes = [d for d in drafts if d.verdict == "allowed"]
    many = len(deletes) > management.max_deletes
    share = 100 * len(deletes) / owned if owned else 0.0
    large = owned >= MIN_OWNED_FOR_PERCENT and share > management.max_delete_percent
    if not (many or large):
        return
    limit = (
        f"thresholds.deletes allows {management.max_deletes}"
        if many
        else f"thresholds.deletePercent allows {management.max_delete_percent:g} %, these are {share:.3g} %"
    )
    reason = (
        f"{plural(len(deletes), 'object')} of the {owned} we own would be deleted; {limit}: nothing is applied. "
        "If this is meant, raise management.thresholds of the catalog"
    )
    for d in deletes:
        d.verdict, d.blocked_by, d.reason, d.purpose, d.permissions = "blocked", THRESHOLD, reason, "", ()
        d.yields, d.via = d.expect, ()


def owned_count(snapshot: Snapshot, owner: str) -> int:
    findings = (*snapshot.namespaces.values(), *snapshot.tables.values())
    seen = sum(1 for f in findings if not isinstance(f, Detached) and noted_owner(f) == owner)
    return seen + snapshot.left_out.owned


def noted_owner(found: Present | Unreadable) -> str | None:
    """Of the object's marks; of a table that cannot be read, of what leads to it."""
    return found.owner if isinstance(found, Unreadable) else found.state.marks.owner
