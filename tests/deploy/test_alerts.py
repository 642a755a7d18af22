"""deploy/alerts: which alert fires for which job, with series as runs write them and the operator scrapes them."""

from __future__ import annotations

import re
from typing import Any

import promql_parser
import pytest
import yaml
from kustomized import DEPLOY, OVERLAYS, metrics_labels
from prometheus_client.parser import text_string_to_metric_families
from promql import Scraped, Vector, evaluated, series

from reconciler.model.run import OUTCOMES, Run
from reconciler.render.metrics import HELP, OWN_LABELS, metrics_text

RULE = yaml.safe_load((DEPLOY / "alerts" / "prometheusrule.yaml").read_text())
RULES = {rule["alert"]: rule for group in RULE["spec"]["groups"] for rule in group["rules"]}
NOW = 1_800_000_000.0
HOUR = 3600
EXIT_CODES = {"no_changes": 0, "failed": 1, "drift": 2, "refused": 3, "stale": 4, "partial": 5, "locked": 6}


def scraped_from(installation: str = "", place: str = "1") -> dict[str, str]:
    """The labels that a ServiceMonitor adds. `place` is where the exporter runs: another one after each move."""
    service = f"reconciler-metrics-{installation}".rstrip("-")
    where = {"pod": f"{service}-{place}", "instance": f"10.0.0.{place}:9100", "node": f"node{place}"}
    return {"namespace": "lake", "job": service, "service": service, "endpoint": "metrics", "container": "x", **where}


def run_of(command: str, target: dict[str, str], exit_code: int = 0, age: float = HOUR / 2, **labels: str) -> Vector:
    """What a run leaves that ended half an hour ago, or when `age` says; it has no plan."""
    succeeded = 0 if exit_code else NOW - age
    text = metrics_text(Run(command, NOW - age, 0, exit_code), succeeded, labels, str)
    found: dict[Any, float] = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            found |= series(one.name, one.value, **one.labels, **target)
    return found


def job(installation: str, command: str = "drift", place: str = "1", schedule: str = "daily", **more: Any) -> Vector:
    return run_of(command, scraped_from(installation, place), installation=installation, schedule=schedule, **more)


def pending(
    installation: str, command: str, place: str = "1", name: str = "reconciler_pending", **kinds: float
) -> Vector:
    own = {"command": command, "installation": installation, "catalog": "lake", **scraped_from(installation, place)}
    found: dict[Any, float] = {}
    for kind, count in kinds.items():
        found |= series(name, count, **own, kind=kind)
    return found


def firing(alert: str, now: Vector, earlier: Vector | None = None) -> list[dict[str, Any]]:
    """The labels of each, and its value."""
    found = evaluated(RULES[alert]["expr"], Scraped(now, NOW, earlier or {}))
    return sorted(({**dict(sorted(labels)), "value": value} for labels, value in found.items()), key=str)


def installations(alert: str, now: Vector, earlier: Vector | None = None) -> list[str]:
    return [one.get("installation", "") for one in firing(alert, now, earlier)]


def test_nothing_fires_while_all_is_well() -> None:
    well = {
        **job("drift"),
        **job("prod", exit_code=2, age=20 * HOUR),
        **job("git-sync", "apply", schedule="hourly"),
        **pending("drift", "drift", create=0, update=0, delete=0, blocked=0, unsupported=0),
        **pending("git-sync", "apply", create=0, update=0, delete=0, blocked=0, unsupported=0),
        **pending("drift", "drift", name="reconciler_orphans", none=0),
        **pending("drift", "drift", name="reconciler_catalog_complete", none=1),
    }
    assert {alert: found for alert in RULES if (found := firing(alert, well, well))} == {}


@pytest.mark.parametrize("what", ["installation", "label", "service"])
def test_a_healthy_job_does_not_speak_for_a_dead_one(what: str) -> None:
    """Two of one command in one namespace, told apart by an overlay, by --metrics-label alone, or by the exporter."""

    def made(name: str, age: float) -> Vector:
        target = scraped_from(name if what == "service" else "shared")
        return run_of("drift", target, age=age, **({} if what == "service" else {what: name}))

    (found,) = firing("ReconcilerNotSucceeding", {**made("healthy", HOUR), **made("dead", 30 * HOUR)})
    assert "dead" in str(found)
    assert found["value"] == 30 * HOUR


def test_an_exporter_that_moved_is_no_second_job() -> None:
    """Its last words at the old place may still be scraped."""
    moved = {**job("drift", place="1", age=30 * HOUR), **job("drift", place="2")}
    assert firing("ReconcilerNotSucceeding", moved) == []
    assert firing("ReconcilerSilent", job("drift", place="2"), earlier=job("drift", place="1")) == []
    twice = {**pending("drift", "drift", "1", create=2, update=1), **pending("drift", "drift", "2", create=2, update=1)}
    (found,) = firing("ReconcilerDrift", twice)
    assert found["value"] == 3


@pytest.mark.parametrize(
    ("schedule", "hours", "fires"),
    [("daily", 25, False), ("daily", 27, True), ("", 27, True), ("hourly", 2, False), ("hourly", 4, True)],
)
def test_a_success_is_old_by_the_schedule_of_its_job(schedule: str, hours: int, fires: bool) -> None:
    assert bool(firing("ReconcilerNotSucceeding", job("x", schedule=schedule, age=hours * HOUR))) is fires


def test_the_schedules_are_those_of_the_overlays() -> None:
    known = {metrics_labels(overlay)["schedule"] for overlay in OVERLAYS}
    asked = re.findall(r'schedule!?="(\w+)"', RULES["ReconcilerNotSucceeding"]["expr"])
    assert asked
    assert set(asked) < known, "and one that is any other"


def test_one_job_of_several_that_is_gone_is_missed() -> None:
    assert installations("ReconcilerSilent", job("drift"), earlier={**job("drift"), **job("apply", "apply")}) == [
        "apply"
    ]
    assert len(firing("ReconcilerSilent", {})) == 1, "none was ever there"
    assert firing("ReconcilerSilent", job("drift"), earlier=job("drift", schedule="hourly")) == [], "it is the same job"


@pytest.mark.parametrize("outcome", EXIT_CODES)
def test_each_end_of_a_run_that_is_no_success_has_one_alert(outcome: str) -> None:
    """Where nothing is known of the catalogs; the other job is well."""
    told = {"partial": "ReconcilerPartlyApplied", "locked": "ReconcilerLocked"}
    well = outcome in ("no_changes", "drift")
    expected = [] if well else [told.get(outcome, "ReconcilerFailed")]
    command = "drift" if well else "apply"
    now = {**run_of(command, scraped_from("a"), EXIT_CODES[outcome], installation="a"), **job("b", command)}
    by_outcome = [name for name, rule in RULES.items() if "reconciler_outcome" in rule["expr"]]
    assert [name for name in by_outcome if installations(name, now) == ["a"]] == expected
    assert [name for name in by_outcome if firing(name, now)] == expected


def test_every_outcome_is_a_success_or_has_an_alert() -> None:
    asked = " ".join(rule["expr"] for rule in RULES.values() if "reconciler_outcome" in rule["expr"])
    words = {word for found in re.findall(r'outcome=~?"([^"]+)"', asked) for word in found.split("|")}
    assert words == set(OUTCOMES) - {"applied", "no_changes", "drift", "running"}


def test_what_two_jobs_see_is_not_added_up() -> None:
    both = {
        **pending("drift", "drift", create=1, blocked=2, unsupported=1),
        **pending("apply", "apply", create=0, blocked=2, unsupported=1),
    }
    assert [(f["installation"], f["value"]) for f in firing("ReconcilerBlocked", both)] == [("apply", 3), ("drift", 3)]
    (found,) = firing("ReconcilerDrift", both)
    assert (found["installation"], found["catalog"], found["value"]) == ("drift", "lake", 1)


@pytest.mark.parametrize(
    ("alert", "name", "good", "bad"),
    [
        ("ReconcilerOrphans", "reconciler_orphans", 0, 2),
        ("ReconcilerCatalogIncomplete", "reconciler_catalog_complete", 1, 0),
    ],
)
def test_what_one_job_sees_is_told_of_that_one(alert: str, name: str, good: int, bad: int) -> None:
    now = {**pending("a", "drift", name=name, none=good), **pending("b", "drift", name=name, none=bad)}
    assert installations(alert, now) == ["b"]


def selectors_in(expression: Any) -> list[Any]:
    """Of a parsed expression."""
    if isinstance(expression, promql_parser.VectorSelector):
        return [expression]
    parts = [getattr(expression, name, None) for name in ("expr", "lhs", "rhs", "vector_selector")]
    parts += list(getattr(expression, "args", None) or [])
    return [found for part in parts if part is not None for found in selectors_in(part)]


def test_the_alerts_are_about_metrics_that_there_are() -> None:
    assert (RULE["apiVersion"], RULE["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert sum(len(group["rules"]) for group in RULE["spec"]["groups"]) == len(RULES), "each name once"
    ours = OWN_LABELS | {label for overlay in OVERLAYS for label in metrics_labels(overlay)}
    for one in RULES.values():
        assert set(one) == {"alert", "expr", "for", "labels", "annotations"}
        selectors = selectors_in(promql_parser.parse(one["expr"]))
        assert selectors, one["expr"]
        for selector in selectors:
            assert selector.name in HELP
            assert {matcher.name for matcher in selector.matchers.matchers} <= ours
        for label in re.findall(r"\$labels\.(\w+)", str(one["annotations"])):
            assert label in ours
            assert not re.search(rf"without \([^)]*\b{label}\b", one["expr"]), f"{label} is not left by {one['expr']}"


def test_every_alert_is_about_one_job() -> None:
    """Whatever labels tell jobs apart are kept: only those of the place are named, and taken away."""
    places = set(scraped_from()) - {"namespace", "job", "service"}
    for one in RULES.values():
        assert " by " not in one["expr"]
        assert set(re.findall(r"\w+", " ".join(re.findall(r"without \(([^)]*)\)", one["expr"])))) <= {
            *places, "kind", "schedule",
        }  # fmt: skip
        for before in re.split(r"\breconciler_\w+", one["expr"])[:-1]:
            named = re.search(r"without \(([^)]*)\) \((last_over_time\()?$", before)
            assert before.endswith("absent(") or (named and places <= set(named[1].split(", "))), one["expr"]


def test_what_a_person_has_to_look_at_has_an_alert() -> None:
    """All that a run counts, but what is as it should be or has an alert by another name."""
    alerted = {s.name for r in RULES.values() for s in selectors_in(promql_parser.parse(r["expr"]))}
    told_elsewhere = {"build_info", "run_duration_seconds", "exit_code", "steps", "unowned", "policy_findings"}
    assert alerted == set(HELP) - {f"reconciler_{name}" for name in told_elsewhere}


def test_the_page_knows_every_alert() -> None:
    page = (DEPLOY.parent / "docs" / "kubernetes.md").read_text()
    told = re.findall(r"^\| `(Reconciler\w+)` \| (\w+) \|", page, re.MULTILINE)
    assert dict(told) == {name: rule["labels"]["severity"] for name, rule in RULES.items()}
