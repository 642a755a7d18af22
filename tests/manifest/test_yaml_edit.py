"""Changes of single values in YAML text: the right value, and not a byte more."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.manifest.yaml_edit import Append, CannotEdit, Edit, Remove, Set, edited_text, edited_value
from reconciler.manifest.yaml_reader import Document, documents
from reconciler.manifest.yaml_write import as_flow, as_lines, as_scalar

from .test_emit import KEY, TEXT

DOCUMENT = """\
# top
kind: Table   # k
spec:
    # about
    properties: {a: "1", b: x}   # p
    description: >
      folded
      text

    schema:
    # first
    - {name: id, type: int64}   # the key
    - name: t     # tt
      type: string
      # inner
      nullable: false
    # end
    config:
        z: '1'
# tail
"""


def read(text: str) -> Any:
    (found,) = documents(text)
    assert isinstance(found, Document)
    return found.value


@pytest.mark.parametrize(
    ("edit", "old", "new"),
    [
        (Set(("spec", "properties", "a"), "2"), '"1"', '"2"'),
        (Set(("spec", "properties", "b"), "no"), "b: x", "b: 'no'"),
        (Set(("spec", "properties", "c"), "d, e"), "b: x}", "b: x, c: 'd, e'}"),
        (Remove(("spec", "properties", "a")), '{a: "1", b: x}', "{b: x}"),
        (Remove(("spec", "properties", "b")), '{a: "1", b: x}', '{a: "1"}'),
        (Set(("spec", "description"), "one\ntwo"), ">\n      folded\n      text\n", ">-\n      one\n\n      two\n"),
        (Set(("spec", "description"), "a\x07"), ">\n      folded\n      text\n", '"a\\a"\n'),
        (Remove(("spec", "description")), "    description: >\n      folded\n      text\n", ""),
        (Append(("spec", "schema"), ({"name": "n"},)), "nullable: false\n", "nullable: false\n    - {name: n}\n"),
        (Remove(("spec", "schema", 0)), "    - {name: id, type: int64}   # the key\n", ""),
        (Remove(("spec", "schema", 1, "nullable")), "      nullable: false\n", ""),
        (Remove(("spec", "schema", 1, "name")), "name: t     # tt\n      type", "type"),
        (Set(("spec", "schema", 1, "comment"), "c"), "nullable: false\n", "nullable: false\n      comment: c\n"),
        (Set(("spec", "config", "y"), "1"), "z: '1'\n", "z: '1'\n        y: '1'\n"),
        (Remove(("spec", "config", "z")), "    config:\n        z: '1'\n", ""),
        (Set(("spec", "more", "y"), "1"), "z: '1'\n", "z: '1'\n    more: {y: '1'}\n"),
    ],
)  # fmt: skip
def test_one_change(edit: Edit, old: str, new: str) -> None:
    assert DOCUMENT.count(old) == 1
    text = edited_text(DOCUMENT, [edit])
    assert text == DOCUMENT.replace(old, new)
    assert read(text) == edited_value(read(DOCUMENT), [edit])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("kind: Table\nspec:\n  # c\n  a: b  # d\n", "kind: Table\nspec: {}\n"),
        ("kind: Table\nspec: {a: b} # c\n", "kind: Table\nspec: {} # c\n"),
    ],
)
def test_a_spec_that_gets_empty_stays(before: str, after: str) -> None:
    assert edited_text(before, [Remove(("spec", "a"))]) == after


@pytest.mark.parametrize("text", ["a: &x 1\nb: *x\n", "a: &x {c: d}\nb:\n  <<: *x\n", "a: &x 1\nb: 2\n"])
def test_anchors_are_not_touched(text: str) -> None:
    with pytest.raises(CannotEdit, match="anchors"):
        edited_text(text, [Set(("a",), "2")])


@given(TEXT, st.sampled_from(["", "'", '"']))
def test_a_scalar_is_one_line_and_itself_everywhere(value: str, quote: str) -> None:
    text = as_scalar(value, quote)
    assert "\n" not in text
    for whole, path in ((f"k: {text} # c\n", ("k",)), (f"k: {{a: {text}, b: [{text}]}}\n", ("k", "a"))):
        found = read(whole)
        for part in path:
            found = found[part]
        assert found == value


VALUES = st.recursive(
    TEXT, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEY, inner, max_size=3), max_leaves=5
)


@given(st.dictionaries(KEY, VALUES, min_size=1, max_size=3))
def test_what_is_written_reads_back(value: dict[str, Any]) -> None:
    assert read(as_lines(value)) == value
    assert read(as_flow(value)) == value


@st.composite
def edits(draw: st.DrawFn, value: Any) -> list[Edit]:
    found: list[Edit] = []
    paths: list[tuple[Any, ...]] = []

    def walk(at: Any, path: tuple[Any, ...]) -> None:
        if len(path) > 1:
            paths.append(path)
        items = at.items() if isinstance(at, dict) else enumerate(at) if isinstance(at, list) else ()
        for key, inner in items:
            walk(inner, (*path, key))

    walk(value, ())
    for path in draw(st.lists(st.sampled_from(paths), max_size=4, unique=True)):
        if any(path[: len(e.path)] == e.path or e.path[: len(path)] == path for e in found):
            continue
        at = value
        for part in path:
            at = at[part]
        kinds: list[Any] = [st.builds(Set, st.just(path), TEXT)] if not isinstance(path[-1], int) else []
        kinds.append(st.just(Remove(path)))
        if isinstance(at, list) and not isinstance(path[-1], int):
            kinds.append(
                st.builds(lambda values, p=path: Append(p, tuple(values)), st.lists(TEXT, min_size=1, max_size=2))
            )
        if isinstance(at, dict):
            new = draw(KEY.filter(lambda k, at=at: k not in at))
            kinds.append(st.builds(Set, st.just((*path, new)), TEXT))
        found.append(draw(st.one_of(kinds)))
    return found


SMALL = st.recursive(
    TEXT, lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(KEY, inner, min_size=1, max_size=3),
    max_leaves=6,
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data(), st.booleans() | st.none(), st.integers(2, 6))
def test_any_change_of_any_document(data: st.DataObject, flow: bool | None, indent: int) -> None:
    """Exactly what was meant, or it is said that it cannot be done. Comments on lines of their own stay, except inside
    of what goes."""
    value = {"kind": "x", "spec": data.draw(st.dictionaries(KEY, SMALL, min_size=2, max_size=3))}
    wanted = data.draw(edits(value))
    text = yaml.dump(value, default_flow_style=flow, indent=indent, allow_unicode=True, width=10_000, sort_keys=False)
    commented = "# first\n" + text + "# last\n"
    if read(commented) != value:  # A block scalar at the end would take the comment for text.
        return
    try:
        out = edited_text(commented, wanted)
    except CannotEdit:
        assert re.search(r"\? |- +- |-\n", text)  # A key that does not fit on a line, a list in a list.
        return
    assert read(out) == edited_value(value, wanted)
    assert out.startswith("# first\n")
    assert out.endswith("# last\n")
    if not wanted:
        assert out == commented


@pytest.mark.parametrize("path", [("spec", "b"), ("spec", "a", "b"), ("spec", "l", 3), ("spec", "n", "x"), ("no", "x")])
def test_what_is_not_there_cannot_be_removed(path: tuple[str | int, ...]) -> None:
    value = {"kind": "x", "spec": {"a": "1", "l": ["1", "2"], "n": None, "m": {"one": "1"}}}
    with pytest.raises(CannotEdit, match="is not where it was expected"):
        edited_text(yaml.dump(value), [Remove(path)])
    with pytest.raises(CannotEdit, match="is not where it was expected"):
        edited_value(value, [Remove(path)])


def test_the_only_key_does_not_go_instead_of_one_that_is_not_there() -> None:
    with pytest.raises(CannotEdit):
        edited_text("kind: x\nspec: {m: {one: '1'}, n: '1'}\n", [Remove(("spec", "m", "two"))])
