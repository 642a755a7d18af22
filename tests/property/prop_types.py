"""Strategies for the Arrow type grammar, all of it."""

from __future__ import annotations

from hypothesis import strategies as st

from reconciler.model.arrow import (
    SCALARS,
    ArrowType,
    Decimal,
    Dictionary,
    Field,
    FixedBinary,
    ListOf,
    MapOf,
    Scalar,
    Struct,
    Temporal,
)

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "+02:00", "America/Argentina/Buenos_Aires"])
NAMES = st.one_of(
    st.sampled_from(["a", "b", "id", "not", "item", "b c", 'say "hi"', "x-y", "9", "ü", "a:b", "<", "null"]),
    st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=6),
)
TEXTS = st.sampled_from(["", "x", "two words", "ünï", "a: b", '"'])
MAPS = st.dictionaries(st.sampled_from(["k", "l", "m.n"]), TEXTS, max_size=2)


def flat_types() -> st.SearchStrategy[ArrowType]:
    return st.one_of(
        st.sampled_from(sorted(SCALARS)).map(Scalar),
        st.builds(Temporal, st.just("timestamp"), st.sampled_from(["s", "ms", "us", "ns"]), st.none() | ZONES),
        st.builds(Temporal, st.just("duration"), st.sampled_from(["s", "ms", "us", "ns"])),
        st.builds(Temporal, st.just("time32"), st.sampled_from(["s", "ms"])),
        st.builds(Temporal, st.just("time64"), st.sampled_from(["us", "ns"])),
        decimals(),
        st.builds(FixedBinary, st.integers(1, 2**31 - 1)),
        st.builds(Dictionary, st.sampled_from(INTEGERS), st.sampled_from(["string", "int64"]).map(Scalar)),
    )


@st.composite
def decimals(draw: st.DrawFn) -> Decimal:
    bits = draw(st.sampled_from([128, 256]))
    precision = draw(st.integers(1, 38 if bits == 128 else 76))
    return Decimal(bits, precision, draw(st.integers(-precision, precision)))


def nested_types(inner: st.SearchStrategy[ArrowType], annotated: bool) -> st.SearchStrategy[ArrowType]:
    fields = st.lists(any_fields(inner, annotated), min_size=1, max_size=3, unique_by=lambda f: f.name)
    return st.one_of(
        st.builds(ListOf, st.sampled_from(["list", "large_list"]), inner, st.booleans()),
        st.builds(ListOf, st.just("fixed_size_list"), inner, st.booleans(), st.integers(1, 4096)),
        st.builds(lambda f: Struct(tuple(f)), fields),
        st.builds(MapOf, inner, inner, st.booleans()),
    )


def any_fields(types: st.SearchStrategy[ArrowType], annotated: bool) -> st.SearchStrategy[Field]:
    if not annotated:
        return st.builds(Field, NAMES, types, st.booleans())
    optional = st.none() | TEXTS
    return st.builds(Field, NAMES, types, st.booleans(), optional, MAPS, st.none() | NAMES, optional)


def any_types(annotated: bool = False) -> st.SearchStrategy[ArrowType]:
    """`annotated`: nested fields carry comments, metadata and hints, which the text form does not hold."""
    return st.recursive(flat_types(), lambda inner: nested_types(inner, annotated), max_leaves=6)
