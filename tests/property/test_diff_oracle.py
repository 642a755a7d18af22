"""Our comparisons against somebody else's: DeepDiff on plain values finds a difference exactly when ours do.

What counts as one is written down here a second time, as plain values: columns and fields of structs by name, in any
order; comments and metadata apart; of properties only those that are declared or that we set.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deepdiff import DeepDiff
from hypothesis import event, given
from hypothesis import strategies as st
from prop_columns import COMMENTS, columns, metadata, near
from prop_dice import Dice, rolled

from reconciler.core.diff_properties import diff_map
from reconciler.core.diff_schema import compare, ignore_rule
from reconciler.core.fields import plain
from reconciler.model.arrow import ArrowType, Field, ListOf, MapOf, Struct

Fields = tuple[Field, ...]


def by_name(fields: Fields) -> dict[str, Any]:
    return {f.name: {"type": value(f.type), "nullable": f.nullable} for f in fields}


def value(type_: ArrowType) -> Any:
    match type_:
        case Struct(fields):
            return {"struct": by_name(fields)}
        case ListOf(item=Struct(fields)):
            return {"list": type_.name, "size": type_.size, "nullable": type_.item_nullable, "of": by_name(fields)}
        case _:
            return in_order(type_)


def in_order(type_: ArrowType) -> Any:
    """Deeper inside, a type is compared as a whole."""
    match type_:
        case Struct(fields):
            return {"struct": [[f.name, in_order(f.type), f.nullable] for f in fields]}
        case ListOf():
            return {"list": type_.name, "size": type_.size, "nullable": type_.item_nullable, "of": in_order(type_.item)}
        case MapOf():
            rest = {k: v for k, v in vars_of(type_).items() if k not in ("key", "value")}
            return {"map": [in_order(type_.key), in_order(type_.value)], **rest}
        case _:
            return str(type_)


def vars_of(type_: ArrowType) -> dict[str, Any]:
    return {name: getattr(type_, name) for name in type_.__dataclass_fields__}


def same(d: Dice, fields: Fields) -> Fields:
    """In another order and with other comments, at every level that has names."""

    def again(f: Field) -> Field:
        return replace(f, type=inside(f.type), comment=d.pick(COMMENTS), metadata=metadata(d))

    def inside(type_: ArrowType) -> ArrowType:
        if isinstance(type_, Struct):
            return Struct(same(d, type_.fields))
        if isinstance(type_, ListOf) and isinstance(type_.item, Struct):
            return replace(type_, item=Struct(same(d, type_.item.fields)))
        return type_

    left = [again(f) for f in fields]
    return tuple(left.pop(d.roll(len(left))) for _ in range(len(left)))


def pair(d: Dice) -> tuple[Fields, Fields]:
    want = tuple(plain(f) for f in columns(d, True))
    return want, near(d, want) if d.one_in(2) else same(d, want)


@given(rolled(pair))
def test_columns_differ_exactly_when_the_oracle_says_so(schemas: tuple[Fields, Fields]) -> None:
    want, live = schemas
    found = list(compare(want, live, False, ignore_rule(())))
    oracle = DeepDiff(by_name(live), by_name(want))
    event("they differ" if oracle else "they are alike")
    assert bool(found) == bool(oracle), (found, oracle)


@given(rolled(pair))
def test_the_oracle_names_the_same_columns(schemas: tuple[Fields, Fields]) -> None:
    want, live = schemas
    found = {x.column for x in compare(want, live, False, ignore_rule(()))}
    oracle = DeepDiff(by_name(live), by_name(want), view="tree", threshold_to_diff_deeper=0)
    paths = [change.path(output_format="list") for changes in oracle.values() for change in changes]
    assert found == {path[0] for path in paths}


_MAPS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["1", "2", ""]))


@given(_MAPS, _MAPS, st.sets(st.sampled_from("abcd")))
def test_properties_differ_exactly_when_the_oracle_says_so(
    want: dict[str, str], live: dict[str, str], ours: set[str]
) -> None:
    diff = diff_map(want, live, sorted(ours), frozenset(), "properties")
    theirs = {key: text for key, text in live.items() if key in want or key in ours}
    oracle = DeepDiff(theirs, want, threshold_to_diff_deeper=0)
    assert bool(diff) == bool(oracle), (diff, oracle)
    changed = {*oracle.affected_root_keys} if oracle else set()
    assert {*diff.set, *diff.unset} == changed
