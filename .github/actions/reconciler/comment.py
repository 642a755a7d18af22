"""Writes the plan as a comment of the pull request, and afterwards the next plan into the same comment.

A comment that cannot be written is a warning: the plan itself is in the summary of the job, and good.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from github_api import ApiError, GitHub, reading
from workflow import fitted, warning

MAX_CHARACTERS = 65_000
"""GitHub takes 65,536."""
TRIES = 4
LONGEST_WAIT = 60


def marker(name: str) -> str:
    return f"<!-- reconciler:{name} -->"


def footer() -> str:
    env = os.environ
    link = f"{env.get('GITHUB_SERVER_URL')}/{env.get('GITHUB_REPOSITORY')}/actions/runs/{env.get('GITHUB_RUN_ID')}"
    commit = env.get("R_COMMIT") or env.get("GITHUB_SHA", "")
    return f"\n<sub>For commit {commit[:12]}, by [this run]({link}).</sub>\n"


def length(text: str) -> int:
    """UTF-16 units: the strictest of the ways to count characters."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def body(name: str, text: str) -> str:
    """What does not fit is cut from the text: whose comment it is and what it is for are always there."""
    begin, end = f"{marker(name)}\n", footer()
    room = MAX_CHARACTERS - length(begin) - length(end)
    return begin + fitted(text, room, length, "see the summary of the job") + end


def ours(github: GitHub, number: str, name: str, author: str) -> int | None:
    """The first comment that begins with the marker and is the author's: anybody can write the marker."""
    for comment in github.pages(f"issues/{number}/comments"):
        writer = (comment.get("user") or {}).get("login")
        if writer == author and (comment.get("body") or "").startswith(marker(name)):
            return int(comment["id"])
    return None


def write(github: GitHub, number: str, name: str, author: str, text: str) -> None:
    """Looks anew at each try: an attempt without an answer may have made the comment."""
    for tried in range(1, TRIES + 1):
        try:
            with reading():
                found = ours(github, number, name, author)
                how = ("POST", f"issues/{number}/comments") if found is None else ("PATCH", f"issues/comments/{found}")
                int(github.send(*how, {"body": body(name, text)})["id"])
            return
        except ApiError as error:
            if error.wait is None or error.wait > LONGEST_WAIT or tried == TRIES:
                raise
            time.sleep(error.wait * tried)


def main() -> int:
    env = os.environ
    github = GitHub(env["GITHUB_API_URL"], env["GITHUB_REPOSITORY"], env["R_TOKEN"])
    try:
        text = Path(env["R_MARKDOWN"]).read_text("utf-8")
        write(github, env["R_PULL_REQUEST"], env["R_NAME"], env["R_COMMENT_AUTHOR"], text)
    except ApiError as error:
        hint = ""
        if error.status in (401, 403, 404):
            hint = ": the job needs `permissions: pull-requests: write`, which a pull request from a fork never has"
        warning(f"the plan is not in a comment but in the summary of this job: {error}{hint}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
