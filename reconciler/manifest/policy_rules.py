"""What can be wrong with a Policy document, and with the waivers of an object, beyond their structure."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from reconciler.core.globs import matcher
from reconciler.core.patterns import problem_with
from reconciler.core.policy import breaches, objects_of
from reconciler.core.policy_places import Whereabouts
from reconciler.manifest.nearest import nearest
from reconciler.manifest.problem import Path, Problem
from reconciler.manifest.registry import Registry
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import CatalogSpec, Desired
from reconciler.model.errors import CatalogError
from reconciler.model.ident import ObjectKey
from reconciler.model.policy import NEEDS_PLAN, DeclaredWaiver

CapabilitiesOf = Callable[[CatalogSpec], Capabilities | None]
_PATTERNS = frozenset({"namespace", "table", "pattern", "name", "columns", "comment"})
_MAPS = frozenset({"properties", "tagged", "metadata"})
_RULES: Path = ("spec", "rules")
_WAIVERS: Path = ("spec", "waivers")


def check_patterns(written: Any, problems: list[Problem]) -> None:
    """`written`: the document, which the schema accepted."""
    for number, rule in enumerate(written["spec"]["rules"]):
        for path, pattern in _patterns(rule, (*_RULES, number)):
            error = problem_with(pattern)
            if error is not None:
                hint = "a pattern is for the whole text; it has letters, . [a-z] \\d \\w \\s ( | ) and * + ? {m,n}"
                message = f"the pattern {pattern[:80]} cannot be used: {error.message}"
                problems.append(Problem("M541", path, message, hint, offset=error.position))


def _patterns(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    for key, inner in value.items():
        if key in _PATTERNS:
            yield (*path, key), inner
        elif key in _MAPS:
            yield from (((*path, key, name), pattern) for name, pattern in inner.items())
        elif key == "require":
            yield from _patterns(inner, (*path, key))


def waivers_of(docs: Any, problems: list[Problem]) -> tuple[DeclaredWaiver, ...]:
    """The first one of a code counts."""
    found: dict[str, DeclaredWaiver] = {}
    for number, doc in enumerate(docs or ()):
        place = (*_WAIVERS, number)
        if _not_a_date(doc.until):
            message = f"`spec.waivers[{number}].until`: there is no day {doc.until}"
            problems.append(Problem("M542", (*place, "until"), message, 'write a day such as "2027-01-31"'))
        waiver = DeclaredWaiver(doc.code, doc.reason, doc.until)
        if found.setdefault(doc.code, waiver) is not waiver:
            message = f"{doc.code} is waived twice in this document"
            problems.append(Problem("M543", (*place, "code"), message, "keep one of them"))
    return tuple(found.values())


def _not_a_date(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return True
    return False


def known_rules(desired: Desired, capabilities_of: CapabilitiesOf | None) -> dict[str, Capabilities]:
    """Of the catalogs that can say what they allow; a plug-in that cannot is told of elsewhere."""
    out: dict[str, Capabilities] = {}
    if capabilities_of is None:
        return out
    for name, spec in desired.catalogs.items():
        with contextlib.suppress(CatalogError):
            found = capabilities_of(spec)
            if found is not None:
                out[name] = found
    return out


def check_policies(
    registry: Registry,
    desired: Desired,
    capabilities_of: CapabilitiesOf | None,
    environments: Sequence[str] | None = None,
) -> None:
    """`environments`: those that there are overlays for; None without any overlays. A misspelt name would switch a rule
    off without a word."""
    names = sorted({*registry.catalogs, *registry.broken_catalogs})
    for entry in registry.policies.values():
        for number, rule in enumerate(entry.written["spec"]["rules"]):
            if rule.get("severity") in ("off", False):
                continue
            place = (*_RULES, number)
            for problem in (
                *_unknown_catalogs(rule, place, names),
                *_unknown_environments(rule, place, environments),
                *_unmatched(rule, place, desired),
            ):
                entry.report(problem)
    _useless_waivers(registry, desired, capabilities_of)


def _unknown_catalogs(rule: Any, place: Path, names: Sequence[str]) -> Iterator[Problem]:
    for at, name in enumerate(rule.get("catalogs", ())):
        if name not in names:
            near = nearest(name, names)
            message = f"no manifest declares the catalog {name!r}: the rule applies to nothing there"
            hint = f"did you mean {near}?" if near else "declare it, or take the name out of the rule"
            yield Problem("M544", (*place, "catalogs", at), message, hint, severity="warning")


def _unknown_environments(rule: Any, place: Path, known: Sequence[str] | None) -> Iterator[Problem]:
    for at, name in enumerate(rule.get("environments", ()) if known is not None else ()):
        if name not in (known or ()):
            near = nearest(name, known or ())
            message = f"there is no folder overlays/{name}: the rule applies to no run with --env"
            hint = f"did you mean {near}?" if near else f"environments: {', '.join(known or ())}"
            yield Problem("M547", (*place, "environments", at), message, hint, severity="warning")


def _unmatched(rule: Any, place: Path, desired: Desired) -> Iterator[Problem]:
    """Not of a run without any object in reach: it is about the policies alone, or about other catalogs. Nor of a rule
    that is for what no manifest declares, or for environments: others have objects of their own."""
    if rule.get("rule") == "no-destructive-change" or rule.get("environments"):
        return
    catalogs = rule.get("catalogs") or {*desired.namespaces, *desired.tables}
    reached = [o.ident for o in objects_of(desired, catalogs)]
    for at, glob in enumerate(rule.get("match", ()) if reached else ()):
        if not any(map(matcher([glob]), reached)):
            message = f"no declared object matches {glob}: the rule applies to nothing there"
            hint = "`*` stays inside one name, `**` stands for any number of names"
            yield Problem("M546", (*place, "match", at), message, hint, severity="warning")


def _useless_waivers(registry: Registry, desired: Desired, capabilities_of: CapabilitiesOf | None) -> None:
    """A waiver of what a plan alone can tell may be of use any time."""
    waived = [
        (entry, number, waiver)
        for stores in (registry.namespaces, registry.tables)
        for store in stores.values()
        for entry in store.values()
        for number, waiver in enumerate(entry.declared.waivers)
        if waiver.code not in NEEDS_PLAN
    ]
    if not waived:
        return
    broken = set(_broken(desired, known_rules(desired, capabilities_of)))
    for entry, number, waiver in waived:
        declared = entry.declared
        if (ObjectKey(declared.catalog, declared.ident, entry.kind), waiver.code) not in broken:
            message = f"the waiver of {waiver.code} waives nothing: no rule of that code is broken here"
            entry.warning("M545", (*_WAIVERS, number), message, "remove it")


def _broken(desired: Desired, capabilities: dict[str, Capabilities]) -> Iterator[tuple[ObjectKey, str]]:
    """In whatever environment."""
    objects = objects_of(desired, {*desired.namespaces, *desired.tables})
    for breach in breaches(desired, objects, Whereabouts(desired, capabilities), environment=None, anywhere=True):
        if breach.key is not None:
            yield breach.key, breach.rule.code
