"""Drafts become steps: numbered, with what each one needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from reconciler.core.compared import compared
from reconciler.core.draft import Draft
from reconciler.core.fingerprint import expect_of, fingerprint
from reconciler.core.needs import Steps
from reconciler.model.change import CreateNamespace, RenameNamespace, RenameTable, UpdateTable
from reconciler.model.ident import Ident, ObjectKey, parent
from reconciler.model.observed import Finding
from reconciler.model.plan import Expect, Step
from reconciler.model.plan_json import change_to_json

Named = tuple[str, Draft]
Known = tuple[Finding, Expect] | None


def number(
    drafts: Sequence[Named],
    deletes: Sequence[Named],
    follows: Mapping[ObjectKey, ObjectKey] = MappingProxyType({}),
    clean: Callable[[str], str] = str,
) -> tuple[Step, ...]:
    """Creates and updates in the order given (parents first), then deletes (tables, then namespaces, deepest first).
    A step needs those before it on the same object that it builds on (needs.py), or else the one that makes its parent;
    a rename also the one that makes the parent of the old name; a drop whatever empties the namespace. What takes the
    old name of a renamed object needs the rename. A table whose dataset is that of another catalog's table too needs
    the steps on that one before it. The rule that deletes wait for all creates and updates is the executor's."""
    steps: list[Step] = []
    before: dict[tuple[str, str, Ident], Steps] = {}
    makers: dict[tuple[str, Ident], str] = {}
    emptied: dict[tuple[str, Ident], list[str]] = {}
    freed: dict[tuple[str, Ident], str] = {}
    known: Known = None
    kin = _kin(follows)
    for catalog, draft, deleting in (*((*d, False) for d in drafts), *((*d, True) for d in deletes)):
        change = draft.change
        id_ = f"s{len(steps) + 1}"
        key = (catalog, change.kind, change.ident)
        first = key not in before
        earlier = before.get(key, Steps())
        needs = earlier.needs(change) or _parent(makers, catalog, change.ident)
        needs += emptied.get((catalog, change.ident), []) if change.kind == "Namespace" else []
        if kin and not isinstance(change, (UpdateTable, RenameTable)):
            others = kin.get(ObjectKey(catalog, change.ident, change.kind), ())
            theirs = (before.get((k.catalog, k.kind, k.ident)) for k in others)
            needs += [need for known_steps in theirs if known_steps for need in known_steps.needs(change)]
        if isinstance(change, (RenameTable, RenameNamespace)):
            needs += _parent(makers, catalog, change.source)
        if first and (catalog, change.ident) in freed:
            needs = [*needs, freed[catalog, change.ident]]
        if draft.verdict == "allowed":
            before.setdefault(key, earlier).add(id_, change, needs)
            if isinstance(change, (CreateNamespace, RenameNamespace)):
                makers[catalog, change.ident] = id_
            if isinstance(change, (RenameTable, RenameNamespace)):
                emptied.setdefault((catalog, parent(change.source)), []).append(id_)
                freed[catalog, change.source] = id_
            elif deleting:
                emptied.setdefault((catalog, parent(change.ident)), []).append(id_)
        step = _step(id_, catalog, draft, needs, known)
        known = (draft.yields, step.yields)
        if draft.verdict == "allowed" and first:
            step = _with_compared(step, draft, clean)
        steps.append(step)
    return tuple(steps)


def _kin(follows: Mapping[ObjectKey, ObjectKey]) -> dict[ObjectKey, list[ObjectKey]]:
    """Both ways: the first of them waits for the entries of the others, and these for its data."""
    out: dict[ObjectKey, list[ObjectKey]] = {}
    for follower, leader in follows.items():
        out.setdefault(follower, []).append(leader)
        out.setdefault(leader, []).append(follower)
    return out


def _parent(makers: dict[tuple[str, Ident], str], catalog: str, ident: Ident) -> list[str]:
    """The nearest ancestor that this plan makes."""
    for i in range(len(ident) - 1, 0, -1):
        if (catalog, ident[:i]) in makers:
            return [makers[catalog, ident[:i]]]
    return []


def _with_compared(step: Step, draft: Draft, clean: Callable[[str], str]) -> Step:
    """Only the first step that runs on an object: what comes later follows from it. A rename leaves the object as it
    was, under the name that it has afterwards."""
    if isinstance(draft.change, (RenameTable, RenameNamespace)):
        return replace(step, yields=replace(step.yields, compared=compared(draft.yields, clean=clean)))
    return replace(step, expect=replace(step.expect, compared=compared(draft.expect, draft.children, clean)))


def _step(id_: str, catalog: str, draft: Draft, needs: Sequence[str], known: Known) -> Step:
    """The state after one step is the state before the next on that object: hashed once."""
    if draft.children is None and known and known[0] is draft.expect:
        expect = known[1]
    else:
        expect = expect_of(draft.expect, draft.children)
    yields = expect if draft.yields is draft.expect else expect_of(draft.yields)
    if draft.counted:
        columns = tuple(sorted(draft.counted))
        expect, yields = replace(expect, columns=columns), replace(yields, columns=columns)
    return Step(
        id_,
        catalog,
        draft.change,
        draft.risk,
        draft.reason,
        draft.verdict,
        draft.blocked_by,
        tuple(dict.fromkeys(needs)),
        expect,
        yields,
        tuple(fingerprint(f) for f in draft.via),
        draft.before,
        change_to_json(draft.change),
        draft.source,
        draft.purpose,
        draft.runner,
        draft.permissions,
        draft.error,
        draft.kept,
    )
