"""Real kills: the program is SIGKILLed while it applies, at many points; running it again ends in the same state as an
undisturbed run. Both are read with plain pylance, not with our own code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import lance_namespace as ln
import pytest
from lance.namespace import DirectoryNamespace

REPO = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPO)}

pytestmark = pytest.mark.slow

HEAD = "apiVersion: reconciler.lance/v1\n"
SCHEMA = """
  schema:
    - {name: id, type: int64, nullable: false, comment: the key}
    - {name: tags, type: list<string>}
    - {name: vector, type: "fixed_size_list<float32>[8]", metadata: {unit: m}}
  config: {team: vision}
  schemaMetadata: {made: for tests}
"""


def manifests(tables: int) -> str:
    documents = [
        f"{HEAD}kind: Catalog\nmetadata: {{name: lake}}\n"
        "spec:\n  type: dir\n  path: ./lake\n  management: {owner: us}\n"
    ]
    for n in range(2):
        documents.append(
            f"{HEAD}kind: Namespace\nmetadata: {{catalog: lake, id: [n{n}]}}\nspec: {{properties: {{nr: '{n}'}}}}\n"
        )
    for t in range(tables):
        index = "  indexes: [{column: id, type: btree}]\n" if t % 5 == 0 else ""
        documents.append(
            f"{HEAD}kind: Table\nmetadata: {{catalog: lake, id: [n{t % 2}, t{t:03}]}}\n"
            f"spec:\n  description: table {t}\n  properties: {{nr: '{t}'}}{SCHEMA.rstrip()}\n{index}"
        )
    return "---\n".join(documents)


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "reconciler", *arguments, "--yes", "--journal", "j.jsonl"]
    return subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(folder: Path, *arguments: str) -> None:
    running = start(folder, *arguments)
    out, _ = running.communicate(timeout=300)
    assert running.returncode == 0, out.decode()


def lines(folder: Path) -> int:
    journal = folder / "j.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def kill_after(folder: Path, more: int, *arguments: str) -> bool:
    """Kills once the journal has `more` further lines. False when the run ended first."""
    goal = lines(folder) + more
    running = start(folder, *arguments)
    while running.poll() is None and lines(folder) < goal:
        time.sleep(0.0005)
    running.kill()
    running.communicate()
    return running.returncode == -9


def seen(root: Path) -> dict[str, Any]:
    """Everything a user of plain pylance can see, without versions and folder names."""
    namespace = DirectoryNamespace(root=str(root))

    def walk(ident: list[str]) -> Iterator[tuple[str, Any]]:
        for name in namespace.list_namespaces(ln.ListNamespacesRequest(id=ident)).namespaces:
            below = [*ident, name]
            yield ".".join(below), namespace.describe_namespace(ln.DescribeNamespaceRequest(id=below)).properties
            yield from walk(below)
        for name in namespace.list_tables(ln.ListTablesRequest(id=ident)).tables:
            table = namespace.describe_table(ln.DescribeTableRequest(id=[*ident, name]))
            yield ".".join([*ident, name]), (table.properties, dataset(table.location))

    return dict(walk([]))


def dataset(location: str) -> dict[str, Any]:
    opened = lance.dataset(location)
    indexes = sorted((i.name, i.type_url, tuple(i.field_names)) for i in opened.describe_indices())
    schema = opened.schema
    return {
        "schema": schema.to_string(show_field_metadata=True, show_schema_metadata=True),
        "config": opened.config(),
        "metadata": dict(opened.metadata),
        "indexes": indexes,
        "rows": opened.count_rows(),
    }


def undisturbed(folder: Path, tables: int) -> dict[str, Any]:
    folder.mkdir()
    (folder / "m.yaml").write_text(manifests(tables))
    finish(folder, "apply", "m.yaml")
    return seen(folder / "lake")


class Warm:
    """Real processes of the program, forked from one that has imported everything (see warm.py)."""

    def __init__(self) -> None:
        self.parent = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "warm.py")],
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def apply(self, folder: Path, journal: str, lines: int | None, *more: str) -> int:
        """Killed once the journal has that many lines. The exit code, -9 when it was killed."""
        arguments = ["apply", "m.yaml", "--yes", "--journal", journal, *more]
        command = {"folder": str(folder), "arguments": arguments, "journal": journal, "lines": lines}
        assert self.parent.stdin is not None
        assert self.parent.stdout is not None
        self.parent.stdin.write(json.dumps(command) + "\n")
        self.parent.stdin.flush()
        return int(self.parent.stdout.readline())

    def finish(self, folder: Path) -> None:
        assert self.apply(folder, "last.jsonl", None) == 0, (folder / "out.txt").read_text()


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    made = Warm()
    yield made
    made.parent.communicate(timeout=60)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return undisturbed(tmp_path_factory.mktemp("small") / "calm", 2)


@pytest.mark.parametrize("k", range(1, 17))
def test_killed_after_journal_line(k: int, tmp_path: Path, small: dict[str, Any], warm: Warm) -> None:
    """Every line of the journal of a small lake (a header, a start and an end of 7 steps, a finish)."""
    (tmp_path / "m.yaml").write_text(manifests(2))
    warm.apply(tmp_path, "j.jsonl", k, "--parallelism", "1")
    warm.finish(tmp_path)
    assert seen(tmp_path / "lake") == small


def last_line(journal: Path) -> str:
    """What a killed run noted last: `start declare_table`."""
    events = [json.loads(line) for line in journal.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    actions = {e["step"]: e["action"] for e in events if e["event"] == "start"}
    return f"{events[-1]['event']} {actions.get(events[-1].get('step'), '')}".strip()


BOUNDARIES = {
    "header",
    *(f"{event} {action}" for event in ("start", "end") for action in ("declare_table", "create_dataset")),
}
"""Those that come so often that a kill must have met each of them; the small lake meets all others one by one."""


def test_a_hundred_tables_killed_all_along_the_journal(tmp_path: Path, warm: Warm) -> None:
    """Each run goes on where the one before was killed, a few lines later: header, starts and ends of every kind."""
    goal = undisturbed(tmp_path / "calm", 100)
    assert len(goal) == 102
    folder = tmp_path / "wild"
    folder.mkdir()
    (folder / "m.yaml").write_text(manifests(100))
    ends: list[str] = []
    while True:
        journal, n = f"j{len(ends)}.jsonl", len(ends)
        # 1 is the header alone. Alone, a run does one step after another; side by side, lines of several steps mix.
        parallelism = "8" if n % 3 == 2 else "1"
        code = warm.apply(folder, journal, (1, 2, 3, 6, 9, 4, 8, 5, 15)[n % 9], "--parallelism", parallelism)
        if code != -9:
            break
        ends.append(last_line(folder / journal))
    assert code == 0, (folder / "out.txt").read_text()
    assert len(ends) > 40, "too few runs were really killed"
    assert set(ends) >= BOUNDARIES
    assert seen(folder / "lake") == goal


def test_a_saved_plan_is_resumed_after_kills(tmp_path: Path) -> None:
    goal = undisturbed(tmp_path / "calm", 30)
    folder = tmp_path / "wild"
    folder.mkdir()
    (folder / "m.yaml").write_text(manifests(30))
    plan = [sys.executable, "-m", "reconciler", "plan", "m.yaml", "-o", "p.json"]
    subprocess.run(plan, cwd=folder, env=ENVIRONMENT, check=True, capture_output=True)
    kills = sum(kill_after(folder, more, "apply", "--plan", "p.json") for more in (3, 10, 25, 40))
    assert kills >= 2
    finish(folder, "apply", "--plan", "p.json", "--report", "r.json")
    assert seen(folder / "lake") == goal
    report = json.loads((folder / "r.json").read_text())
    assert report["outcome"] == "applied"
    assert report["summary"]["skipped"] > 0
    finish(folder, "apply", "--plan", "p.json", "--report", "r.json")
    assert json.loads((folder / "r.json").read_text())["summary"]["done"] == 0
