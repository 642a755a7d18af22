"""deploy/, built by kustomize: right by the schemas of Kubernetes, and in what those let pass."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from kustomized import DEPLOY, OVERLAYS, built, containers, cron_job, metrics_labels, of_kind, pod, pods

import reconciler
from reconciler.model.report import EXIT_CODES
from reconciler.model.run import LOCKED, OUTCOMES
from reconciler.render.metrics import HELP

VERSIONS = ["1.31", kubernetes_validate.latest_version()]
"""From the first in which podFailurePolicy is stable."""
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
USER = 10001

each_overlay = pytest.mark.parametrize("overlay", OVERLAYS)


@pytest.mark.slow
@each_overlay
@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_every_field(overlay: str, version: str) -> None:
    documents = built(overlay)
    assert {"CronJob", "ServiceAccount", "NetworkPolicy"} <= {d["kind"] for d in documents}
    for document in documents:
        kubernetes_validate.validate(document, version, strict=True)


def test_the_schemas_find_a_misspelt_field() -> None:
    job = cron_job("apply")
    job["spec"]["concurencyPolicy"] = "Forbid"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, VERSIONS[-1], strict=True)


def is_schedule(text: str) -> bool:
    """Numbers, lists, ranges and steps; that is all we write."""
    fields = text.split()
    return len(fields) == 5 and all(_is_field(f, *r) for f, r in zip(fields, RANGES, strict=True))


def _is_field(text: str, low: int, high: int) -> bool:
    for part in text.split(","):
        found = re.fullmatch(r"(\*|(\d+)(-(\d+))?)(/[1-9]\d*)?", part)
        if found is None or not all(low <= int(n) <= high for n in (found[2], found[4]) if n):
            return False
    return True


@pytest.mark.parametrize(
    ("text", "good"),
    [("17 3 * * *", True), ("*/5 0-6,22 * 1 7", True), ("60 3 * * *", False), ("daily", False), ("* * * *", False)],
)
def test_what_a_schedule_is(text: str, good: bool) -> None:
    assert is_schedule(text) is good


@each_overlay
def test_when_it_runs_and_when_it_ends(overlay: str) -> None:
    spec, job = cron_job(overlay)["spec"], cron_job(overlay)["spec"]["jobTemplate"]["spec"]
    assert is_schedule(spec["schedule"])
    assert (spec["concurrencyPolicy"], spec["timeZone"]) == ("Forbid", "Etc/UTC")
    assert spec["startingDeadlineSeconds"] > 10, "the controller looks every ten seconds"
    assert min(spec["failedJobsHistoryLimit"], spec["successfulJobsHistoryLimit"]) >= 1
    assert pod(overlay)["restartPolicy"] == "Never", "podFailurePolicy needs it, and each try keeps its log"
    assert pod(overlay)["terminationGracePeriodSeconds"] >= 60
    assert job["ttlSecondsAfterFinished"] > 24 * 3600
    assert len(cron_job(overlay)["metadata"]["name"]) <= 52
    for word in pod(overlay)["containers"][0]["args"]:
        if word.startswith("--timeout="):
            assert int(word.partition("=")[2]) <= job["activeDeadlineSeconds"] - 300, "it ends by itself"


@each_overlay
def test_which_ends_are_worth_another_try(overlay: str) -> None:
    job = cron_job(overlay)["spec"]["jobTemplate"]["spec"]
    assert job["backoffLimit"] > 0
    disrupted, final = job["podFailurePolicy"]["rules"]
    assert (disrupted["action"], disrupted["onPodConditions"]) == (
        "Ignore",
        [{"type": "DisruptionTarget", "status": "True"}],
    )
    assert final["onExitCodes"]["containerName"] in [c["name"] for c in pod(overlay)["containers"]]
    values = set(final["onExitCodes"]["values"])
    assert values == {2, EXIT_CODES["refused"]}, "`apply PATH` that found its plan stale makes another one"


def test_the_page_says_which_ends_are_worth_another_try() -> None:
    """Each exit code in one of two rows; 0 is no failure."""
    page = (DEPLOY.parent / "docs" / "kubernetes.md").read_text()
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| exit code ")]
    at_once, again = (set(map(int, re.findall(r"\d+", codes))) for codes, _ in rows)
    _, final = cron_job("apply")["spec"]["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert at_once == set(final["onExitCodes"]["values"])
    assert at_once | again == {2, LOCKED, *EXIT_CODES.values()} - {0}
    assert not at_once & again


@each_overlay
def test_nothing_runs_with_rights(overlay: str) -> None:
    for spec in pods(overlay):
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == USER
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        assert not [v for v in spec["volumes"] if "hostPath" in v]
        for container in containers(spec):
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context.get("runAsUser", USER) != 0
            assert {"requests", "limits"} <= set(container["resources"])
            assert "memory" in container["resources"]["limits"]
    (account,) = of_kind(overlay, "ServiceAccount")
    assert account["automountServiceAccountToken"] is False
    assert not [d["kind"] for d in built(overlay) if "Role" in d["kind"]]


def test_the_user_is_that_of_the_image() -> None:
    assert f"USER {USER}\n" in (DEPLOY.parent / "Dockerfile").read_text()


@each_overlay
def test_images_are_pinned(overlay: str) -> None:
    for spec in pods(overlay):
        for container in containers(spec):
            name, _, tag = container["image"].rpartition(":")
            assert re.fullmatch(r"v?\d+\.\d+\.\d+", tag), container["image"]
            if name.endswith("/reconciler"):
                assert tag == reconciler.__version__


@each_overlay
def test_what_is_named_is_there(overlay: str) -> None:
    names = {(d["kind"], d["metadata"]["name"]) for d in built(overlay)}
    for spec in pods(overlay):
        assert ("ServiceAccount", spec["serviceAccountName"]) in names
        volumes = {v["name"]: v for v in spec["volumes"]}
        for volume in volumes.values():
            assert len(volume) == 2, f"of one kind: {volume}"
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in names
            if "persistentVolumeClaim" in volume:
                assert ("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]) in names
        mounted = [m for c in containers(spec) for m in c["volumeMounts"]]
        assert {m["name"] for m in mounted} == set(volumes)


@each_overlay
def test_manifests_and_secrets_are_read_only(overlay: str) -> None:
    (container,) = pod(overlay)["containers"]
    mounts = {m["name"]: m for m in container["volumeMounts"]}
    assert mounts["manifests"]["readOnly"] is mounts["secrets"]["readOnly"] is True
    assert mounts["secrets"]["mountPath"] == "/var/run/secrets/reconciler"
    assert mounts["work"]["mountPath"] == container["workingDir"]
    for entry in container["env"]:
        assert "secretKeyRef" not in str(entry), "secrets are files"


def labels_of(document: Any) -> set[tuple[str, str]]:
    spec = document["spec"].get("jobTemplate", document)["spec"]
    return set(spec["template"]["metadata"]["labels"].items())


def affine(term: Any, own: dict[str, str]) -> dict[str, str]:
    """What a term of an affinity asks for: also the values that the pod itself has for `matchLabelKeys`, which must not
    be in the selector too."""
    selector, keys = dict(term["labelSelector"]["matchLabels"]), term.get("matchLabelKeys", [])
    assert not set(keys) & set(selector)
    return selector | {key: own[key] for key in keys if key in own}


@each_overlay
def test_selectors_hit_what_they_are_for(overlay: str) -> None:
    """Of this overlay only: two of them may share a namespace."""
    job = labels_of(cron_job(overlay))
    (policy,) = of_kind(overlay, "NetworkPolicy")
    assert set(policy["spec"]["podSelector"]["matchLabels"].items()) <= job
    others = [labels_of(cron_job(o)) for o in OVERLAYS if o != overlay]
    assert not [o for o in others if set(policy["spec"]["podSelector"]["matchLabels"].items()) <= o]
    for exporter in of_kind(overlay, "Deployment"):
        (service,) = of_kind(overlay, "Service")
        near = pod(overlay)["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        for selector in (service["spec"]["selector"], *(affine(n, dict(job)) for n in near)):
            assert set(selector.items()) <= labels_of(exporter)
            assert not set(selector.items()) <= job
            elsewhere = [labels_of(d) for o in OVERLAYS if o != overlay for d in of_kind(o, "Deployment")]
            assert not [e for e in elsewhere if set(selector.items()) <= e]


@each_overlay
def test_all_of_it_is_found_by_its_labels(overlay: str) -> None:
    """A ConfigMap that a user's own files make has only what the overlay gives it."""
    instances = set()
    for document in built(overlay):
        labels = document["metadata"]["labels"]
        instances.add(labels["app.kubernetes.io/instance"])
        if document["kind"] != "ConfigMap":
            assert labels["app.kubernetes.io/name"] == "reconciler", document["kind"]
    assert len(instances) == 1


@each_overlay
def test_what_runs_unattended_tells_prometheus(overlay: str) -> None:
    """As itself: its series are told from those of another installation wherever they are scraped."""
    (container,) = pod(overlay)["containers"]
    assert "--metrics-file=/metrics/reconciler.prom" in container["args"]
    instance = cron_job(overlay)["metadata"]["labels"]["app.kubernetes.io/instance"]
    hourly = cron_job(overlay)["spec"]["schedule"].split()[1] == "*"
    assert metrics_labels(overlay) == {"installation": instance, "schedule": "hourly" if hourly else "daily"}
    assert len(of_kind(overlay, "Deployment")) == 1


def test_a_copied_overlay_needs_no_more_than_a_name_and_a_label() -> None:
    """What the components need stands in them."""
    for overlay in OVERLAYS:
        settings = yaml.safe_load((DEPLOY / "overlays" / overlay / "kustomization.yaml").read_text())
        assert {"nameSuffix", "labels"} <= set(settings)
        assert [set(label) for label in settings["labels"]] == [{"pairs", "includeSelectors", "includeTemplates"}]


def test_prometheus_finds_every_exporter() -> None:
    monitor = yaml.safe_load((DEPLOY / "alerts" / "servicemonitor.yaml").read_text())
    assert (monitor["apiVersion"], monitor["kind"]) == ("monitoring.coreos.com/v1", "ServiceMonitor")
    assert set(monitor["spec"]) == {"selector", "endpoints"}, "of its own namespace"
    (endpoint,) = monitor["spec"]["endpoints"]
    for overlay in OVERLAYS:
        (service,) = of_kind(overlay, "Service")
        assert set(monitor["spec"]["selector"]["matchLabels"].items()) <= set(service["metadata"]["labels"].items())
        assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]


def test_every_folder_is_used(tmp_path: Path) -> None:
    """A component that no overlay has is one that nobody tried."""
    named = " ".join(p.read_text() for p in DEPLOY.glob("overlays/*/kustomization.yaml"))
    for component in (DEPLOY / "components").iterdir():
        assert f"components/{component.name}" in named


def test_the_page_knows_every_metric_and_part() -> None:
    page = (DEPLOY.parent / "docs" / "kubernetes.md").read_text()
    table = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    assert set(re.findall(r"`(reconciler_\w+)`", table)) == set(HELP)
    assert set(OUTCOMES) <= set(page.split("0 for the others: `")[1].split("`")[0].split())
    for path in re.findall(r"`(deploy/[\w./-]+)`", page):
        assert (DEPLOY.parent / path).exists(), path
    for component in (DEPLOY / "components").iterdir():
        assert f"`deploy/components/{component.name}`" in table
