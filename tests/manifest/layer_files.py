"""Folders with overlays, written from short texts."""

from __future__ import annotations

import textwrap
from pathlib import Path

from reconciler.manifest.load import Loaded, load

API = "apiVersion: reconciler.lance/v1\n"
LAKE = "kind: Catalog\nmetadata: {name: lake}\nspec: {type: dir, path: ./lake}\n"
IMAGES = """\
kind: Table
metadata: {catalog: lake, id: [vision, images]}
spec:
  properties: {team: vision}
  schema: [{name: id, type: int64}]
"""
VISION = "kind: Namespace\nmetadata: {catalog: lake, id: [vision]}\n"


def documents(*texts: str) -> str:
    """Each with its apiVersion, on the first line: what is on line n of a text is on line n + 1 of the document."""
    return "---\n".join(API + textwrap.dedent(text) for text in texts)


def folder(root: Path, **files: str) -> Path:
    """`base` is m/base.yaml, any other name is that environment's overlay. `folder(p, prod="…")`."""
    for name, text in files.items():
        path = root / "m" / ("base.yaml" if name == "base" else f"overlays/{name}/patch.yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root / "m"


def loaded(path: Path, environment: str = "", **variables: str) -> Loaded:
    return load([str(path)], environment=environment, variables=variables, environ={})


def told(found: Loaded) -> list[tuple[str, str, int]]:
    """Code, file name and line of every diagnostic."""
    return [(d.code, Path(d.source.file).name, d.source.line) for d in found.diagnostics]
