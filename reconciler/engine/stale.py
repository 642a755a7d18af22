"""The check before the first write: is every object that the plan touches still as the plan expects it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from reconciler.core.plan_data import external_change
from reconciler.core.plan_renames import Renames, earlier_names
from reconciler.engine.chain import RENAMES, Link, Live, children_at_the_drop, describe, drops, links_of, position
from reconciler.engine.changed import changes, said
from reconciler.engine.holders import data_in_use, unsuitable
from reconciler.engine.reader import Key, Reader
from reconciler.engine.retry import Retry
from reconciler.engine.room import pending, rivals, taken
from reconciler.model.change import MaterializeTable, RenameNamespace
from reconciler.model.errors import CatalogError
from reconciler.model.ident import ObjectKey, parent
from reconciler.model.observed import Absent, Detached, Finding, Present, Unreadable
from reconciler.model.plan import Step
from reconciler.model.report import STALE_ADVICE, StaleObject
from reconciler.model.state import DatasetState, TableState

MOST_NAMED = 10
MOST_FIELDS = 4


@dataclass
class Check:
    """`holds`: step ids whose result is already there. `changed` and `unreadable` say of objects what is seen.
    `tables`: those that are there."""

    holds: set[str] = field(default_factory=set)
    changed: list[StaleObject] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    tables: dict[ObjectKey, TableState] = field(default_factory=dict)

    @property
    def stale_message(self) -> str:
        return f"the plan is stale, nothing was written: {named([_sentence(c) for c in self.changed])}. {STALE_ADVICE}"

    @property
    def unreadable_message(self) -> str:
        return f"nothing was written: {named(self.unreadable)}. Repair the cause and apply again."


def check(
    chains: Mapping[ObjectKey, Sequence[Link]], readers: Mapping[str, Reader], retries: Mapping[str, Retry]
) -> Check:
    """Reads each catalog in bulk, the catalogs side by side. Never raises CatalogError: it becomes `unreadable`."""
    result = Check()
    by_catalog: dict[str, list[ObjectKey]] = {}
    for key in chains:
        by_catalog.setdefault(key.catalog, []).append(key)
    live: dict[ObjectKey, Live] = {}
    in_the_way: dict[ObjectKey, Present | Unreadable] = {}
    in_use: dict[ObjectKey, str] = {}

    def look(catalog: str) -> None:
        try:
            seen, there = _look(by_catalog[catalog], chains, readers[catalog], retries[catalog])
            live.update(seen)
            in_the_way.update(there)
            used, unseen = data_in_use(seen, chains, readers[catalog], retries[catalog])
            in_use.update(used)
            result.unreadable.extend(unseen)
        except CatalogError as error:
            result.unreadable.append(f"catalog {catalog} cannot be read: {error.message}")

    if by_catalog:
        with ThreadPoolExecutor(max_workers=len(by_catalog)) as pool:
            list(pool.map(look, sorted(by_catalog)))
    result.unreadable.sort()
    held: Counter[str] = Counter()
    for key in sorted(live):
        if isinstance(found := live[key].finding, Present) and isinstance(found.state, TableState):
            result.tables[key] = found.state
        if key in in_the_way:
            _judge_rival(key, in_the_way[key], result)
        elif (problem := in_use.get(key) or unsuitable(live[key], chains[key])) is not None:
            result.changed.append(StaleObject(key, problem))
        else:
            _judge(key, chains[key], live[key], held, result)
    for key in sorted(live):
        for link in chains[key]:
            if held[link.step.id] == len(links_of(link.step)):
                result.holds.add(link.step.id)
            elif _torn(link, held) and not isinstance(live[key].finding, Unreadable):
                torn = StaleObject(key, _torn_text(link, live[key].finding), changes(chains[key], live[key]))
                result.changed.append(torn)
    return result


def named(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return "; ".join(texts[:MOST_NAMED]) + more


def _sentence(found: StaleObject) -> str:
    """With the first few fields; the report has all."""
    told = [said(d) for d in found.differences if d.field != "state"]
    more = [f"and {len(told) - MOST_FIELDS} more"] if len(told) > MOST_FIELDS else []
    return f"{found.key}: {found.problem}{': ' if told else ''}{', '.join([*told[:MOST_FIELDS], *more])}"


def _look(
    keys: Sequence[ObjectKey], chains: Mapping[ObjectKey, Sequence[Link]], reader: Reader, retry: Retry
) -> tuple[dict[ObjectKey, Live], dict[ObjectKey, Present | Unreadable]]:
    """The objects of the plan, and whatever of the other kind is in the way of one that has to be made."""
    found = dict(retry.call(lambda: reader.read([(k.kind, k.ident) for k in keys])))
    renames = renames_of(link.step for key in keys for link in chains[key])
    earlier = {k: _earlier(k, renames) for k in keys if isinstance(found[k.kind, k.ident], Absent)} if renames else {}
    about = {k.ident if k.kind == "Namespace" else parent(k.ident) for k in keys}
    others = {
        key: [rival for rival in there if reader.covers(rival, about)]
        for key, there in _rivals(keys, earlier, renames, found, chains).items()
    }
    if wanted := {name for names in (*earlier.values(), *others.values()) for name in names} - found.keys():
        found.update(retry.call(lambda: reader.read(wanted)))
    live: dict[ObjectKey, Live] = {}
    in_the_way: dict[ObjectKey, Present | Unreadable] = {}
    for key in keys:
        place = _place_of(key, earlier.get(key, ()), found)
        finding = found[place]
        children = None
        if drops(chains[key]) and isinstance(finding, Present):
            names = retry.call(lambda ident=place[1]: reader.children(ident))  # type: ignore[misc]
            children = children_at_the_drop(names, key, chains)
        live[key] = Live(finding, children)
        rival = taken(others.get(key, ()), found)
        if rival is not None and isinstance(finding, (Absent, Detached)):
            in_the_way[key] = rival
    return live, in_the_way


def _rivals(
    keys: Sequence[ObjectKey],
    earlier: Mapping[ObjectKey, Sequence[Key]],
    renames: Renames,
    found: Mapping[Key, Finding],
    chains: Mapping[ObjectKey, Sequence[Link]],
) -> dict[ObjectKey, list[Key]]:
    moves = pending(renames, found)
    free = [k for k in keys if isinstance(found[k.kind, k.ident], (Absent, Detached))]
    return {k: rivals(k, (ident for _, ident in earlier.get(k, ())), moves, chains) for k in free}


def renames_of(steps: Iterable[Step]) -> Renames:
    """The namespaces that the plan moves, of one catalog."""
    return {s.change.ident: s.change.source for s in steps if isinstance(s.change, RenameNamespace)}


def _earlier(key: ObjectKey, renames: Renames) -> list[Key]:
    """Where the object may be while namespaces above it still have their old names."""
    return [(key.kind, name) for name in earlier_names(key.ident, renames) if name != key.ident]


def _place_of(key: ObjectKey, earlier: Sequence[Key], found: Mapping[Key, Finding]) -> Key:
    return next((name for name in earlier if not isinstance(found[name], Absent)), (key.kind, key.ident))


def _judge(key: ObjectKey, chain: Sequence[Link], live: Live, held: Counter[str], result: Check) -> None:
    at = position(chain, live)
    if at is not None:
        held.update(link.step.id for link in chain[:at])
        if (why := _changed_rows(chain[at:], live.finding)) is not None:
            result.changed.append(StaleObject(key, why))
    elif isinstance(live.finding, Unreadable):
        result.unreadable.append(f"{key}: {describe(live.finding)}")
    elif live.children:
        result.changed.append(StaleObject(key, f"it holds {', '.join(live.children[:5])}", changes(chain, live)))
    else:
        result.changed.append(StaleObject(key, describe(live.finding), changes(chain, live)))


def _changed_rows(chain: Sequence[Link], finding: Finding) -> str | None:
    """Rows are in no fingerprint; those of a table that is about to be filled count all the same."""
    if not isinstance(finding, Present) or not isinstance(finding.state, TableState):
        return None
    dataset = finding.state.dataset
    fills = [link.step.change for link in chain if isinstance(link.step.change, MaterializeTable)]
    return external_change(fills[0], dataset) if fills and isinstance(dataset, DatasetState) else None


def _judge_rival(key: ObjectKey, rival: Present | Unreadable, result: Check) -> None:
    other = "table" if key.kind == "Namespace" else "namespace"
    if isinstance(rival, Unreadable):
        result.unreadable.append(f"{key}: whether a {other} has this name cannot be read: {rival.message}")
    else:
        result.changed.append(StaleObject(key, f"a {other} of this name is there"))


def _torn(link: Link, held: Counter[str]) -> bool:
    """A rename is one write. When only one half of it is there, that is someone else's doing: they took the old object
    away, or made one that looks like the new one. Seen from the old object."""
    return isinstance(link.step.change, RENAMES) and link.key != link.step.key and held[link.step.id] == 1


def _torn_text(link: Link, finding: Finding) -> str:
    if isinstance(finding, Present):
        return f"it is there, and so is {link.step.key}, which it is to be renamed to"
    return describe(finding)
