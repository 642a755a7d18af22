"""JUnit XML: a strict parser takes it, the counts add up, and what is red is what somebody has to look at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as tree

import pytest
from cli.cli_runs import catalog, namespace, reconciler, table, write
from hypothesis import example, given
from render.plans import golden
from rendered_plans import blocked, create, delete, hostile, plan
from runs import end, events, failed, header, report, result, start
from test_markdown_safety import ATTACKS, NASTY

from reconciler.model.diagnostic import Diagnostic, Source
from reconciler.model.errors import Code, ReadError
from reconciler.model.finding import Finding, Waiver
from reconciler.model.ident import ObjectKey
from reconciler.model.plan import CatalogSummary
from reconciler.model.run_record import journal_from
from reconciler.render.junit import diagnostics_junit, plan_junit, run_junit
from reconciler.render.ran import run_of_report, runs_of_journal
from reconciler.render.text import NOT_APPLIED

KEY = ObjectKey("lake", ("n", "t"), "Table")
VERDICTS = ("failure", "error", "skipped")


def checked(text: str) -> dict[str, str]:
    """Case -> verdict. Counts and times of each level are those of what is inside."""
    top = tree.fromstring(text.encode())
    assert top.tag == "testsuites"
    found: dict[str, str] = {}
    for node in (top, *top):
        cases = list(node.iter("testcase"))
        assert cases, "a file without a case looks like a broken run"
        counts = {"tests": len(cases)} | {
            plural: len([c for c in cases if c.find(kind) is not None])
            for plural, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
        }
        assert {name: int(node.attrib[name]) for name in counts} == counts
        assert float(node.attrib["time"]) == pytest.approx(sum(float(c.attrib["time"]) for c in cases))
    for suite in top:
        assert suite.tag == "testsuite"
        for case in suite:
            assert case.attrib["classname"] == suite.attrib["name"]
            verdicts = [child.tag for child in case if child.tag in VERDICTS]
            assert len(verdicts) <= 1
            found[f"{suite.attrib['name']}/{case.attrib['name']}"] = verdicts[0] if verdicts else "passed"
    return found


def test_a_case_for_each_file() -> None:
    found = [
        Diagnostic(Source("a.yaml", 3), "M204", "error", "spec is missing"),
        Diagnostic(Source("a.yaml", 9), "M204", "error", "id is missing"),
        Diagnostic(Source("b.yaml", 1), "M403", "warning", "no parent"),
    ]
    text = diagnostics_junit(found, ["a.yaml", "b.yaml", "c.yaml"])
    cases = {"manifests/a.yaml": "failure", "manifests/b.yaml": "passed", "manifests/c.yaml": "passed"}
    assert checked(text) == cases
    failure = tree.fromstring(text.encode()).find(".//failure")
    assert failure is not None
    assert failure.attrib["message"] == "line 3: M204: spec is missing (and 1 more)"
    assert "a.yaml:9:1: error[M204]: id is missing" in (failure.text or "")
    assert "no parent" in (tree.fromstring(text.encode()).findtext(".//system-out") or "")
    assert checked(diagnostics_junit([], (), "no catalog"))["manifests/run"] == "error"
    assert checked(diagnostics_junit([]))


def made(**more: Any) -> Any:
    steps = (create(1, "new"), blocked(2, "held"), replace(delete(3, "old"), verdict="unsupported"), delete(4, "gone"))
    return plan(steps, **more)


def test_a_pending_change_fails_only_for_drift() -> None:
    cases = {
        "lake/listing": "passed",
        "lake/namespace n.new": "passed",
        "lake/namespace n.held": "failure",
        "lake/table n.old": "failure",
        "lake/table n.gone": "passed",
    }
    assert checked(plan_junit(made())) == cases
    failing = {name: "failure" for name in cases if name != "lake/listing"}
    assert checked(plan_junit(made(), drift=True)) == cases | failing


def test_orphans_fail_only_for_drift() -> None:
    lost = plan(orphans=(KEY,))
    assert checked(plan_junit(lost))["lake/table n.t"] == "passed"
    assert checked(plan_junit(lost, drift=True))["lake/table n.t"] == "failure"


def test_findings_and_thresholds_and_what_was_not_read() -> None:
    waiver = Waiver("known", "2027-01-01")
    other = ObjectKey("lake", ("n", "other"), "Table")
    findings = (
        Finding("L1", "error", KEY, "bad name"),
        Finding("L2", "error", other, "waived", waiver=waiver),
        Finding("L3", "error", None, "not in prod"),
    )
    catalogs = {"lake": CatalogSummary("dir", False, 1, 1, {}, (ReadError(Code.INTERNAL, "page 2 failed"),))}
    steps = [replace(blocked(1, "x", "threshold"), reason="too many")]
    cases = checked(plan_junit(plan(steps, findings=findings, catalogs=catalogs, left_out=(other,))))
    assert cases.pop("lake/table n.other") in ("passed", "skipped")
    assert cases == {
        "lake/listing": "error",
        "lake/namespace n.x": "failure",
        "lake/table n.t": "failure",
        "plan/L3": "failure",
        "plan/thresholds": "failure",
    }


@pytest.mark.parametrize("name", ["threshold-count", "threshold-percent"])
def test_a_threshold_refuses_the_plan_as_a_whole(name: str) -> None:
    """One case says so with the reason, beside those of what is held back. What would be made is as it should be."""
    refused = golden(name)
    for drift in (False, True):
        text = plan_junit(refused, drift)
        cases = checked(text)
        assert cases["plan/thresholds"] == "failure"
        (case,) = tree.fromstring(text.encode()).iterfind(".//testsuite[@name='plan']/testcase/failure")
        assert (case.attrib["message"], case.text) == (refused.refused, NOT_APPLIED)
        held = [s for s in refused.steps if s.blocked_by == "threshold"]
        assert [cases[f"lake/table {'.'.join(s.change.ident)}"] for s in held] == ["failure"] * len(held)
        allowed = {f"lake/table {'.'.join(s.change.ident)}" for s in refused.steps if s.verdict == "allowed"}
        assert {cases[name] for name in allowed} <= {"failure" if drift else "passed"}


def test_a_policy_refuses_the_plan_as_a_whole() -> None:
    text = plan_junit(golden("policy-destructive"))
    (case,) = tree.fromstring(text.encode()).iterfind(".//testcase[@name='policy']/failure")
    assert (case.attrib["message"], case.text) == (golden("policy-destructive").refused, NOT_APPLIED)


def test_a_plan_within_its_thresholds_has_no_such_case() -> None:
    assert not [c for c in checked(plan_junit(golden("threshold-raised"))) if c.startswith("plan/")]
    assert not [c for c in checked(plan_junit(plan([blocked(1, "x")]))) if c.startswith("plan/")], "one step, not all"


@pytest.mark.parametrize("command", ["validate", "plan", "drift"])
def test_a_run_that_failed_is_named_after_its_command(tmp_path: Path, command: str) -> None:
    write(tmp_path, catalog(), namespace("n", spec="{propertys: {}}"))
    run = reconciler(tmp_path, command, "m.yaml", "--format", "junit")
    assert run.code == 1
    assert tree.fromstring(run.out.encode()).attrib["name"] == f"reconciler {command}"
    log = reconciler(tmp_path, command, "m.yaml", "--format", "sarif").json
    assert log["runs"][0]["automationDetails"] == {"id": f"reconciler/{command}/"}


def test_what_apply_makes_of_it(tmp_path: Path) -> None:
    write(tmp_path, catalog(), namespace("n"), *(table("n", f"t{i}") for i in range(12)))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog(), namespace("n"), table("n", "new"))
    run = reconciler(tmp_path, "plan", "m.yaml", "--prune", "--format", "junit")
    assert (run.code, checked(run.out)["plan/thresholds"]) == (0, "failure")
    run = reconciler(tmp_path, "apply", "m.yaml", "--prune", "--yes", "--format", "junit", "--report", "r.json")
    assert run.code == 3
    cases = checked(run.out)
    (outcome,) = [name for name in cases if name.endswith("/outcome")]
    assert cases.pop(outcome) == "failure"
    assert set(cases.values()) == {"skipped"}, "nothing ran, the new table included"
    (told,) = tree.fromstring(run.out.encode()).iterfind(".//testcase[@name='outcome']/failure")
    assert "12 objects of the 13 we own would be deleted; thresholds.deletes allows 10" in told.attrib["message"]
    assert reconciler(tmp_path, "show", "r.json", "--format", "junit").out == run.out


def test_no_changes_is_a_file_with_a_case() -> None:
    assert checked(plan_junit(plan())) == {"lake/listing": "passed"}
    assert checked(plan_junit(plan(catalogs={}))) == {"plan/plan": "passed"}


def test_a_report() -> None:
    steps = (result(1), failed(2, name="u"), failed(3, "unknown"), result(4, "not_run"), result(5, "skipped"))
    assert list(checked(run_junit([run_of_report(report(*steps))])).values()) == [
        "passed", "failure", "error", "skipped", "passed", "failure",
    ]  # fmt: skip
    fine = checked(run_junit([run_of_report(report(result(1), outcome="applied"))]))
    assert set(fine.values()) == {"passed"}
    assert checked(run_junit([run_of_report(report(outcome="failed"))])) == {"apply ab/outcome": "failure"}


def test_a_journal() -> None:
    journal = journal_from(events(header(), start("s1"), end("s1"), start("s2", name="u")).splitlines())
    assert checked(run_junit(runs_of_journal(journal))) == {
        "apply ab 2026-01-02T03:04:05.000+00:00/s1 declare_table lake:n.t": "passed",
        "apply ab 2026-01-02T03:04:05.000+00:00/s2 declare_table lake:n.u": "error",
        "apply ab 2026-01-02T03:04:05.000+00:00/outcome": "failure",
    }


@given(NASTY)
@example("".join(map(chr, range(32))) + "\ufffe\uffff\x7f\x80")
@example(ATTACKS["surrogate"])
@example("]]>")
def test_whatever_is_in_it_the_file_is_well_formed(text: str) -> None:
    checked(plan_junit(hostile(text), drift=True))
    checked(diagnostics_junit([Diagnostic(Source(text), text, "error", text, text)], (), text))
    checked(run_junit([run_of_report(report(failed(1, message=text, name=text), message=text))]))
