"""A catalog type that comes with another package, from its installation to an empty plan."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.cli_runs import REPO, Run, check_schema, namespace, process, reconciler, table, write

from reconciler.model.desired import CatalogSpec, Management
from reconciler.model.diagnostic import Source
from reconciler.session import Failure, Session

HEAD = "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\nspec:\n  type: jsonfile\n"
OPTIONS = "  file: catalog.json\n  root: ./tables\n"
OWNED = "  management: {owner: team}\n"
OBJECTS = (namespace("n", spec="{properties: {team: a}}"), table("n", "t"))


def run(folder: Path, installed: Path, *words: str | Path, **env: str) -> Run:
    """As a user would, in a process of its own."""
    return process(folder, *words, env={"PYTHONPATH": f"{REPO}{os.pathsep}{installed}", **env})


@pytest.mark.slow
def test_from_validate_to_an_empty_plan(tmp_path: Path, installed: Path) -> None:
    file = write(tmp_path, HEAD, OPTIONS, "  pin: ${env:PIN}\n", OWNED, *OBJECTS)
    secret = {"PIN": "canary-4711"}
    assert run(tmp_path, installed, "validate", file).out == "3 documents, 0 errors, 0 warnings\n"
    planned = run(tmp_path, installed, "plan", file, "-o", "plan.json", **secret)
    assert planned.code == 0, planned.err
    plan = json.loads((tmp_path / "plan.json").read_text())
    check_schema("plan", plan)
    assert plan["catalogs"]["lake"]["type"] == "jsonfile"
    assert plan["catalogs"]["lake"]["spec"]["pin"] == "${env:PIN}"
    applied = run(tmp_path, installed, "apply", "--plan", "plan.json", "--yes", **secret)
    assert applied.code == 0, applied.err
    live = json.loads((tmp_path / "catalog.json").read_text())
    assert live["tables"]['["n", "t"]']["location"] == str(tmp_path / "tables" / "n$t.lance")
    again = run(tmp_path, installed, "plan", file, "--detailed-exitcode", **secret)
    assert again.code == 0, again.out + again.err
    assert "canary" not in "".join((planned.out, planned.err, applied.out, applied.err, again.out, again.err))


@pytest.mark.usefixtures("plugged_in")
@pytest.mark.slow
def test_its_secrets_are_secrets(tmp_path: Path) -> None:
    (tmp_path / "catalog.json").write_text('{"namespaces": {}, "tables": {}, "detached": {}, "pin": "right"}')
    file = write(tmp_path, HEAD, OPTIONS, "  pin: canary-4711\n", *OBJECTS)
    refused = reconciler(tmp_path, "plan", file)
    assert refused.code == 1
    assert "check spec.pin" in refused.err
    (tmp_path / "catalog.json").unlink()
    planned = reconciler(tmp_path, "plan", file, "-o", "plan.json")
    assert planned.code == 0, planned.err
    assert "RECONCILER_LAKE_PIN" in planned.err
    texts = (refused.out, refused.err, planned.out, planned.err, (tmp_path / "plan.json").read_text())
    assert "canary" not in "".join(texts)


@pytest.mark.usefixtures("plugged_in")
@pytest.mark.slow
def test_wrong_keys_are_told_by_line(tmp_path: Path) -> None:
    file = write(tmp_path, HEAD, "  fil: catalog.json\n  root: t\n  max_retries: -1\n", *OBJECTS)
    found = reconciler(tmp_path, "validate", file, "--format", "json").json["diagnostics"]
    assert {(d["code"], d["line"]) for d in found} == {("M203", 6), ("M204", 5), ("M208", 8)}
    assert "did you mean file?" in {d["hint"] for d in found}


@pytest.mark.slow
def test_without_the_package_the_type_is_unknown(tmp_path: Path, installed: Path) -> None:
    file = write(tmp_path, HEAD, OPTIONS, OWNED, *OBJECTS)
    (found,) = reconciler(tmp_path, "validate", file, "--format", "json").json["diagnostics"]
    assert (found["code"], found["line"]) == ("M207", 5)
    assert "dir, rest, iceberg, unity, glue" in found["hint"]
    assert run(tmp_path, installed, "plan", file, "-o", "plan.json").code == 0
    lost = reconciler(tmp_path, "apply", "--plan", "plan.json", "--yes")
    assert lost.code == 1
    assert "install the plug-in" in lost.err


def package(folder: Path, name: str, module: str, code: str | None) -> Path:
    """As pip leaves it, without pip."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[reconciler.catalogs]\njsonfile = {module}:backend\n")
    if code is not None:
        (folder / f"{module}.py").write_text(code)
    return folder


RAISES = """
from reconciler.catalog.registry import Backend
def fail(options):
    raise KeyError("oops")
backend = Backend(fail, fail, {"properties": {"file": {}, "root": {}}})
"""
BROKEN = {
    "no module": (None, "No module named 'broken_module'"),
    "a syntax error": ("def", "cannot be loaded"),
    "another object": ("backend = 5", "is not a Backend"),
    "a mistake": (RAISES, "failed: KeyError: 'oops'"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_package_is_a_diagnostic(tmp_path: Path, case: str, plug_in: Callable[[Path], None]) -> None:
    code, expected = BROKEN[case]
    file = write(tmp_path, HEAD, OPTIONS, *OBJECTS)
    plug_in(package(tmp_path / "site", "broken", f"broken_{case.split()[-1]}", code))
    done = reconciler(tmp_path, "validate", file, "--format", "json")
    (found,) = done.json["diagnostics"]
    assert (done.code, found["code"], found["line"]) == (1, "M440", 5)
    assert expected in found["message"]


def test_catalogs_that_are_opened_together_say_why_a_package_is_broken(
    tmp_path: Path, plug_in: Callable[[Path], None]
) -> None:
    """As a saved plan does, which nobody validates again. It is no line of a manifest: so it is told on its own."""
    plug_in(package(tmp_path / "site", "broken", "broken_and_lost", None))
    specs = [CatalogSpec(name, "jsonfile", {}, Management(), Source("plan.json")) for name in ("lake", "pond")]
    with pytest.raises(Failure) as caught:
        Session().connect_all(specs)
    assert caught.value.message.startswith("catalog lake cannot be read: ")
    assert "cannot be loaded: No module named 'broken_and_lost'" in caught.value.message


@pytest.mark.slow
@pytest.mark.usefixtures("plugged_in")
def test_two_packages_with_one_type(tmp_path: Path, plug_in: Callable[[Path], None]) -> None:
    plug_in(package(tmp_path / "site", "other", "other", ""))
    file = write(tmp_path, HEAD, OPTIONS, *OBJECTS)
    (found,) = reconciler(tmp_path, "validate", file, "--format", "json").json["diagnostics"]
    assert found["code"] == "M440"
    assert "other and reconciler-jsonfile" in found["message"]


BLOCK = re.compile(r"(`(\S+)`:\n\n```(?:toml|python)\n)(.*?)(```\n)", re.DOTALL)


def test_contributing_shows_the_files_of_the_toy() -> None:
    """`UPDATE_README=1` puts them there."""
    contributing, toy = REPO / "CONTRIBUTING.md", REPO / "tests" / "plugin" / "toy"
    files = {str(p.relative_to(toy)): p.read_text() for p in toy.rglob("*") if p.suffix in (".toml", ".py")}
    if os.environ.get("UPDATE_README"):
        text = BLOCK.sub(lambda m: m[1] + files[m[2]] + m[4], contributing.read_text())
        contributing.write_text(text)
    shown = {name: text for _, name, text, _ in BLOCK.findall(contributing.read_text())}
    assert len(files) == 3
    assert shown == files


BUSY = """
from reconciler.catalog.memory import MemoryCatalog
from reconciler.catalog.registry import Backend
from reconciler.model.capabilities import Capabilities
from reconciler.model.errors import CatalogError, Code
class Busy(MemoryCatalog):
    def apply(self, change, context):
        raise CatalogError(Code.THROTTLING, "busy")
def connect(options):
    return Busy()
retries = {"type": ["integer", "string"], "minimum": 0, "default": 1}
backend = Backend(lambda options: Capabilities(), connect, {"properties": {"max_retries": retries}})
"""


@pytest.mark.parametrize(
    ("written", "attempts"), [("", 2), ("  max_retries: 0\n", 1), ("  max_retries: ${env:N}\n", 3)]
)
def test_max_retries_counts_for_writes(
    tmp_path: Path, written: str, attempts: int, plug_in: Callable[[Path], None]
) -> None:
    plug_in(package(tmp_path / "site", "busy", "busy_backend", BUSY))
    file = write(tmp_path, HEAD, written, OWNED, namespace("n"))
    done = reconciler(tmp_path, "apply", file, "--yes", "--format", "json", env={"N": "2"})
    (step,) = done.json["steps"]
    assert (done.code, step["status"], step["attempts"]) == (1, "failed", attempts)
