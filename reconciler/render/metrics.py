"""A run as Prometheus text, for the textfile collector of the node exporter.

Every name is a gauge about the last run. What is not known is left out: a run that could not read a catalog says
nothing about its objects, least of all 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import get_args

from reconciler import __version__
from reconciler.model.plan import Plan, Step
from reconciler.model.plan_rules import summarize
from reconciler.model.report import Report, Status
from reconciler.model.run import OUTCOMES, RUNNING, Run
from reconciler.render.safe_text import printable

LAST_RUN = "reconciler_last_run_timestamp_seconds"
LAST_SUCCESS = "reconciler_last_success_timestamp_seconds"
HELP = {
    "reconciler_build_info": "Always 1; the version of the program that ran last.",
    LAST_RUN: "When the last run ended.",
    LAST_SUCCESS: "When a run last succeeded (apply: exit code 0; drift: 0 or 2); 0 when none has.",
    "reconciler_run_duration_seconds": "How long the last run took.",
    "reconciler_exit_code": "Exit code of the last run.",
    "reconciler_outcome": "1 for the outcome of the last run, 0 for all others.",
    "reconciler_steps": "Steps of the last run's plan by how they ended.",
    "reconciler_pending": "Objects that differ from the manifests after the last run, by what it would take.",
    "reconciler_orphans": "Objects of ours that no manifest declares.",
    "reconciler_unowned": "Objects that are as declared but carry no owner mark.",
    "reconciler_catalog_complete": "1 when the catalog was read completely, 0 when a part of it could not be.",
    "reconciler_policy_findings": "What the policy found in the last run's plan.",
}
OWN_LABELS = frozenset({"command", "version", "outcome", "catalog", "status", "kind", "severity", "waived"})
_NAME = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


@dataclass(frozen=True)
class Sample:
    name: str
    value: float
    labels: Mapping[str, str]

    def line(self, clean: Callable[[str], str]) -> str:
        labels = ",".join(f'{name}="{_escaped(clean(value))}"' for name, value in self.labels.items())
        return f"{self.name}{{{labels}}} {_number(self.value)}"


def metrics_text(run: Run, last_success: float, labels: Mapping[str, str], clean: Callable[[str], str]) -> str:
    """`labels` tell this file's series from those of another; `clean` takes secrets out of values."""
    return _text(_samples(run, last_success), run.command, labels, clean)


def running_text(
    command: str, last_run: float, last_success: float, labels: Mapping[str, str], clean: Callable[[str], str]
) -> str:
    """What the file holds while the run goes on, and for ever if it is killed: nothing of an earlier run but when that
    ended."""
    samples = [Sample("reconciler_build_info", 1, {"version": __version__})]
    samples += [Sample(LAST_RUN, last_run, {})] if last_run else []
    samples += [Sample(LAST_SUCCESS, last_success, {})]
    return _text([*samples, *_outcomes(RUNNING)], command, labels, clean)


def _text(found: Iterable[Sample], command: str, labels: Mapping[str, str], clean: Callable[[str], str]) -> str:
    common = {"command": command, **labels}
    samples = [Sample(s.name, s.value, {**common, **s.labels}) for s in found]
    lines: list[str] = []
    for name, text in HELP.items():
        of_name = [s.line(clean) for s in samples if s.name == name]
        if of_name:
            lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge", *of_name]
    return "\n".join(lines) + "\n"


def time_in(text: str, name: str, command: str, labels: Mapping[str, str]) -> float:
    """LAST_RUN or LAST_SUCCESS, from what an earlier run with the same labels wrote; 0 when it is not to be found."""
    line = Sample(name, 0, {"command": command, **labels}).line(str)
    before = line.rpartition(" ")[0] + " "
    for found in text.splitlines():
        if found.startswith(before) and re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", found[len(before) :]):
            return float(found[len(before) :])
    return 0.0


def label_problem(name: str) -> str | None:
    if name in OWN_LABELS:
        return f"{name} is a label of ours: choose another name"
    return None if _NAME.fullmatch(name) else f"{name!r} is not the name of a label: letters, digits and _"


def _samples(run: Run, last_success: float) -> Iterator[Sample]:
    yield Sample("reconciler_build_info", 1, {"version": __version__})
    yield Sample(LAST_RUN, run.ended, {})
    yield Sample(LAST_SUCCESS, run.ended if run.succeeded else last_success, {})
    yield Sample("reconciler_run_duration_seconds", run.seconds, {})
    yield Sample("reconciler_exit_code", run.exit_code, {})
    yield from _outcomes(run.outcome)
    if run.plan is not None:
        yield from _of_plan(run.plan, run.report)


def _outcomes(this: str) -> Iterator[Sample]:
    for outcome in sorted({*OUTCOMES, this}):
        yield Sample("reconciler_outcome", outcome == this, {"outcome": outcome})


def _of_plan(plan: Plan, report: Report | None) -> Iterator[Sample]:
    status_of: dict[str, Status] = {r.step.id: r.status for r in report.steps} if report else {}
    left = [s for s in plan.steps if status_of.get(s.id) not in ("done", "skipped")]
    for name, catalog in sorted(plan.catalogs.items()):
        of = {"catalog": name}
        if report is not None:
            yield from _steps(of, [s for s in plan.steps if s.catalog == name], status_of)
        for kind, count in asdict(summarize(tuple(s for s in left if s.catalog == name))).items():
            yield Sample("reconciler_pending", count, {**of, "kind": kind})
        yield Sample("reconciler_orphans", sum(1 for k in plan.orphans if k.catalog == name), of)
        yield Sample("reconciler_unowned", sum(1 for k in plan.unowned if k.catalog == name), of)
        yield Sample("reconciler_catalog_complete", catalog.complete, of)
    for severity in ("error", "warning"):
        for waived in (False, True):
            found = [f for f in plan.findings if f.severity == severity and (f.waiver is not None) is waived]
            labels = {"severity": severity, "waived": str(waived).lower()}
            yield Sample("reconciler_policy_findings", len(found), labels)


def _steps(of: Mapping[str, str], steps: list[Step], status_of: Mapping[str, Status]) -> Iterator[Sample]:
    for status in get_args(Status):
        count = sum(1 for s in steps if status_of.get(s.id, "not_run") == status)
        yield Sample("reconciler_steps", count, {**of, "status": status})


def _escaped(value: str) -> str:
    """As the text format has it, and without what UTF-8 cannot carry."""
    value = value.encode("utf-8", "replace").decode()
    return printable(value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"))


def _number(value: float) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(int(value))
