"""What others write into names, values and messages stays text, whoever renders the markdown."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from read_html import RENDERERS, Page, read
from rendered_plans import hostile

from reconciler.model.diagnostic import Diagnostic, Source
from reconciler.model.ident import dotted
from reconciler.render.markdown import plan_markdown
from reconciler.render.markdown_parts import diagnostics_markdown
from reconciler.render.safe_markdown import code, prose, row
from reconciler.render.safe_text import LONGEST, bounded, safe

OURS = {
    "h3", "h4", "p", "strong", "code", "pre", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "br",
    "ul", "li",
}  # fmt: skip
ATTACKS = {
    "mention": "@octocat",
    "team": "please ask @org/team now",
    "issue": "#1234",
    "issue elsewhere": "owner/repo#12",
    "issue, old style": "GH-12",
    "commit": "deadbeefcafe1234",
    "commit of letters": "defaced",
    "commit elsewhere": "owner@deadbeefcafe1234",
    "merge request": "!12",
    "label": '~bug ~"a b"',
    "milestone": '%3 %"a b"',
    "snippet": "$12",
    "epic": "&12",
    "quick action": "x\n/approve\n/merge",
    "emoji": ":tada:",
    "url": "see https://evil.example/x now",
    "bare domain": "www.evil.example",
    "half a domain": "www. a WWW. b",
    "mail": "mallory@evil.example",
    "mailto": "mailto:mallory@evil.example",
    "xmpp": "xmpp:mallory@evil.example",
    "ftp": "ftp://evil.example",
    "link": "[click](https://evil.example)",
    "reference": "[click][x]\n\n[x]: https://evil.example",
    "image": "![x](https://evil.example/x.png)",
    "html": "<img src=x onerror=alert(1)>",
    "script": "<script>alert(1)</script>",
    "comment": "<!-- hidden",
    "end of fold": "</details>",
    "end of summary": "</summary></details>",
    "pipe": "a | b | c",
    "escaped pipe": r"a \| b \\| c \\\| d",
    "backslash": "a\\",
    "backtick": "`",
    "backticks": "a ` b `` c ``` d ```` e",
    "spans": "`a``b` `c`",
    "fence": "\n```\n# title\n",
    "tilde fence": "\n~~~\n",
    "many backticks": "`" * 90,
    "heading": "\n# title",
    "rule": "\n---\n",
    "table": "a\n|---|\n|x|",
    "list": "- [ ] x",
    "number": "1. x",
    "quote": "> x",
    "emphasis": "*a* _b_ ~~c~~ **d**",
    "math": "$x$ $`x`$ $$y$$",
    "footnote": "[^1]",
    "alert": "> [!WARNING]",
    "entity": "&lt;b&gt; &#64;octocat &commat;octocat",
    "bidi": "\u202egnp.exe\u2066",
    "zero width": "@\u200boctocat a\u00adb\ufeffc",
    "terminal": "\x1b[31mred",
    "nul": "a\x00b",
    "line ends": "a\r\nb\u2028c\u2029d\x0be\x85f",
    "surrogate": "a\ud800b",
    "spaces": "  a  ",
    "only spaces": "   ",
    "nothing": "",
}  # fmt: skip
NASTY = st.lists(
    st.sampled_from([*ATTACKS.values(), *"`|\\@#!~%:/<>[]()*_&$^-+= \n\r\t\u202e\ufffe", "a", "7", "é", "𝔸", "www."]),
    max_size=12,
).map("".join)
UNSAFE = re.compile(r"[@#<>\[\]!~$\\|`/^_*]|&\w|https?:|www\.\w|:\w+:|GH-|\b[0-9a-fA-F]{7,}\b|[^\x00-\x7f…]")
"""Outside of code there is nothing that anybody makes more of than text."""


def everywhere(test):  # type: ignore[no-untyped-def]
    for text in ATTACKS.values():
        test = example(text)(test)
    return pytest.mark.parametrize("how", RENDERERS)(test)


def shown(text: str) -> str:
    return safe(bounded(text, LONGEST)) or '""'


def squeezed(text: str) -> str:
    """Code spans keep spaces, but a line of markdown loses those at its ends."""
    return text.strip(" ")


@everywhere
@given(text=NASTY)
def test_a_code_span_shows_the_text_and_nothing_else(how: str, text: str) -> None:
    page = read(RENDERERS[how](f"x {code(text)} y"))
    assert page.tags == {"p", "code"}
    assert page.text.strip() == "x  y"
    assert [squeezed(s) for s in page.spans] == [squeezed(shown(text))]


@everywhere
@given(text=NASTY)
def test_a_cell_stays_one_cell(how: str, text: str) -> None:
    markdown = f"{row('a', 'b', 'c')}|---|---|---|\n{row('1', code(text), '3')}{row('4', prose(text), '6')}"
    page = read(RENDERERS[how](markdown))
    assert page.tags <= OURS
    _, first, second = page.rows
    assert [first[0], squeezed(first[1]), first[2]] == ["1", squeezed(shown(text)), "3"]
    assert [second[0], len(second), second[2]] == ["4", 3, "6"]


@everywhere
@given(text=NASTY)
def test_prose_is_words_and_code(how: str, text: str) -> None:
    page = read(RENDERERS[how](f"- {prose(text)}"))
    assert page.tags <= {"ul", "li", "code"}
    assert not UNSAFE.search(page.text), page.text
    told = "".join(text_of(page).split())
    assert told == "".join(shown_prose(text).split())


def text_of(page: Page) -> str:
    """In reading order would need the tree; the letters, whatever their order, are enough to see that none is lost."""
    return "".join(sorted(page.text + "".join(page.spans)))


def shown_prose(text: str) -> str:
    """Backticks that come in pairs have become spans."""
    return "".join(sorted(re.sub("`([^`]+)`", r"\1", safe(bounded(text, LONGEST)))))


@pytest.mark.slow
@everywhere
@given(text=NASTY)
def test_a_plan_full_of_it(how: str, text: str) -> None:
    plan = hostile(text)
    page = read(RENDERERS[how](plan_markdown(plan)))
    assert page.tags <= OURS
    assert page.attributes <= {"class", "open"}
    assert not UNSAFE.search(page.text), page.text
    rows = [r for r in page.rows if r[0] == "create"]
    assert rows == [["create", "namespace n.last", "create_namespace", "", "manifests/lake.yaml:5"]]
    (held,) = [r for r in page.rows if r[0].startswith("blocked")]
    assert len(held) == 5
    assert squeezed(held[1]) == squeezed(f"table {shown(dotted((text, text)))}")
    (refused,) = [r for r in page.rows if r[0].startswith("refused")]
    assert len(refused) == 4


@everywhere
@given(text=NASTY)
def test_diagnostics_full_of_it(how: str, text: str) -> None:
    found = [Diagnostic(Source(text, 3), text, "error", text, text), Diagnostic(Source("z", 3), "M1", "warning", "end")]
    page = read(RENDERERS[how](diagnostics_markdown(found, 2, text)))
    assert page.tags <= OURS
    assert not UNSAFE.search(page.text), page.text
    assert page.rows[-1] == ["warning M1", "z:3", "end", ""]
    assert len(page.rows) == 3


@pytest.mark.parametrize("name", ["mention", "team", "mail", "entity", "zero width"])
def test_a_mention_stands_in_code_only(name: str) -> None:
    """No forge notifies anybody who is mentioned in code."""
    page = read(RENDERERS["github"](plan_markdown(hostile(ATTACKS[name]))))
    assert "octocat" not in page.text
    assert "@" not in page.text
    assert any("octocat" in span or "@" in span for span in page.spans)


def test_a_quick_action_begins_no_line() -> None:
    """GitLab runs `/approve` at the start of a line, and reads the source for it."""
    lines = plan_markdown(hostile("x\n/approve\n/merge")).splitlines()
    assert not [line for line in lines if line.lstrip().startswith("/")]


def test_what_people_write_reads_as_they_wrote_it() -> None:
    text = (
        "12 objects would be deleted; thresholds.deletes allows 10 (vision.raw): add `allow: [x]`, or pass --allow x_y."
    )
    assert prose(text) == (
        "12 objects would be deleted; `thresholds.deletes` allows 10 `(vision.raw)`: add `allow: [x]`, "
        "or pass `--allow x_y`."
    )


def test_yaml_in_a_sentence_is_one_span_that_can_be_copied() -> None:
    """What is opened and never closed takes nothing with it; what is in the brackets stays inert."""
    yaml = 'spec.waivers: [{code: P006, reason: …, until: "…"}]'
    assert prose(f"if it is meant: {yaml} in m.yaml") == f"if it is meant: `{yaml}` in `m.yaml`"
    assert prose("does not match [a-z and more words") == "does not match `[a-z` and more words"
    assert prose("id [a, b], then [c d] here") == "id `[a, b]`, then `[c d]` here"
    assert prose("[see www.example.org and @ada]") == "`[see www.example.org and @ada]`"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("did you mean Table?", "did you mean `Table`?"),
        (
            "nothing is called x_y; did you mean a_b? (see b_c)",
            "nothing is called `x_y`; did you mean `a_b`? (see `b_c)`",
        ),
        ("a pattern such as t? fits", "a pattern such as `t?` fits"),
    ],
)
def test_the_mark_of_a_question_is_no_part_of_the_name(text: str, shown: str) -> None:
    assert prose(text) == shown


@pytest.mark.parametrize("char", ["\u200b", "\ufe0f", "\u3164", "\u034f", "\u2800", "\U00016fe4", "\U000e0100"])
def test_what_shows_nothing_is_shown_as_an_escape(char: str) -> None:
    """Two names that differ in it would look equal."""
    shown = char.encode("unicode_escape").decode()
    assert safe(f"b{char}") == f"b{shown}"
    assert char not in prose(f"b{char}") + code(f"b{char}")
