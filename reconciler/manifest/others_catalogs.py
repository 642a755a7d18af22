"""`--catalogs-from` together with `--env`: the overlay of somebody else may change a Catalog document. Nothing of it is
used, so it is told and is no error, as with the documents themselves."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.manifest.layers import Layer
from reconciler.manifest.overlay import Overlay
from reconciler.manifest.problem import Problem
from reconciler.manifest.registry import Registry
from reconciler.manifest.yaml_reader import Document

_CATALOG = "Catalog"


@dataclass(frozen=True, slots=True)
class Others:
    """Where Catalog documents are taken from."""

    registry: Registry
    overlay: Overlay | None
    where: str

    def pass_over(self, overlay: Overlay) -> None:
        """What changes a catalog that is declared there only."""
        for key, patch in overlay.patches.items():
            if key[0] != _CATALOG or patch.hit or not self.registry.known_catalog(key[1]):
                continue
            patch.hit = True
            same = self.overlay.patches.get(key) if self.overlay is not None else None
            if same is None or same.layer.document.value != patch.layer.document.value:
                self.warn(patch.layer)

    def warn(self, patch: Layer, why: str = "") -> None:
        message = f"not used: Catalog documents are taken from {self.where}, their overlay too{why}"
        problem = Problem("M312", ("spec",), message, "its changes count once they are there", severity="warning")
        patch.sink.problem(patch.document, problem)


def is_catalog(document: Document) -> bool:
    return isinstance(document.value, dict) and document.value.get("kind") == _CATALOG
