"""The plan that was reviewed: the artifact that the run of the pull request kept, by the digest of the manifests.

It is compared with the plan made now and never run, so it need not be trusted. Still, one of a fork is not taken.
"""

from __future__ import annotations

import io
import time
import zipfile
from pathlib import Path

from github_api import ApiError, GitHub

PLAN = "plan.json"
MAX_PLAN = 512 << 20
TRIES = 3


def artifact_name(name: str, digest: str) -> str:
    """`digest` as a plan has it in `manifests_digest`."""
    return f"reconciler-{name}-{digest.removeprefix('sha256:')[:40]}"


def fetch(github: GitHub, name: str, target: Path) -> bool:
    """False when there is none. Raises ApiError."""
    for tried in range(1, TRIES + 1):
        try:
            found = _newest(github, name)
            if found is None:
                return False
            target.write_bytes(_plan_in(github.download(f"actions/artifacts/{found}/zip")))
            return True
        except ApiError as error:
            if error.wait is None or tried == TRIES:
                raise
            time.sleep(min(error.wait, 60) * tried)
    return False


def _newest(github: GitHub, name: str) -> int | None:
    kept = []
    for artifact in github.pages(f"actions/artifacts?name={name}", "artifacts"):
        run = artifact.get("workflow_run") or {}
        own = run.get("repository_id") is not None and run.get("repository_id") == run.get("head_repository_id")
        if artifact.get("name") == name and not artifact.get("expired") and own:
            kept.append((str(artifact.get("created_at")), int(artifact["id"])))
    return max(kept)[1] if kept else None


def _plan_in(data: bytes) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if archive.getinfo(PLAN).file_size > MAX_PLAN:
                raise ApiError(f"{PLAN} of the artifact is too large")
            return archive.read(PLAN)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ApiError(f"the artifact has no {PLAN}") from error
