"""Files that a run reads and writes beside manifests: saved plans, reports, journals."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.model.codec import each_once
from reconciler.regular_files import read_given
from reconciler.session import Failure

if TYPE_CHECKING:
    from reconciler.model.plan import Plan
    from reconciler.model.run_record import JournalRecord, RunRecord
    from reconciler.model.way_back import WayBack


MAX_SAVED = 512 << 20
"""Bytes of a saved plan, report or journal: a plan of 100,000 steps has a fourth of it."""


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
        lines = read_given(path, MAX_SAVED).decode("utf-8", "replace").splitlines(keepends=True)
        return journal_from(lines) if lines and '"event"' in lines[0] else None
    except OSError as error:
        raise Failure(_unreadable(path, error)) from error
    except NotAJournal:
        return None


def is_report(value: object) -> bool:
    return isinstance(value, dict) and "outcome" in value


def ways_back(path: Path, steps: Sequence[str]) -> list[WayBack]:
    """How to take steps back, of a report or of a journal; without any named, those that have a way. Of several runs in
    one journal, a step that is named is that of the last."""
    from reconciler.model.way_back import way_back

    try:
        ran = [way_back(result) for result in _results(path)]
    except (KeyError, TypeError, ValueError) as error:
        raise Failure(f"{path} is not a report of this program: it is malformed") from error
    found = {way.step: way for way in ran}
    for step in steps:
        if step not in found:
            known = ", ".join([*found][:10]) or "none"
            raise Failure(f"{path} has no step {step}; its steps are {known}{' …' if len(found) > 10 else ''}")
    return [found[s] for s in steps] if steps else [way for way in ran if way.tag is not None]


def _results(path: Path) -> Iterator[dict[str, Any]]:
    journal = saved_journal(path)
    if journal is not None:
        for run in journal.runs:
            yield from _ran(run)
        return
    report = read_json(path)
    if not isinstance(report, dict) or not is_report(report):
        raise Failure(f"{path} is no report: give the file that `reconciler apply --report FILE` wrote, or a journal")
    if report["outcome"] == "interrupted" and not report["steps"]:
        journal = report.get("journal")
        where = journal if isinstance(journal, str) else ".reconciler/journal/, --journal"
        raise Failure(f"{path} is of a run that was killed: its journal has the steps ({where})")
    yield from report["steps"]


def _ran(run: RunRecord) -> Iterator[dict[str, Any]]:
    """One step that never ended may have been done: what its tag would be called is known."""
    from reconciler.engine.journal import short_id
    from reconciler.model.way_back import NEVER_ENDED, TAGGED

    for step in run.steps.values():
        if step.key is None:
            continue
        result = step.to_json()
        if step.status is None:
            tag = f"reconciler-{short_id(run.plan_id)}-{step.id}" if run.plan_id and step.action in TAGGED else None
            result |= {"status": NEVER_ENDED, "tag": tag}
        yield result


def read_json(path: Path) -> object:
    """Raises Failure: what is wrong with the file, and what to do."""
    try:
        content = read_given(path, MAX_SAVED)
    except OSError as error:
        raise Failure(_unreadable(path, error)) from error
    if not content.strip():
        raise Failure(f"{path} is empty: write it again, with `plan -o FILE` or `apply --report FILE`")
    try:
        return json.loads(content, object_pairs_hook=each_once)
    except (ValueError, RecursionError) as error:
        raise Failure(f"{path} is not JSON, so it is neither a plan nor a report: {error}") from error


def _unreadable(path: Path, error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return f"there is no file {path}: check the path, or make the plan with `reconciler plan -o FILE`"
        case IsADirectoryError():
            return f"{path} is a folder, not a file: give the file itself"
        case PermissionError():
            return f"no permission to read {path}: give this user read access"
    return f"cannot read {path}: {error.strerror}"


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


def claim_report(path: Path, plan_id: str = "", journal: str | None = None) -> None:
    """Raises Failure when it cannot be written; an earlier report does not survive. `journal`: once there is one."""
    from reconciler.engine.files import claim
    from reconciler.engine.outcome import not_ended
    from reconciler.render.as_json import report_json

    try:
        claim(path, report_json(not_ended(plan_id, journal)))
    except OSError as error:
        problem = f"cannot write the report {path}: {error.strerror}{no_folder(path)}"
        raise Failure(f"{problem}; nothing was written") from error


def no_folder(path: Path) -> str:
    return "" if path.parent.is_dir() else f" (create the folder {path.parent} first)"
