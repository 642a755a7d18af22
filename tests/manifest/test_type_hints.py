"""A type that cannot be read is answered with what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.catalog.lance_types import type_problem
from reconciler.explain.types import types_text
from reconciler.manifest.type_hints import hint_for
from reconciler.manifest.type_words import PLAIN
from reconciler.model.arrow import TypeSyntaxError, parse_type
from reconciler.model.arrow_forms import FORMS
from reconciler.model.arrow_grammar import ALIASES, KNOWN_NAMES, UNITS

from .support import CATALOG, load_text, table


def hint(text: str) -> str:
    with pytest.raises(TypeSyntaxError) as caught:
        parse_type(text)
    return hint_for(text, caught.value)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("integer", "int64 (or int32, for numbers up to 2 billion)"),
        ("bigint", "int64"),
        ("decimal(10,2)", "decimal128(10, 2)"),
        ("numeric(50, 3)", "decimal256(50, 3)"),
        ("decimal128(10)", "decimal128(10, 0)"),
        ("decimal128(50, 3)", "decimal256(50, 3)"),
        ("varchar(20)", "string"),
        ("STRING", "string"),
        ("timestamp(3)", "timestamp[ms]"),
        ("datetime64[ns]", "timestamp[ns]"),
        ("timestamp[us, UTC]", "timestamp[us, tz=UTC]"),
        ("vector[16]", "fixed_size_list<float32>[16]"),
        ("vector<float, 16>", "fixed_size_list<float32>[16]"),
        ("array<float, 8>", "fixed_size_list<float32>[8]"),
        ("fixed_size_list<float32, 8>", "fixed_size_list<float32>[8]"),
        ("array<text, 8>", "list<string>"),
        ("fixed_size_list<string, 8>", "list<string>"),
        ("float32[16]", "fixed_size_list<float32>[16]"),
        ("list<float32[16]>", "list<fixed_size_list<float32>[16]>"),
        ("list(string)", "list<string>"),
        ("string[]", "list<string>"),
        ("text[]", "list<string>"),
        ("string[8]", "list<string>"),
        ("bigint[3]", "fixed_size_list<int64>[3]"),
        ("List[varchar(20)]", "list<string>"),
        ("list<string(20)>", "list<string> (string has no length)"),
        ("map(text, bigint)", "map<string, int64>"),
        ("row(a bigint, b array<text>)", "struct<a: int64, b: list<string>>"),
        ("binary(16)", "fixed_size_binary[16]"),
        ("binary[16]", "fixed_size_binary[16]"),
    ],
)
def test_what_other_systems_write(theirs: str, ours: str) -> None:
    assert hint(theirs) == f"write {ours}"
    assert type_problem(parse_type(ours.partition(" (")[0])) is None


@pytest.mark.parametrize("word", sorted(PLAIN))
def test_a_word_of_another_system_is_answered_with_a_type_that_lance_stores(word: str) -> None:
    assert word not in ALIASES
    parsed = parse_type(PLAIN[word].text)
    assert type_problem(parsed) is None
    assert hint(word).startswith(f"write {parsed}")
    assert hint(f"list<{word.upper()}>").startswith(f"write list<{parsed}>")


@pytest.mark.parametrize("name", [n for n, f in FORMS.items() if f.spellings != (n,)])
def test_a_known_type_that_is_written_wrongly_is_answered_with_its_form(name: str) -> None:
    for wrong in (name, f"{name}<", f"list<{name}>", f"struct<a: {name}]>", name.upper()):
        assert FORMS[name].spellings[0] in hint(wrong), wrong


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("strng", "did you mean string?"),
        ("timestmp[us]", "did you mean timestamp? timestamp is written timestamp[us], or timestamp[us, tz=UTC]"),
        ("list<>", "list is written list<string>, or list<string not null>"),
        ("string | null", "write string"),
        ("int64 not null", "write `nullable: false` beside `type`; `not null` is for what is inside of a type"),
        ("<>", "`reconciler explain types` lists all types"),
    ],
)
def test_what_is_not_another_systems(wrong: str, told: str) -> None:
    assert hint(wrong) == told


def test_an_unknown_word_gets_the_names_and_where_they_are_explained() -> None:
    assert hint("qqqq").startswith("known types: binary, ")
    assert hint("qqqq").endswith("`reconciler explain types` lists all types")


def test_a_long_text_is_not_worked_on_for_long() -> None:
    assert len(hint("array<" * 60 + "int" + ">" * 60)) < 400


def test_every_type_has_a_form_and_every_form_is_a_type_that_lance_stores() -> None:
    assert sorted(FORMS) == sorted(KNOWN_NAMES)
    for name, form in FORMS.items():
        for spelling in form.spellings:
            parsed = parse_type(spelling)
            assert str(parsed) == spelling
            assert spelling.startswith(name)
            assert type_problem(parsed) is None
            assert spelling in types_text()
    assert UNITS.keys() <= FORMS.keys()


def test_the_hint_is_told_with_the_place(tmp_path: Path) -> None:
    fields = "fields: [{name: x, type: int8}]"
    written = table("t", f"schema: [{{name: a, type: 'list<integer>'}}, {{name: b, type: 'array<struct>', {fields}}}]")
    found = load_text(tmp_path, CATALOG, written).diagnostics
    told = [(d.code, d.hint) for d in found if d.severity == "error"]
    assert told == [
        ("M211", "write list<int64> (or int32, for numbers up to 2 billion)"),
        ("M211", "write list<struct>"),
    ]
