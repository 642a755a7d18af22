"""What `kubectl kustomize` makes of deploy/."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
OVERLAYS = sorted(p.name for p in (DEPLOY / "overlays").iterdir())


@lru_cache
def _built(folder: Path) -> str:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is missing, which builds deploy/ as users do: https://kubernetes.io/docs/tasks/tools")
    done = subprocess.run([program, "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def built(overlay: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(_built(DEPLOY / "overlays" / overlay)))


def of_kind(overlay: str, kind: str) -> list[dict[str, Any]]:
    return [d for d in built(overlay) if d["kind"] == kind]


def cron_job(overlay: str) -> Any:
    (found,) = of_kind(overlay, "CronJob")
    return found


def pod(overlay: str) -> Any:
    return cron_job(overlay)["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def pods(overlay: str) -> list[dict[str, Any]]:
    """The job's, and those that stay."""
    return [pod(overlay), *(d["spec"]["template"]["spec"] for d in of_kind(overlay, "Deployment"))]


def variables(overlay: str) -> dict[str, str]:
    """Of the container, with those that come from a label of its pod."""
    labels = cron_job(overlay)["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"]
    found: dict[str, str] = {}
    for entry in pod(overlay)["containers"][0]["env"]:
        if "value" in entry:
            found[entry["name"]] = entry["value"]
        else:
            key = re.fullmatch(r"metadata\.labels\['(.+)'\]", entry["valueFrom"]["fieldRef"]["fieldPath"])
            assert key, entry
            found[entry["name"]] = labels.get(key[1], "")
    return found


def arguments(overlay: str) -> list[str]:
    """As Kubernetes gives them to the program."""
    known = variables(overlay)
    return [re.sub(r"\$\((\w+)\)", lambda m: known[m[1]], a) for a in pod(overlay)["containers"][0]["args"]]


def metrics_labels(overlay: str) -> dict[str, str]:
    given = [a.removeprefix("--metrics-label=") for a in arguments(overlay) if a.startswith("--metrics-label=")]
    return {name: value for name, _, value in (label.partition("=") for label in given)}


def containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [*spec.get("initContainers", []), *spec["containers"]]
