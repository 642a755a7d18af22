"""Which table is where: two tables of a catalog never share a place."""

from __future__ import annotations

from reconciler.core.draft import Block
from reconciler.core.uris import place_of
from reconciler.core.world import World
from reconciler.model.desired import DesiredTable
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.ident import Ident, dotted
from reconciler.model.observed import Finding, Present, Snapshot, Unreadable
from reconciler.model.plan import INCOMPLETE, TWO_APPLIES, UNREADABLE
from reconciler.model.state import TableState


class Places:
    """Collected when it is first asked for: most plans make no table."""

    def __init__(self, world: World, snapshot: Snapshot) -> None:
        self._world = world
        self._snapshot = snapshot
        self._users: dict[str, Ident] | None = None

    def user_of(self, location: str) -> Ident | None:
        """The table that has this place already."""
        if self._users is None:
            self._users = {place_of(place): ident for ident, place in self._snapshot.hidden_places.items()}
            for ident, found in self._world.tables.items():
                self.note(ident, found)
        return self._users.get(place_of(location))

    def unseen_user(self) -> Block | None:
        """Why data that no known table has may still be a table's: not every table's place could be seen. Data that
        is given to a second table would be altered under the first one."""
        for gap in self._snapshot.gaps:
            where = dotted(gap.ident) or "the catalog"
            return _unseen(INCOMPLETE, f"the listing of {where} is incomplete ({gap.message}), and a table in it")
        for found in (self._snapshot.tables, self._snapshot.namespaces):
            for ident, finding in found.items():
                if isinstance(finding, Unreadable) and not finding.foreign:
                    return _unseen(UNREADABLE, f"{dotted(ident)} cannot be read ({finding.message}), and it")
        for ident in sorted(self._snapshot.hidden_unread):
            return _unseen(
                INCOMPLETE,
                f"{dotted(ident)} is ignored and its place could not be read (see `management.ignore`), and it",
            )
        return None

    def note(self, ident: Ident, found: Finding) -> None:
        if self._users is not None and isinstance(found, Present) and isinstance(found.state, TableState):
            location = found.state.place or found.state.location
            if isinstance(location, str):
                self._users[place_of(location)] = ident


def _unseen(word: str, who: str) -> Block:
    return Block(word, f"{who} may have this data already: one dataset is one table of a catalog")


def taken(want: DesiredTable, location: str, other: Ident, chooses: bool) -> Diagnostic:
    problem = f"{dotted(want.ident)}: the dataset at {location} is table {dotted(other)} already"
    hint = f"one dataset is one table of a catalog: declare it as {dotted(other)}, or use `renamedFrom`"
    if chooses:
        hint += ", or give this table another `location`"
    return Diagnostic(want.source, "P104", "error", problem, hint)


def leaving(location: str, other: Ident) -> Block:
    """Deletes come last, so the place becomes free only after this plan."""
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
