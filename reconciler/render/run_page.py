"""A report or a journal as one page: what failed and what nobody knows first, then what was not run."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.ident import dotted
from reconciler.model.lease_event import WORRYING, LeaseEvent
from reconciler.model.plan import Json
from reconciler.model.report import StaleObject
from reconciler.render.page_frame import count, page, text
from reconciler.render.page_plain import Entry
from reconciler.render.policy_text import policy_lines
from reconciler.render.ran import FINE, Ran, Run
from reconciler.render.safe_text import bounded, printable
from reconciler.render.step_details import difference

_MOST_POLICY = 100
_MOST_STALE = 20
_SHOWN = {
    "failed": ("\u2717", "delete"), "unknown": ("?", "blocked"), "never_ended": ("?", "blocked"),
    "not_run": ("\u00b7", "told"), "skipped": ("=", "told"), "done": ("\u2713", "create"),
}  # fmt: skip


def run_page(heading: str, runs: Sequence[Run]) -> str:
    """One run of a report, or the runs of a journal."""
    entries = [_entry(order, step) for run in runs for order, step in enumerate(run.by_urgency)]
    header = "\n".join(_header(run) for run in runs)
    return page(heading, runs[-1].plan_id if runs else "", header, "", entries)


def _header(run: Run) -> str:
    told = run.title if run.told in ("", run.title.lower()) else f"{run.title}: {run.told}"
    mood = "" if run.outcome in FINE else ' class="alert"'
    when = " to ".join(part for part in (run.begun, run.finished) if part)
    about = [f"plan <code>{text(run.plan_id)}</code>", text(run.counted), text(when), text(run.who)]
    listed = "".join(f"<li>{part}</li>" for part in about if part)
    return f'<p{mood}>{text(told)}</p>\n<ul class="about">{listed}</ul>{_stale(run)}{_policy(run)}{_leases(run)}'


def _stale(run: Run) -> str:
    """What changed since the plan was made, field by field."""
    lines = [f"<li>{text(_stale_text(found))}</li>" for found in run.stale[:_MOST_STALE]]
    more = len(run.stale) - _MOST_STALE
    lines += [f"<li>and {count(more, 'object')} more: the report has them</li>"] if more > 0 else []
    return f"\n<p>Changed since the plan was made</p><ul>{''.join(lines)}</ul>" if lines else ""


def _stale_text(found: StaleObject) -> str:
    fields = "; ".join(str(difference(d)) for d in found.differences[:_MOST_STALE])
    return bounded(f"{found.key.kind.lower()} {found.key}: {found.problem}{': ' if fields else ''}{fields}", 2000)


def _policy(run: Run) -> str:
    lines = [line.strip() for line in policy_lines(run.findings) if line][1:]
    more = len(lines) - _MOST_POLICY
    if more > 0:
        lines = [*lines[:_MOST_POLICY], f"and {count(more, 'line')} more of the policy: the report has them"]
    listed = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f"\n<p>Policy</p><ul>{listed}</ul>" if listed else ""


def _leases(run: Run) -> str:
    shown = run.main_leases
    lines = [f"<p{_mood(e)}>{text(' '.join((e.time or '', e.sentence)).strip())}</p>" for e in shown]
    more = len(run.leases) - len(shown)
    return "\n".join(
        ["", *lines, *([f'<p class="dim">and {count(more, "line")} more about leases</p>'] if more else [])]
    )


def _mood(event: LeaseEvent) -> str:
    return ' class="alert"' if event.state in WORRYING else ' class="dim"'


def _entry(order: int, step: Ran) -> Entry:
    symbol, style = _SHOWN[step.status]
    took = f"{step.seconds:g} s" if step.seconds else ""
    out: Entry = {
        "kind": "step",
        "order": order,
        "id": _text(step.id),
        "symbol": symbol,
        "style": style,
        "catalog": _text(step.key.catalog if step.key else ""),
        "name": _text(dotted(step.key.ident) if step.key else ""),
        "type": _text(step.key.kind.lower() if step.key else ""),
        "action": _text(step.action),
        "status": step.word,
        "reason": _text("; ".join(part for part in (step.problem, step.note, step.started, took) if part)),
    }
    versions: list[Json] = [["version", str(step.before), str(step.after)]] if step.before != step.after else []
    return out | ({"diff": [["Dataset", versions]]} if versions else {})


def _text(value: str) -> str:
    return printable(bounded(value))
