"""The fast builder is an optimisation only: it gives what the careful reader gives, and both what PyYAML gives."""

from __future__ import annotations

from collections.abc import Iterator

import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.manifest.problem import Path
from reconciler.manifest.yaml_careful import read_careful
from reconciler.manifest.yaml_fast import NeedsCare, builder, events
from reconciler.manifest.yaml_reader import Document, documents

WORDS = st.sampled_from(
    [
        "a",
        "no",
        "1",
        "1.5",
        "true",
        "~",
        "x y",
        "'q'",
        '"d\\n"',
        "2024-01-01",
        "é",
        "",
        "0x1f",
        "<<",
        "- b",
        "! 1",
        "!!str 2",
        "! 'z'",
        "&a x",
        "*a",
    ]
)
FLOW = st.recursive(
    WORDS.filter(lambda w: w != "- b"),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda v: "[" + ", ".join(v) + "]"),
        st.lists(st.tuples(WORDS, inner), max_size=4).map(lambda v: "{" + ", ".join(f"{k}: {x}" for k, x in v) + "}"),
    ),
    max_leaves=12,
)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def fast(text: str) -> object:
    next_event = events(text)
    next_event()
    next_event()
    return builder(next_event)(next_event())


@given(FLOW)
def test_fast_equals_careful(text: str) -> None:
    try:
        quick = fast(text)
    except (NeedsCare, yaml.YAMLError):
        return
    careful = read_careful(text, 0)
    assert careful.flaws == []
    assert careful.value == quick


@given(DATA, st.sampled_from([True, False, None]))
def test_what_pyyaml_writes_is_read_back(data: object, flow: bool | None) -> None:
    text = yaml.dump(data, Dumper=yaml.CSafeDumper, default_flow_style=flow, allow_unicode=True)
    assert fast(text) == data
    assert read_careful(text, 0).value == data
    assert yaml.safe_load(text) == data


@given(st.lists(DATA.filter(lambda d: d is not None), min_size=1, max_size=5))
def test_streams_of_documents(data: list[object]) -> None:
    text = yaml.dump_all(data, Dumper=yaml.CSafeDumper, explicit_start=True)
    found = list(documents(text))
    assert [d.value for d in found if isinstance(d, Document)] == data
    for document in found:
        assert isinstance(document, Document)
        root = document.careful().root
        assert root is not None
        assert (root.line, root.column) == (document.line, document.column)
        quick = document.value
        assert document.read_with_care().value == quick


def paths_in(value: object, path: Path = ()) -> Iterator[Path]:
    yield path
    for key, child in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from paths_in(child, (*path, key))


@given(DATA, st.sampled_from([True, False, None]))
def test_positions_alone_are_those_of_the_full_reading(data: object, flow: bool | None) -> None:
    text = yaml.dump(data, Dumper=yaml.CSafeDumper, default_flow_style=flow, allow_unicode=True)
    full, positions = read_careful(text, 0), read_careful(text, 0, positions_only=True)
    for path in paths_in(data):
        for one, other in zip(full.locate(path), positions.locate(path), strict=True):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                assert (one.line, one.column, one.text, one.plain) == (
                    other.line,
                    other.column,
                    other.text,
                    other.plain,
                )


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda b: b.decode("latin-1")))
def test_any_text_is_read_or_explained(text: str) -> None:
    from reconciler.manifest.yaml_text import decode

    decoded = decode(text.encode("utf-8", "surrogatepass"))
    for found in documents(decoded.text):
        if isinstance(found, Document):
            quick = repr(found.value)
            careful = found.read_with_care()
            assert careful.flaws or repr(careful.value) == quick  # repr: .nan is not equal to itself
        else:
            assert found.line >= 1
            assert found.message
