"""The README's examples are what the program prints. `UPDATE_README=1` writes the demo's output into it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- demo:begin -->\n```console\n)(.*?)(```\n<!-- demo:end -->)", re.DOTALL)


def demo_commands() -> list[list[str]]:
    """From the Makefile, so that README, Makefile and this test cannot disagree."""
    text = (ROOT / "Makefile").read_text()
    arguments = re.search(r"^DEMO := (.*)$", text, re.MULTILINE)
    assert arguments is not None
    calls = re.findall(r"\$\(call run,(.*)\)$", text, re.MULTILINE)
    return [call.replace("$(DEMO)", arguments.group(1)).split() for call in calls]


def run(folder: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_the_demo_prints_what_the_readme_shows(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "manifests-example", tmp_path / "manifests-example")
    (tmp_path / ".demo").mkdir()
    printed = "".join(f"\n$ {' '.join(words)}\n{run(tmp_path, *words)}" for words in demo_commands()).lstrip("\n")
    text = README.read_text()
    if os.environ.get("UPDATE_README"):
        README.write_text(BLOCK.sub(lambda m: m.group(1) + printed + m.group(3), text))
    shown = BLOCK.search(README.read_text())
    assert shown is not None
    assert shown.group(2) == printed


def test_the_manifest_in_the_readme_is_valid(tmp_path: Path) -> None:
    [example] = re.findall(r"```yaml\n(.*?)```", README.read_text(), re.DOTALL)
    (tmp_path / "lake.yaml").write_text(example)
    assert run(tmp_path, "reconciler", "validate", "lake.yaml") == "3 documents, 0 errors, 0 warnings\n"


def test_every_command_is_in_the_readme() -> None:
    usage = run(ROOT, "reconciler", "--help")
    commands = re.findall(r"^    ([a-z]+) ", usage, re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        assert f"`reconciler {command} " in README.read_text(), command
