"""Where the references of a catalog's options stand, for when they are resolved."""

from __future__ import annotations

import re
from dataclasses import replace

from reconciler.manifest.layers import Layered
from reconciler.manifest.problem import Path
from reconciler.manifest.yaml_reader import Document
from reconciler.model.desired import CatalogSpec
from reconciler.model.diagnostic import Source

_LATE = re.compile(r"\$\$\{|(\$\{(?:env|file):)")


def with_places(spec: CatalogSpec, file: str, document: Document | Layered) -> CatalogSpec:
    """Variables are replaced by now, so that offsets have moved: the n-th reference that is left is the n-th of those
    that were written, because what a variable stands for never is one."""
    found: dict[tuple[str, int], Source] = {}
    for key, value in spec.options.items():
        if isinstance(value, str) and (now := _offsets(value)):
            written = _written(file, document, ("spec", key), len(now))
            found |= {(key, offset): place for offset, place in zip(now, written, strict=False)}
    return replace(spec, places=found) if found else spec


def _written(file: str, document: Document | Layered, path: Path, count: int) -> list[Source]:
    """Of every reference in a value, in the document that it was written in; of the value itself when they are not
    those that are looked for."""
    if isinstance(document, Layered):
        layer = document.layer_of(path)
        if layer is not None:
            return _written(layer.sink.file, layer.document, path, count)
        document = document.base
    node = document.careful().locate(path)[1]
    if node is None:
        return []
    offsets = _offsets(node.text)
    if len(offsets) != count:
        return [Source(file, node.line, node.column)] * count
    return [Source(file, node.line, node.column_of(offset)) for offset in offsets]


def _offsets(text: str) -> list[int]:
    return [found.start() for found in _LATE.finditer(text) if found.group(1)]
