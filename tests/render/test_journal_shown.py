"""Journals and reports, read back by people: what ran when, how it ended, what never ended."""

from __future__ import annotations

import html
import json
import re

import pytest
from hypothesis import given
from read_html import RENDERERS, read
from runs import end, events, failed, finish, header, identity, lease, report, result, start
from test_markdown_bounds import cut, whole
from test_markdown_safety import NASTY, OURS, UNSAFE

from reconciler.model.run_record import JournalRecord, NotAJournal, journal_from
from reconciler.render.markdown_run import journal_markdown, report_markdown
from reconciler.render.ran import run_of_report, runs_of_journal
from reconciler.render.ran_text import journal_text
from reconciler.render.run_page import run_page
from reconciler.render.safe_markdown import length

ERROR = {"code": 13, "name": "ConcurrentModification", "message": "somebody else was faster"}
KILLED = events(header(), start("s1"), end("s1"), start("s2", name="u"), end("s3", "skipped"))
WHOLE = events(
    header("2026-01-03T00:00:00.000+00:00", "sha256:cd"), start("s2", name="u"),
    end("s2", "failed", error=ERROR, version_before=4, tag="reconciler-cd-s2"), finish("failed"),
)  # fmt: skip


def journal(text: str) -> JournalRecord:
    return journal_from(text.splitlines())


def shown(text: str) -> str:
    read_back = journal(text)
    return journal_text(runs_of_journal(read_back), read_back.unreadable)


def test_text_of_a_run_that_was_killed_and_of_the_next() -> None:
    assert shown(KILLED + '{"event":"sta\n' + WHOLE) == (
        "2026-01-02T03:04:05.000+00:00  run of plan sha256:ab\n"
        "  2026-01-02T03:04:06.000+00:00  done     s1  declare_table  lake:n.t  2.50 s\n"
        "  2026-01-02T03:04:06.000+00:00  NO END   s2  declare_table  lake:n.u\n"
        "           it began, and the journal has no end of it: what the catalog holds is not known; apply again\n"
        "  skipped  s3\n"
        "No end: 1 done, 1 skipped, 1 never ended; the journal ends without an outcome: the run was killed\n"
        "\n"
        "2026-01-03T00:00:00.000+00:00  run of plan sha256:cd\n"
        "  2026-01-02T03:04:06.000+00:00  FAILED   s2  declare_table  lake:n.u  2.50 s\n"
        "           ConcurrentModification (13): somebody else was faster\n"
        "           version 4 is tagged reconciler-cd-s2\n"
        "2026-01-02T03:04:09.000+00:00  Failed: 1 failed\n"
        "1 line could not be read\n"
    )


def test_json_has_all_of_it() -> None:
    first, second = journal(KILLED + WHOLE).to_json()["runs"]
    assert (first["outcome"], first["finished"], first["pid"]) == (None, None, 7)
    assert first["summary"] == {"done": 1, "skipped": 1, "failed": 0, "unknown": 0, "not_run": 0, "never_ended": 1}
    assert [s["status"] for s in first["steps"]] == ["done", None, "skipped"]
    assert second["steps"][0]["error"] == ERROR
    assert second["outcome"] == "failed"


def test_events_of_a_later_version_are_passed_over() -> None:
    later = events(header() | {"user": "ann"}, {"event": "lease", "holder": "x"}, start("s1"), end("s1"), finish())
    read_back = journal(later)
    assert read_back.unreadable == 0
    assert read_back.to_json()["runs"][0]["user"] == "ann"


HELD = "held by ann@far (pid 7) since 1, until 2 unless it is renewed"
LEASES = events(
    header(), lease("waiting", by=HELD), lease("taken", token=7, waited_seconds=61.25, over=HELD), start("s1"),
    end("s1"), lease("lost", "2026-01-02T03:04:09.000+00:00", token=7, why="it is " + HELD), finish("partial"),
)  # fmt: skip
REFUSED = events(header(), lease("refused", by=HELD, waited_seconds=75.0), finish("refused"))
UNAVAILABLE = events(header(), lease("unavailable", why="PermissionDenied: no"), finish("failed"))


def test_text_of_the_leases() -> None:
    assert shown(LEASES) == (
        "2026-01-02T03:04:05.000+00:00  run of plan sha256:ab\n"
        f"  2026-01-02T03:04:05.500+00:00  lease    waiting for the lease of catalog lake, {HELD}\n"
        "  2026-01-02T03:04:05.500+00:00  lease    the lease of catalog lake was taken after 61.2 s, with the token 7; "
        f"it was {HELD}, and was not renewed\n"
        "  2026-01-02T03:04:06.000+00:00  done     s1  declare_table  lake:n.t  2.50 s\n"
        f"  2026-01-02T03:04:09.000+00:00  LOST     the lease of catalog lake was lost: it is {HELD}\n"
        "2026-01-02T03:04:09.000+00:00  Partly applied: 1 done\n"
    )
    assert f"REFUSED  the lease of catalog lake was not given after 75.0 s: it is {HELD}\n" in shown(REFUSED)
    assert "the lease of catalog lake cannot be taken: PermissionDenied: no\n" in shown(UNAVAILABLE)


@pytest.mark.parametrize("story", [LEASES, REFUSED, UNAVAILABLE])
def test_every_format_has_the_leases(story: str) -> None:
    read_back = journal(story)
    runs = runs_of_journal(read_back)
    told = [event.sentence for event in read_back.runs[0].leases]
    assert len(told) == story.count('"lease"')
    markdown = journal_markdown(runs, 0)
    assert whole(markdown)
    for made in (RENDERERS["github"](markdown), run_page("Journal", runs)):
        page = html.unescape(re.sub("<[^>]*>", "", made))
        assert all(sentence in page for sentence in told), page
    (run,) = read_back.to_json()["runs"]
    assert [e["state"] for e in run["leases"]] == [e.state for e in read_back.runs[0].leases]


def test_many_lines_about_leases_leave_room_for_steps_and_are_counted() -> None:
    read_back = journal(events(header(), *[lease("waiting", by=HELD)] * 5000, start("s1"), end("s1"), finish()))
    markdown = journal_markdown(runs_of_journal(read_back), 0)
    assert cut(markdown) == {"lease line": (4980, 5000, {"waiting": 4980})}
    assert "declare_table" in markdown
    assert "and 4980 lines more about leases" in run_page("Journal", runs_of_journal(read_back))


@pytest.mark.parametrize(
    "line",
    ["", "{}", "[1]", "no", '{"event": "other"}', '{"event": "end", "step": "s1"}', '{"event":"start","step":"s1"}'],
)
def test_what_is_no_journal(line: str) -> None:
    with pytest.raises(NotAJournal):
        journal(line)


@pytest.mark.parametrize(
    "event",
    [
        end("s1", "odd"),
        end("s1", "failed", error={"code": 1}),
        end("s1", "failed", error="text"),
        start("s1") | {"object": {"kind": "View", "id": ["x"]}},
        start("s1") | {"object": None},
        lease("taken", waited_seconds=float("nan")),
        lease("taken", waited_seconds="long"),
        lease("taken", token=[]),
        {"event": "lease", "state": "taken"},
    ],
)
def test_a_line_that_is_odd_is_counted(event: dict[str, object]) -> None:
    assert journal(events(header(), event, finish())).unreadable == 1


def test_markdown_has_the_latest_run_first_and_folds_what_went_well() -> None:
    read_back = journal(KILLED + WHOLE)
    markdown = journal_markdown(runs_of_journal(read_back), 0)
    assert markdown.index("sha256:cd") < markdown.index("sha256:ab")
    assert whole(markdown)
    page = read(RENDERERS["github"](markdown))
    rows = [r[:3] for r in page.rows if r[0] != "result"]
    assert rows == [
        ["failed", "s2 declare_table", "table n.u in lake"],
        ["never ended", "s2 declare_table", "table n.u in lake"],
        ["done", "s1 declare_table", "table n.t in lake"],
        ["skipped", "s3", ""],
    ]


def test_markdown_of_a_report() -> None:
    steps = [result(i) for i in range(2000)] + [failed(2000), failed(2001, "unknown"), result(2002, "not_run")]
    markdown = report_markdown(run_of_report(report(*steps, message="1 failed; s2000 broke")))
    assert length(markdown) <= 60_000
    assert whole(markdown)
    assert markdown.startswith("### Partly applied: 2000 done, 1 failed, 1 unknown, 1 not run\n")
    rows = [r for r in read(RENDERERS["github"](markdown)).rows if r[0] != "result"]
    assert [r[0] for r in rows[:4]] == ["failed", "unknown", "not run", "done"]
    hidden, total, kinds = cut(markdown)["step"]
    assert (total, kinds) == (2003, {"done": hidden})
    assert len(rows) == total - hidden


@given(NASTY)
def test_markdown_of_hostile_names(text: str) -> None:
    error = ERROR | {"message": text}
    told = lease("waiting", text, catalog=text, by=text), lease("lost", text, why=text)
    who = identity(by=text, commit=text, url=text, tool_version=text)
    begun = header(text, text) | {"run": who}
    story = events(begun, *told, start("s1", text, text), end("s1", "failed", text, error=error), finish(text))
    record = journal_from(story.splitlines())
    pages = [
        journal_markdown(runs_of_journal(record), 1),
        report_markdown(run_of_report(report(failed(1, message=text, name=text), outcome=text, message=text, run=who))),
    ]
    for markdown in pages:
        for render in RENDERERS.values():
            page = read(render(markdown))
            assert page.tags <= OURS
            assert not UNSAFE.search(page.text), page.text
    assert json.dumps(record.to_json())
    printable = journal_text(runs_of_journal(record), 0).replace("\n", "")
    assert printable.isprintable()
