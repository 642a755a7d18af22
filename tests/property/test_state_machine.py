"""A team that edits manifests, outsiders who change things, applies that get killed: many steps, always safe."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from prop_cases import (
    NAMESPACES,
    TABLES,
    THEM,
    US,
    Case,
    dataset,
    desired,
    keep_valid,
    live_table,
    plan_options,
    wanted_namespace,
    wanted_table,
)
from prop_columns import small_map
from prop_dice import Dice
from prop_foreign_writer import TAPES, ForeignWriter, foreign_data, unchanged
from prop_run import ListingCatalog, allowed, may_change, plan_on, state_of

from reconciler.catalog.memory import place
from reconciler.core.errors import PlanError
from reconciler.core.options import PlanOptions
from reconciler.core.world import World
from reconciler.engine.execute import execute
from reconciler.model.desired import DesiredNamespace, DesiredTable, Management
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident
from reconciler.model.observed import Present, Unreadable
from reconciler.model.plan import THRESHOLD, TWO_APPLIES
from reconciler.model.state import Marks, NamespaceState, TableState


class Kill:
    """Every write after the first k is refused, and its answer is sometimes lost."""

    def __init__(self, k: int, lost: bool) -> None:
        self.left, self.lost = k, lost

    def __call__(self, point: str, subject: object) -> None:
        if point == ("after" if self.lost else "before"):
            self.left -= 1
            if self.left < 0:
                raise CatalogError(Code.PERMISSION_DENIED, "killed")


class Team(ForeignWriter):
    def __init__(self) -> None:
        super().__init__()
        self.catalog = ListingCatalog(World(locate=place))
        self.namespaces: dict[Ident, DesiredNamespace] = {}
        self.tables: dict[Ident, DesiredTable] = {}
        self.management = Management(US)

    def case(self, options: PlanOptions) -> Case:
        spaces, tables = keep_valid(self.namespaces, self.tables, self.management)
        snapshot = self.catalog.world.snapshot()
        return Case(desired(self.management, spaces, tables), snapshot, (), options)

    @initialize(dice=TAPES)
    def begin(self, dice: Dice) -> None:
        for ident in NAMESPACES[:4]:
            self.namespaces[ident] = replace(wanted_namespace(dice, 1, ident), absent=False, renamed_from=None)

    # -- the team ----------------------------------------------------------------------------------------------------

    @rule(dice=TAPES)
    def writes_a_namespace(self, dice: Dice) -> None:
        ident = dice.pick(NAMESPACES)
        self.namespaces[ident] = wanted_namespace(dice, 1, ident)

    @rule(dice=TAPES)
    def writes_a_table(self, dice: Dice) -> None:
        ident = dice.pick(TABLES)
        self.tables[ident] = wanted_table(dice, 1, ident)

    @rule(dice=TAPES)
    def deletes_a_manifest(self, dice: Dice) -> None:
        where: dict[Ident, DesiredNamespace] | dict[Ident, DesiredTable]
        where = self.namespaces if dice.one_in(2) else self.tables
        if where:
            del where[dice.pick(sorted(where))]  # type: ignore[arg-type]

    # -- others ------------------------------------------------------------------------------------------------------

    @rule(dice=TAPES)
    def an_outsider_makes_a_table(self, dice: Dice) -> None:
        ident = dice.pick(TABLES)
        world = self.catalog.world
        taken = ident in world.tables or ident in world.namespaces or ident in world.detached
        if world.has_parent(ident) and not taken:
            state = TableState(place(ident), small_map(dice), Marks(dice.pick([None, THEM])), dataset(dice, None))
            world._put(world.tables, ident, Present(state))

    @rule(dice=TAPES)
    def an_outsider_changes_ours(self, dice: Dice) -> None:
        world = self.catalog.world
        if not world.tables:
            return
        ident = dice.pick(sorted(world.tables))
        found = world.tables[ident]
        if isinstance(found, Present) and isinstance(found.state, TableState):
            want = self.tables.get(ident)
            new = live_table(dice, ident, want)
            if isinstance(new, Present) and isinstance(new.state, TableState):
                marks = replace(new.state.marks, owner=found.state.marks.owner)
                world.tables[ident] = Present(replace(new.state, marks=marks, location=found.state.location))

    @rule(dice=TAPES)
    def something_becomes_unreadable_or_well_again(self, dice: Dice) -> None:
        world = self.catalog.world
        broken = [i for i, f in world.tables.items() if isinstance(f, Unreadable)]
        if broken:
            world.tables[broken[0]] = Present(TableState(place(broken[0]), {}, Marks(), dataset(dice, None)))
        elif world.tables and dice.one_in(3):
            world.tables[dice.pick(sorted(world.tables))] = Unreadable(Code.INTERNAL, "corrupt")

    # -- us ----------------------------------------------------------------------------------------------------------

    def _apply(self, options: PlanOptions, fault: Kill | None) -> None:
        case = self.case(options)
        try:
            plan = plan_on(case, self.catalog)
        except PlanError:
            return
        before, theirs = state_of(self.catalog), foreign_data(self.catalog.world, options)
        self.catalog.fault = fault
        report = execute(plan, {"lake": self.catalog}, parallelism=1, sleep=lambda _: None)
        self.catalog.fault = None
        after = state_of(self.catalog)
        unchanged(theirs, self.catalog.world)
        changed = {k for k in before.keys() | after.keys() if before.get(k) != after.get(k)}
        assert not {k for k in changed if k in before and not may_change(case, k)}
        if plan.refused is not None or report.outcome == "stale":
            assert not changed
            return
        if fault is None:
            words = {s.blocked_by for s in plan.steps}
            again = plan_on(case, self.catalog)
            assert TWO_APPLIES in words or THRESHOLD in words or allowed(again) == []

    @rule(dice=TAPES)
    def apply(self, dice: Dice) -> None:
        self._apply(plan_options(dice, data_plane=False), None)

    @rule(dice=TAPES, k=st.integers(0, 6), lost=st.booleans())
    def apply_and_get_killed(self, dice: Dice, k: int, lost: bool) -> None:
        self._apply(plan_options(dice, data_plane=False), Kill(k, lost))

    @invariant()
    def every_object_has_its_parent(self) -> None:
        world = self.catalog.world
        assert all(world.has_parent(i) for i in (*world.namespaces, *world.tables))

    @invariant()
    def no_name_is_two_things(self) -> None:
        assert not self.catalog.world.namespaces.keys() & self.catalog.world.tables.keys()

    @invariant()
    def namespaces_are_namespaces(self) -> None:
        for found in self.catalog.world.namespaces.values():
            assert isinstance(found, Present)
            assert isinstance(found.state, NamespaceState)


TestTeam = Team.TestCase
TestTeam.settings = settings(max_examples=settings().max_examples // 2)
