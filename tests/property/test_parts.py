"""Laws of the small parts: the type grammar, the codecs, casts, globs, the three-way comparison."""

from __future__ import annotations

import json

from hypothesis import assume, given
from hypothesis import strategies as st
from prop_cases import Case, cases, dataset
from prop_columns import columns, near
from prop_dice import Dice, rolled
from prop_run import catalog_of, plan_on
from prop_types import any_fields, any_types

from reconciler.core.casts import classify
from reconciler.core.diff_properties import diff_map
from reconciler.core.diff_schema import compare, ignore_rule
from reconciler.core.errors import PlanError
from reconciler.core.fields import bare, edit, find, plain, walk
from reconciler.core.fingerprint import fingerprint
from reconciler.core.globs import matches
from reconciler.model.arrow import ArrowType, Field, parse_type
from reconciler.model.codec import (
    canonical,
    dataset_from,
    dataset_json,
    field_from,
    field_json,
    finding_json,
    snapshot_from,
    type_from,
    type_json,
)
from reconciler.model.ident import Ident, dotted
from reconciler.model.observed import Present
from reconciler.model.state import DatasetState, TableState
from reconciler.render.text import plan_text


@given(any_types())
def test_types_print_and_parse(type_: ArrowType) -> None:
    assert parse_type(str(type_)) == type_


@given(any_types(annotated=True))
def test_types_as_json(type_: ArrowType) -> None:
    assert type_from(json.loads(json.dumps(type_json(type_)))) == type_


@given(any_fields(any_types(annotated=True), annotated=True))
def test_fields_as_json(f: Field) -> None:
    assert field_from(json.loads(json.dumps(field_json(f)))) == f


@given(rolled(lambda d: dataset(d, None)))
def test_datasets_as_json(state: DatasetState) -> None:
    """All but the version, which is for reports only; indexes come sorted."""
    back = dataset_from(json.loads(json.dumps(dataset_json(state))))
    assert dataset_json(back) == dataset_json(state)
    assert back.fields == state.fields
    assert back.version is None


@given(cases())
def test_snapshots_as_json(case: Case) -> None:
    """The form of `live.json` in the golden cases."""

    def shown(found: object) -> object:
        value = finding_json(found)  # type: ignore[arg-type]
        return value.get("present", value)

    text = json.dumps(
        {
            "namespaces": {json.dumps(i): shown(f) for i, f in case.live.namespaces.items()},
            "tables": {json.dumps(i): shown(f) for i, f in case.live.tables.items()},
            "gaps": [{"ident": list(g.ident), "code": int(g.code), "message": g.message} for g in case.gaps],
        }
    )
    back = snapshot_from(json.loads(text))
    for ours, theirs in ((case.live.namespaces, back.namespaces), (case.live.tables, back.tables)):
        assert {i: canonical(finding_json(f)) for i, f in ours.items()} == {
            i: canonical(finding_json(f)) for i, f in theirs.items()
        }
    assert back.gaps == case.gaps


@given(any_types(), any_types())
def test_every_cast_has_a_class(old: ArrowType, new: ArrowType) -> None:
    cast = classify(old, new)
    assert (cast == "same") == (bare(old) == bare(new))
    assert (classify(new, old) == "same") == (cast == "same")


NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")


def test_widening_is_an_order() -> None:
    """No number type is wider than itself by way of another, and wider than wider is wider. All of them are tried: by
    chance hardly any three would be in line."""
    types = [parse_type(name) for name in NUMBERS]
    wider = {(a, b) for a in types for b in types if classify(a, b) == "widen"}
    assert {classify(b, a) for a, b in wider} == {"narrow"}
    chains = [(a, c) for a, b in wider for other, c in wider if b == other]
    assert len(chains) > 10
    assert [pair for pair in chains if pair not in wider] == []


@given(rolled(lambda d: columns(d, wanted=True)))
def test_a_schema_does_not_differ_from_itself(fields: tuple[Field, ...]) -> None:
    live = tuple(plain(f) for f in reversed(fields))
    assert list(compare(fields, live, False, ignore_rule(()))) == []
    assert list(compare(fields, (), False, ignore_rule(("schema",)))) == []


@given(rolled(lambda d: ((w := columns(d, True)), near(d, w))))
def test_at_least_only_forgives_extra_columns(pair: tuple[tuple[Field, ...], tuple[Field, ...]]) -> None:
    want, live = pair
    exact = [x for x in compare(want, live, False, ignore_rule(())) if x.kind != "extra"]
    assert list(compare(want, live, True, ignore_rule(()))) == exact


@given(rolled(lambda d: (columns(d, False), d.roll(50))))
def test_fields_are_found_and_edited_by_path(pair: tuple[tuple[Field, ...], int]) -> None:
    fields, number = pair
    paths = [p for p, _ in walk(fields)]
    assert len(set(paths)) == len(paths)
    path = paths[number % len(paths)]
    assert find(fields, path) is not None
    seen: list[Field] = []
    assert edit(fields, path, lambda f: seen.append(f) or f) == fields  # type: ignore[func-returns-value]
    assert seen == [find(fields, path)]
    gone = edit(fields, path, lambda _: None)
    assert path not in [p for p, _ in walk(gone)]


@given(rolled(lambda d: dataset(d, None)), st.integers(0, 99))
def test_fingerprints_see_definitions_and_nothing_else(state: DatasetState, number: int) -> None:
    from dataclasses import replace

    def print_of(dataset_: DatasetState) -> str:
        return fingerprint(Present(TableState("x", dataset=dataset_)))

    assert print_of(replace(state, version=number)) == print_of(state)
    assert print_of(replace(state, fields=state.fields[::-1], indexes=state.indexes[::-1])) == print_of(state)
    assert print_of(replace(state, config={**state.config, "new": "1"})) != print_of(state)
    first = state.fields[0]
    changed = (replace(first, nullable=not first.nullable), *state.fields[1:])
    assert print_of(replace(state, fields=changed)) != print_of(state)


# -- globs ------------------------------------------------------------------------------------------------------------

SEGMENTS = st.lists(st.text("ab*?", min_size=1, max_size=4) | st.just("**"), min_size=1, max_size=4)
IDENTS = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3).map(tuple)


def naive_name(pattern: str, name: str) -> bool:
    """One character at a time, every way a star can go."""
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(naive_name(pattern[1:], name[i:]) for i in range(len(name) + 1))
    return bool(name) and pattern[0] in ("?", name[0]) and naive_name(pattern[1:], name[1:])


def naive(segments: list[str], ident: Ident) -> bool:
    if not segments:
        return not ident
    if segments[0] == "**":
        return any(naive(segments[1:], ident[i:]) for i in range(len(ident) + 1))
    return bool(ident) and naive_name(segments[0], ident[0]) and naive(segments[1:], ident[1:])


@given(SEGMENTS, IDENTS)
def test_globs_against_a_naive_matcher(segments: list[str], ident: Ident) -> None:
    assert matches(".".join(segments), ident) == naive(segments, ident)


@given(IDENTS)
def test_every_identifier_matches_itself_and_two_stars(ident: Ident) -> None:
    assert matches(dotted(ident), ident)
    assert matches("**", ident)
    assert matches("*", ident) == (len(ident) == 1)


def test_a_name_with_a_dot_is_one_name() -> None:
    assert matches("a.*", ("a", "we.ird"))
    assert not matches("a.*.*", ("a", "we.ird"))
    assert matches('a."we.ird"', ("a", "we.ird"))
    assert not matches("a.we.ird", ("a", "we.ird"))


# -- three-way --------------------------------------------------------------------------------------------------------

STRINGS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), max_size=4)
KEYS = st.lists(st.sampled_from("abcd"), unique=True).map(lambda k: tuple(sorted(k)))
IGNORED = st.sets(st.sampled_from(["p", "p.a", "p.b", "q", "q.a"]), max_size=2).map(frozenset)


@given(STRINGS, STRINGS, KEYS, IGNORED)
def test_three_way_maps(
    want: dict[str, str], live: dict[str, str], ours: tuple[str, ...], ignored: frozenset[str]
) -> None:
    diff = diff_map(want, live, ours, ignored, "p")
    after = {k: v for k, v in {**live, **diff.set}.items() if k not in diff.unset}
    whole = "p" in ignored
    for key in "abcd":
        if whole or f"p.{key}" in ignored:
            assert after.get(key) == live.get(key), "what is ignored is left to others"
            assert key not in diff.applied
        elif key in want:
            assert after[key] == want[key]
            assert key in diff.applied
        elif key in ours:
            assert key not in after, "what we set once and do not want any more goes"
        else:
            assert after.get(key) == live.get(key), "what others set stays"
    assert not diff_map(want, after, diff.applied, ignored, "p"), "and then there is nothing left to do"
    assert not set(diff.set) & set(diff.unset)


# -- rendering --------------------------------------------------------------------------------------------------------


@given(cases())
def test_a_plan_with_changes_is_never_rendered_as_nothing(case: Case) -> None:
    """[13] Each object that changes has a line; no step, no line but the last; what is blocked says why."""
    try:
        plan = plan_on(case, catalog_of(case))
    except PlanError:
        assume(False)
        raise
    text = plan_text(plan)
    assert ("No changes." in text) == (not plan.has_changes)
    lines = [line for line in text.splitlines() if line.startswith(("  + ", "  ~ ", "  - ", "  ! ", "  ? "))]
    assert len(lines) == len({(step.key, step.deletes) for step in plan.steps})
    for step in plan.steps:
        assert any(line.endswith(f" {dotted(step.change.ident)}") for line in lines)
        if step.verdict != "allowed":
            assert f"{step.action} {step.verdict}" in text
            assert step.blocking_reason in text
            assert step.purpose in text


def test_an_empty_tape_is_the_plainest_case() -> None:
    """Shrinking goes there: it must stay small."""
    from prop_cases import roll_case

    case = roll_case(Dice(b""))
    assert not case.desired.tables["lake"]
    assert not case.live.tables
