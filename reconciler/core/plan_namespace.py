"""The steps for one declared namespace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconciler.core.diff_properties import MapDiff, diff_map, ignored_paths, left_to_others
from reconciler.core.draft import Block, Context, Drafter, allow_words, unread_block
from reconciler.core.notes import gives_up
from reconciler.core.ownership import standing
from reconciler.core.record_text import marks_reason
from reconciler.core.text import changed_keys
from reconciler.model.capabilities import Capabilities, is_service_level
from reconciler.model.change import AdoptNamespace, CreateNamespace, UpdateNamespace
from reconciler.model.codec import marks_json
from reconciler.model.desired import DesiredNamespace
from reconciler.model.ident import Ident, Kind, dotted, parent
from reconciler.model.observed import Absent, Finding, Present, Unreadable
from reconciler.model.plan import Json
from reconciler.model.state import EMPTY, Marks, NamespaceState

_CONTAINER = Block(
    "", "it is a level of the service itself, which is never changed: leave its manifest out", "unsupported"
)


def with_levels(
    capabilities: Capabilities, namespaces: Mapping[Ident, DesiredNamespace], tables: Iterable[Ident]
) -> Mapping[Ident, DesiredNamespace]:
    """Where namespaces are of two kinds, one that a namespace is declared in is of the upper kind, said or not."""
    if not capabilities.levels:
        return namespaces
    inside = {*namespaces, *(t[:-1] for t in tables)}
    holds = {i[:n] for i in inside for n in range(1, len(i))}
    upper = capabilities.levels[0]
    return {i: replace(n, level=n.level or (upper if i in holds else None)) for i, n in namespaces.items()}


def level_of_change(capabilities: Capabilities, level: str | None) -> str | None:
    """Changes name the upper level only."""
    return level if level in capabilities.levels[:1] else None


def level_block(capabilities: Capabilities, kind: Kind, ident: Ident, above: Finding | None) -> Block | None:
    """Why nothing of this kind can be in the namespace `above`, as it is there."""
    level = above.state.level if isinstance(above, Present) and isinstance(above.state, NamespaceState) else None
    if level not in capabilities.levels or level == capabilities.levels[0 if kind == "Namespace" else -1]:
        return None
    name, holds = dotted(parent(ident)), "tables" if kind == "Namespace" else "namespaces"
    return Block("", f"{name} is a {level}, and holds {holds} only: give this another id", "unsupported")


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
        level = level_of_change(context.capabilities, want.level)
        d.propose(CreateNamespace(want.ident, properties, marks, level), "safe", "not in the catalog yet")
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
    d.block = d.block or held or _other_level(d.context.capabilities, want, live)
    level = level_of_change(d.context.capabilities, live.level)
    ours = live.marks.applied if where == "owned" else ()
    diff = diff_map(want.properties, live.properties, ours, ignored, "properties") if holds else MapDiff({}, (), ())
    protect = live.marks.protect if want.protect is None else want.protect
    marks = Marks(d.context.owner, protect, diff.applied)
    change = UpdateNamespace(want.ident, diff.set, diff.unset, marks, level)
    first = marks
    if diff and not d.may(change):
        settled = live.marks.applied if where == "owned" else tuple(k for k in diff.applied if k not in diff.set)
        first = Marks(d.context.owner, protect, settled)
    if where == "adopting":
        _adopt(d, want, live, first)
    elif where == "owned" and first != marks and first != live.marks:
        alone = UpdateNamespace(want.ident, {}, (), first, level)
        if d.may(alone):  # Our marks do not wait for properties that cannot be changed here.
            _update(d, live, MapDiff({}, (), ()), alone)
    noted = where == "owned" and gives_up(ours, marks.applied, live.properties, left_to_others(ignored))
    if diff or noted or (where in ("owned", "held") and protect != live.marks.protect):
        _update(d, live, diff, change)


def _other_level(capabilities: Capabilities, want: DesiredNamespace, live: NamespaceState) -> Block | None:
    """What is inside has its own say (`level_block`); only what the manifest itself says of the kind counts here."""
    if live.level not in capabilities.levels or want.level in (None, live.level):
        return None
    why = f"{dotted(want.ident)} is a {live.level}, not a {want.level}: neither becomes the other, give it another id"
    return Block("", why, "unsupported")


def _adopt(d: Drafter, want: DesiredNamespace, live: NamespaceState, marks: Marks) -> None:
    reason = f"taken from {live.marks.owner}" if live.marks.owner else "nobody owned it"
    change = AdoptNamespace(want.ident, marks, level_of_change(d.context.capabilities, live.level))
    if not d.propose(change, "metadata", reason, {"marks": marks_json(live.marks)}):
        d.block = Block("", "it is not ours, and cannot be taken over", "unsupported")


def _update(d: Drafter, live: NamespaceState, diff: MapDiff, change: UpdateNamespace) -> None:
    before: Json = {"properties": diff.before(live.properties), "marks": marks_json(d.namespace.marks)}
    differs = changed_keys("properties differ", diff)
    noted = marks_reason(d.namespace.marks, change.marks, (*diff.set, *diff.unset), differs)
    d.propose(change, "metadata", "; ".join(p for p in (differs, noted) if p), before)
