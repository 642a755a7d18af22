"""What the policies say about a plan, or about manifests alone. Pure: the day is an input.

Rules are judged over the declared objects that the plan covers, and over its steps that will run. An absent object is
on its way out: only its removal is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.core.globs import matcher
from reconciler.core.policy_checks import Broken, Path, check_catalog, check_object
from reconciler.core.policy_places import Whereabouts
from reconciler.core.policy_targets import Targets
from reconciler.core.policy_waivers import Waivers
from reconciler.core.world import World
from reconciler.model.capabilities import Capabilities
from reconciler.model.desired import CatalogSpec, Desired, DesiredObject, DesiredTable
from reconciler.model.diagnostic import Source
from reconciler.model.finding import Finding
from reconciler.model.ident import Ident, Kind, ObjectKey
from reconciler.model.observed import Snapshot
from reconciler.model.plan import Step
from reconciler.model.policy import NoDestructiveChange, Rule

_NOT_OPENED: Mapping[str, Capabilities] = {}
_NO_ENDS: Mapping[str, World] = {}
_MANIFESTS = Targets()
MOST_PLACES = 1_000
"""Findings that are told at the line of their key, which takes another reading of the document; the rest, at the
beginning of their documents."""


@dataclass(frozen=True, slots=True)
class Breach:
    rule: Rule
    key: ObjectKey | None
    broken: Broken
    source: Source | None
    """Of the document."""
    catalog: str | None = None
    """What it is about, when it is no object."""


@dataclass(frozen=True, slots=True)
class Judged:
    findings: tuple[Finding, ...] = ()
    on: str = ""
    """The day, when a waiver made it matter."""


def judge_plan(
    desired: Desired,
    snapshots: Mapping[str, Snapshot],
    capabilities: Mapping[str, Capabilities],
    steps: Sequence[Step],
    selected: Mapping[str, Callable[[Ident], bool]],
    environment: str | None,
    today: str,
    opened: Mapping[str, Capabilities] = _NOT_OPENED,
    ends: Mapping[str, World] = _NO_ENDS,
) -> Judged:
    """Of the catalogs in `snapshots`: what is selected, and what has a step although it is not. `opened`: what the open
    catalogs say of themselves, to judge by and not to show. `ends`: the catalogs at the end of the plan."""
    if not desired.policies:
        return Judged()
    touched = {s.key for s in steps}
    covered = [o for o in objects_of(desired, snapshots) if selected[o.catalog](o.ident) or key_of(o) in touched]
    whereabouts = Whereabouts(desired, capabilities, snapshots, opened)
    owners = {name: spec.management.owner for name, spec in desired.catalogs.items()}
    found = [
        *_of_catalogs(desired, [desired.catalogs[n] for n in snapshots], environment),
        *breaches(desired, covered, whereabouts, environment, Targets(ends, steps, owners)),
        *_of_steps(desired, steps, environment),
    ]
    return _judged(desired, found, today)


def judge_manifests(
    desired: Desired, capabilities: Mapping[str, Capabilities], environment: str | None, today: str
) -> Judged:
    """What can be said without the live catalogs. What cannot be is told once for a catalog."""
    if not desired.policies:
        return Judged()
    objects = list(objects_of(desired, desired.catalogs))
    broken = list(breaches(desired, objects, Whereabouts(desired, capabilities), environment))
    found = [
        *_of_catalogs(desired, desired.catalogs.values(), environment),
        *(b for b in broken if b.broken.certain),
        *_of_whole_catalogs(desired, [b for b in broken if not b.broken.certain]),
    ]
    return _judged(desired, found, today)


def breaches(
    desired: Desired,
    objects: Iterable[DesiredObject],
    whereabouts: Whereabouts,
    environment: str | None,
    targets: Targets = _MANIFESTS,
    *,
    anywhere: bool = False,
) -> Iterator[Breach]:
    """`anywhere`: rules of other environments too. What cannot be told is a warning, whatever the rule is."""
    rules = [(rule, _reach(rule)) for rule in _rules(desired, environment, anywhere)]
    for want in objects:
        if want.absent:
            continue
        key = key_of(want)
        target = targets.of(want)
        for rule, reaches in rules:
            if reaches(key):
                for broken in check_object(rule.check, target, whereabouts, targets.known):
                    told = rule if broken.certain else replace(rule, severity="warning")
                    yield Breach(told, key, broken, want.source)


def objects_of(desired: Desired, catalogs: Iterable[str]) -> Iterator[DesiredObject]:
    for name in catalogs:
        yield from desired.namespaces.get(name, {}).values()
        yield from desired.tables.get(name, {}).values()


def key_of(want: DesiredObject) -> ObjectKey:
    kind: Kind = "Table" if isinstance(want, DesiredTable) else "Namespace"
    return ObjectKey(want.catalog, want.ident, kind)


def _rules(desired: Desired, environment: str | None, anywhere: bool = False) -> Iterator[Rule]:
    for policy in desired.policies:
        for rule in policy.rules:
            if anywhere or not rule.reach.environments or environment in rule.reach.environments:
                yield rule


def _reach(rule: Rule) -> Callable[[ObjectKey], bool]:
    catalogs = frozenset(rule.reach.catalogs)
    names = matcher(rule.reach.match) if rule.reach.match else lambda _: True
    return lambda key: (not catalogs or key.catalog in catalogs) and names(key.ident)


def _of_catalogs(desired: Desired, specs: Iterable[CatalogSpec], environment: str | None) -> Iterator[Breach]:
    """A catalog has no identifier, so `match` is not asked."""
    for rule in _rules(desired, environment):
        for spec in specs:
            if not rule.reach.catalogs or spec.name in rule.reach.catalogs:
                for broken in check_catalog(rule.check, spec):
                    yield Breach(rule, None, broken, spec.source, spec.name)


def _of_whole_catalogs(desired: Desired, unknown: Iterable[Breach]) -> Iterator[Breach]:
    for b in unknown:
        spec = desired.catalogs.get(b.key.catalog) if b.key is not None else None
        if spec is not None:
            broken = replace(b.broken, message=f"{_what(b)} of the catalog {spec.name}: {b.broken.message}", path=())
            yield Breach(b.rule, None, broken, spec.source, spec.name)


def _what(breach: Breach) -> str:
    return "tables" if breach.key is None or breach.key.kind == "Table" else "namespaces"


def _of_steps(desired: Desired, steps: Sequence[Step], environment: str | None) -> Iterator[Breach]:
    """A blocked step changes nothing, so it breaks nothing. What removes an object from the catalog counts as
    destructive here, although a table keeps its data: whoever forbids loss means that too."""
    for rule in _rules(desired, environment):
        if not isinstance(rule.check, NoDestructiveChange):
            continue
        reaches = _reach(rule)
        for s in steps:
            removes = s.deletes and "destructive" in rule.check.risks
            if s.verdict == "allowed" and (removes or s.risk in rule.check.risks) and reaches(s.key):
                what = "removes it from the catalog" if s.deletes else f"is {s.risk}"
                message = f"{s.action} ({s.id}) {what}: {s.reason}"
                yield Breach(rule, s.key, Broken(message, _way_out(s), ()), s.source)


def _way_out(step: Step) -> str:
    if step.source is None:
        return "no manifest declares it, so no waiver can let it go: leave --prune out, or declare it `state: absent`"
    return f'if it is meant: spec.waivers: [{{code: P006, reason: …, until: "…"}}] in {step.source.file}'


def _judged(desired: Desired, found: Sequence[Breach], today: str) -> Judged:
    waivers = Waivers(desired, today)
    findings: dict[Finding, None] = {}
    for number, b in enumerate(found):
        source = _place(desired, b) if number < MOST_PLACES else b.source
        findings[waivers.finding(b.rule, b.key, b.broken.message, b.broken.hint, source)] = None
    return Judged(tuple(sorted(findings, key=_order)), today if waivers.mattered else "")


def _place(desired: Desired, b: Breach) -> Source | None:
    of = b.key or b.catalog
    found = desired.place(of, b.broken.path) if of is not None and b.broken.path else None
    return found or b.source


def _order(f: Finding) -> tuple[ObjectKey, str, Source, str, str]:
    """What is about a catalog comes before what is in any."""
    nowhere = Source("")
    return f.key or ObjectKey("", (), "Namespace"), f.code, f.source or nowhere, f.message, f.severity


__all__ = ["Breach", "Judged", "Path", "breaches", "judge_manifests", "judge_plan", "key_of", "objects_of"]
