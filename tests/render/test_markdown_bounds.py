"""Markdown that does not fit: what matters most is the last to go, the rest is counted, and nothing is left open."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from read_html import RENDERERS, read
from rendered_plans import MARKS, blocked, create, delete, plan, step

from reconciler.model import change as c
from reconciler.model.arrow import Field, parse_type
from reconciler.model.diagnostic import Diagnostic, Source
from reconciler.model.finding import Finding
from reconciler.model.ident import ObjectKey
from reconciler.model.plan import CatalogSummary, Plan
from reconciler.render.bounded_page import Page
from reconciler.render.markdown import plan_markdown
from reconciler.render.markdown_parts import diagnostics_markdown
from reconciler.render.safe_markdown import length

NOT_SHOWN = re.compile(r"\*\*(\d+) of (\d+) ([a-z -]+?)s? not shown\*\*(?:: ([^<]*))?")


def cut(markdown: str) -> dict[str, tuple[int, int, dict[str, int]]]:
    """Noun -> how many are not shown, of how many, by kind."""
    found = {}
    for hidden, total, noun, kinds in NOT_SHOWN.findall(markdown):
        by_kind = {kind: int(n) for n, kind in (part.split(" ", 1) for part in kinds.split(", ") if part)}
        found[noun] = (int(hidden), int(total), by_kind)
    return found


def rows(markdown: str) -> list[list[str]]:
    return [r for r in read(RENDERERS["github"](markdown)).rows if r[0] not in ("change", "")]


def whole(markdown: str) -> bool:
    """Folds, fences and tables that are closed, to both renderers."""
    for render in RENDERERS.values():
        read(render(markdown))
    fences = [line for line in markdown.splitlines() if line.startswith("```")]
    return fences == ["```diff", "```"] * (len(fences) // 2) and markdown.endswith("\n")


MIX = st.lists(st.sampled_from("cccdbu"), max_size=120)


def mixed(kinds: list[str], long: int) -> Plan:
    """Creates, deletes, blocked and updates, in two catalogs, with names of some length."""
    name = "n" * long
    steps = []
    for i, kind in enumerate(kinds):
        made = {"c": create, "d": delete, "b": blocked}.get(kind, create)(i, f"{name}{i}")
        if kind == "u":
            made = step(i, c.UpdateTable(("n", f"{name}{i}"), {"k": "v" * long}, (), MARKS), risk="metadata")
        steps.append(replace(made, catalog="lake" if i % 3 else "archive"))
    return plan(steps)


@given(MIX, st.integers(1, 150), st.integers(2500, 20_000))
def test_any_plan_at_any_limit(kinds: list[str], long: int, limit: int) -> None:
    made = mixed(kinds, long)
    markdown = plan_markdown(made, limit=limit)
    assert length(markdown) <= limit
    assert whole(markdown)
    seen = rows(markdown)
    hidden, total, by_kind = cut(markdown).get("step", (0, len(kinds), {}))
    assert total == len(kinds)
    assert len(seen) == total - hidden
    assert sum(by_kind.values()) == hidden
    words = {"delete": "destructive ", "blocked": "blocked "}
    actions = Counter(words.get(r[0].split()[0], "") + action for r in seen for action in r[2].split(", "))
    kinds_of = {"d": "destructive deregister_table", "b": "blocked create_namespace", "u": "update_table"}
    assert actions + Counter(by_kind) == Counter(kinds_of.get(k, "create_namespace") for k in kinds)
    shown = {word: sum(1 for r in seen if r[0].startswith(word)) for word in ("delete", "blocked")}
    if len(seen) > shown["delete"] + shown["blocked"]:
        assert shown["blocked"] == kinds.count("b")
    if len(seen) > shown["delete"]:
        assert shown["delete"] == kinds.count("d")


def test_a_small_row_does_not_slip_in_where_a_delete_did_not_fit() -> None:
    small = replace(create(999, "x"), source=None)
    deletes = [delete(i, f"{'n' * 150}{i}") for i in range(100)]
    for limit in range(4000, 5000, 25):  # Somewhere in there what is left is enough for one row and not for the other.
        seen = rows(plan_markdown(plan([*deletes, small]), limit=limit))
        assert {r[0] for r in seen} == {"delete"}, limit


@given(st.lists(st.tuples(st.integers(0, 2), st.text("ab𝔸", max_size=30)), max_size=40), st.integers(0, 300))
def test_a_page_never_outgrows_its_limit(texts: list[tuple[int, str]], limit: int) -> None:
    page = Page(limit)
    top = page.section("<top>")
    sections = [page.section("<a>", "</a>", top), page.section("<b>", "</b>"), page.section("<c>", "</c>", top)]
    kept = [text for number, text in texts if page.put(sections[number], text)]
    text = page.text()
    assert length(text) + page.left == limit
    assert length(text) <= limit
    assert sorted(re.sub("<[^>]*>", "", text)) == sorted("".join(kept))
    assert all(text.count(f"<{name}>") == text.count(f"</{name}>") for name in "abc")


@pytest.mark.slow
def test_ten_thousand_steps() -> None:
    made = plan([*(create(i, f"t{i}") for i in range(9_990)), *(delete(i, f"old{i}") for i in range(9_990, 10_000))])
    markdown = plan_markdown(made)
    assert 55_000 < length(markdown) <= 60_000
    assert whole(markdown)
    seen = rows(markdown)
    assert [r[0] for r in seen[:11]] == ["delete"] * 10 + ["create"]
    hidden = 10_000 - len(seen)
    assert cut(markdown)["step"] == (hidden, 10_000, {"create_namespace": hidden})
    assert markdown.index("not shown") < markdown.index("#### Catalog")


def test_a_plan_that_fits_is_whole() -> None:
    assert cut(plan_markdown(plan([create(1, "a"), delete(2, "b")]))) == {}


def test_characters_beyond_the_first_plane_count_twice() -> None:
    """UTF-16 is the strictest of the ways to count characters that are in use."""
    made = plan([create(i, "𝔸" * 100 + str(i)) for i in range(1000)])
    markdown = plan_markdown(made)
    assert len(markdown.encode("utf-16-le")) // 2 <= 60_000
    assert whole(markdown)


def test_one_giant_table_leaves_room_for_the_details_of_others() -> None:
    fields = tuple(Field(f"column{i}", parse_type("int64")) for i in range(5000))
    giant = step(1, c.AddColumns(("n", "giant"), fields), risk="metadata")
    markdown = plan_markdown(plan([giant, create(2, "small")]))
    assert length(markdown) <= 60_000
    assert "@@ namespace n.small @@\n+ team" in markdown
    lines = sum(1 for line in markdown.splitlines() if line.startswith("+ column"))
    assert f"… {5000 - lines} more lines" in markdown


def test_refusing_findings_come_first_and_leave_room_for_deletes() -> None:
    key = ObjectKey("lake", ("n", "t"), "Table")
    findings = tuple(Finding(f"L{i}", "error", key, "the name does not fit the pattern") for i in range(3000))
    markdown = plan_markdown(plan([delete(1, "old"), create(2, "new")], findings=findings))
    assert length(markdown) <= 60_000
    seen = rows(markdown)
    refused = [r for r in seen if r[0].startswith("refused")]
    assert cut(markdown)["policy finding"] == (3000 - len(refused), 3000, {})
    assert [r[0] for r in seen if r not in refused] == ["delete", "create"]
    assert markdown.index("refused") < markdown.index("**delete**")


@pytest.mark.slow
@pytest.mark.parametrize("noun", ["orphaned object", "unowned object", "stale projection", "left-out object"])
def test_lists_are_cut_and_counted(noun: str) -> None:
    keys = tuple(ObjectKey("lake", ("n", f"table{i}"), "Table") for i in range(5000))
    summary = CatalogSummary("dir", True, 1, 2, {}, (), tuple(k.ident for k in keys) if "stale" in noun else ())
    given = {
        "orphaned object": {"orphans": keys},
        "unowned object": {"unowned": keys},
        "left-out object": {"left_out": keys},
        "stale projection": {},
    }[noun]
    markdown = plan_markdown(plan([create(1, "t")], catalogs={"lake": summary}, **given))
    assert length(markdown) <= 60_000
    assert whole(markdown)
    shown = sum(1 for line in markdown.splitlines() if line.startswith("- table"))
    assert cut(markdown)[noun] == (5000 - shown, 5000, {})
    assert shown > 1000


def test_errors_are_shown_before_warnings() -> None:
    found = [Diagnostic(Source("a.yaml", i + 1), "M1", "warning", "w " * 50) for i in range(2000)]
    found.append(Diagnostic(Source("z.yaml", 9), "M2", "error", "the worst"))
    markdown = diagnostics_markdown(found, 3)
    assert length(markdown) <= 60_000
    seen = rows(markdown)[1:] if rows(markdown)[0][0] == "" else rows(markdown)
    assert seen[0][:3] == ["error M2", "z.yaml:9", "the worst"]
    hidden, total, kinds = cut(markdown)["problem"]
    assert (total, kinds) == (2001, {"warning": hidden})
    assert len(seen) == total - hidden


def test_one_object_that_is_left_out() -> None:
    keys = tuple(ObjectKey("lake", (name,), "Table") for name in "ab")
    one, two = (plan_markdown(plan([], left_out=keys[:count]), "t") for count in (1, 2))
    assert "1 declared object was left out" in one
    assert "2 declared objects were left out" in two
