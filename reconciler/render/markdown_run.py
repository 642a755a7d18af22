"""Reports and journals as markdown: what went wrong first, bounded, the rest counted."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core.text import plural
from reconciler.model.lease_event import WORRYING
from reconciler.render.bounded_page import Section
from reconciler.render.markdown_parts import LIMIT, POLICY_HEADER, WHY, Draft, Tally, finding_row, fold, named
from reconciler.render.ran import WORDS, Ran, Run
from reconciler.render.safe_markdown import code, header, prose, row
from reconciler.render.safe_text import LONGEST_MESSAGE

_ADVICE = "The file that this was made of has all of it."
_MOST_RUNS = 50
_FINE = ("done", "skipped")


def report_markdown(run: Run, limit: int = LIMIT) -> str:
    head = f"### {prose(run.title)}{f': {run.counted}' if run.counted else ''}\n\n"
    if run.message and run.message not in (run.counted, "no changes"):
        head += f"{prose(run.message.removeprefix(run.counted + '; '), LONGEST_MESSAGE)}\n\n"
    head += _who(run, LONGEST_MESSAGE)
    return _filled([run], head, [""], 0, limit)


def journal_markdown(runs: Sequence[Run], unreadable: int, limit: int = LIMIT) -> str:
    """The latest run first: that is the one somebody asks about."""
    latest = list(reversed(runs))
    head = f"### Journal of {plural(len(runs), 'run')}\n\n"
    if unreadable:
        head += f"{plural(unreadable, 'line')} could not be read\n\n"
    return _filled(latest[:_MOST_RUNS], head, [_title(r) for r in latest], len(runs), limit)


def _title(run: Run) -> str:
    end = f", ended {code(run.finished)}" if run.finished else ""
    title = f"#### {code(run.begun or 'unknown time')}: {prose(run.title)}{end}\n\n"
    told = ". ".join(part for part in (run.counted, prose(run.message, WHY)) if part)
    return f"{title}Plan {code(run.plan_id)}{f': {told}' if told else ''}\n\n{_who(run, WHY)}"


def _who(run: Run, longest: int) -> str:
    """Each part by itself, so that no code span holds two of them."""
    return f"{', '.join(prose(part, longest) for part in run.about)}\n\n" if run.about else ""


def _filled(runs: Sequence[Run], head: str, titles: Sequence[str], total: int, limit: int) -> str:
    tally = Tally()
    tally.expect("step", (WORDS[s.status] for run in runs for s in run.steps))
    tally.expect("run", ("" for _ in range(total)))
    tally.expect("policy finding", ("" for run in runs for _ in run.findings))
    tally.expect("lease line", (event.state for run in runs for event in run.leases))
    draft = Draft(head, tally, limit, _ADVICE)
    timed = any(step.started for run in runs for step in run.steps)
    columns = header("result", "step", "object", "what is to be known", "seconds", *(("began",) if timed else ()))
    sections: list[tuple[Run, Section, Section]] = []
    for run, title in zip(runs, titles, strict=False):
        top = draft.page.section()
        if title and not draft.put(top, title, "run"):
            break
        _put_leases(draft, run)
        _put_findings(draft, run, limit // 3)
        table = draft.page.section(columns, "\n")
        fine = fold(draft.page, f"{plural(sum(1 for s in run.steps if s.status in _FINE), 'step')} without a problem")
        fine.opening += columns
        sections.append((run, table, fine))
    for wanted in (False, True):  # What went wrong in any run, before what went well in the latest.
        for run, table, fine in sections:
            for step in run.by_urgency:
                if (step.status in _FINE) is wanted and not draft.put(
                    fine if wanted else table, _line(step, timed), "step", (WORDS[step.status],)
                ):
                    return draft.text()
    return draft.text()


def _put_findings(draft: Draft, run: Run, share: int) -> None:
    """What refused the run first; a part of the page at most, because the steps are to be seen as well."""
    told, least = draft.page.section(POLICY_HEADER, "\n"), draft.page.left - share
    for f in sorted(run.findings, key=lambda f: (not f.refuses, f.waiver is not None)):
        if draft.page.left < least or not draft.put(told, finding_row(f), "policy finding"):
            return


def _put_leases(draft: Draft, run: Run) -> None:
    told = draft.page.section("", "\n")
    for event in run.main_leases:
        state = f"**{event.state}**" if event.state in WORRYING else event.state
        when = f" {code(event.time)}" if event.time else ""
        draft.put(told, f"- {state}{when}: {prose(event.sentence, WHY)}\n", "lease line", (event.state,))


def _line(step: Ran, timed: bool) -> str:
    word = WORDS[step.status]
    status = word if step.status in _FINE else f"**{word}**"
    key = "" if step.key is None else f"{named(step.key)} in {code(step.key.catalog)}"
    told = "; ".join(part for part in (step.problem, step.note) if part)
    what = " ".join(code(part) for part in (step.id, step.action) if part)
    seconds = f"{step.seconds:.2f}" if step.seconds else ""
    began = (code(step.started) if step.started else "",) if timed else ()
    return row(status, what, key, prose(told, WHY), seconds, *began)
