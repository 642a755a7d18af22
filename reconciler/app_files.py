"""Files that a run reads and writes beside manifests: saved plans, reports, journals."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.session import Failure

if TYPE_CHECKING:
    from reconciler.model.plan import Plan
    from reconciler.model.run_record import JournalRecord
    from reconciler.model.way_back import WayBack


def saved_plan(path: Path) -> Plan:
    from reconciler.model.plan_json import PlanFormatError, plan_from_json

    value = read_json(path)
    if is_report(value):
        raise Failure(f"{path} is a report, not a plan: give the file that `reconciler plan -o FILE` wrote")
    try:
        return plan_from_json(value)
    except PlanFormatError as error:
        raise Failure(f"{path}: {error}") from error


def saved_journal(path: Path) -> JournalRecord | None:
    """None when it is no journal."""
    from reconciler.model.run_record import NotAJournal, journal_from

    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            first = file.readline()
            return journal_from((first, *file)) if '"event"' in first else None
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from error
    except NotAJournal:
        return None


def is_report(value: object) -> bool:
    return isinstance(value, dict) and "outcome" in value


def ways_back(path: Path, steps: Sequence[str]) -> list[WayBack]:
    """How to take steps back, of a report or of the last run of a journal; without any named, those that have a way."""
    from reconciler.model.way_back import way_back

    journal = saved_journal(path)
    report = read_json(path) if journal is None else {"steps": list(_ran(journal))}
    if not isinstance(report, dict) or (journal is None and not is_report(report)):
        raise Failure(f"{path} is no report: give the file that `reconciler apply --report FILE` wrote, or a journal")
    try:
        found = {str(result["id"]): way_back(result) for result in report["steps"]}
    except (KeyError, TypeError, ValueError) as error:
        raise Failure(f"{path} is not a report of this program: it is malformed") from error
    for step in steps:
        if step not in found:
            known = ", ".join([*found][:10]) or "none"
            raise Failure(f"{path} has no step {step}; its steps are {known}{' …' if len(found) > 10 else ''}")
    return [found[s] for s in steps] if steps else [way for way in found.values() if way.tag is not None]


def _ran(journal: JournalRecord) -> Iterator[dict[str, Any]]:
    """The steps of the last run. One that never ended may have been done: what its tag would be called is known."""
    from reconciler.engine.journal import short_id
    from reconciler.model.way_back import NEVER_ENDED

    run = journal.runs[-1]
    for step in run.steps.values():
        if step.key is None:
            continue
        result = step.to_json()
        if step.status is None:
            may_lose = step.key.kind == "Table" and run.plan_id and step.action != "deregister_table"
            result["status"] = NEVER_ENDED
            result["tag"] = f"reconciler-{short_id(run.plan_id)}-{step.id}" if may_lose else None
        yield result


def read_json(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Failure(
            f"{path} is not JSON, and so neither a plan nor a report, nor is it a journal: {error}"
        ) from error


def write_file(path: Path, text: str) -> None:
    from reconciler.engine.files import write_atomically

    try:
        write_atomically(path, text)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}{no_folder(path)}") from error


def text_to_replace(path: Path) -> str:
    """What an earlier run left there. Raises Failure when this one could not put its own in its place."""
    from reconciler.engine.files import text_to_replace

    try:
        return text_to_replace(path)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}{no_folder(path)}; nothing was written") from error


def claim_report(path: Path) -> None:
    """Raises Failure when it cannot be written; an earlier report does not survive."""
    from reconciler.engine.files import claim
    from reconciler.engine.outcome import not_ended
    from reconciler.render.as_json import report_json

    try:
        claim(path, report_json(not_ended()))
    except OSError as error:
        problem = f"cannot write the report {path}: {error.strerror}{no_folder(path)}"
        raise Failure(f"{problem}; nothing was written") from error


def no_folder(path: Path) -> str:
    return "" if path.parent.is_dir() else f" (create the folder {path.parent} first)"
