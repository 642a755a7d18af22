"""The steps for one declared namespace."""

from __future__ import annotations

from reconciler.core.diff_properties import MapDiff, diff_map, ignored_paths, left_to_others
from reconciler.core.draft import Block, Context, Drafter, allow_words, unread_block
from reconciler.core.notes import gives_up
from reconciler.core.ownership import standing
from reconciler.core.record_text import marks_reason
from reconciler.core.text import changed_keys
from reconciler.model.capabilities import is_service_level
from reconciler.model.change import AdoptNamespace, CreateNamespace, UpdateNamespace
from reconciler.model.codec import marks_json
from reconciler.model.desired import DesiredNamespace
from reconciler.model.observed import Absent, Finding, Present, Unreadable
from reconciler.model.plan import Json
from reconciler.model.state import EMPTY, Marks, NamespaceState

_CONTAINER = Block(
    "", "it is a level of the service itself, which is never changed: leave its manifest out", "unsupported"
)


def plan_namespace(context: Context, want: DesiredNamespace, found: Finding, block: Block | None) -> Drafter:
    """No drafts and a finding that is not ours means: as declared, but unowned."""
    allow = allow_words(want, context.options)
    d = Drafter(context, want.source, found, allow, block)
    ignored = ignored_paths(want)
    holds = context.capabilities.holds_properties("Namespace", want.ident)
    if isinstance(found, Unreadable):
        d.refuse(UpdateNamespace(want.ident, {}, (), Marks()), "metadata", unread_block(found))
    elif isinstance(found, Absent):
        applied = diff_map(want.properties, EMPTY, (), ignored, "properties").applied if holds else ()
        marks = Marks(context.owner, bool(want.protect), applied)
        properties = {k: want.properties[k] for k in applied}
        d.propose(CreateNamespace(want.ident, properties, marks), "safe", "not in the catalog yet")
    elif is_service_level(found):
        if want.properties or want.protect is not None:
            before: Json = {"properties": dict.fromkeys(want.properties), "marks": marks_json(Marks())}
            d.refuse(UpdateNamespace(want.ident, want.properties, (), Marks()), "metadata", _CONTAINER, before)
    elif isinstance(found, Present) and isinstance(found.state, NamespaceState):
        _existing(d, want, found.state, ignored, holds)
    if not holds and not isinstance(found, Unreadable):
        cannot = diff_map(want.properties, EMPTY, (), ignored, "properties")
        marks = d.namespace.marks if isinstance(d.now, Present) else Marks(context.owner)
        before = {"properties": cannot.before(EMPTY), "marks": marks_json(marks)}
        if cannot:
            d.propose(UpdateNamespace(want.ident, cannot.set, (), marks), "metadata", "properties differ", before)
    return d


def _existing(d: Drafter, want: DesiredNamespace, live: NamespaceState, ignored: frozenset[str], holds: bool) -> None:
    where, held = standing(d.context, live.marks.owner)
    d.block = d.block or held
    ours = live.marks.applied if where == "owned" else ()
    diff = diff_map(want.properties, live.properties, ours, ignored, "properties") if holds else MapDiff({}, (), ())
    protect = live.marks.protect if want.protect is None else want.protect
    marks = Marks(d.context.owner, protect, diff.applied)
    change = UpdateNamespace(want.ident, diff.set, diff.unset, marks)
    first = marks
    if diff and not d.may(change):
        settled = live.marks.applied if where == "owned" else tuple(k for k in diff.applied if k not in diff.set)
        first = Marks(d.context.owner, protect, settled)
    if where == "adopting":
        _adopt(d, want, live, first)
    elif where == "owned" and first != marks and first != live.marks:
        alone = UpdateNamespace(want.ident, {}, (), first)
        if d.may(alone):  # Our marks do not wait for properties that cannot be changed here.
            _update(d, live, MapDiff({}, (), ()), alone)
    noted = where == "owned" and gives_up(ours, marks.applied, live.properties, left_to_others(ignored))
    if diff or noted or (where in ("owned", "held") and protect != live.marks.protect):
        _update(d, live, diff, change)


def _adopt(d: Drafter, want: DesiredNamespace, live: NamespaceState, marks: Marks) -> None:
    reason = f"taken from {live.marks.owner}" if live.marks.owner else "nobody owned it"
    change = AdoptNamespace(want.ident, marks)
    if not d.propose(change, "metadata", reason, {"marks": marks_json(live.marks)}):
        d.block = Block("", "it is not ours, and cannot be taken over", "unsupported")


def _update(d: Drafter, live: NamespaceState, diff: MapDiff, change: UpdateNamespace) -> None:
    before: Json = {"properties": diff.before(live.properties), "marks": marks_json(d.namespace.marks)}
    differs = changed_keys("properties differ", diff)
    noted = marks_reason(d.namespace.marks, change.marks, (*diff.set, *diff.unset), differs)
    d.propose(change, "metadata", "; ".join(p for p in (differs, noted) if p), before)
