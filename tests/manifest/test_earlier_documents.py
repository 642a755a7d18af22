"""Earlier documents are read by short cuts only: what they give is what the usual reader gives, type for type."""

from __future__ import annotations

import string

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.manifest.earlier_documents import EarlierDocuments
from reconciler.manifest.yaml_fast import MAX_NODES
from reconciler.manifest.yaml_lines import LineReader, NotByLines
from reconciler.manifest.yaml_reader import Document, documents
from reconciler.manifest.yaml_text import decode

LINES = st.sampled_from(
    """
a: 1;b: x y;c:;c: # why;d: {e: f, g: [1, yes]};- x;- y: 1;- z:;-;- - a;- {a: b};- [1, {a: b}];- "q: r";# comment;;---
--- # c;--- {a: b};--- !!map;...;%YAML 1.1;a: |;a: |+;a: >-;- |;- # c;a: &x 1;b: *x;<<: *x;<<: {a: 1};a: !!str 1
"a": b;'a' : 'it''s';"a;b";a: "b;a: 'b;a: [1,;2];{a: b};{a: b}: c;[a]: b;? a;: b;a: b: c;a: - b;a: 2024-01-01;a: 0x1f
yes: 1;no:;1: a;null: a;~: a;a: ~;a: .5;a: 1_000;a:b;a: b#c;a: b # c;a: b  #;text;text more;- text;--- text;a: é;é: a
a: {b: ;c};a: @;a: `;a: b: ;a: -1;a: 1.0;a: true;kind: Table;metadata: {catalog: lake, id: [n1, t-1]};spec:;schema:
- name: c;type: int64;comment: a - b;comment: a. b/c_d -e;x: {a:b, c};x: [a: b];x: [a, ];x: { a : b };x: {a: 1, a: 2}
x: [-1, 1.0, 08, 1_0, null, no];x: {1: a};x: [a  b, c d];x: [a- b, -c];x: {a: , b: };x: [];x: {} ;x: [a]b;x: [a] [b]
a\tb: c;a:\tb;a: b\x85c: d;a: b\u2028  c;a:\u00a0b;---\u00a0;\ufeffa: b"""[1:]
    .replace("\n", ";")
    .split(";")
)
INDENTED = st.tuples(st.sampled_from([0, 0, 0, 1, 2, 2, 2, 4, 4, 6]), LINES).map(lambda p: " " * p[0] + p[1])
TEXTS = st.lists(INDENTED, max_size=14).map(lambda lines: "\n".join(lines)) | st.lists(INDENTED, max_size=14).map(
    lambda lines: "\n".join(lines) + "\n"
)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc.- \t:#", max_size=8), inner, max_size=4),
    max_leaves=20,
)


def usual(text: str) -> list[str]:
    """As text: in Python `1 == True == 1.0`."""
    return [repr(d.value) for d in documents(text) if isinstance(d, Document)]


def short(text: str, current: str = "") -> list[str]:
    earlier = EarlierDocuments()
    earlier.know(current, [d for d in documents(current) if isinstance(d, Document)])
    return [repr(value) for value in earlier.values(text)]


@settings(max_examples=300)
@given(TEXTS, TEXTS)
def test_short_cuts_give_what_the_usual_reader_gives(old: str, new: str) -> None:
    old, new = decode(old.encode()).text, decode(new.encode()).text
    assert short(old) == usual(old)
    assert short(old, old) == usual(old), "all of it known"
    assert short(f"{old}\n---\n{new}", new) == usual(f"{old}\n---\n{new}")
    assert short(new, f"{new}\n---\n{old}") == usual(new)


@given(st.lists(DATA, min_size=1, max_size=3), st.sampled_from([True, False, None]), st.integers(1, 4))
def test_what_pyyaml_writes(data: list[object], flow: bool | None, indent: int) -> None:
    text = yaml.dump_all(data, Dumper=yaml.CSafeDumper, default_flow_style=flow, allow_unicode=True, indent=indent)
    assert short(decode(text.encode()).text) == usual(decode(text.encode()).text)


@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    decoded = decode(text.encode("utf-8", "surrogatepass")).text
    assert short(decoded) == usual(decoded)


BY_LINES = {
    "mappings and lists": ("a:\n  b:\n    - x: 1\n      y: 2\n    - z\nc: d\n", {"a": {"b": [{"x": 1, "y": 2}, "z"]}, "c": "d"}),  # noqa: E501
    "a list below its key": ("a:\n- x: 1\n  y:\n  - 2\n- z\nb: c\n", {"a": [{"x": 1, "y": [2]}, "z"], "b": "c"}),
    "flow on one line": ("a: {b: [1, no], c: 'd'} # e\n", {"a": {"b": [1, False], "c": "d"}}),
    "comments and empty lines": ("# x\na:\n\n    # y\n  b: c # z\n# w\n", {"a": {"b": "c"}}),
    "a key without a value": ("a:\nb:\n  c:\n", {"a": None, "b": {"c": None}}),
    "nothing": ("# only this\n\n", None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), BY_LINES.values(), ids=BY_LINES)
def test_what_is_read_by_lines(text: str, value: object) -> None:
    """Without this the others would hold too, and nothing be fast."""
    assert LineReader().read(text) == value
    assert usual(text) == ([] if value is None else [repr(value)])


NOT_BY_LINES = {
    "a block scalar": "a: |\n  # text\n\nb: c\n",
    "an empty block scalar": "a: |+\n\n\nb: c\n",
    "a value on two lines": "a: b\n  c\n",
    "a value on two lines that looks like a list": "a:\n- b\n  - c\n",
    "a quoted value on two lines": 'a: "b\nc: d"\n',
    "a flow mapping on two lines": "a: {b: c,\nd: e}\n",
    "an anchor": "a: &x b\nc: *x\n",
    "a merge key": "a:\n  <<: {b: c}\n",
    "a tag": "a: !!str 1\n",
    "a key twice": "a: b\na: c\n",
    "a key that is no string": "yes: b\n",
    "a wrong indentation": "a:\n    b: c\n  d: e\n",
    "a list where a mapping goes on": "a: b\n- c\n",
    "a mapping where a list goes on": "a:\n  - b\n  c: d\n",
    "a document marker": "--- # x\na: b\n",
    "the dash of a list in a flow list": "a: b\nx: [- c]\n",
    "the dash of a list in a flow mapping": "a: b\nx: {c: - d}\n",
}


@pytest.mark.parametrize("text", NOT_BY_LINES.values(), ids=NOT_BY_LINES)
def test_what_is_left_to_the_usual_reader(text: str) -> None:
    with pytest.raises(NotByLines):
        LineReader().read(text)
    assert short(text) == usual(text)


def test_limits_are_those_of_the_usual_reader() -> None:
    deep = "\n".join(f"{' ' * n}a:" for n in range(110)) + "\n"
    deep_line = "\n".join(f"{' ' * n}a:" for n in range(45)) + "\n" + " " * 46 + "a: " + "[" * 47 + "]" * 47 + "\n"
    deeper_line = deep_line.replace("[", "[[[").replace("]", "]]]")
    large = "a: [" + "b," * 120_000 + "]\n"
    empty = "---\n" * 10_010 + "a: b\n"
    key = "k" * 1030
    long = [f"{key}: a\n", f"{key}:\n  a: b\n", f"a: {{{key}: b}}\n", f"a: b\nc: {{a: [{key}]}}\n"]
    for text in (deep, deep_line, deeper_line, large, empty, *long):
        assert short(text) == usual(text), text[:20]
    assert usual(deep_line)


def test_a_document_of_too_many_values_is_left_to_the_usual_reader() -> None:
    """Short lines of which each alone is within the limit, with as many values as characters can be."""
    line = f"- {{{','.join(string.ascii_letters)}}}\n"
    values = 1 + 2 * len(string.ascii_letters)
    text = "a:\n" + line * (MAX_NODES // values + 5)
    assert len(text) < MAX_NODES * 1.1, "the limit has to be as low as it is"
    assert short(text) == usual(text) == []


def test_documents_of_today_are_known_by_their_text() -> None:
    text = "# top\n---\na: [1]\n---\n# c\nb: |\n  ---\n  x\n---\nc: &x 1\n"
    found = [d for d in documents(text) if isinstance(d, Document)]
    earlier = EarlierDocuments()
    earlier.know(text, found)
    values = list(earlier.values(text))
    assert [a is b.value for a, b in zip(values, found, strict=True)] == [True, True, False], "careful ones are read"
    assert [repr(v) for v in values] == usual(text)
