"""Runs the program as the inputs say. The exit code is an output: the comment and the artifact come before the end."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from github_api import ApiError, GitHub
from reviewed_plan import Merged, NotPlanned, artifact_name, fetch
from workflow import LONGEST, annotation, error, fenced, no_commands, output, summary

OK, ERROR, CHANGES, REFUSED, STALE = 0, 1, 2, 3, 4
OWN = ("push", "schedule", "workflow_dispatch", "repository_dispatch", "merge_group", "release")
"""Events of those who may write to the repository. Behind every other the manifests may be somebody else's."""
UNCOVERED = "does not cover this run"
"""What the program says of a reviewed plan, when nothing was written: another thing may be stale after some steps."""
LONGEST_IN_COMMENT = 20_000
"""Characters of what the program said."""
INPUTS = frozenset(
    f"R_{name}"
    for name in (
        *("PYTHON", "PROGRAM", "COMMAND", "PATHS", "CATALOGS_FROM", "ENV_ALLOW", "FILE_ROOT", "ENV", "ARGS"),
        *("APPLY_ARGS", "NAME", "REVIEWED", "PLAN_WORKFLOW", "TOKEN"),
    )
)
"""The variables of the step that runs this."""


class BadInput(Exception):
    pass


def given(name: str) -> str:
    return os.environ.get(f"R_{name}", "").strip()


def lines(name: str) -> list[str]:
    """One value a line: no shell splits them."""
    return [line.strip() for line in given(name).splitlines() if line.strip()]


def flags(flag: str, name: str) -> list[str]:
    return [word for value in lines(name) for word in (flag, value)]


def paths() -> list[str]:
    found = lines("PATHS")
    if not found:
        raise BadInput("the input `paths` is empty")
    for path in found:
        if path.startswith("-"):
            raise BadInput(f"the path {path} looks like a flag: write ./{path}")
    return found


def reading() -> list[str]:
    """Catalogs come from the base branch wherever a stranger may have written the manifests."""
    base = flags("--catalogs-from", "CATALOGS_FROM")
    if not base and given("COMMAND") != "validate" and os.environ.get("GITHUB_EVENT_NAME") not in OWN:
        raise BadInput(
            "the input `catalogs-from` is needed for pull requests and all that follows from them: give the Catalog "
            "documents of the base branch, or a changed one sends your secrets elsewhere"
        )
    return [*base, *flags("--env-allow", "ENV_ALLOW"), *flags("--file-root", "FILE_ROOT"), *flags("--env", "ENV")]


def program() -> str:
    """Never from the working directory, where a pull request lies."""
    found = os.environ.get("R_PROGRAM") or shutil.which("reconciler")
    if not found or not Path(found).is_absolute():
        raise BadInput("reconciler is not installed: leave the input `version` as it is, or install it before")
    return found


def run(*words: str, show: bool = True) -> tuple[int, str, str]:
    """Both streams go to the log as they come, as text that commands nothing; stdout only when it is for people."""
    with no_commands():
        print(f"$ reconciler {' '.join(words)}", flush=True)
        started = subprocess.Popen(
            [program(), *words],
            env={k: v for k, v in os.environ.items() if k not in INPUTS},  # the token is no business of it
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        kept: tuple[list[str], list[str]] = ([], [])
        threads = [
            threading.Thread(target=_copy, args=(started.stdout, kept[0], show)),
            threading.Thread(target=_copy, args=(started.stderr, kept[1], True)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return started.wait(), "".join(kept[0]), "".join(kept[1])


def _copy(stream: IO[str] | None, kept: list[str], show: bool) -> None:
    for line in stream or ():
        kept.append(line)
        if show:
            sys.stdout.write(line)
            sys.stdout.flush()


def folder() -> Path:
    made = Path(os.environ["RUNNER_TEMP"]) / f"reconciler-{name()}"
    made.mkdir(parents=True, exist_ok=True)
    return made


def name() -> str:
    found = given("NAME") or "plan"
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", found):
        raise BadInput("the input `name` has letters, digits, `_` and `-`, at most 40")
    return found


def failed(title: str, code: int, text: str, longest: int = LONGEST) -> str:
    return f"### {title}: exit code {code}\n\n{fenced(text.strip() or 'see the log', longest)}"


def planned(code: int, file: Path) -> dict[str, Any] | None:
    """The plan in the file, also one that a policy refuses; None when the run failed."""
    if code not in (OK, CHANGES, REFUSED) or not file.exists():
        return None
    made: dict[str, Any] = json.loads(file.read_bytes())
    return made


def plan() -> int:
    """The document on stdout has the warnings, whether the plan is refused and why, or why there is none; stderr is in
    the log, and shown when there is no document."""
    target = folder() / "plan.json"
    target.unlink(missing_ok=True)
    words = ["plan", *paths(), *reading(), *lines("ARGS"), "--format", "markdown", "--detailed-exitcode"]
    code, text, problems = run(*words, "-o", str(target))
    made = planned(code, target)
    if made is None:
        said = failed("No plan", code, problems, LONGEST_IN_COMMENT)
        text = f"### No plan: exit code {code}\n\n{text}" if text else said
    summary(text)
    markdown = folder() / "plan.md"
    markdown.write_text(text, "utf-8", errors="replace")
    output(markdown=str(markdown), changes="true" if made and made["steps"] else "false")
    if made is not None:
        output(files=str(target), artifact=artifact_name(name(), made["manifests_digest"]))
    return OK if code == CHANGES else code


def apply() -> int:
    """The plan is made here, of what was merged. It is applied when the one that was reviewed has all its steps, or
    when it is the very plan that somebody looked at and named."""
    wanted = review()
    now = folder() / "now.json"
    now.unlink(missing_ok=True)
    words = ["plan", *paths(), *reading(), *lines("ARGS"), "--detailed-exitcode", "-o", str(now)]
    code, shown, problems = run(*words)
    if code == OK:
        summary(fenced(shown))
        return OK
    made = planned(code, now)
    if made is None:
        summary(failed("No plan, nothing was applied", code, problems))
        return code
    if code == REFUSED:
        summary(failed("Refused, nothing was applied", code, shown))
        return code
    reviewed = approved(wanted, made, shown)
    if reviewed is None:
        return STALE
    files = ["--report", str(folder() / "report.json"), "--journal", str(folder() / "journal.jsonl")]
    code, said, problems = run("apply", "--plan", str(now), *reviewed, "--yes", *files, *lines("APPLY_ARGS"))
    summary(fenced(said) if code == OK else failed("Apply", code, said + problems))
    if code == STALE and UNCOVERED in problems:
        not_seen(f"the reviewed plan {UNCOVERED}. Nothing was applied", made, shown)
    run_id = f"{os.environ.get('GITHUB_RUN_ID', '0')}-{os.environ.get('GITHUB_RUN_ATTEMPT', '1')}"
    output(files=str(folder()), artifact=f"reconciler-report-{name()}-{run_id}")
    return code


def merged() -> Merged:
    """The workflow that plans is this one, unless the input says which."""
    here = os.environ.get("GITHUB_WORKFLOW_REF", "").partition("@")[0]
    workflow = given("PLAN_WORKFLOW") or here.removeprefix(f"{os.environ['GITHUB_REPOSITORY']}/")
    return Merged(os.environ["GITHUB_SHA"], os.environ["GITHUB_REF_NAME"], workflow)


def review() -> str:
    """`true`, `false`, or the id of a plan."""
    found = given("REVIEWED") or "true"
    if found not in ("true", "false") and not re.fullmatch("sha256:[0-9a-f]{64}", found):
        raise BadInput("the input `reviewed` is true, false, or the id of a plan: sha256: and 64 digits")
    return found


def approved(wanted: str, made: Mapping[str, Any], shown: str) -> list[str] | None:
    """By which flags `apply` holds the plan against the one that was reviewed. None when nobody saw it: then it is
    shown, and what to do is said. The id of a plan is the digest of all of it, so no other one passes for it."""
    if wanted == "true":
        problem, file = _reviewed(made["manifests_digest"])
        if file is not None:
            return ["--reviewed", str(file)]
    elif wanted in ("false", made["plan_id"]):
        return []
    else:
        day = ", or the day, on which waivers were judged" if "judged_on" in made else ""
        problem = f"the plan is no longer {wanted}: a catalog or the manifests have changed since{day}"
    not_seen(f"{problem}. Nothing was applied", made, shown)
    return None


def not_seen(problem: str, made: Mapping[str, Any], shown: str) -> None:
    hint = (
        "Look at the plan of this run; to have it applied, run this by hand with "
        f"`reviewed: {made['plan_id']}`, or merge a pull request from a branch of this repository that is up to date."
    )
    error(f"{problem}. {hint}")
    summary(f"### Not applied\n\n{fenced(problem)}\n{hint}\n\n{fenced(shown)}")


def _reviewed(digest: str) -> tuple[str, Path | None]:
    """The plan of the pull request, or why there is none."""
    wanted = artifact_name(name(), digest)
    file = folder() / "reviewed.json"
    github = GitHub(os.environ["GITHUB_API_URL"], os.environ["GITHUB_REPOSITORY"], os.environ["R_TOKEN"])
    try:
        fetch(github, wanted, merged(), file)
    except NotPlanned as why:
        return f"no pull request was planned with these manifests and merged with this commit: {why}", None
    except ApiError as failure:
        rights = "; the job needs `actions: read` and `pull-requests: read`" if failure.status in (403, 404) else ""
        return f"the reviewed plan {wanted} cannot be had: {failure}{rights}", None
    return "", file


def validate() -> int:
    """No secret is read: this is what pull requests from forks get. What is wrong is shown at its line."""
    words = ["validate", *paths(), *reading(), *lines("ARGS"), "--no-resolve", "--format", "json"]
    code, shown, problems = run(*words, show=False)
    try:
        found = json.loads(shown)
    except ValueError:
        summary(failed("Not validated", code, problems))
        return code or ERROR
    said = []
    for d in found["diagnostics"]:
        hint = f" ({d['hint']})" if d.get("hint") else ""
        text = f"{d['message']}{hint}"
        annotation(d["severity"], text, file=d["file"], line=d["line"], col=d["column"], title=d["code"])
        said.append(f"{d['file']}:{d['line']}:{d['column']}: {d['severity']}[{d['code']}]: {text}")
    counts = found["summary"]
    said.append(f"{counts['documents']} documents, {counts['errors']} errors, {counts['warnings']} warnings")
    with no_commands():
        print("\n".join(said))
    summary(fenced("\n".join(said)))
    return code


COMMANDS = {"plan": plan, "apply": apply, "validate": validate}


def main() -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # A name of a file need not be text.
    try:
        chosen = COMMANDS.get(given("COMMAND"))
        if chosen is None:
            raise BadInput("the input `command` is one of plan, apply and validate")
        code = chosen()
    except BadInput as problem:
        error(str(problem))
        code = ERROR
    output(exit_code=str(code))
    return OK


if __name__ == "__main__":
    sys.exit(main())
