"""(m) `--changed-since` on 10,000 manifests: what it adds to reading them, over `git diff --name-only` of the same.

The same folder is loaded with and without it, in turn, and the least of several runs counts: in seconds, and in
processor seconds with those of git, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from timing import table

from reconciler.manifest.load import load

TABLES = 10_000
TIMES = 3
ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
HEAD = "apiVersion: reconciler.lance/v1\nkind: "
TYPES = ("int64", "string", "float64", "timestamp[us, tz=UTC]", "fixed_size_list<float32>[768]")
Document = Callable[[int, str], str]
Seconds = tuple[float, float]


def git(folder: Path, *arguments: str) -> None:
    environment = os.environ | ALONE | WHO
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


def small(number: int, team: str) -> str:
    return (
        f"{HEAD}Table\nmetadata: {{catalog: lake, id: [n{number // 100}, t{number}]}}\n"
        f"spec:\n  properties: {{team: {team}}}\n  schema: [{{name: id, type: int64}}, {{name: text, type: string}}]\n"
    )


def wide(number: int, team: str) -> str:
    """20 columns, as people write them."""
    columns = "".join(
        f'    - name: column_{n}\n      type: "{TYPES[(n + number) % 5]}"\n      comment: what {n} of t{number} is\n'
        if n % 4 == 0
        else f'    - {{name: column_{n}, type: "{TYPES[n % 5]}", nullable: false}}\n'
        for n in range(20)
    )
    return (
        f"{HEAD}Table\nmetadata:\n  catalog: lake\n  id: [n{number // 100}, t{number}]\n"
        f"spec:\n  description: The table number {number}.\n  properties:\n    team: {team}\n    tier: gold\n"
        f"  schema:\n{columns}"
    )


def commented(number: int, team: str) -> str:
    return (f"# {team}\n" if team != "a" else "") + small(number, "a")


def write(folder: Path, document: Document, in_file: int, changed: int, team: str) -> None:
    """The first `changed` tables are the team's, the others are those of `a`; those that are to a file lie together."""
    for first in range(0, TABLES, in_file):
        path = folder / f"n{first // 100}" / f"t{first}.yaml"
        path.parent.mkdir(exist_ok=True)
        texts = [document(n, team if n < changed else "a") for n in range(first, first + in_file)]
        text = "---\n".join(texts)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def repository(folder: Path, document: Document, in_file: int) -> None:
    (folder / "lake.yaml").write_text(HEAD + "Catalog\nmetadata: {name: lake}\nspec: {type: dir, path: ./lake}\n")
    write(folder, document, in_file, 0, "a")
    for part in range(TABLES // 100):
        text = HEAD + f"Namespace\nmetadata: {{catalog: lake, id: [n{part}]}}\n"
        (folder / f"n{part}" / "namespace.yaml").write_text(text)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")


def spent(action: Callable[[], object]) -> Seconds:
    """Seconds, and processor seconds with those of child processes."""
    start, before = time.perf_counter(), os.times()
    action()
    after = os.times()
    return time.perf_counter() - start, sum(after[:4]) - sum(before[:4])


def least(actions: list[Callable[[], object]]) -> list[Seconds]:
    runs = [[spent(action) for action in actions] for _ in range(TIMES)]
    return [(min(r[n][0] for r in runs), min(r[n][1] for r in runs)) for n in range(len(actions))]


def figures(folder: Path, document: Document, in_file: int, changed: int) -> list[str]:
    write(folder, document, in_file, changed, "b")
    paths = [str(folder)]
    found = load(paths, changed_since="main")
    assert found.changed is not None
    assert len(found.changed.only["lake"]) == (0 if document is commented else changed)
    alone, without, with_it = least(
        [
            lambda: git(folder, "diff", "--name-only", "main", "--"),
            lambda: load(paths),
            lambda: load(paths, changed_since="main"),
        ]
    )
    over = [with_it[n] - without[n] - alone[n] for n in (0, 1)]
    row = [document.__name__, str(in_file), f"{changed:,}"]
    row += [f"{measured[0]:.2f} s, cpu {measured[1]:.2f}" for measured in (alone, without, with_it)]
    return [*row, f"{over[0]:.2f} s, cpu {over[1]:.2f}"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", help="one kind of table: small, wide, commented")
    only = parser.parse_args().only
    rows = []
    for document, in_file, counts in (
        (small, 1, (20, 1_000, TABLES)),
        (commented, 1, (TABLES,)),
        (wide, 1, (TABLES,)),
        (wide, 100, (TABLES // 2 + 50,)),
    ):
        if only in (None, document.__name__):
            with tempfile.TemporaryDirectory() as name:
                repository(Path(name), document, in_file)
                rows += [figures(Path(name), document, in_file, count) for count in counts]
    heads = ["tables", "to a file", f"changed of {TABLES:,}", "git diff --name-only", "load", "--changed-since", "over"]
    table(heads, rows)
