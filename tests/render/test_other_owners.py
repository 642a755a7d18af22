"""What is declared, as declared, and somebody else's: each format that lists it says whose it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli.cli_runs import Run, catalog, namespace, reconciler, table, write
from read_html import RENDERERS, read
from render.test_page_parts import embedded
from rendered_plans import plan

from reconciler.model.ident import ObjectKey
from reconciler.render.junit import plan_junit
from reconciler.render.markdown import plan_markdown
from reconciler.render.page_entries import UNOWNED
from reconciler.render.plan_page import plan_page
from reconciler.render.sarif import plan_sarif
from reconciler.render.text import plan_text

NOBODYS, ANNS, BOBS, ALSO_BOBS = (ObjectKey("lake", ("n", name), "Table") for name in ("free", "a", "b1", "b2"))
MADE = plan(unowned=(NOBODYS, BOBS, ANNS, ALSO_BOBS), owners={ANNS: "ann", BOBS: "bob", ALSO_BOBS: "bob"})


def test_text_lists_them_by_owner() -> None:
    assert plan_text(MADE) == (
        "Catalog lake (dir: 1 namespace, 2 tables)\n"
        "  Unowned: as declared, but without our mark (`apply --adopt` takes what nobody owns):\n"
        "    table n.free\n"
        "  Owned by ann: as declared, and not ours (`--take-over ann` takes it):\n"
        "    table n.a\n"
        "  Owned by bob: as declared, and not ours (`--take-over bob` takes it):\n"
        "    table n.b1\n"
        "    table n.b2\n"
        "\n"
        "No changes. There is nothing to apply, but 4 objects are unowned.\n"
    )
    assert "Unowned" not in plan_text(plan(unowned=(ANNS,), owners={ANNS: "ann"}))


@pytest.mark.parametrize("how", RENDERERS)
def test_markdown_has_the_owner_beside_the_name(how: str) -> None:
    shown = RENDERERS[how](plan_markdown(MADE))
    items = [re.sub("<[^>]*>", "", item) for item in re.findall("<li>(.*?)</li>", shown, re.DOTALL)]
    assert items == ["table n.free", "table n.b1, owned by bob", "table n.a, owned by ann", "table n.b2, owned by bob"]
    assert "bob" in read(shown).spans, "a name of others stands in code"


def test_the_page_says_it_in_the_entry_and_in_the_list_without_scripts() -> None:
    page = plan_page(MADE)
    told = {e["name"]: e["reason"] for e in embedded(page)}
    assert told.pop("n.free") == UNOWNED
    assert told == {
        name: f"as declared, and owned by {owner}: --take-over {owner} takes it"
        for name, owner in (("n.a", "ann"), ("n.b1", "bob"), ("n.b2", "bob"))
    }
    plain = page.partition('<ol id="plain-list">')[2].partition("</ol>")[0]
    assert plain.count("owned by bob: --take-over bob takes it") == 2


def test_an_owner_goes_into_a_command_in_quotes() -> None:
    """The name is what somebody else wrote, and people copy the command."""
    made = plan(unowned=(ANNS,), owners={ANNS: "ann; rm -rf ~"})
    assert "`--take-over 'ann; rm -rf ~'` takes it" in plan_text(made)
    assert embedded(plan_page(made))[0]["reason"].endswith("--take-over 'ann; rm -rf ~' takes it")


def test_sarif_and_junit_hold_nothing_against_it() -> None:
    """Nothing is to be done, so it is neither a result nor a case."""
    alone = plan()
    assert plan_sarif(MADE, {}) == plan_sarif(alone, {})
    assert plan_junit(MADE) == plan_junit(alone)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`n` and `n.t` are ann's; who asks is bob, with the same manifests."""
    write(tmp_path, catalog("ann"), namespace("n"), table("n", "t"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog("bob", storage__token="${env:TOKEN}"), namespace("n"), table("n", "t"))
    return tmp_path


def planned(folder: Path, *words: str, token: str = "nothing-of-it") -> Run:
    run = reconciler(folder, "plan", "m.yaml", *words, env={"TOKEN": token})
    assert run.code == 0, run.err
    return run


def test_the_owner_is_the_one_on_the_live_object_and_stays_in_a_saved_plan(folder: Path) -> None:
    run = planned(folder, "-o", "p.json")
    assert (
        "  Owned by ann: as declared, and not ours (`--take-over ann` takes it):\n    namespace n\n    tab" in run.out
    )
    saved = json.loads((folder / "p.json").read_text())["unowned"]
    assert [(k["object"]["id"], k["owner"]) for k in saved] == [(["n"], "ann"), (["n", "t"], "ann")]
    for how in ("text", "markdown", "html"):
        shown = reconciler(folder, "show", "p.json", "--format", how, env={"TOKEN": "x"}).out
        assert shown == planned(folder, "--format", how).out
        assert re.search("[Oo]wned by `?ann", shown)
    taken = reconciler(folder, "apply", "m.yaml", "--yes", "--take-over", "ann", env={"TOKEN": "x"})
    assert taken.code == 0, taken.err
    assert "ann" not in planned(folder).out


def test_an_owner_that_is_a_secret_is_masked_and_the_exact_plan_says_so(tmp_path: Path) -> None:
    """Whoever wrote the mark may have taken any text for it."""
    token = "canary-4711-token"
    write(tmp_path, catalog(token), namespace("n"), table("n", "t"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog("bob", storage__token="${env:TOKEN}"), namespace("n"), table("n", "t"))
    for how in ("text", "markdown", "html", "sarif", "junit"):
        run = planned(tmp_path, "--format", how, token=token)
        assert "canary" not in run.out + run.err
        assert re.search(r"[Oo]wned by `?\*\*\*", run.out) or how in ("sarif", "junit")
        assert "canary" in planned(tmp_path, "--format", how).out or how in ("sarif", "junit")
    exact = planned(tmp_path, "-o", "p.json", token=token)
    assert "namespace lake:n (its owner); table lake:n.t (its owner)" in exact.err
    assert "canary" not in exact.out + exact.err
