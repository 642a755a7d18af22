"""JUnit XML, as Jenkins, GitLab and the rest read it: suites of cases, with counts that add up.

What XML cannot hold (control characters, lone surrogates) is shown escaped, as on a terminal. All of it is ASCII, so
that it is what it says it is whatever the encoding of stdout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree as tree

from reconciler.render.safe_text import bounded, safe, safe_line

Verdict = Literal["passed", "failure", "error", "skipped"]


@dataclass(frozen=True, slots=True)
class Case:
    """`failure`: what was looked at is not as it should be; `error`: it could not be looked at. `message` is a line,
    `text` all there is to say: lines of which each is made safe already, so that no value of others begins one."""

    name: str
    verdict: Verdict = "passed"
    message: str = ""
    text: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    cases: Sequence[Case]


def junit_xml(name: str, suites: Iterable[Suite]) -> str:
    top = tree.Element("testsuites", name=safe(name))
    cases: list[Case] = []
    for suite in suites:
        node = tree.SubElement(top, "testsuite", name=safe(suite.name))
        for case in suite.cases:
            _put(node, suite.name, case)
        _count(node, suite.cases)
        cases += suite.cases
    _count(top, cases)
    tree.indent(top)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tree.tostring(top, encoding="us-ascii").decode()}\n'


def _put(suite: tree.Element, classname: str, case: Case) -> None:
    seconds = f"{case.seconds:.3f}" if case.seconds else "0"
    node = tree.SubElement(suite, "testcase", classname=safe(classname), name=safe(case.name), time=seconds)
    text = "\n".join(map(safe_line, case.text.split("\n")))
    if case.verdict == "passed":
        if text:
            tree.SubElement(node, "system-out").text = text
        return
    told = {"message": bounded(safe(case.message))} if case.message else {}
    kind = {} if case.verdict == "skipped" else {"type": case.verdict}
    tree.SubElement(node, case.verdict, {**told, **kind}).text = text or None


def _count(node: tree.Element, cases: Sequence[Case]) -> None:
    for name, verdict in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        node.set(name, str(sum(1 for c in cases if c.verdict == verdict)))
    node.set("tests", str(len(cases)))
    seconds = sum(c.seconds for c in cases)
    node.set("time", f"{seconds:.3f}" if seconds else "0")
