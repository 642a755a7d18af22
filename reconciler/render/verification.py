"""A verification as text and as JUnit XML."""

from __future__ import annotations

from reconciler.core.text import plural
from reconciler.model.ident import dotted
from reconciler.model.verification import READ, CheckResult, Verification, VerifiedTable
from reconciler.render.junit_xml import Case, Suite, junit_xml
from reconciler.render.safe_text import bounded, safe, safe_line

_SIGNS = {True: "ok", False: "FAILED", None: "to do"}


def verification_text(found: Verification) -> str:
    lines: list[str] = []
    for table in found.tables:
        size = "" if table.rows is None else f"  {plural(table.rows, 'row')}  {table.checksum}"
        lines.append(f"{_SIGNS[table.ok]:<6}  {_name(table)}{size}")
        for check in table.checks:
            if check.ok is not True:
                detail = f": {bounded(safe(check.detail))}" if check.detail else ""
                lines.append(f"          {safe_line(check.name)}{detail}")
    counts = found.summary()
    total = f"{plural(counts['tables'], 'table')}, {plural(counts['checks'], 'check')}"
    pending = found.count(None)
    done = f"{pending} to do" if pending else f"{counts['ok']} ok"
    unread = f" ({counts['unreadable']} could not be read)" if counts["unreadable"] else ""
    return "".join(f"{line}\n" for line in [*lines, f"{total}: {done}, {counts['failed']} failed{unread}"])


def _name(table: VerifiedTable) -> str:
    return safe(f"{table.catalog}:{dotted(table.ident)}")


def verification_junit(found: Verification) -> str:
    """A suite for each table, a case for each check. What could not be read is an error, what does not hold a failure,
    what a dry run leaves out is skipped."""
    suites = (
        Suite(f"{t.catalog}:{dotted(t.ident)}", [_case(c) for c in t.checks or (CheckResult("declared", True),)])
        for t in found.tables
    )
    return junit_xml("reconciler pipeline verify", suites)


def _case(check: CheckResult) -> Case:
    if check.ok is None:
        return Case(check.name, "skipped")
    return (
        Case(check.name) if check.ok else Case(check.name, "error" if check.name == READ else "failure", check.detail)
    )
