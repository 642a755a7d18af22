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


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return undisturbed(tmp_path_factory.mktemp("small") / "calm", 2)


@pytest.mark.parametrize("k", range(1, 17))
def test_killed_after_journal_line(k: int, tmp_path: Path, small: dict[str, Any]) -> None:
    """Every line of the journal of a small lake (a header, a start and an end of 7 steps, a finish)."""
    (tmp_path / "m.yaml").write_text(manifests(2))
    kill_after(tmp_path, k, "apply", "m.yaml", "--parallelism", "1")
    finish(tmp_path, "apply", "m.yaml")
    assert seen(tmp_path / "lake") == small


def test_a_hundred_tables_killed_again_and_again(tmp_path: Path) -> None:
    goal = undisturbed(tmp_path / "calm", 100)
    assert len(goal) == 102
    folder = tmp_path / "wild"
    folder.mkdir()
    (folder / "m.yaml").write_text(manifests(100))
    kills = 0
    for more in (1, 3, 8, 21, 34, 55, 55, 89, 89):
        kills += kill_after(folder, more, "apply", "m.yaml")
    assert kills >= 6, "too few runs were really killed"
    finish(folder, "apply", "m.yaml")
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
