"""Columns as the planner meets them: few names and related types, so that the two sides collide."""

from __future__ import annotations

from dataclasses import replace

from prop_dice import Dice

from reconciler.model.arrow import ArrowType, Field, ListOf, Struct, parse_type
from reconciler.model.state import BuildRecord, Index, Param

COLUMNS = ("id", "x", "y", "st", "a:b")
CHILDREN = ("p", "q", "r")
TYPES = tuple(
    parse_type(t)
    for t in (
        "int32", "int64", "int8", "uint32", "float32", "float64", "string", "large_string", "date32",
        "timestamp[us]", "timestamp[ms, tz=UTC]", "decimal128(10, 2)", "decimal128(12, 2)", "list<int32>",
        "list<int64>",
        "fixed_size_list<float32>[8]", "fixed_size_list<float32>[16]", "dictionary<int32, string>",
        "map<string, int32>", "binary", "bool",
    )
)  # fmt: skip
COMMENTS = (None, None, None, "one", "two")
KEYS = ("k", "l", "m.n")
NOTHING: tuple[str, ...] = ()


def small_map(d: Dice) -> dict[str, str]:
    return {k: d.pick(("1", "2")) for k in d.some(KEYS, 2)}


def metadata(d: Dice) -> dict[str, str]:
    return small_map(d) if d.one_in(3) else {}


def column_type(d: Dice, wanted: bool, depth: int = 2) -> ArrowType:
    kind = d.roll(10)
    if depth and kind == 8:
        return Struct(columns(d, wanted, CHILDREN, depth - 1, top=False))
    if depth and kind == 9:
        return ListOf("list", Struct(columns(d, wanted, CHILDREN, depth - 1, top=False)), not d.one_in(3))
    return d.pick(TYPES)


def columns(
    d: Dice, wanted: bool, names: tuple[str, ...] = COLUMNS, depth: int = 2, top: bool = True
) -> tuple[Field, ...]:
    """`wanted`: as in a manifest, with renames and defaults that keep the loader's rules."""
    chosen = d.some(names) or [names[0]]
    free = [n for n in names if n not in chosen]
    out = []
    for name in chosen:
        f = Field(name, column_type(d, wanted, depth), not d.one_in(3), d.pick(COMMENTS), metadata(d))
        if wanted and free and d.one_in(4):
            f = replace(f, renamed_from=free.pop(d.roll(len(free))))
        if wanted and top and d.one_in(6):
            f = replace(f, default="0")
        out.append(f)
    return tuple(out)


def near(d: Dice, fields: tuple[Field, ...], names: tuple[str, ...] = COLUMNS) -> tuple[Field, ...]:
    """A live schema that is close to a wanted one: some columns under their old name, changed, missing, or extra."""
    out: list[Field] = []
    for f in fields:
        name = f.renamed_from if f.renamed_from and d.one_in(2) else f.name
        if d.one_in(8) or name in {g.name for g in out}:
            continue
        g = Field(name, _near_type(d, f.type), f.nullable, f.comment, dict(f.metadata))
        change = d.roll(8)
        if change == 6:
            g = replace(g, nullable=not g.nullable)
        elif change == 7:
            g = replace(g, comment=d.pick(COMMENTS), metadata=metadata(d))
        out.append(g)
    extra = [n for n in names if n not in {g.name for g in out}]
    if extra and (not out or d.one_in(3)):
        out += columns(d, False, (extra[0],), 1)
    return tuple(out.pop(d.roll(len(out))) for _ in range(len(out)))


def _near_type(d: Dice, type_: ArrowType) -> ArrowType:
    if isinstance(type_, Struct):
        return Struct(near(d, type_.fields, CHILDREN))
    if isinstance(type_, ListOf) and isinstance(type_.item, Struct):
        return replace(type_, item=Struct(near(d, type_.item.fields, CHILDREN)))
    return column_type(d, False, 1) if d.one_in(4) else type_


INDEXES: tuple[tuple[str, dict[str, Param]], ...] = (
    ("btree", {}),
    ("bitmap", {}),
    ("inverted", {"with_position": True}),
    ("inverted", {"with_position": False, "language": "English"}),
    ("ivf_pq", {"num_partitions": 2, "num_sub_vectors": 2, "metric": "cosine"}),
    ("ivf_pq", {"num_partitions": 4, "num_sub_vectors": 2}),
)


def indexes(d: Dice, fields: tuple[Field, ...], live: bool) -> tuple[Index, ...]:
    """On columns that exist, nested ones too."""
    paths = [f.name for f in fields]
    paths += [f"{f.name}.{g.name}" for f in fields if isinstance(f.type, Struct) for g in f.type.fields]
    out = []
    for name in d.some(["i1", "i2", "i3"], 2):
        type_, params = d.pick(INDEXES)
        column = d.pick(paths)
        out.append(_live_index(d, Index(name, column, type_, params)) if live else Index(name, column, type_, params))
    return tuple(out)


def _live_index(d: Dice, index: Index) -> Index:
    """Read or not, built by us or by others, over few rows or many. Ours is as declared, but for partitions."""
    declared = d.pick([params for type_, params in INDEXES if type_ == index.type])
    record = None if d.one_in(2) else BuildRecord(declared, d.pick((0, 300)), d.one_in(2), d.pick((0, 0, 1)))
    params = dict(declared) if record is not None and record.current else dict(index.params)
    unread = frozenset({"num_partitions"} & params.keys() if d.one_in(3) else ())
    if "num_partitions" in params and d.one_in(3):
        params["num_partitions"] = 1
    shown = {k: v for k, v in params.items() if k not in unread}
    rows = None if d.one_in(3) else d.pick((0, 3, 300, 5000))
    return replace(index, params=shown, unread=unread, record=record, rows=rows)
