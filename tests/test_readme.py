"""The examples of the README and of docs/ are what the program prints. `UPDATE_README=1` writes the demo's output and
the tables into them."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli.cli_runs import reconciler
from readme_tables import capability_table, keys_table, source_table

from reconciler.manifest.schema_files import catalog_types

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
CATALOGS = ROOT / "docs" / "catalogs.md"
PAGES = (README, CATALOGS, ROOT / "docs" / "data.md", ROOT / "docs" / "environments.md")
BLOCK = re.compile(r"(<!-- demo:begin -->\n```console\n)(.*?)(```\n<!-- demo:end -->)", re.DOTALL)


def demo_commands() -> list[list[str]]:
    """From the Makefile, so that README, Makefile and this test cannot disagree."""
    text = (ROOT / "Makefile").read_text()
    arguments = re.search(r"^DEMO := (.*)$", text, re.MULTILINE)
    assert arguments is not None
    calls = re.findall(r"\$\(call run,(.*)\)$", text, re.MULTILINE)
    return [call.replace("$(DEMO)", arguments.group(1)).split() for call in calls if "$(DEMO)" in call]


def run(folder: Path, program: str, *words: str) -> str:
    """In this process: the installed program is run by test_install.py, and starting it six times costs seconds."""
    assert program == "reconciler"
    done = reconciler(folder, *words)
    assert (done.code, done.err) == (0, "")
    return done.out


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


def examples(page: Path) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_manifests_in_the_readme_are_valid(tmp_path: Path) -> None:
    found = [example for page in PAGES for example in examples(page)]
    assert len(found) >= 10
    for example in found:
        (tmp_path / "lake.yaml").write_text(example)
        count = example.count("apiVersion:")
        told = f"{count} document{'' if count == 1 else 's'}, 0 errors, 0 warnings\n"
        assert run(tmp_path, "reconciler", "validate", "lake.yaml") == told, example


def specs() -> dict[str, dict[str, Any]]:
    """Of the minimal documents, one for each type."""
    found = [yaml.safe_load(example)["spec"] for example in examples(CATALOGS) if example.count("apiVersion:") == 1]
    return {spec["type"]: spec for spec in found}


def between(name: str, text: str) -> None:
    """What stands between the markers is this text; `UPDATE_README=1` puts it there."""
    block = re.compile(f"(<!-- {name}:begin -->\n)(.*?)(<!-- {name}:end -->)", re.DOTALL)
    (page,) = (page for page in PAGES if f"<!-- {name}:begin -->" in page.read_text())
    if os.environ.get("UPDATE_README"):
        page.write_text(block.sub(lambda m: m.group(1) + text + m.group(3), page.read_text()))
    shown = block.search(page.read_text())
    assert shown is not None, f"no page has markers for {name}"
    assert shown.group(2) == text, "UPDATE_README=1 pytest tests/test_readme.py brings it up to date"


def test_every_type_has_an_example() -> None:
    assert tuple(specs()) == catalog_types()


@pytest.mark.parametrize("type_", catalog_types())
def test_the_options_are_those_of_the_schema(type_: str) -> None:
    between(f"keys:{type_}", keys_table(type_))


def test_the_keys_of_sources_are_those_of_the_schema() -> None:
    between("sources", source_table())


def test_the_capabilities_are_those_of_the_code() -> None:
    between("capabilities", capability_table(specs()))


def test_every_command_is_in_the_readme() -> None:
    usage = run(ROOT, "reconciler", "--help")
    commands = re.findall(r"^    ([a-z]+) ", usage, re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        assert f"`reconciler {command} " in README.read_text(), command
