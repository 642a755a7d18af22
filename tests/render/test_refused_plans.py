"""A plan that will be refused may come with exit code 0: every format says what an apply of it will do."""

from __future__ import annotations

import pytest
from render.plans import golden

from reconciler.model.plan import Plan
from reconciler.render.junit import plan_junit
from reconciler.render.markdown import plan_markdown
from reconciler.render.plan_page import plan_page
from reconciler.render.sarif import plan_sarif
from reconciler.render.text import NOT_APPLIED, plan_text

FORMATS = {
    "text": plan_text,
    "markdown": plan_markdown,
    "html": plan_page,
    "junit": plan_junit,
    "sarif": lambda made: plan_sarif(made, {}),
}


def told(made: Plan, how: str) -> bool:
    return NOT_APPLIED in FORMATS[how](made)  # type: ignore[operator]


@pytest.mark.parametrize("how", FORMATS)
@pytest.mark.parametrize("name", ["threshold-count", "threshold-percent", "policy-destructive"])
def test_a_refused_plan_says_that_nothing_will_be_applied(name: str, how: str) -> None:
    assert told(golden(name), how)


@pytest.mark.parametrize("how", FORMATS)
def test_a_plan_of_which_something_is_applied_does_not(how: str) -> None:
    """Blocked steps alone: the others are done."""
    assert not told(golden("threshold-raised"), how)
    assert not told(golden("drop-column-blocked"), how)


def test_in_a_comment_and_on_a_page_it_stands_at_the_top() -> None:
    head, _, _ = plan_markdown(golden("threshold-count")).partition("####")
    assert NOT_APPLIED in head
    header, _, _ = plan_page(golden("threshold-count")).partition("</header>")
    assert f'<p class="alert">{NOT_APPLIED}</p>' in header
