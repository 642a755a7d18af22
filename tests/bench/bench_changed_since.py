"""(k) `--changed-since` on 10,000 manifests, one to a file: what it takes over `git diff --name-only` of the same."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from timing import best, table

from reconciler.manifest.affected import affected
from reconciler.manifest.changed_documents import Found, changed_documents
from reconciler.manifest.defaults import Defaults
from reconciler.manifest.files import find
from reconciler.manifest.load import load

FILES = 10_000
ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}


def git(folder: Path, *arguments: str) -> None:
    environment = os.environ | ALONE | WHO
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


def document(number: int, team: str = "a") -> str:
    return (
        "apiVersion: reconciler.lance/v1\nkind: Table\n"
        f"metadata: {{catalog: lake, id: [n{number // 100}, t{number}]}}\n"
        f"spec:\n  properties: {{team: {team}}}\n  schema: [{{name: id, type: int64}}, {{name: text, type: string}}]\n"
    )


def repository(folder: Path) -> None:
    head = "apiVersion: reconciler.lance/v1\nkind: "
    (folder / "lake.yaml").write_text(head + "Catalog\nmetadata: {name: lake}\nspec: {type: dir, path: ./lake}\n")
    for number in range(FILES):
        path = folder / f"n{number // 100}" / f"t{number}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(document(number))
    for part in range(FILES // 100):
        text = head + f"Namespace\nmetadata: {{catalog: lake, id: [n{part}]}}\n"
        (folder / f"n{part}" / "namespace.yaml").write_text(text)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")


def figures(folder: Path, changed: int) -> list[str]:
    """What loading does anyway (finding the files, the objects) is not counted."""
    for number in range(changed):
        (folder / f"n{number // 100}" / f"t{number}.yaml").write_text(document(number, "b"))
    found = Found([str(folder)], list(find([str(folder)], [])), [])
    desired = load([str(folder)]).desired
    chosen = affected(changed_documents("main", found, str), desired, {}, Defaults())
    assert len(chosen.only["lake"]) == changed
    alone = best(lambda: git(folder, "diff", "--name-only", "main", "--"))
    ours = best(lambda: affected(changed_documents("main", found, str), desired, {}, Defaults()))
    return [f"{changed:,}", f"{alone:.2f} s", f"{ours:.2f} s", f"{ours - alone:.2f} s"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        repository(Path(name))
        rows = [figures(Path(name), changed) for changed in (20, 1_000, FILES)]
    table([f"changed of {FILES:,}", "git diff --name-only", "--changed-since", "over git"], rows)
