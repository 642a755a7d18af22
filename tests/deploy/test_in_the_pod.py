"""The CronJobs' own commands, with their environment and their volumes as Kubernetes and git-sync lay them out.

Where this runs as root the pod is closer still: another user, and a file system that cannot be written except where the
CronJob mounts an emptyDir.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from kustomized import DEPLOY, arguments, of_kind, pod, variables
from servers.moto import KEYS, Moto

REPO = DEPLOY.parent
BUCKET = "acme-lake"
COMMIT = "7272b459d6ae3e75bf0d63262ef56169ff3085d6"
USER = "10001"
pytestmark = pytest.mark.slow

CLOSED = """
for folder in $WRITABLE; do mount --bind "$folder" "$folder" || exit 99; done
mount -o remount,bind,ro / && cd "$PWD" || exit 99
exec setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs \
  --inh-caps=-all,+dac_read_search --ambient-caps=-all,+dac_read_search --bounding-set=-all,+dac_read_search "$@"
"""
"""Reads all (the interpreter may lie in root's home), writes only what its user may."""


@cache
def can_be_closed() -> bool:
    if os.geteuid() != 0 or not shutil.which("setpriv") or not shutil.which("unshare"):
        return False
    call = ["unshare", "--mount", "sh", "-c", CLOSED, "sh", "true"]
    return subprocess.run(call, env={**os.environ, "WRITABLE": ""}, capture_output=True, check=False).returncode == 0


def as_volume(folder: Path, files: dict[str, str]) -> None:
    """ConfigMaps and Secrets: links to a folder behind a link, which is replaced as a whole."""
    data = folder / "..2026_01_02_03_04_05.678"
    data.mkdir(parents=True)
    (folder / "..data").symlink_to(data.name)
    for name, text in files.items():
        (data / name).write_text(text)
        (folder / name).symlink_to(f"..data/{name}")


def as_worktree(folder: Path, files: dict[str, str]) -> None:
    """git-sync 4: a link to a worktree of the commit."""
    tree = folder / ".worktrees" / COMMIT
    (tree / "manifests").mkdir(parents=True)
    (folder / ".git").mkdir()
    (tree / ".git").write_text("gitdir: ../../.git/worktrees/x\n")
    (folder / "current").symlink_to(f".worktrees/{COMMIT}")
    for name, text in files.items():
        (tree / "manifests" / name).write_text(text)


@dataclass
class Pod:
    """Of one overlay, its file system below a folder of ours."""

    overlay: str
    root: Path
    variables: dict[str, str]
    writable: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        (container,) = pod(self.overlay)["containers"]
        volumes = {v["name"]: v for v in pod(self.overlay)["volumes"]}
        for mount in container["volumeMounts"]:
            folder = self.inside(mount["mountPath"])
            volume = volumes[mount["name"]]
            if mount["name"] == "secrets":
                as_volume(folder, KEYS)
            elif "configMap" in volume:
                (config,) = of_kind(self.overlay, "ConfigMap")
                as_volume(folder, {name: self.moved(text) for name, text in config["data"].items()})
            elif mount.get("readOnly"):
                lake = (DEPLOY / "overlays" / "apply" / "lake.yaml").read_text()
                as_worktree(folder, {"lake.yaml": self.moved(lake)})
            else:
                folder.mkdir(parents=True)
                self.writable.append(folder)
                folder.chmod(0o777)
        self.container = container

    def inside(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def moved(self, text: str) -> str:
        """With our folder before the paths of the pod."""
        return re.sub(r"(?<![\w/])/(?=(manifests|metrics|work|tmp|var)\b)", f"{self.root}/", text)

    def run(self, *instead: str) -> subprocess.CompletedProcess[str]:
        """The container's command, or another one in its place."""
        given = {name: self.moved(value) for name, value in variables(self.overlay).items()}
        words = [self.moved(word) for word in arguments(self.overlay)]
        call = [*instead] or [sys.executable, "-m", "reconciler", *words]
        if can_be_closed():
            call = ["unshare", "--mount", "sh", "-c", CLOSED, "sh", *call]
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPO),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(self.inside("/tmp")),
            "RECONCILER_TERMINATION_LOG": str(self.inside("/tmp") / "termination-log"),
            "WRITABLE": " ".join(map(str, self.writable)),
            **self.variables,
            **given,
        }
        return subprocess.run(
            call, cwd=self.inside(self.container["workingDir"]), env=environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    @property
    def last_words(self) -> str:
        return (self.inside("/tmp") / "termination-log").read_text()


@pytest.fixture(scope="module")
def store(moto: Moto) -> dict[str, str]:
    """A real S3 server in the place of the one that the example names, found through the environment."""
    moto.make_bucket(BUCKET)
    return {"AWS_ENDPOINT": moto.endpoint, "AWS_ALLOW_HTTP": "true"}


def events(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stderr.splitlines()]


def test_a_night_of_all_three(store: dict[str, str], tmp_path: Path) -> None:
    drift, apply, git = (Pod(o, tmp_path / o, store) for o in ("drift", "apply", "git-sync"))
    metrics = drift.inside("/metrics") / "reconciler.prom"

    done = drift.run()
    assert done.returncode == 2, done.stdout + done.stderr
    assert [e["event"] for e in events(done)] == ["run_ended"]
    own = 'command="drift",installation="drift",schedule="daily"'
    assert f'reconciler_pending{{{own},catalog="lake",kind="create"}} 2' in metrics.read_text()
    assert metrics.stat().st_mode & 0o444 == 0o444, "the exporter is another process"

    done = apply.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert [e["status"] for e in events(done) if e["event"] == "step_ended"] == ["done"] * 3
    assert {e["level"] for e in events(done)} == {"info"}, "no warning of something that cannot be written"
    assert apply.last_words.startswith("apply: applied, exit code 0")
    assert 'outcome="applied"} 1' in (apply.inside("/metrics") / "reconciler.prom").read_text()
    (journal,) = apply.inside("/work").rglob("*.jsonl")
    assert json.loads(journal.read_text().splitlines()[-1])["outcome"] == "applied"

    done = drift.run()
    assert done.returncode == 0, done.stdout + done.stderr
    done = git.run()
    assert (done.returncode, events(done)[-1]["outcome"]) == (0, "no_changes"), done.stdout + done.stderr
    assert 'outcome="no_changes"} 1' in (git.inside("/metrics") / "reconciler.prom").read_text()
    secret = KEYS["aws_secret_access_key"]
    for file in tmp_path.rglob("*"):
        if file.is_file() and "secrets" not in file.parts:
            assert secret not in file.read_text(errors="replace"), file


def test_a_secret_that_is_missing_is_named(store: dict[str, str], tmp_path: Path) -> None:
    """The volume is optional, so that this is an error of ours and not a pod that never starts."""
    broken = Pod("apply", tmp_path / "broken", store)
    (broken.inside("/var/run/secrets/reconciler") / "aws_access_key_id").unlink()
    done = broken.run()
    assert done.returncode == 1
    assert "aws_access_key_id" in broken.last_words
    assert "lake.yaml:" in broken.last_words


def test_the_pod_is_as_closed_as_it_looks(tmp_path: Path) -> None:
    closed = Pod("apply", tmp_path / "closed", {})
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o777)
    wrote = closed.run("sh", "-c", f"echo x > {outside}/file; id -u").stdout.strip()
    assert closed.run("sh", "-c", f"echo x > {closed.inside('/work')}/file").returncode == 0
    if can_be_closed():
        assert wrote == USER
        assert not (outside / "file").exists()
