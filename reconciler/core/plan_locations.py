"""Which table is where: two tables of a catalog never share a location, and no table is inside another one's folder,
whatever catalog that one is in. Lance cleans up everything in a dataset's folder that it does not know."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace

from reconciler.core.draft import Block, gap_block, unread_block
from reconciler.core.uris import canonical_location, canonical_of, folders_above, store_endpoints
from reconciler.core.world import World
from reconciler.model.desired import CatalogSpec, DesiredTable
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.ident import Ident, dotted
from reconciler.model.observed import Finding, Present, Snapshot, Unreadable, what_is_left
from reconciler.model.plan import INCOMPLETE, LOCATION_CONFLICT, TWO_APPLIES
from reconciler.model.state import TableState


@dataclass(frozen=True, slots=True, order=True)
class Neighbour:
    """Somebody's table, or data of one that is known, at this location as the catalog shows it."""

    ident: Ident
    location: str


class Locations:
    """The locations of one catalog's tables, as the plan goes on."""

    def __init__(
        self,
        world: World,
        snapshot: Snapshot,
        spec: CatalogSpec | None = None,
        declared: Container[Ident] = frozenset(),
        absent: Container[Ident] = frozenset(),
    ) -> None:
        """`declared`: the tables that manifests ask for in this catalog; `absent`: those with `state: absent`."""
        self.catalog = spec.name if spec is not None else ""
        self.owner = spec.management.owner if spec is not None else None
        self.endpoints = store_endpoints(spec.options) if spec is not None else ()
        self.declared = declared
        self.absent = absent
        self._world = world
        self._snapshot = snapshot
        self._users: dict[str, list[Neighbour]] | None = None
        self._detached: dict[str, Neighbour] = {}
        self._sorted: list[str] | None = None
        """All locations in order, once somebody asks what is inside one: most plans make no table."""

    def of(self, ident: Ident, location: str) -> str:
        """The canonical form of where a table is to be made, with links resolved if that was looked at."""
        checked = self._snapshot.checked.get(ident)
        return checked.canonical if checked is not None and checked.canonical else canonical_location(location)

    def users_of(self, place: str) -> list[Ident]:
        """The tables in the catalog that have this location."""
        return [n.ident for n in self._collected().get(place, ()) if self._is_live(n.ident)]

    def outsider_at(self, place: str, but: Ident | None = None) -> Ident | None:
        """A table at this location that is neither declared nor ours, and is not `but`."""
        for ident in self.users_of(place):
            if ident == but:
                continue
            found = self._world.tables.get(ident)
            ours = isinstance(found, Present) and found.state.marks.owner == self.owner
            if not ours and ident not in self.declared:
                return ident
        return None

    def stays(self, ident: Ident) -> bool:
        """Declared, or ours without a document that says otherwise."""
        found = self._world.tables.get(ident)
        ours = isinstance(found, Present) and found.state.marks.owner == self.owner
        return ident in self.declared or (ours and ident not in self.absent)

    def nested(self, place: str, ident: Ident | None = None) -> tuple[str, Neighbour] | None:
        """A table whose folder this location is in, or that is in this one; with how the two are nested. `ident`: the
        table that is to be here, whose own data does not count."""
        self._collected()
        for folder in folders_above(place):
            if found := self._at(folder, ident):
                return "inside", found
        if self._sorted is None:
            assert self._users is not None
            self._sorted = sorted({*self._users, *self._detached})
        start = f"{place.rstrip('/')}/"
        for index in range(bisect_left(self._sorted, start), len(self._sorted)):
            if not self._sorted[index].startswith(start):
                break
            if found := self._at(self._sorted[index], ident):
                return "around", found
        return None

    def problem_at(self, ident: Ident) -> str | None:
        """What storage says against a table there."""
        checked = self._snapshot.checked.get(ident)
        return checked.conflict if checked is not None else None

    def _at(self, place: str, ident: Ident | None) -> Neighbour | None:
        assert self._users is not None
        there = [*self._users.get(place, ()), *filter(None, (self._detached.get(place),))]
        return next((n for n in there if n.ident != ident), None)

    def unseen_user(self) -> Block | None:
        """Why data that no known table has may still be a table's: not every table's location could be seen. Data that
        is given to a second table would be altered under the first one."""
        for gap in self._snapshot.gaps:
            where = dotted(gap.ident) or "the catalog"
            return gap_block(gap, _unseen(f"the listing of {where} is incomplete ({gap.message}), and a table in it"))
        for found in (self._snapshot.tables, self._snapshot.namespaces):
            for ident, finding in found.items():
                if isinstance(finding, Unreadable) and not finding.foreign and finding.gone is None:
                    block = unread_block(finding)
                    return replace(block, reason=_unseen(f"{dotted(ident)} cannot be read ({finding.message}), and it"))
        for ident in sorted(self._snapshot.hidden_unread):
            why = f"{dotted(ident)} is ignored and its place could not be read (see `management.ignore`), and it"
            return Block(INCOMPLETE, _unseen(why))
        return None

    def note(self, ident: Ident, found: Finding) -> None:
        """The table is there now, in the plan."""
        if self._users is not None:
            self._add(ident, found)

    def _collected(self) -> dict[str, list[Neighbour]]:
        if self._users is None:
            self._users = {}
            for ident, place in self._snapshot.hidden_places.items():
                self._put(canonical_location(place), Neighbour(ident, place))
            for ident, found in self._world.tables.items():
                self._add(ident, found)
            for ident, data in self._world.detached.items():
                self._detached[self.of(ident, data.location)] = Neighbour(ident, data.location)
            for ident, place in self._world.data_left.items():
                self._detached.setdefault(self.of(ident, place), Neighbour(ident, place))
        return self._users

    def _add(self, ident: Ident, found: Finding) -> None:
        found = what_is_left(found)
        if isinstance(found, Present) and isinstance(found.state, TableState):
            location, place = found.state.location, found.state.place
            if isinstance(location, str):
                self._put(place or self.of(ident, location), Neighbour(ident, location))

    def _put(self, place: str, user: Neighbour) -> None:
        assert self._users is not None
        there = self._users.get(place, [])
        self._users[place] = [u for u in there if self._is_live(u.ident) and u.ident != user.ident] + [user]
        if self._sorted is not None and not there:
            insort(self._sorted, place)

    def _is_live(self, ident: Ident) -> bool:
        """Not so after a rename in this plan: then the same data has another name."""
        return ident in self._world.tables or ident in self._snapshot.hidden_places


def _unseen(who: str) -> str:
    return f"{who} may have this data already: one dataset is one table of a catalog"


def conflict(
    ident: Ident, location: str, place: str, here: Locations, elsewhere: Iterable[Locations], new: bool
) -> Block | None:
    """Why no table may be made or attached at this location: another one's folder is around it, or inside it. `new`:
    there is no data yet; then an entry of another catalog that is nobody's business of ours keeps its location."""
    for one in (here, *elsewhere):
        if "://" in place and one.endpoints != here.endpoints:
            continue
        outsider = one.outsider_at(place, ident if one is here else None) if new else None
        if outsider is not None:
            name = dotted(outsider) if one is here else f"{one.catalog}:{dotted(outsider)}"
            why = f"the location {location} is that of table {name}, which is not ours"
            return Block(LOCATION_CONFLICT, f"{why}: choose another `location`, or declare that table too")
        found = one.nested(place, ident if one is here else None)
        if found is not None:
            how, other = found
            name = dotted(other.ident) if one is here else f"{one.catalog}:{dotted(other.ident)}"
            return Block(LOCATION_CONFLICT, _nested(location, how, f"table {name} at {other.location}"))
    problem = here.problem_at(ident)
    return Block(LOCATION_CONFLICT, problem) if problem is not None else None


def _nested(location: str, how: str, what: str) -> str:
    return (
        f"the location {location} is {how} {what}: cleaning up the one would delete files of the other; choose another "
        "`location`"
    )


def shared_by(want: DesiredTable, live: TableState, here: Locations) -> Block | None:
    """Why no step may be made on a table whose dataset is another table of the catalog as well that is declared, or
    ours and in no manifest: each would alter the other's data. One that is to go by `state: absent` does not count."""
    place = canonical_of(live)
    if place is None:
        return None
    other = next((i for i in sorted(here.users_of(place)) if i != want.ident and here.stays(i)), None)
    if other is None:
        return None
    return Block(LOCATION_CONFLICT, one_dataset(live, other))


def one_dataset(live: TableState, other: Ident) -> str:
    return (
        f"the dataset at {live.location} is table {dotted(other)} too: one dataset is one table of a catalog; take one "
        "of them out with `state: absent` (the data stays)"
    )


def moved(want: DesiredTable, live: TableState) -> str | None:
    """Why nothing may be done with a table that is not where its manifest says. Spellings do not count: where both mean
    one location, the catalog shows it as the manifest writes it."""
    if want.location is None or not isinstance(live.location, str):
        return None
    if canonical_location(live.location) == canonical_location(want.location):
        return None
    return (
        f"it is at {live.location}, and `location` says {want.location}: a table is not moved by that; correct "
        "`location`, or point the entry back"
    )


def taken(want: DesiredTable, location: str, other: Ident, chooses: bool) -> Diagnostic:
    problem = f"{dotted(want.ident)}: the dataset at {location} is table {dotted(other)} already"
    hint = f"one dataset is one table of a catalog: declare it as {dotted(other)}, or use `renamedFrom`"
    if chooses:
        hint += ", or give this table another `location`"
    return Diagnostic(want.source, "P104", "error", problem, hint)


def leaving(location: str, other: Ident) -> Block:
    """Deletes come last, so the location becomes free only after this plan."""
    why = (
        f"the dataset at {location} is still table {dotted(other)}, which is to go: this comes in the apply after that"
    )
    return Block(TWO_APPLIES, why)


def nowhere(want: DesiredTable) -> Diagnostic:
    return Diagnostic(
        want.source,
        "P102",
        "error",
        f"{dotted(want.ident)}: there is no dataset at {want.location}",
        "this catalog chooses locations itself: leave `location` out, or name a dataset that exists; "
        "a relative location starts at the catalog's path",
    )
