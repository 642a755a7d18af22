"""A verification as text and as JUnit XML."""

from __future__ import annotations

from reconciler.core.text import plural
from reconciler.model.ident import dotted
from reconciler.model.verification import READ, CheckResult, Verification, VerifiedTable
from reconciler.render.safe_text import bounded, safe

_SIGNS = {True: "ok", False: "FAILED", None: "to do"}


def verification_text(found: Verification) -> str:
    lines: list[str] = []
    for table in found.tables:
        size = "" if table.rows is None else f"  {plural(table.rows, 'row')}  {table.checksum}"
        lines.append(f"{_SIGNS[table.ok]:<6}  {_name(table)}{size}")
        for check in table.checks:
            if check.ok is not True:
                detail = f": {bounded(safe(check.detail))}" if check.detail else ""
                lines.append(f"          {safe(check.name)}{detail}")
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
    from xml.etree import ElementTree as tree

    top = tree.Element("testsuites", name="reconciler pipeline verify")
    for table in found.tables:
        suite = tree.SubElement(top, "testsuite", name=_name(table))
        for check in table.checks or (CheckResult("declared", True),):
            case = tree.SubElement(suite, "testcase", classname=_name(table), name=safe(check.name), time="0")
            if check.ok is None:
                tree.SubElement(case, "skipped")
            elif not check.ok:
                kind = "error" if check.name == READ else "failure"
                tree.SubElement(case, kind, message=bounded(safe(check.detail)), type=kind)
        _count(suite)
    _count(top)
    tree.indent(top)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tree.tostring(top, encoding="unicode")}\n'


def _count(node: object) -> None:
    from xml.etree.ElementTree import Element

    assert isinstance(node, Element)
    for name, kind in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        node.set(name, str(len(node.findall(f".//{kind}"))))
    node.set("time", "0")
