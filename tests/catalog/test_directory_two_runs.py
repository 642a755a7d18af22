"""Two runs of one manifest at the same time: nothing is wrong, so both say so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from dir_support import LAYOUTS, detail, open_catalog, scanned

from reconciler.model.observed import Present
from reconciler.model.state import DatasetState, TableState

REPO = Path(__file__).resolve().parents[2]
TABLES = 30
ROUNDS = 2
RUNNER = """
import contextlib, io, os, sys
from reconciler.cli import run
for line in sys.stdin:
    os.chdir(line.strip())
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = run(["apply", "m.yaml", "--yes", "--report", f"report{sys.argv[1]}.json"])
    print(code, repr(out.getvalue()), flush=True)
"""


def manifest(layout: dict[str, str], idents: list[tuple[str, ...]]) -> str:
    options = "".join(f"  {key}: {value}\n" for key, value in layout.items())
    documents = [
        "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\n"
        f"spec:\n  type: dir\n  path: ./lake\n{options}  management: {{owner: team-a}}\n"
    ]
    if layout != LAYOUTS["v1"]:
        documents.append(
            "apiVersion: reconciler.lance/v1\nkind: Namespace\nmetadata: {catalog: lake, id: [n]}\nspec: {}\n"
        )
    properties = "  properties: {colour: red}\n" if layout != LAYOUTS["v1"] else ""
    documents += [
        f"apiVersion: reconciler.lance/v1\nkind: Table\nmetadata: {{catalog: lake, id: {json.dumps(ident)}}}\n"
        f"spec:\n{properties}  config: {{k: v}}\n  schema: [{{name: id, type: int64}}]\n"
        for ident in idents
    ]
    return "---\n".join(documents)


def runner(number: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(number)],
        cwd=REPO,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_two_runs_of_one_manifest(layout: dict[str, str], tmp_path: Path) -> None:
    idents: list[tuple[str, ...]] = [(f"t{i}",) for i in range(TABLES)]
    if layout != LAYOUTS["v1"]:
        idents[TABLES // 2 :] = [("n", f"t{i}") for i in range(TABLES // 2)]
    with runner(1) as one, runner(2) as two:
        for number in range(ROUNDS):
            folder = tmp_path / str(number)
            folder.mkdir()
            (folder / "m.yaml").write_text(manifest(layout, idents))
            for process in (one, two):
                assert process.stdin is not None
                process.stdin.write(f"{folder}\n")
                process.stdin.flush()
            for process in (one, two):
                assert process.stdout is not None
                answer = process.stdout.readline()
                assert answer.startswith("0 "), answer.replace("\\n", "\n")
            both_made(open_catalog(folder / "lake", **layout), idents)


def both_made(catalog: object, idents: list[tuple[str, ...]]) -> None:
    found = scanned(catalog, detail(*idents))  # type: ignore[arg-type]
    for ident in idents:
        finding = found["Table", ident]
        assert isinstance(finding, Present), finding
        assert isinstance(finding.state, TableState)
        assert finding.state.marks.owner == "team-a"
        assert isinstance(finding.state.dataset, DatasetState)
        assert finding.state.dataset.config == {"k": "v"}
