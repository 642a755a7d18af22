"""Whole cases: what manifests ask for, what a catalog holds, what the command line allows.

A desired state keeps the rules that the loader enforces (no table above anything, no rename cycles, nothing present
below something absent); everything else, however odd, may reach the planner and does here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from hypothesis import strategies as st
from prop_columns import COLUMNS, KEYS, columns, indexes, near, small_map
from prop_dice import Dice, rolled
from prop_kinds import KINDS, PLAIN

from reconciler.catalog.memory import MemoryCapabilities, place
from reconciler.core.globs import matcher
from reconciler.core.options import NO_DATA_PLANE, PlanOptions
from reconciler.model.desired import CatalogSpec, Desired, DesiredNamespace, DesiredTable, Management
from reconciler.model.diagnostic import Source
from reconciler.model.errors import Code
from reconciler.model.ident import Ident, is_below
from reconciler.model.observed import Detached, Gap, Present, Snapshot, Unreadable, Unsupported
from reconciler.model.state import Column, DatasetState, Marks, NamespaceState, TableState

US, THEM = "us", "them"
NAMESPACES: tuple[Ident, ...] = (("a",), ("b",), ("a", "x"), ("a", "y"), ("b", "x"), ("a", "x", "p"), ("b", "x", "p"))
TABLES: tuple[Ident, ...] = (
    ("t",), ("a", "t"), ("a", "u"), ("b", "t"), ("a", "x"), ("a", "x", "t"), ("b", "x", "t"), ("a", "x", "p", "t"),
    ("a", "we.ird"),
)  # fmt: skip
ALLOW = ("drop_column", "narrow_type", "set_not_null", "drop_index", "replace_table", "drop_namespace", "recreate")
IGNORABLE = (
    "properties", "properties.k", "description", "schema", "schema.x", "schema.x.type", "schema.x.nullable",
    "schema.x.comment", "schema.st.metadata", "schema.st.p", "config", "config.k", "schemaMetadata",
    "schemaMetadata.k", "indexes", "indexes.i1",
)  # fmt: skip
D = TypeVar("D", DesiredNamespace, DesiredTable)


@dataclass(frozen=True, repr=False)
class Case:
    desired: Desired
    live: Snapshot
    """The whole truth, including what a scan with these gaps and ignore globs will not show."""
    gaps: tuple[Gap, ...] = ()
    options: PlanOptions = field(default_factory=PlanOptions)
    capabilities: MemoryCapabilities = PLAIN

    @property
    def management(self) -> Management:
        return self.desired.catalogs["lake"].management

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def __repr__(self) -> str:
        """For a failing test: one line per object, defaults left out."""

        def told(value: object) -> str:
            shown = {k: getattr(value, k) for k in value.__dataclass_fields__ if k not in ("catalog", "source")}
            return ", ".join(f"{k}={v!r}" for k, v in shown.items() if v not in (None, (), {}, False))

        wanted = (*self.desired.namespaces["lake"].values(), *self.desired.tables["lake"].values())
        lines = [f"options {told(self.options)}", f"management {told(self.management)}", f"{self.capabilities}"]
        lines += [f"gap {g.ident}" for g in self.gaps]
        lines += [f"unsupported {u.change} below {u.ident}" for u in self.live.unsupported]
        lines += [f"want {type(o).__name__[7:].lower()} {told(o)}" for o in wanted]
        lines += [f"live {i} {f}" for i, f in (*self.live.namespaces.items(), *self.live.tables.items())]
        return "Case:\n  " + "\n  ".join(lines)


# -- desired ----------------------------------------------------------------------------------------------------------

PROTECT = (None, None, None, True, False)


def wanted_namespace(d: Dice, number: int, ident: Ident) -> DesiredNamespace:
    return DesiredNamespace(
        "lake",
        ident,
        Source("ns.yaml", number),
        small_map(d),
        d.one_in(8),
        d.pick(PROTECT),
        d.pick(NAMESPACES) if d.one_in(8) else None,
        (d.pick(["properties", "properties.k"]),) if d.one_in(8) else (),
        ("drop_namespace",) if d.one_in(2) else (),
    )


def wanted_table(d: Dice, number: int, ident: Ident, kind: MemoryCapabilities = PLAIN) -> DesiredTable:
    chosen = f"s3://lake/{d.pick('xy')}-{number}" if kind.chooses_location and d.one_in(3) else None
    fields = None if d.one_in(8) else columns(d, True)
    return DesiredTable(
        "lake",
        ident,
        Source("tables.yaml", number),
        small_map(d),
        chosen,
        fields,
        d.one_in(8),
        indexes(d, fields, live=False) if fields else (),
        small_map(d),
        small_map(d),
        d.one_in(8),
        d.pick(PROTECT),
        d.pick(TABLES) if d.one_in(8) else None,
        tuple(d.some(IGNORABLE, 2)) if d.one_in(8) else (),
        tuple(d.some(ALLOW)),
    )


def desired_state(d: Dice, management: Management, kind: MemoryCapabilities, most_tables: int = 4) -> Desired:
    """Mostly, parents are declared for what is below them; otherwise they must be live."""
    tables = d.some(TABLES, most_tables)
    chosen = set(d.some(NAMESPACES, 4))
    if not d.one_in(6):
        chosen |= {i[:n] for i in (*chosen, *tables) for n in range(1, len(i))}
    ns = {i: wanted_namespace(d, n, i) for n, i in enumerate(sorted(chosen), 1)}
    ts = {i: wanted_table(d, n, i, kind) for n, i in enumerate(tables, 1)}
    return desired(management, *keep_valid(ns, ts, management))


def desired(management: Management, ns: Mapping[Ident, DesiredNamespace], ts: Mapping[Ident, DesiredTable]) -> Desired:
    spec = CatalogSpec("lake", "memory", {}, management, Source("lake.yaml"))
    return Desired({"lake": spec}, {"lake": ns}, {"lake": ts}, "sha256:0")


def keep_valid(
    ns: dict[Ident, DesiredNamespace], ts: dict[Ident, DesiredTable], management: Management
) -> tuple[dict[Ident, DesiredNamespace], dict[Ident, DesiredTable]]:
    ignored = matcher(management.ignore)
    ts = {i: t for i, t in ts.items() if not ignored(i)}
    ts = {i: t for i, t in ts.items() if not any(is_below(i, above) for above in ts)}
    ns = {i: n for i, n in ns.items() if not ignored(i) and not any(is_below(i, t) for t in ts)}
    ts = {i: t for i, t in ts.items() if t.absent or i not in ns or ns[i].absent}
    for i, n in list(ns.items()):
        if n.absent and any(is_below(j, i) and not o.absent for j, o in (*ns.items(), *ts.items())):
            ns[i] = replace(n, absent=False)
            ts.pop(i, None)
    return _legal_renames(ns), _legal_renames(ts)


def _legal_renames(objects: dict[Ident, D]) -> dict[Ident, D]:
    out = dict(objects)
    taken: set[Ident] = set()
    for i, o in objects.items():
        old = o.renamed_from
        if old is None:
            continue
        declared = old in objects and not objects[old].absent
        chained = old in objects and objects[old].renamed_from is not None
        if old == i or declared or chained or old in taken or is_below(i, old):
            out[i] = replace(o, renamed_from=None)
        taken.add(old)
    return out


# -- live -------------------------------------------------------------------------------------------------------------

OWNERS = (US, US, US, None, THEM)


def marks(d: Dice, properties: Mapping[str, str]) -> Marks:
    owner = d.pick(OWNERS)
    applied = {*properties, *d.some(KEYS, 1)}
    return Marks(owner, d.one_in(8), () if owner is None or d.one_in(4) else tuple(sorted(applied)))


def live_namespace(d: Dice, want: DesiredNamespace | None, seen: bool) -> Present | Unreadable:
    if d.one_in(12) and seen:
        return Unreadable(Code.PERMISSION_DENIED, "no permission")
    properties = small_map(d) if want is None or d.one_in(2) else want.properties
    return Present(NamespaceState(properties, marks(d, properties)))


def dataset(d: Dice, want: DesiredTable | None) -> DatasetState:
    if want is not None and want.fields is not None and not d.one_in(5):
        fields = near(d, want.fields)
        config = small_map(d) if d.one_in(2) else want.config
        metadata = small_map(d) if d.one_in(2) else want.schema_metadata
    else:
        fields, config, metadata = columns(d, False), small_map(d), small_map(d)
    there = indexes(d, fields, live=True)
    if want is not None and d.one_in(2):
        names = {f.name for f in fields}
        there = tuple(i for i in want.indexes if i.column in names)
    entries = [f"config:{k}" for k in KEYS] + [f"schema:{k}" for k in KEYS] + ["index:i1", "index:i2", "index:i3"]
    entries += [f"field:{c.replace(':', '%3A')}:{k}" for c in COLUMNS for k in ("comment", *KEYS)] + ["later:new"]
    applied = tuple(sorted(d.some(entries, 5)))
    state = DatasetState(fields, metadata, config, there, d.pick(OWNERS), applied, 1 + d.roll(9))
    return replace(state, empty=d.roll(4) == 0)


def live_table(
    d: Dice, ident: Ident, want: DesiredTable | None, kind: MemoryCapabilities = PLAIN
) -> Present | Detached | Unreadable:
    found = d.roll(16)
    where = place_in(kind, ident, want)
    if found == 15:
        return without_data(d, ident, where) if d.one_in(2) else Unreadable(Code.INTERNAL, "the manifest is corrupt")
    if found == 14:
        return Detached(where, dataset(d, want))
    properties = small_map(d) if want is None or d.one_in(2) else want.properties
    where = place(ident) if kind.chooses_location and d.one_in(8) else where
    data = None if found == 13 else dataset(d, want)
    return Present(TableState(where, properties, marks(d, properties), data, shown(d, kind, want, data)))


def without_data(d: Dice, ident: Ident, where: str) -> Unreadable:
    """Its entry stands, its data is gone."""
    properties = small_map(d)
    noted = marks(d, properties)
    left = TableState(where, properties, noted, None, gone=True) if noted.owner is not None else None
    return Unreadable(Code.INVALID_TABLE_STATE, f"the data of {ident[-1]} is gone", owner=noted.owner, gone=left)


def place_in(kind: MemoryCapabilities, ident: Ident, want: DesiredTable | None) -> str:
    declared = want.location if want is not None and want.ident == ident else None
    return declared or kind.location_of(ident) or place(ident)


def shown(
    d: Dice, kind: MemoryCapabilities, want: DesiredTable | None, data: DatasetState | None
) -> tuple[Column, ...] | None:
    """Mostly as the data is; otherwise as it is to be, or as nobody knows why."""
    luck = d.roll(6)
    if luck == 5 and want is not None:
        return kind.columns_of(want.fields or ())
    if luck == 4 or data is None:
        return kind.columns_of(columns(d, False)) if d.one_in(2) else kind.columns_of(())
    return kind.columns_of(data.fields)


def live_state(d: Dice, want: Desired, kind: MemoryCapabilities = PLAIN) -> Snapshot:
    """Parents are there, but for a rare orphan row; a name is a table or a namespace, never both."""
    wanted_ns, wanted_ts = want.namespaces["lake"], want.tables["lake"]
    old = [o.renamed_from for o in (*wanted_ns.values(), *wanted_ts.values()) if o.renamed_from is not None]
    chosen = {i for i in (*wanted_ns, *wanted_ts, *old) if d.one_in(2)} | {*d.some((*NAMESPACES, *TABLES), 4)}
    tables = {i for i in sorted(chosen) if i in TABLES and (i not in NAMESPACES or d.one_in(2))}
    spaces = {i for i in chosen if i in NAMESPACES and i not in tables}
    if not d.one_in(16):
        spaces |= {i[:n] for i in (*spaces, *tables) for n in range(1, len(i))}
    tables = {i for i in tables if i not in spaces}
    hidden = matcher(want.catalogs["lake"].management.ignore)
    if hidden(("a", "x")):
        tables.discard(("a", "x"))  # Hidden objects have no kind: a hidden table would pass for a parent.
    return Snapshot(
        {i: live_namespace(d, wanted_ns.get(i), not hidden(i)) for i in sorted(spaces)},
        {i: live_table(d, i, _wanted_of(i, wanted_ts), kind) for i in sorted(tables)},
    )


def _wanted_of(ident: Ident, wanted: Mapping[Ident, DesiredTable]) -> DesiredTable | None:
    return wanted.get(ident) or next((t for t in wanted.values() if t.renamed_from == ident), None)


# -- the rest ---------------------------------------------------------------------------------------------------------


def management(d: Dice) -> Management:
    return Management(
        d.pick([US, US, US, "default"]),
        d.one_in(8),
        (d.pick(["a.y", "a.u", "b.**", "*.x.p.**", "a.x"]),) if d.one_in(8) else (),
        d.pick([10, 10, 0, 1]),
        d.pick([100.0, 20.0]),
    )


def plan_options(d: Dice, data_plane: bool | None = None) -> PlanOptions:
    runs = d.one_in(2) if data_plane is None else data_plane
    return PlanOptions(
        d.one_in(2),
        d.one_in(2),
        frozenset({THEM}) if d.one_in(3) else frozenset(),
        frozenset(d.some(ALLOW)),
        tuple(d.some(["a.**", "a", "*.t", "b.x.t"], 2)) if d.one_in(8) else (),
        None if runs else NO_DATA_PLANE,
    )


ENTRY_CHANGES = (
    "CreateNamespace", "UpdateNamespace", "AdoptNamespace", "RenameNamespace", "DropNamespace",
    "DeclareTable", "UpdateTable", "AdoptTable", "RenameTable", "DeregisterTable",
)  # fmt: skip
GAPS: tuple[Ident, ...] = (("a",), ("a", "x"), ("b", "x"), ())


def roll_case(
    d: Dice, gaps: bool = True, data_plane: bool | None = None, kinds: Sequence[MemoryCapabilities] = KINDS
) -> Case:
    kind = d.pick(kinds)
    options = plan_options(d, data_plane)
    missing = tuple(Gap(d.pick(GAPS), Code.SERVICE_UNAVAILABLE, "page 2 failed") for _ in range(gaps and d.one_in(8)))
    rules = management(d)
    missing = tuple(g for g in missing if not matcher(rules.ignore)(g.ident))
    want = desired_state(d, rules, kind)
    live = replace(live_state(d, want, kind), unsupported=lacks(d) if kinds is KINDS and d.one_in(4) else ())
    return Case(want, live, missing, options, kind)


def lacks(d: Dice) -> tuple[Unsupported, ...]:
    """What this one service cannot do, somewhere or anywhere; not where a test is about what its kind cannot do."""
    return tuple(Unsupported(d.pick(GAPS), name, f"this one lacks {name}") for name in d.some(ENTRY_CHANGES, 3))


def cases(
    gaps: bool = True, data_plane: bool | None = None, kinds: Sequence[MemoryCapabilities] = KINDS
) -> st.SearchStrategy[Case]:
    return rolled(lambda d: roll_case(d, gaps, data_plane, kinds))
