"""A reviewer sees where two long values differ, and how much is not shown."""

from __future__ import annotations

import re

import pytest
from plans import OURS, plan, step

from reconciler.model.change import UpdateTable
from reconciler.render.junit import plan_junit
from reconciler.render.markdown import plan_markdown
from reconciler.render.safe_text import LONGEST, key_name, quoted, quoted_change
from reconciler.render.text import plan_text

LONG = "team-a," * 1000


@pytest.mark.parametrize("new", [LONG + "everyone", LONG[:3000] + "everyone" + LONG[3000:], "everyone" + LONG])
def test_what_is_new_in_a_long_value_is_seen(new: str) -> None:
    change = UpdateTable(("t",), {"readers": new}, (), OURS)
    made = plan((step(1, change, before={"properties": {"readers": LONG}}),))
    for text in (plan_text(made), plan_markdown(made), plan_junit(made)):
        assert "everyone" in text


def test_nothing_is_left_out_without_a_count() -> None:
    """What is shown and what is counted make up the whole value."""
    for old, new in ((LONG, "x" * 5000), (LONG, LONG[:10] + "y" * 900 + LONG[10:]), ("a", LONG), (LONG, LONG + "b")):
        for value, shown in zip((old, new), quoted_change(old, new).split(" -> "), strict=True):
            counted = [int(n) for n in re.findall(r"…\((\d+) characters? (?:alike|not shown)\)…", shown)]
            left = re.sub(r"…\(\d+ characters? (?:alike|not shown)\)…", "", shown)
            assert len(left) + sum(counted) == len(value) + 2
            assert len(left) <= LONGEST + 50
    assert quoted("z" * 500).count("z") + 302 == 500
    assert "…(302 characters not shown)…" in quoted("z" * 500)
    assert quoted_change("a", "b") == '"a" -> "b"'


@pytest.mark.parametrize("key", ['team = "ok"   ', 'a" -> "b', " a", "a=b", ""])
def test_no_key_looks_like_a_value(key: str) -> None:
    assert key_name(key).startswith('"')
    assert key_name(key).endswith('"')


def test_usual_keys_are_bare() -> None:
    for key in ("team", "a.b-c_d/e", "with a space", "größe"):
        assert key_name(key) == key
