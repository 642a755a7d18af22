"""What holds for the order of the steps of every plan: a file of which it does not hold was not written by `plan`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.model.change import CreateNamespace, DeclareTable, DropNamespace, RenameNamespace, RenameTable
from reconciler.model.ident import Ident, ObjectKey, dotted
from reconciler.model.plan import Expect, Step

_FILLS = (CreateNamespace, DeclareTable, RenameNamespace, RenameTable)


def problem_of_order(steps: Sequence[Step]) -> str | None:
    """Ids are unique. A step needs only steps above it, so that none is missing and none waits for itself. Deletes come
    last, parents are made before and dropped after what is in them. Each step on an object starts from what the one
    before has left of it."""
    return next(_problems(steps), None) or next(_broken_chains(steps), None)


def _broken_chains(steps: Sequence[Step]) -> Iterator[str]:
    """Of the steps that will run."""
    left: dict[ObjectKey, tuple[Step, Expect]] = {}
    for step in steps:
        if step.verdict != "allowed":
            continue
        change, key = step.change, step.key
        keys = {key: step.expect}
        if isinstance(change, (RenameTable, RenameNamespace)):
            keys[ObjectKey(step.catalog, change.source, change.kind)] = step.yields
        for of, start in keys.items():
            if of in left and not _one(left[of][1], start):
                yield f"step {step.id} does not start from what {left[of][0].id} leaves of {of}"
        left |= dict.fromkeys(keys, (step, Expect("absent")))
        left[key] = (step, step.yields)


def _one(left: Expect, start: Expect) -> bool:
    return left.state == start.state and left.fingerprint == start.fingerprint


def _problems(steps: Sequence[Step]) -> Iterator[str]:
    above: set[str] = set()
    all_ids = {s.id for s in steps}
    deleting: Step | None = None
    filled: dict[tuple[str, Ident], Step] = {}
    dropped: dict[tuple[str, Ident], Step] = {}
    for step in steps:
        if step.id in above:
            yield f"two steps have the id {step.id}"
        for need in step.needs:
            if need not in above:
                what = "which does not come before it" if need in all_ids else "which is no step of it"
                yield f"step {step.id} needs {need}, {what}"
        above.add(step.id)
        if step.verdict != "allowed":
            continue
        ident = step.change.ident
        if not step.deletes and deleting is not None:
            yield f"step {step.id} comes after {deleting.id}, which deletes: deletes come last"
        deleting = step if step.deletes else deleting
        parents = [(step.catalog, ident[:length]) for length in range(1, len(ident))]
        if step.deletes:
            if isinstance(step.change, DropNamespace):
                dropped[step.catalog, ident] = step
            late = next((dropped[p] for p in parents if p in dropped), None)
        else:
            late = filled.get((step.catalog, ident)) if isinstance(step.change, CreateNamespace) else None
            if isinstance(step.change, _FILLS):
                filled |= dict.fromkeys(parents, step)
        if late is not None:
            yield f"step {step.id} on {dotted(ident)} comes after {late.id} on {dotted(late.change.ident)}"
