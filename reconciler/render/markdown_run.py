"""Reports and journals as markdown: what went wrong first, bounded, the rest counted."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core.text import plural
from reconciler.model.lease_event import WORRYING
from reconciler.render.bounded_page import Section
from reconciler.render.markdown_parts import LIMIT, POLICY_HEADER, WHY, Draft, Tally, finding_row, fold, named
from reconciler.render.ran import Ran, Run, each_reason_once
from reconciler.render.safe_markdown import code, header, prose, row
from reconciler.render.safe_text import LONGEST_MESSAGE, bounded, safe
from reconciler.render.step_details import difference

_ADVICE = "The file that this was made of has all of it."
_MOST_RUNS = 50
_FINE = ("done", "skipped")


def report_markdown(run: Run, limit: int = LIMIT) -> str:
    head = f"### {prose(run.title)}{f': {run.counted}' if run.counted else ''}\n\n"
    if run.told and run.told not in (run.counted, "no changes"):
        head += f"{prose(run.told.removeprefix(run.counted + '; '), LONGEST_MESSAGE)}\n\n"
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
    tally.expect("step", (s.word for run in runs for s in run.steps))
    tally.expect("run", ("" for _ in range(total)))
    tally.expect("policy finding", ("" for run in runs for _ in run.findings))
    tally.expect("changed object", ("" for run in runs for _ in run.stale))
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
        _put_stale(draft, run, limit // 2)
        table = draft.page.section(columns, "\n")
        fine = fold(draft.page, f"{plural(sum(1 for s in run.steps if s.status in _FINE), 'step')} without a problem")
        fine.opening += columns
        sections.append((run, table, fine))
    for wanted in (False, True):  # What went wrong in any run, before what went well in the latest.
        for run, table, fine in sections:
            for step in each_reason_once(run.by_urgency):
                if (step.status in _FINE) is wanted and not draft.put(
                    fine if wanted else table, _line(step, timed), "step", (step.word,)
                ):
                    return draft.text()
    return draft.text()


def _put_findings(draft: Draft, run: Run, share: int) -> None:
    """What refused the run first; a part of the page at most, because the steps are to be seen as well."""
    told, least = draft.page.section(POLICY_HEADER, "\n"), draft.page.left - share
    for f in sorted(run.findings, key=lambda f: (not f.refuses, f.waiver is not None)):
        if draft.page.left < least or not draft.put(told, finding_row(f), "policy finding"):
            return


def _put_stale(draft: Draft, run: Run, share: int) -> None:
    """Field by field; every line begins with a sign of ours, so no line can end the fence."""
    told, least = (
        fold(draft.page, "What changed since the plan was made", opened=True, fence=True),
        draft.page.left - share,
    )
    for found in run.stale:
        name = f"{found.key.kind.lower()} {safe(bounded(str(found.key)))}"
        lines = [
            f"@@ {name}: {safe(bounded(found.problem))} @@",
            *(bounded(difference(d), WHY) for d in found.differences),
        ]
        if draft.page.left < least or not draft.put(told, "".join(f"{line}\n" for line in lines), "changed object"):
            return


def _put_leases(draft: Draft, run: Run) -> None:
    told = draft.page.section("", "\n")
    for event in run.main_leases:
        state = f"**{event.state}**" if event.state in WORRYING else event.state
        when = f" {code(event.time)}" if event.time else ""
        draft.put(told, f"- {state}{when}: {prose(event.sentence, WHY)}\n", "lease line", (event.state,))


def _line(step: Ran, timed: bool) -> str:
    status = step.word if step.status in _FINE else f"**{step.word}**"
    key = "" if step.key is None else f"{named(step.key)} in {code(step.key.catalog)}"
    told = "; ".join(part for part in (step.problem, step.note) if part)
    what = " ".join(code(part) for part in (step.id, step.action) if part)
    seconds = f"{step.seconds:.2f}" if step.seconds else ""
    began = (code(step.started) if step.started else "",) if timed else ()
    return row(status, what, key, prose(told, WHY), seconds, *began)
