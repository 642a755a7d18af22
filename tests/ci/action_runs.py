"""Runs the steps of action.yml as a runner does: conditions, environment and outputs as written there, `run` by bash.

Only what the file really uses of the expression language is understood; anything else is an error of the test.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from github_stand_in import MERGED, REPOSITORY, TOKEN, WORKFLOW, StandIn

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / ".github" / "actions" / "reconciler"
EVENT = Path(__file__).with_name("pull_request.json")
SECRET = "CANARY-of-the-catalog-7777"
BASE = ".base"
PLAN = {"command": "plan", "version": "none", "catalogs_from": f"{BASE}/manifests"}
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_BASH = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]


@dataclass
class Job:
    """A job of a workflow that uses the action once."""

    workspace: Path
    temp: Path
    github: StandIn
    event_name: str = "pull_request"
    secrets: Mapping[str, str] = field(default_factory=dict)
    action: Path = ACTION
    workflow: str = WORKFLOW
    log: str = ""
    summary: str = ""
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)

    def use(self, made: str | None = None, **inputs: str) -> int:
        """The exit code of the step that failed, or 0. `made` is a plan that was made before: the step is left out."""
        if made is not None:
            self.temp.mkdir(exist_ok=True)
            (self.temp / "plan.md").write_text(made)
            self.outputs["run"] = {"markdown": str(self.temp / "plan.md"), "exit-code": "0"}
        written = yaml.safe_load((self.action / "action.yml").read_text())
        names = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert names.keys() <= written["inputs"].keys()
        given = {name: str(spec.get("default", "")) for name, spec in written["inputs"].items()}
        known = {"inputs": {k: self._filled(v, {}) for k, v in given.items()} | names, "github": self._context()}
        for step in written["runs"]["steps"]:
            if ("if" in step and not self._holds(str(step["if"]), known)) or (made and step["name"] == "Run"):
                continue
            self.ran.append(step["name"])
            if "uses" in step:
                self._keep({k: self._filled(str(v), known) for k, v in step["with"].items()})
                continue
            env = {k: self._filled(str(v), known) for k, v in step.get("env", {}).items()}
            assert "${{" not in step["run"], "what comes from outside goes through the environment"
            code = self._bash(step["run"], env, step.get("id", step["name"]))
            if code:
                return code
        return 0

    def _context(self) -> dict[str, Any]:
        event = json.loads(EVENT.read_text()) if self.event_name == "pull_request" else {}
        return {"token": TOKEN, "event": event, "event_name": self.event_name}

    def _bash(self, script: str, env: Mapping[str, str], id_: str) -> int:
        self.temp.mkdir(exist_ok=True)
        files = {name: self.temp / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        runner = {
            "PATH": f"{self.bin()}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.temp),
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_ACTION_PATH": str(self.action),
            "GITHUB_API_URL": self.github.url,
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_EVENT_NAME": self.event_name,
            "GITHUB_EVENT_PATH": str(EVENT),
            "GITHUB_RUN_ID": "99",
            "GITHUB_SHA": MERGED,
            "GITHUB_REF_NAME": "7/merge" if self.event_name == "pull_request" else "main",
            "GITHUB_WORKFLOW_REF": f"{REPOSITORY}/{self.workflow}@refs/heads/main",
            **{name: str(file) for name, file in files.items()},
        }
        step = self.temp / "step.sh"
        step.write_text(script)
        done = subprocess.run(
            [*_BASH, str(step)],
            cwd=self.workspace,
            env={**runner, **self.secrets, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )
        self.log += done.stdout
        self.summary += files["GITHUB_STEP_SUMMARY"].read_text()
        lines = files["GITHUB_OUTPUT"].read_text().splitlines()
        self.outputs[id_] = dict(line.split("=", 1) for line in lines)
        return done.returncode

    def bin(self) -> Path:
        """A `reconciler` that is this checkout, started as an installed one is: not by `-m`, which would look for
        modules in the working directory."""
        folder = self.temp.parent / f"{self.temp.name}-bin"
        if not folder.exists():
            folder.mkdir()
            program = folder / "reconciler"
            program.write_text(
                f"#!{sys.executable}\nimport sys\nsys.path.insert(1, {str(ROOT)!r})\n"
                f"from reconciler.cli import run\nsys.exit(run(sys.argv[1:]))\n"
            )
            program.chmod(0o755)
            (folder / "python3").symlink_to(sys.executable)
        return folder

    def _keep(self, given: Mapping[str, str]) -> None:
        """actions/upload-artifact, which overwrites."""
        path = Path(given["path"])
        content = path.read_bytes() if path.is_file() else b"".join(p.read_bytes() for p in sorted(path.iterdir()))
        self.github.keep(given["name"], content, self.event_name)

    def _value(self, name: str, known: Mapping[str, Any]) -> str:
        parts = name.split(".")
        if parts[0] == "steps":
            assert parts[2] == "outputs"
            return self.outputs.get(parts[1], {}).get(parts[3], "")
        found: Any = known or {"github": self._context()}
        for part in parts:
            found = found.get(part, "") if isinstance(found, dict) else ""
        return str(found)

    def _filled(self, text: str, known: Mapping[str, Any]) -> str:
        return _EXPRESSION.sub(lambda match: self._value(match.group(1), known), text)

    def _holds(self, condition: str, known: Mapping[str, Any]) -> bool:
        for part in condition.split("&&"):
            match = re.fullmatch(r"([\w.-]+)(?: (==|!=) '([^']*)')?", part.strip())
            assert match is not None, condition
            value, how, other = self._value(match.group(1), known), match.group(2), match.group(3)
            if not (value if how is None else (value == other) == (how == "==")):
                return False
        return True
