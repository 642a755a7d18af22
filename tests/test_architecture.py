"""The shape of the code, checked by reading every module of reconciler/ with `ast`.

1. model/ and core/ are pure: they import a short list of harmless standard modules, and call no builtin that does IO.
2. Imports run one way: model <- core <- catalog, engine, manifest, render <- session <- app <- cli,
   with pipeline beside engine and verbs beside app. Imports inside
   functions and under TYPE_CHECKING count too: a lazy import hides the cost of a dependency, not the dependency.
3. A library is imported only in the layers that have business with it.

Everything is refused unless a table below allows it; a new layer or library is one line here, seen in review.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
PACKAGE = REPO / "reconciler"

# Layer -> what of ours it may import besides itself. "catalog.base" allows that one module only.
LAYERS: dict[str, frozenset[str]] = {
    "model": frozenset(),
    "core": frozenset({"model"}),
    "regular_files": frozenset(),
    "catalog": frozenset({"model", "core", "regular_files"}),
    "git_process": frozenset(),
    "manifest": frozenset({"model", "core", "git_process", "regular_files"}),
    "render": frozenset({"model", "core"}),
    "engine": frozenset(
        {"model", "core", "catalog.base", "catalog.fence", "catalog.known_secrets", "git_process", "regular_files"}
    ),
    "pipeline": frozenset(
        {
            "model",
            "core",
            "catalog.base",
            "catalog.deadline",
            "catalog.fence",
            "catalog.known_secrets",
            "catalog.lance_cast",
            "catalog.lance_data",
            "catalog.lance_dataset",
            "catalog.lance_errors",
            "catalog.lance_files",
            "catalog.lance_remains",
            "catalog.lance_tags",
            "catalog.lance_rows",
            "catalog.lance_write",
            "catalog.storage",
            "catalog.store_clock",
            "catalog.arrow_convert",
            "catalog.registry",
            "catalog.schema_protos",
            "catalog.storage_objects",
            "engine.redact",
        }
    ),
    "session": frozenset({"model", "core", "catalog", "engine", "manifest", "render"}),
    "app_data": frozenset({"model", "core", "catalog.deadline", "engine", "manifest", "session", "pipeline"}),
    "app_files": frozenset({"model", "engine", "render", "session", "regular_files"}),
    "app_lease": frozenset({"model", "catalog.base", "catalog.deadline", "engine", "session"}),
    "app": frozenset(
        {"model", "core", "catalog", "engine", "manifest", "render", "session", "app_data", "app_files", "app_lease"}
    ),
    "app_trust": frozenset({"model", "core", "engine", "manifest", "session", "app", "app_files"}),
    "app_saved": frozenset({"model", "core", "session", "app", "app_files"}),
    "app_import": frozenset(
        {"model", "core", "catalog.base", "engine", "manifest", "session", "app", "app_files", "regular_files"}
    ),
    "verbs": frozenset(
        {
            "model",
            "core",
            "catalog.base",
            "catalog.deadline",
            "catalog.lance_tags",
            "engine",
            "app",
            "app_lease",
            "session",
            "pipeline",
        }
    ),
    "explain": frozenset({"model", "manifest.codes"}),
    "cli": frozenset(
        {
            "model",
            "catalog.deadline",
            "render",
            "app",
            "app_files",
            "app_import",
            "app_saved",
            "app_trust",
            "verbs",
            "explain",
        }
    ),
    "__main__": frozenset({"cli"}),
    "__init__": frozenset(),
}
PURE = frozenset({"model", "core"})

# Layer -> third-party libraries it may import.
LIBRARIES: dict[str, frozenset[str]] = {
    "manifest": frozenset({"yaml", "jsonschema", "jsonschema_rs", "pydantic", "sqlglot"}),
    "explain": frozenset({"yaml"}),
    "engine": frozenset({"deepdiff"}),
    "catalog": frozenset({"lance", "pyarrow", "obstore", "boto3", "botocore"}),
    "pipeline": frozenset({"lance", "pyarrow", "numpy", "pyspark", "obstore", "sqlglot"}),
}

# Standard modules without IO, clock, randomness or processes.
HARMLESS = frozenset({
    "__future__", "abc", "base64", "bisect", "collections", "collections.abc", "contextlib", "copy", "dataclasses",
    "decimal", "difflib", "enum", "fnmatch", "fractions", "functools", "gc", "graphlib", "hashlib", "heapq",
    "html.entities", "itertools",
    "json", "keyword", "math", "numbers", "operator", "re", "shlex", "string", "textwrap", "types", "typing",
    "unicodedata", "urllib.parse",
})  # fmt: skip
IO_BUILTINS = frozenset({"open", "print", "input", "exec", "eval", "compile", "__import__", "breakpoint"})


@dataclass(frozen=True)
class Import:
    line: int
    name: str
    """Absolute dotted name, as far as it was written: `from a.b import c` gives `a.b.c`."""


def layer_of(module: str) -> str:
    """`reconciler.catalog.base` -> `catalog`; the package itself -> `__init__`."""
    return module.split(".")[1] if "." in module else "__init__"


def imports(tree: ast.Module, module: str, is_package: bool) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")[: len(module.split(".")) - node.level + is_package]
                base = ".".join([*parents, *([node.module] if node.module else [])])
            yield from (Import(node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in {"import_module", "__import__"} and node.args and isinstance(node.args[0], ast.Constant):
                yield Import(node.lineno, str(node.args[0].value))


def problem_with_ours(layer: str, name: str) -> str | None:
    parts = name.split(".")[1:]
    if not parts or parts[0] == layer or parts[0] == "__version__":
        return None
    if parts[0] in LAYERS[layer] or ".".join(parts[:2]) in LAYERS[layer]:
        return None
    return f"{layer} may not import {name}: allowed are {', '.join(sorted(LAYERS[layer])) or 'none of ours'}"


def problem_with_others(layer: str, name: str) -> str | None:
    top = name.split(".")[0]
    if layer in PURE:
        known = name in HARMLESS or name.rpartition(".")[0] in HARMLESS
        return None if known else f"{layer} is pure and may not import {name}"
    if top in sys.stdlib_module_names or top in LIBRARIES.get(layer, ()):
        return None
    return f"{layer} has no business with the library {top}"


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """What is wrong with one module, as `module:line: why`."""
    tree = ast.parse(source)
    layer = layer_of(module)
    if layer not in LAYERS:
        return [f"{module}:1: {layer} is not a layer yet: say in tests/test_architecture.py what it may import"]
    found: list[tuple[int, str]] = []
    for imported in imports(tree, module, is_package):
        ours = imported.name.split(".")[0] == "reconciler"
        problem = (problem_with_ours if ours else problem_with_others)(layer, imported.name)
        if problem:
            found.append((imported.line, problem))
    if layer in PURE:
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in IO_BUILTINS and isinstance(node.ctx, ast.Load):
                found.append((node.lineno, f"{layer} is pure and may not call {node.id}()"))
    return [f"{module}:{line}: {why}" for line, why in sorted(found)]


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_module_keeps_to_its_layer(path: Path) -> None:
    parts = path.relative_to(REPO).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    module = ".".join(parts[:-1] if is_package else parts)
    assert violations(path.read_text(encoding="utf-8"), module, is_package) == []


def test_the_checker_sees_the_whole_package() -> None:
    seen = {path.relative_to(PACKAGE).parts[0] for path in modules()}
    assert {"model", "core", "catalog", "engine", "manifest", "render"} <= seen


REFUSED = {
    "io in model": ("reconciler.model.x", "import os"),
    "path in core": ("reconciler.core.x", "from pathlib import Path"),
    "clock in core": ("reconciler.core.x", "import time"),
    "library in core": ("reconciler.core.x", "import pyarrow as pa"),
    "sibling of a harmless module": ("reconciler.core.x", "import urllib.request"),
    "sibling by from": ("reconciler.core.x", "from urllib import request"),
    "lazy io": ("reconciler.core.x", "def f():\n    import socket"),
    "io under TYPE_CHECKING": ("reconciler.model.x", "if TYPE_CHECKING:\n    import boto3"),
    "open": ("reconciler.model.x", "def f(p):\n    return open(p).read()"),
    "open under another name": ("reconciler.core.x", "read = open"),
    "dynamic import": ("reconciler.core.x", "__import__('os')"),
    "model on core": ("reconciler.model.x", "from reconciler.core import diff"),
    "core on catalog": ("reconciler.core.x", "import reconciler.catalog.base"),
    "core on catalog, from the top": ("reconciler.core.x", "from reconciler import catalog"),
    "relative, upwards": ("reconciler.core.x", "from ..engine import execute"),
    "relative, from a package": ("reconciler.model", "from ..core import diff", True),
    "catalog on manifest": ("reconciler.catalog.x", "from reconciler.manifest.load import load"),
    "catalog on engine, lazy": ("reconciler.catalog.x", "def f():\n    from reconciler.engine import journal"),
    "catalog on engine, by string": ("reconciler.catalog.x", "importlib.import_module('reconciler.engine.x')"),
    "manifest on catalog": ("reconciler.manifest.x", "from reconciler.catalog import base"),
    "render on engine": ("reconciler.render.x", "import reconciler.engine.execute"),
    "engine on one backend": ("reconciler.engine.x", "from reconciler.catalog.directory import Directory"),
    "engine on all of catalog": ("reconciler.engine.x", "import reconciler.catalog"),
    "app on cli": ("reconciler.app", "from reconciler.cli import main"),
    "cli past app": ("reconciler.cli", "from reconciler.manifest.load import load"),
    "yaml outside manifest": ("reconciler.engine.x", "import yaml"),
    "lance outside catalog": ("reconciler.app", "def f():\n    import lance"),
    "unknown layer": ("reconciler.helpers.x", "import re"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_checker_catches(case: str) -> None:
    module, source, *is_package = REFUSED[case]
    found = violations(source, module, bool(is_package))
    assert found
    assert found[0].startswith(f"{module}:{len(source.splitlines())}:")


ALLOWED = {
    "pure": (
        "reconciler.core.x",
        "import json, re\nfrom collections.abc import Mapping\nfrom urllib.parse import quote",
    ),
    "downwards": ("reconciler.core.x", "from reconciler.model.ident import Ident"),
    "own layer, relative": ("reconciler.core.x", "from .diff import diff\nfrom ..model import ident"),
    "version": ("reconciler.app", "from reconciler import __version__"),
    "protocol": ("reconciler.engine.x", "from reconciler.catalog.base import Catalog\nimport threading"),
    "lazy library": ("reconciler.catalog.x", "def f():\n    import lance, pyarrow.compute\n    import os"),
    "a method named open": ("reconciler.core.x", "def f(door):\n    door.open()"),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_the_checker_lets_pass(case: str) -> None:
    module, source = ALLOWED[case]
    assert violations(source, module) == []
