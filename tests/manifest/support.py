"""Short ways to write manifests in tests."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler.manifest.load import Loaded, load

CATALOG = """\
apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {name: lake}
spec: {type: dir, path: ./lake}
"""


def namespace(ident: str, spec: str = "", catalog: str = "lake") -> str:
    return _object("Namespace", ident, spec, catalog)


def table(ident: str, spec: str = "spec_is_empty", catalog: str = "lake") -> str:
    return _object("Table", ident, spec, catalog)


def _object(kind: str, ident: str, spec: str, catalog: str) -> str:
    text = f"apiVersion: reconciler.lance/v1\nkind: {kind}\nmetadata: {{catalog: {catalog}, id: [{ident}]}}\n"
    if spec == "spec_is_empty":
        return text + "spec: {}\n"
    return text + ("spec:\n" + textwrap.indent(textwrap.dedent(spec), "  ") if spec else "")


def load_text(tmp_path: Path, *documents: str, **options: Any) -> Loaded:
    file = tmp_path / "m.yaml"
    file.write_text("---\n".join(d if not d or d.endswith("\n") else d + "\n" for d in documents), "utf-8")
    return load([str(file)], **options)


def load_bytes(tmp_path: Path, data: bytes, variables: Mapping[str, str] | None = None) -> Loaded:
    file = tmp_path / "m.yaml"
    file.write_bytes(data)
    return load([str(file)], variables=variables or {})


def codes(loaded: Loaded) -> list[str]:
    return [d.code for d in loaded.diagnostics]


def places(loaded: Loaded, code: str) -> list[tuple[int, int]]:
    return [(d.source.line, d.source.column) for d in loaded.diagnostics if d.code == code]
