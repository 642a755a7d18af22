"""What the pages are made of, without a browser; and the commands that write them."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from cli.cli_runs import catalog, namespace, reconciler, table, write
from render.plans import GOLDEN, big, golden, hostile, plan
from render.plans import step as made

from reconciler.model.arrow import Field, parse_type
from reconciler.model.change import AddColumns
from reconciler.render.as_json import plan_json
from reconciler.render.page_entries import entries
from reconciler.render.plan_page import plan_page
from reconciler.render.step_details import details
from reconciler.render.step_diff import sections

DATA = re.compile(r'<script type="application/json" id="plan">(.*?)</script>', re.DOTALL)


def embedded(page: str) -> list[dict[str, object]]:
    found = DATA.search(page)
    assert found is not None
    entries_: list[dict[str, object]] = json.loads(found.group(1))["entries"]
    return entries_


@pytest.mark.parametrize("name", GOLDEN)
def test_the_page_tells_as_much_as_the_text(name: str) -> None:
    """A step with a line in the text has that line side by side, and no step has one that the text has not."""
    for step in golden(name).steps:
        lines = [line for section in sections(step) for line in section.lines]
        assert len(lines) == len([*details(step)]), step.id
        for line, told in zip(lines, details(step), strict=True):
            sign = "+" if line.before is None else "-" if line.after is None else "~"
            protection = line.name == "protected"
            assert told.startswith(("+ ", "- ") if protection else f"{sign} "), (line, told)
            assert protection or (line.name.split(".")[-1] in told) or told.startswith("~ "), (line, told)


def test_what_is_said_about_a_new_column_stands_beneath_it_and_is_bounded() -> None:
    noted = Field("email", parse_type("string"), True, "c" * 9_000, {"pii": "true", "k" * 9_000: "v"})
    (entry,) = entries(plan((made(1, AddColumns(("t",), (noted, Field("v", parse_type("int8"))))),)))
    ((title, rows),) = entry["diff"]
    assert (title, [row[0][:13] for row in rows]) == (
        "Columns",
        ["email", "email comment", "email pii", "email kkkkkkk", "v"],
    )
    assert rows[2] == ["email pii", None, "true"]
    assert all(len(text) < 2_100 for row in rows for text in row if text is not None)


def test_every_part_of_a_plan_is_an_entry() -> None:
    made = hostile()
    kinds = [entry["kind"] for entry in entries(made)]
    for kind, part in (("step", made.steps), ("finding", made.findings), ("orphaned", made.orphans),
                       ("unowned", made.unowned), ("left out", made.left_out), ("stale", made.catalogs),
                       ("problem", made.catalogs)):  # fmt: skip
        assert kinds.count(kind) == len(part) > 0


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name == "style"]


def test_no_value_leaves_its_place() -> None:
    page = plan_page(hostile())
    found = DATA.search(page)
    assert found is not None
    assert not set("<>&") & set(found.group(1))
    assert page.isascii()
    seen = Seen()
    seen.feed(page)
    assert seen.tags.count("script") == 2
    assert seen.tags.count("style") == 1
    assert "img" not in seen.tags
    assert [e["name"] for e in embedded(page)] == [e["name"] for e in entries(hostile())]


def test_same_plan_same_bytes() -> None:
    assert plan_page(big(50)) == plan_page(big(50))


def test_nothing_is_loaded_from_anywhere() -> None:
    page = plan_page(golden("create-everything"))
    assert re.findall(r"(?:src|href|action)=\"(?!#)[^\"]*\"", page) == []
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)[^\s\"']+", page) == []
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy.group(1).startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy.group(1)


def test_plan_drift_and_show_write_pages(tmp_path: Path) -> None:
    write(tmp_path, catalog(), namespace("vision"), table("vision", "images"))
    run = reconciler(tmp_path, "plan", "m.yaml", "-o", "plan.json", "--format", "html", "--detailed-exitcode")
    assert (run.code, run.err) == (2, "")
    assert run.out.startswith("<!doctype html>")
    assert "<h1>Plan</h1>" in run.out
    assert [e["action"] for e in embedded(run.out)] == ["create_namespace", "declare_table", "create_dataset"]
    assert reconciler(tmp_path, "show", "plan.json", "--format", "html").out == run.out
    drift = reconciler(tmp_path, "drift", "m.yaml", "--format", "html")
    assert drift.code == 2
    assert "<h1>Drift</h1>" in drift.out


def test_a_report_is_a_page_too(tmp_path: Path) -> None:
    write(tmp_path, catalog(), namespace("vision"), table("vision", "images"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes", "--report", "report.json").code == 0
    run = reconciler(tmp_path, "show", "report.json", "--format", "html")
    assert (run.code, run.err) == (0, "")
    assert "<p>Applied" in run.out
    assert {e["status"] for e in embedded(run.out)} == {"done"}
    report = json.loads((tmp_path / "report.json").read_text())
    report["steps"][1] |= {"status": "failed", "error": {"code": 18, "name": "Internal", "message": "<b>"}}
    (tmp_path / "report.json").write_text(json.dumps(report))
    first = embedded(reconciler(tmp_path, "show", "report.json", "--format", "html").out)[0]
    assert (first["status"], str(first["reason"])[:19]) == ("failed", "Internal (18): <b>;")
    del report["steps"][0]["object"]
    (tmp_path / "report.json").write_text(json.dumps(report))
    run = reconciler(tmp_path, "show", "report.json", "--format", "html")
    assert (run.code, run.out) == (1, "")
    assert "malformed" in run.err


def test_no_option_of_a_catalog_is_in_the_page(tmp_path: Path) -> None:
    """Of a catalog the page has its name, type and size; the spec stays in the JSON that `apply --plan` reads."""
    write(tmp_path, catalog(path="./canary-2", storage__account_key="canary-1"), namespace("vision"))
    (tmp_path / "canary-2" / "__reconciler").mkdir(parents=True)  # The heading names a root that does not exist yet.
    run = reconciler(tmp_path, "plan", "m.yaml", "-o", "plan.json", "--format", "html")
    assert run.code == 0, run.err
    assert "canary-2" in (tmp_path / "plan.json").read_text()
    assert "canary" not in run.out


def test_a_page_can_be_written_where_stdout_is_not_unicode(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(plan_json(hostile()))
    assert reconciler(tmp_path, "show", "plan.json", "--format", "html").out.isascii()
