"""All steps of one catalog, in an order that is legal under RESTRICT: parents first, deletes last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from reconciler.core.coverage import coverage_of
from reconciler.core.draft import Block, Context, Draft, Drafter, allow_words, gap_block, parent_block, unread_block
from reconciler.core.globs import matcher
from reconciler.core.look_alikes import column_look_alikes, live_look_alikes, reads_like
from reconciler.core.options import PlanOptions
from reconciler.core.ownership import data_owner, entry_owner, standing
from reconciler.core.plan_deletes import (
    Removal,
    hold_back_over_threshold,
    noted_owner,
    owned_count,
    plan_namespace_delete,
    plan_table_delete,
)
from reconciler.core.plan_index import notes_on_indexes
from reconciler.core.plan_locations import Locations, conflict, leaving, nowhere, shared_by, taken
from reconciler.core.plan_namespace import level_block, plan_namespace, with_levels
from reconciler.core.plan_renames import later_names, move_block, namespace_renames
from reconciler.core.plan_table import Shared, new_location, plan_table
from reconciler.core.selection import selected_in, selects_all
from reconciler.core.uris import canonical_of
from reconciler.core.world import World
from reconciler.model.capabilities import Capabilities, is_container, is_service_level
from reconciler.model.change import CreateNamespace, RenameNamespace, RenameTable
from reconciler.model.coverage import Coverage
from reconciler.model.desired import CatalogSpec, DesiredNamespace, DesiredObject, DesiredTable
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.ident import Ident, Kind, ObjectKey, dotted, parent
from reconciler.model.observed import Absent, Detached, Finding, Present, Snapshot, Unreadable
from reconciler.model.plan import (
    LOCATION_CONFLICT,
    RENAME_CONFLICT,
    STRANGE_LOCATION,
    TWO_APPLIES,
    PlanNote,
)
from reconciler.model.state import DatasetState, Marks, TableState


@dataclass(slots=True)
class CatalogPlan:
    drafts: list[Draft] = field(default_factory=list)
    deletes: list[Draft] = field(default_factory=list)
    orphans: list[ObjectKey] = field(default_factory=list)
    unowned: list[ObjectKey] = field(default_factory=list)
    owners: dict[ObjectKey, str] = field(default_factory=dict)
    """Of those that somebody else owns."""
    world: World = field(default_factory=World)
    """The catalog at the end of the plan."""
    locations: Locations = field(default_factory=lambda: Locations(World(), Snapshot({}, {})))
    """Where its tables are then."""
    stale: list[Ident] = field(default_factory=list)
    """Tables whose columns, as the catalog shows them, stay behind the data."""
    notes: list[PlanNote] = field(default_factory=list)
    coverage: list[Coverage] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)


def plan_catalog(
    spec: CatalogSpec,
    namespaces: Mapping[Ident, DesiredNamespace],
    tables: Mapping[Ident, DesiredTable],
    snapshot: Snapshot,
    capabilities: Capabilities,
    options: PlanOptions,
    shared: Mapping[Ident, Shared] = MappingProxyType({}),
    elsewhere: Sequence[Locations] = (),
) -> CatalogPlan:
    """`shared`: the tables whose data is looked after through another catalog. `elsewhere`: where the tables of the
    other catalogs are."""
    return _Planner(spec, namespaces, tables, snapshot, capabilities, options, shared, elsewhere).run()


class _Planner:
    def __init__(
        self,
        spec: CatalogSpec,
        namespaces: Mapping[Ident, DesiredNamespace],
        tables: Mapping[Ident, DesiredTable],
        snapshot: Snapshot,
        capabilities: Capabilities,
        options: PlanOptions,
        shared: Mapping[Ident, Shared],
        elsewhere: Sequence[Locations],
    ) -> None:
        self.elsewhere = elsewhere
        self.shared = shared
        self.spec = spec
        self.namespaces = with_levels(capabilities, namespaces, tables)
        self.tables = tables
        self.snapshot = snapshot
        self.world = World(snapshot, unread=shared)
        present = frozenset(i for i, t in tables.items() if not t.absent)
        absent = frozenset(i for i, t in tables.items() if t.absent)
        self.locations = Locations(self.world, snapshot, spec, present, absent)
        management = spec.management
        adopt = options.adopt or management.adopt
        self.context = Context(spec.name, capabilities, options, management.owner, adopt, snapshot)
        self.context.index_refresh = management.index_refresh
        self.context.in_process = management.in_process
        self.options = options
        self.plan = CatalogPlan(world=self.world, locations=self.locations)
        self.held: dict[Ident, Block] = {}
        """Namespaces that will not be there: nothing below them can be made."""
        self.renames = namespace_renames(namespaces)
        declared: list[DesiredObject] = [*namespaces.values(), *tables.values()]
        self.kept = {o.renamed_from for o in declared if o.renamed_from is not None and not o.absent}
        """Old names: what still has one waits for its rename and is not an orphan, nor is anything below it."""
        self.stuck: dict[Ident, Block] = {}
        """Old names whose rename is held back: deleting them now would lose the object that is to be renamed."""
        self.selected = selected_in(options, spec.name)
        self.ignored = matcher(management.ignore)

    def run(self) -> CatalogPlan:
        present_ns = [n for _, n in sorted(self.namespaces.items(), key=_depth) if not n.absent]
        present_tables = [t for _, t in sorted(self.tables.items()) if not t.absent]
        self._note_look_alikes([*present_ns, *present_tables])
        wanted_ns = self._with_ancestors(present_ns, present_tables)
        for n in wanted_ns:
            if n.renamed_from is not None:
                self._rename_namespace(n)
        for n in wanted_ns:
            if n.ident not in self.held:
                self._namespace(n)
        for t in present_tables:
            if self.selected(t.ident):
                self._table(t)
        self._deletes()
        return self.plan

    def _note_look_alikes(self, present: Sequence[DesiredObject]) -> None:
        """Before the world changes: those that are live now."""
        kinds: dict[Ident, Kind] = {o.ident: "Table" if isinstance(o, DesiredTable) else "Namespace" for o in present}
        live = self.world.namespaces.keys() | self.world.tables.keys()
        expected = self.namespaces.keys() | self.tables.keys() | self.kept
        for ident, message in live_look_alikes(filter(self.selected, kinds), live, expected):
            self.plan.notes.append(PlanNote(ObjectKey(self.spec.name, ident, kinds[ident]), message))

    def _with_ancestors(self, namespaces: list[DesiredNamespace], tables: list[DesiredTable]) -> list[DesiredNamespace]:
        """The selected namespaces and those that selected objects live in and that are not there yet."""
        if selects_all(self.options):
            return namespaces
        needed: set[Ident] = set()
        for ident in [n.ident for n in namespaces] + [t.ident for t in tables]:
            if self.selected(ident):
                needed |= {ident[:i] for i in range(1, len(ident)) if ident[:i] not in self.world.namespaces}
        return [n for n in namespaces if self.selected(n.ident) or n.ident in needed]

    # -- creates and updates -------------------------------------------------------------------------------------

    def _rename_namespace(self, want: DesiredNamespace) -> None:
        source = self._old_name(want, self.world.namespaces)
        if source is None:
            return
        change = RenameNamespace(want.ident, source)
        d = Drafter(self.context, want.source, Absent())
        if want.ident in self.world.namespaces:
            both = f"it is renamed from {dotted(source)}, but both are there: move what is left, then drop the old one"
            d.refuse(change, "metadata", Block(RENAME_CONFLICT, both))
        else:
            d.now = old = self.world.namespaces[source]
            owner = old.state.marks.owner if isinstance(old, Present) else self.context.owner
            d.block = standing(self.context, owner)[1] or self._unmade_parent(want.ident)
            d.block = d.block or self._find("Namespace", want, self.world.tables)[1]
            d.block = d.block or self._move_block(source, want.ident)
            d.propose(change, "metadata", f"renamed from {dotted(source)}", {"id": [*source]})
            if d.drafts[0].verdict != "allowed":
                self.held[want.ident] = self.stuck[source] = parent_block(f"the rename of {dotted(source)}")
        self._take(d)

    def _unmade_parent(self, ident: Ident) -> Block | None:
        """Renames come before everything that is made."""
        above = parent(ident)
        wanted = self.namespaces.get(above)
        if above in self.world.namespaces or wanted is None or wanted.absent:
            return None
        if any(above[:end] in self.world.tables for end in range(1, len(above) + 1)):  # It cannot be made yet itself.
            return parent_block(f"namespace {dotted(above)}")
        why = (
            f"namespace {dotted(above)} has to be there first, and this plan makes it: apply, then plan and apply again"
        )
        return Block(TWO_APPLIES, why)

    def _move_block(self, source: Ident, target: Ident) -> Block | None:
        declared = frozenset(self._present())
        return move_block(self.context, self.world, self.snapshot, declared, self.kept, source, target)

    def _old_name(self, want: DesiredObject, live: Mapping[Ident, Present | Unreadable]) -> Ident | None:
        """Where the object that is to get this name is now, or None when there is nothing to rename."""
        declared: Mapping[Ident, DesiredObject] = self.namespaces if isinstance(want, DesiredNamespace) else self.tables
        if want.renamed_from is None:
            return None
        moved = {new: old for new, old in self.renames.items() if old not in self.world.namespaces}
        for name in later_names(want.renamed_from, moved):
            if name in live and name != want.ident and not (name in declared and not declared[name].absent):
                return name
        return None

    def _namespace(self, want: DesiredNamespace) -> None:
        found, block = self._find("Namespace", want, self.world.tables)
        d = plan_namespace(self.context, want, found, block)
        self._take(d)
        if isinstance(self.world.namespaces.get(want.ident), Present):
            self._note_unowned("Namespace", want.ident, d, found)
        else:
            self.held[want.ident] = parent_block(f"namespace {dotted(want.ident)}")

    def _table(self, want: DesiredTable) -> None:
        found, block = self._find("Table", want, self.world.namespaces)
        source = self._old_name(want, self.world.tables)
        renamed = source is not None and isinstance(found, Absent)
        if source is not None and not renamed:
            both = f"it is renamed from {dotted(source)}, but both are there"
            conflict = Drafter(self.context, want.source, found)
            conflict.refuse(RenameTable(want.ident, source), "metadata", Block(RENAME_CONFLICT, both))
            self._take(conflict)
        if isinstance(found, Present) and isinstance(found.state, TableState):
            block = block or shared_by(want, found.state, self.locations) or self._nested(want, found.state)
        elif source is None or isinstance(found, Detached):
            fits, block = self._room(want, found, block)
            if not fits:
                return
        if source is not None and renamed:
            found = self.world.tables[source]
        old = source if renamed else None
        planned = plan_table(self.context, want, found, block, old, self.shared.get(want.ident))
        d = planned.drafter
        if source is not None and renamed and (not d.drafts or d.drafts[0].verdict != "allowed"):
            self.stuck[source] = parent_block(f"the rename of {dotted(source)}")
        self._take(d)
        if planned.stale:
            self.plan.stale.append(want.ident)
        if want.ident not in self.shared:
            self.plan.coverage += coverage_of(d, want, found, self.options.max_unindexed)
        self._note_unowned("Table", want.ident, d, found)
        if isinstance(found, Present) and isinstance(found.state, TableState):
            key = ObjectKey(self.spec.name, want.ident, "Table")
            live = found.state.dataset
            notes = notes_on_indexes(want, live) if isinstance(live, DatasetState) else []
            if want.fields and isinstance(live, DatasetState):
                notes += column_look_alikes(want.fields, live.fields)
            self.plan.notes += (PlanNote(key, note) for note in notes)

    def _nested(self, want: DesiredTable, live: TableState) -> Block | None:
        """Data that is not ours yet is not taken over inside another table's folder, nor around one. Neither is data
        made there for an entry that has none: somebody may have pointed it to that place."""
        place, new = canonical_of(live), live.dataset is None
        if place is None or (not new and data_owner(self.context.owner, live) == self.context.owner):
            return None
        return conflict(want.ident, str(live.location), place, self.locations, self.elsewhere, new)

    def _find(
        self, kind: Kind, want: DesiredObject, others: Mapping[Ident, Present | Unreadable]
    ) -> tuple[Finding, Block | None]:
        found = self.world.find(kind, want.ident)
        if want.ident in others:
            other = "table" if kind == "Namespace" else "namespace"
            reason = f"a {other} of this name is there: remove it in one apply, create this in the next"
            return Absent(), Block(TWO_APPLIES, reason)
        missing = isinstance(found, (Absent, Detached))
        if missing and isinstance(want, DesiredTable) and want.held_back is not None:
            return found, Block(STRANGE_LOCATION, want.held_back)
        block = self._parent_block(want.ident)
        if block is None and missing:
            block = self._may_be_there(want)
        above = self.world.namespaces.get(parent(want.ident))
        if block is None and isinstance(above, Unreadable):
            block = unread_block(above, f"namespace {dotted(parent(want.ident))}")
        if block is None and kind == "Table" and is_service_level(above):
            why = f"{dotted(parent(want.ident))} holds namespaces only: a table cannot be in it"
            block = Block("", why, "unsupported")
        block = block or level_block(self.context.capabilities, kind, want.ident, above)
        if block is None and missing and not self.world.has_parent(want.ident):
            self._no_parent(want)  # What is live without its parent (others make such tables) is live all the same.
            block = parent_block(f"namespace {dotted(parent(want.ident))}")
        return found, block

    def _may_be_there(self, want: DesiredObject) -> Block | None:
        """Not seen is not absent while the listing of its place, or of the place of its old name, is incomplete."""
        names = [want.ident]
        if want.renamed_from is not None:
            names += later_names(want.renamed_from, self.renames)
        for name in names:
            gap = next((g for g in self.snapshot.gaps if name[: len(g.ident)] == g.ident), None)
            if gap is not None:
                what = "it" if name == want.ident else f"its old name {dotted(name)}"
                return gap_block(gap, f"the listing is incomplete ({gap.message}): {what} may be there")
        return None

    def _parent_block(self, ident: Ident) -> Block | None:
        return next((self.held[ident[:i]] for i in range(len(ident) - 1, 0, -1) if ident[:i] in self.held), None)

    def _no_parent(self, want: DesiredObject) -> None:
        """The hint leads to an object of the kind that is missing, or says why nobody can declare it."""
        above, capabilities = parent(want.ident), self.context.capabilities
        upper = next(iter(capabilities.levels), None) if isinstance(want, DesiredNamespace) else None
        needed = f"{upper or 'namespace'} {dotted(above)}"
        problem = f"{dotted(want.ident)} needs {needed}, which is neither declared nor live"
        hint = f"declare a Namespace with id [{', '.join(above)}]" + (f" and `level: {upper}`" if upper else "")
        if refused := self.context.refuses(CreateNamespace(above, {}, Marks(), upper)):
            hint = f"it cannot be made here: {refused}"
        if (other := reads_like(above, self.world.namespaces)) is not None:
            hint = f"{dotted(other)!a} is live and reads like {dotted(above)!a}: if it is meant, spell it so; or {hint}"
        self.plan.diagnostics.append(Diagnostic(want.source, "P101", "error", problem, hint))

    def _room(self, want: DesiredTable, found: Finding, block: Block | None) -> tuple[bool, Block | None]:
        """Whether a table that has no entry yet can get its place; when not, that is said. When a table that goes away
        in this plan still has it, this one waits."""
        location = found.location if isinstance(found, Detached) else None
        if isinstance(found, Absent) and block is None:
            if want.location is not None and not self.context.capabilities.chooses_location:
                self.plan.diagnostics.append(nowhere(want))
                return False, block
            location = new_location(self.context.capabilities, want)
        if location is None:
            problem = self.locations.problem_at(want.ident) if isinstance(found, Absent) else None
            return True, block or (Block(LOCATION_CONFLICT, problem) if problem is not None else None)
        place = self.locations.of(want.ident, location)
        other = next(iter(self.locations.users_of(place)), None)
        if other is None:
            new = isinstance(found, Absent)
            block = block or conflict(want.ident, location, place, self.locations, self.elsewhere, new)
            return True, block or (None if new else self.locations.unseen_user())
        if self._goes(other):
            return True, block or leaving(location, other)
        self.plan.diagnostics.append(taken(want, location, other, self.context.capabilities.chooses_location))
        return False, block

    def _goes(self, ident: Ident) -> bool:
        """True for a table that is to be removed, now or by a later plan that is allowed to."""
        if ident in self.tables:
            return self.tables[ident].absent
        return self.options.prune and self._ours(self.world.tables.get(ident), ident)

    def _take(self, d: Drafter) -> None:
        for draft in d.drafts:
            if draft.verdict == "allowed":
                self.locations.note(draft.change.ident, self.world.apply(draft.change)[-1])
        self.plan.drafts += d.drafts

    def _note_unowned(self, kind: Kind, ident: Ident, d: Drafter, found: Finding) -> None:
        """As declared, but not ours: listed, not touched. Of data that is looked after through another catalog only the
        entry counts."""
        if d.drafts or not isinstance(found, Present):
            return
        owner = (entry_owner if ident in self.shared else data_owner)(self.context.owner, found.state)
        if owner != self.context.owner:
            key = ObjectKey(self.spec.name, ident, kind)
            self.plan.unowned.append(key)
            if owner is not None:
                self.plan.owners[key] = owner

    # -- deletes -------------------------------------------------------------------------------------------------

    def _deletes(self) -> None:
        prune = self._orphans() if self.options.prune else {"Namespace": [], "Table": []}
        if not self.options.prune:
            self.plan.orphans = [
                ObjectKey(self.spec.name, i, kind) for kind, idents in self._orphans().items() for i in idents
            ]
        gone = "its manifest is gone and --prune was given"
        given = dict.fromkeys(self.context.options.allow)
        tables = [self._removal(t) for t in self.tables.values() if t.absent and self.selected(t.ident)]
        tables += [Removal(i, None, gone, allow=given) for i in prune["Table"]]
        namespaces = [self._removal(n) for n in self.namespaces.values() if n.absent and self.selected(n.ident)]
        namespaces += [Removal(i, None, gone, allow=given) for i in prune["Namespace"]]
        for r in sorted(tables, key=lambda r: r.ident):
            self._delete(plan_table_delete(self.context, self.world, self.snapshot, r))
        for r in sorted(namespaces, key=lambda r: (-len(r.ident), r.ident)):
            self._delete(plan_namespace_delete(self.context, self.world, self.snapshot, r))
        owned = owned_count(self.snapshot, self.context.owner)
        hold_back_over_threshold(self.plan.deletes, self.spec.management, owned)

    def _removal(self, want: DesiredObject) -> Removal:
        allow = allow_words(want, self.context.options)
        return Removal(want.ident, want.source, "the manifest says `state: absent`", self.stuck.get(want.ident), allow)

    def _delete(self, draft: Draft | None) -> None:
        if draft is not None:
            self.plan.deletes.append(draft)

    def _orphans(self) -> dict[Kind, list[Ident]]:
        """What we own and no manifest mentions. A namespace that a declared object lives in is never deleted."""
        needed = {i[:n] for i in (*self._present(),) for n in range(1, len(i))}
        out: dict[Kind, list[Ident]] = {"Namespace": [], "Table": []}
        for ident in sorted(self.world.namespaces):
            if ident in self.namespaces or not self._ours(self.world.namespaces.get(ident), ident):
                continue
            if not is_container(self.context.capabilities.ident_problem, ident, self.world.namespaces[ident]):
                if not (self.options.prune and ident in needed):
                    out["Namespace"].append(ident)
                else:
                    self.plan.orphans.append(ObjectKey(self.spec.name, ident, "Namespace"))
        for ident in sorted(self.world.tables):
            if ident not in self.tables and self._ours(self.world.tables.get(ident), ident):
                out["Table"].append(ident)
        return out

    def _present(self) -> Iterable[Ident]:
        yield from (i for i, n in self.namespaces.items() if not n.absent)
        yield from (i for i, t in self.tables.items() if not t.absent)

    def _ours(self, found: Present | Unreadable | None, ident: Ident) -> bool:
        if found is None or not self.selected(ident) or self.ignored(ident):
            return False
        if self.kept and any(ident[:n] in self.kept for n in range(1, len(ident) + 1)):
            return False
        return noted_owner(found) == self.context.owner


def _depth(item: tuple[Ident, object]) -> tuple[int, Ident]:
    return len(item[0]), item[0]
