"""A plan as people may see it: without secrets that stand in names and values.

They are taken out of the plan before it is rendered, because every format escapes, wraps and cuts in its own way, and
what is escaped or cut is no longer known. The plan itself stays exact: its id is a hash, and apply runs it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from reconciler.core.secret_values import MASK
from reconciler.core.storage_keys import STORAGE, is_credential_property
from reconciler.model import arrow
from reconciler.model.finding import Finding
from reconciler.model.ident import ObjectKey, dotted
from reconciler.model.plan import Plan, Step

Clean = Callable[[str], str]
T = TypeVar("T")
MOST = 10
"""Places that are named one by one."""


def masked_plan(plan: Plan, clean: Clean) -> Plan:
    """The same object when there is nothing to hide."""
    out = replace(
        plan,
        steps=tuple(masked_step(step, clean) for step in plan.steps),
        orphans=masked(plan.orphans, clean),
        unowned=masked(plan.unowned, clean),
        left_out=masked(plan.left_out, clean),
        owners={masked(k, clean): clean(owner) for k, owner in plan.owners.items()},
        findings=masked_findings(plan.findings, clean),
        notes=masked(plan.notes, clean),
        catalogs={
            name: replace(c, **_part(c, clean, "problems", "projection_stale", "coverage"))
            for name, c in plan.catalogs.items()
        },
    )
    return plan if out == plan else out


def masked_findings(findings: Iterable[Finding], clean: Clean) -> tuple[Finding, ...]:
    return tuple(replace(f, **_part(f, clean, "key", "message", "hint", "waiver")) for f in findings)


def masked_step(step: Step, clean: Clean) -> Step:
    """All but the words of our own; the credentials of stores among properties too. Looked at as one text first: few
    steps hold anything."""
    error = "" if step.error is None else step.error.message
    text = json.dumps(
        [step.reason, error, step.change.ident, step.before, step.after, [k.location for k in step.kept]],
        ensure_ascii=False,
        default=str,
    )
    if clean(text) == text and STORAGE not in text.lower():
        return step
    return replace(step, **_part(step, clean, "reason", "purpose", "error", "change", "before", "after", "kept"))


def masked(value: T, clean: Clean) -> T:
    """Every text in plain data, keys of maps included. The words of a column's type are ours; names in it are not."""
    found: Any = value
    if isinstance(found, str):
        found = clean(found)
    elif isinstance(found, ObjectKey):
        found = found._replace(ident=masked(found.ident, clean))
    elif isinstance(found, Mapping):
        found = {clean(k): MASK if _is_credential(k, v) else masked(v, clean) for k, v in found.items()}
    elif isinstance(found, tuple | list):
        found = type(found)(masked(v, clean) for v in found)
    elif is_dataclass(found) and not isinstance(found, type):
        of_type = type(found).__module__ == arrow.__name__ and not isinstance(found, arrow.Field)
        names = [f.name for f in fields(found) if f.init and not (of_type and isinstance(getattr(found, f.name), str))]
        found = replace(found, **_part(found, clean, *names))
    return found  # type: ignore[no-any-return]


def _is_credential(key: object, value: object) -> bool:
    """Whether this run knows the value or not."""
    return isinstance(key, str) and isinstance(value, str) and is_credential_property(key)


def _part(value: object, clean: Clean, *names: str) -> dict[str, Any]:
    return {name: masked(getattr(value, name), clean) for name in names}


def secret_places(plan: Plan, clean: Clean) -> list[str]:
    """Where something is that other formats do not show: the object and the way to the value, never the value."""
    found: dict[str, None] = {}
    for step in plan.steps:
        if masked_step(step, clean) is step:
            continue
        about = f"{step.change.kind.lower()} {step.catalog}:{dotted(step.change.ident)}"
        for part in ("before", "after", "reason"):
            for way in _ways(getattr(step, part), clean):
                found[clean(f"{about} ({'.'.join((part, *way))})")] = None
    for key in (*plan.orphans, *plan.unowned, *plan.left_out):
        if masked(key, clean) != key:
            found[clean(f"{key.kind.lower()} {key.catalog}:{dotted(key.ident)} (its name)")] = None
    for key, owner in plan.owners.items():
        if clean(owner) != owner:
            found[clean(f"{key.kind.lower()} {key.catalog}:{dotted(key.ident)} (its owner)")] = None
    for note in plan.notes:
        if masked(note, clean) != note:
            found[clean(f"{note.key.kind.lower()} {note.key.catalog}:{dotted(note.key.ident)} (a note)")] = None
    for finding in plan.findings:
        if masked(finding.message, clean) != finding.message:
            found[f"a finding of {finding.code}"] = None
    return [*found]


def _ways(value: object, clean: Clean) -> Iterator[tuple[str, ...]]:
    if isinstance(value, str):
        if clean(value) != value:
            yield ()
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if clean(key) != key or _is_credential(key, inner):
                yield (clean(key),)
            yield from ((key, *way) for way in _ways(inner, clean))
    elif isinstance(value, tuple | list):
        for number, inner in enumerate(value):
            yield from ((str(number), *way) for way in _ways(inner, clean))


def secret_warning(plan: Plan, where: str, clean: Clean) -> str | None:
    """For a plan that is written exactly."""
    places = secret_places(plan, clean)
    if not places:
        return None
    more = f" and {len(places) - MOST} more" if len(places) > MOST else ""
    return (
        f"warning: {where} is exact, and values in it hold secrets of this run: {'; '.join(places[:MOST])}{more}. "
        "Keep it as you keep those secrets, take them out of there and rotate them; other formats do not show them."
    )
