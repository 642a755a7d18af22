"""What a command writes is not what it reads, nor another file that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runs import reconciler

MANIFEST = """\
apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {name: lake}
spec: {type: dir, path: ./lake, management: {owner: us}}
---
apiVersion: reconciler.lance/v1
kind: Namespace
metadata: {catalog: lake, id: [a]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.yaml").write_text(MANIFEST)
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "plan.json").code == 0
    return tmp_path


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("plan m.yaml -o m.yaml", "-o m.yaml would overwrite what is read from m.yaml"),
        ("plan . -o new.yaml", "-o new.yaml would overwrite what is read from ."),
        ("apply m.yaml --yes --journal m.yaml", "--journal m.yaml would overwrite what is read from m.yaml"),
        ("apply --plan plan.json --yes --journal ./plan.json", "would overwrite what is read from plan.json"),
        ("apply m.yaml --yes --report m.yaml", "--report m.yaml would overwrite what is read from m.yaml"),
        ("apply m.yaml --yes --report plan.json --reviewed plan.json", "would overwrite what is read from plan.json"),
        ("apply m.yaml --yes --journal o --report o", "--journal and --report both name o"),
        ("apply m.yaml --yes --journal o --metrics-file ./o", "--journal and --metrics-file both name o"),
        ("drift m.yaml --metrics-file m.yaml", "--metrics-file m.yaml would overwrite what is read from m.yaml"),
        ("drift m.yaml --metrics-label a=b", "--metrics-label is for --metrics-file, which was not given"),
    ],
)
def test_it_is_refused_and_nothing_is_lost(line: str, said: str, folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = reconciler(folder, *line.split())
    assert done.code == 1
    assert said in done.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_files_of_their_own_are_fine(folder: Path) -> None:
    flags = ("--journal", "j.jsonl", "--report", "r.json", "--metrics-file", "x.prom")
    assert reconciler(folder, "apply", "m.yaml", "--yes", *flags).code == 0
    assert all((folder / name).exists() for name in ("j.jsonl", "r.json", "x.prom"))


def test_a_stream_takes_several(folder: Path) -> None:
    assert reconciler(folder, "apply", "m.yaml", "--yes").code == 0
    again = reconciler(folder, "apply", "m.yaml", "--yes", "--journal", "/dev/null", "--report", "/dev/null")
    assert again.code == 0, again.err
