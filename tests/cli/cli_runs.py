"""Runs the real program in a folder of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jsonschema

REPO = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(**more: str) -> dict[str, str]:
    hidden = ("AWS_", "RECONCILER_", "LANCE_", "NO_COLOR")
    return {k: v for k, v in os.environ.items() if not k.startswith(hidden)} | {"PYTHONPATH": str(REPO), **more}


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "reconciler", *map(str, arguments)]


def reconciler(folder: Path, *arguments: str | Path, env: Mapping[str, str] | None = None) -> Run:
    """In this process: the same entry point without the start-up time."""
    from reconciler.cli import run

    out, err = io.StringIO(), io.StringIO()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with (
        contextlib.chdir(folder),
        patch.dict(os.environ, environment(**(env or {})), clear=True),
        patch.object(sys, "stdin", io.StringIO()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            code = run([*map(str, arguments)])
        except SystemExit as exit_:
            code = int(exit_.code or 0)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    return _checked(Run(code, out.getvalue(), err.getvalue()), arguments)


def process(folder: Path, *arguments: str | Path, env: Mapping[str, str] | None = None) -> Run:
    """In a process of its own: for what libraries write past Python, and for what happens at exit."""
    done = subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(**(env or {})),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return _checked(Run(done.returncode, done.stdout, done.stderr), arguments)


def _checked(run: Run, arguments: Sequence[str | Path]) -> Run:
    assert "Traceback" not in run.err or "--debug" in arguments, run.err
    return run


@lru_cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((REPO / "schemas" / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def check_schema(name: str, value: Any) -> None:
    problems = [f"{list(e.absolute_path)}: {e.message[:300]}" for e in validator(name).iter_errors(value)]
    assert problems == []


def catalog(owner: str | None = "team", path: str = "./lake", **spec: str) -> str:
    management = f"\n  management: {{owner: {owner}}}" if owner else ""
    options = "".join(f"\n  {k.replace('__', '.')}: {json.dumps(v)}" for k, v in spec.items())
    return (
        "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\n"
        f"spec:\n  type: dir\n  path: {path}{options}{management}\n"
    )


def namespace(*ident: str, spec: str = "") -> str:
    return (
        f"---\napiVersion: reconciler.lance/v1\nkind: Namespace\nmetadata: {{catalog: lake, id: {json.dumps(ident)}}}\n"
        + (f"spec: {spec}\n" if spec else "")
    )


def table(*ident: str, schema: str = "[{name: id, type: int64}]", spec: str = "") -> str:
    return (
        f"---\napiVersion: reconciler.lance/v1\nkind: Table\nmetadata: {{catalog: lake, id: {json.dumps(ident)}}}\n"
        f"spec:\n  schema: {schema}\n" + (f"  {spec}\n" if spec else "")
    )


def write(folder: Path, *documents: str, name: str = "m.yaml") -> Path:
    path = folder / name
    path.write_text("".join(documents))
    return path
