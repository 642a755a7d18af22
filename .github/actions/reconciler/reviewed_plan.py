"""The plan that was reviewed: the artifact that the run of the pull request kept, by the digest of the manifests.

It is compared with the plan made now and never run. A forged one would still do harm: it could have steps that nobody
saw, for a catalog that somebody changed meanwhile. Whoever can push a branch can keep an artifact of any name; so it
has to come from the run of the planning workflow, for the commit of the pull request that was merged.
"""

from __future__ import annotations

import io
import time
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from github_api import ApiError, GitHub, reading

PLAN = "plan.json"
MAX_PLAN = 512 << 20
TRIES = 3
EVENT = "pull_request"


@dataclass(frozen=True)
class Merged:
    """What is applied, and which workflow planned it."""

    commit: str
    branch: str
    workflow: str
    """The path of its file in the repository."""


class NotPlanned(Exception):
    """There is no such plan. Says why, as far as that can be known."""


def artifact_name(name: str, digest: str) -> str:
    """`digest` as a plan has it in `manifests_digest`."""
    return f"reconciler-{name}-{digest.removeprefix('sha256:')[:40]}"


def fetch(github: GitHub, name: str, merged: Merged, target: Path) -> None:
    """Raises NotPlanned and ApiError."""
    for tried in range(1, TRIES + 1):
        try:
            with reading():
                found = _found(github, name, merged)
            target.write_bytes(_plan_in(github.download(f"actions/artifacts/{found}/zip")))
            return
        except ApiError as error:
            if error.wait is None or tried == TRIES:
                raise
            time.sleep(min(error.wait, 60) * tried)


def _found(github: GitHub, name: str, merged: Merged) -> int:
    pulls = _pulls(github, merged)
    found = _newest(github, name, merged, {str(p["head"]["sha"]) for p in pulls}) if pulls else None
    if found is None:
        raise NotPlanned(_why(pulls, name, merged))
    return found


def _why(pulls: list[dict[str, Any]], name: str, merged: Merged) -> str:
    """A head without a repository is that of a fork that is gone."""
    if not pulls:
        return f"none brought it to {merged.branch}; it was pushed, or this is a run by hand for a later commit"
    forks = [p for p in pulls if (p["head"].get("repo") or {}).get("id") != p["base"]["repo"]["id"]]
    if forks:
        return f"#{int(forks[0]['number'])} is from a fork, and a fork gets no plan"
    return f"there is no artifact {name} of its last commit; the manifests have changed since, or it has expired"


def _newest(github: GitHub, name: str, merged: Merged, heads: set[str]) -> int | None:
    kept = []
    for artifact in github.pages(f"actions/artifacts?name={name}", "artifacts"):
        run = artifact.get("workflow_run") or {}
        own = run.get("repository_id") is not None and run.get("repository_id") == run.get("head_repository_id")
        if artifact.get("name") == name and not artifact.get("expired") and own and run.get("head_sha") in heads:
            kept.append((str(artifact.get("created_at")), int(artifact["id"]), int(run["id"])))
    return next((found for _, found, run in sorted(kept, reverse=True) if _planned(github, run, merged, heads)), None)


def _pulls(github: GitHub, merged: Merged) -> list[dict[str, Any]]:
    """Those that brought the commit, with their last commits as they were when they were merged."""
    pulls = github.pages(f"commits/{merged.commit}/pulls")
    return [p for p in pulls if p.get("merged_at") and p["base"]["ref"] == merged.branch]


def _planned(github: GitHub, run: int, merged: Merged, heads: set[str]) -> bool:
    found = github.get(f"actions/runs/{run}")
    path = str(found.get("path")).partition("@")[0]
    return path == merged.workflow and found.get("event") == EVENT and found.get("head_sha") in heads


def _plan_in(data: bytes) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if archive.getinfo(PLAN).file_size > MAX_PLAN:
                raise ApiError(f"{PLAN} of the artifact is too large")
            return archive.read(PLAN)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, RuntimeError) as error:
        raise ApiError(f"the artifact has no {PLAN}") from error
