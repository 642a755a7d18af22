"""The documents that declared objects come from, for whoever changes them: the object alone does not say which of its
values a document has itself, and which come from an overlay or from Defaults."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.manifest.defaults import Defaults
from reconciler.manifest.layers import Layered
from reconciler.manifest.yaml_reader import Document
from reconciler.model.desired import DesiredObject, DesiredTable
from reconciler.model.ident import ObjectKey


@dataclass(slots=True)
class Origins:
    defaults: Defaults = field(default_factory=Defaults)
    overlay_files: frozenset[str] = frozenset()
    """Of the environment."""
    _documents: dict[ObjectKey, Document | Layered] = field(default_factory=dict)

    def add(self, declared: DesiredObject, document: Document | Layered) -> None:
        self._documents.setdefault(_key(declared), document)

    def of(self, declared: DesiredObject) -> Document | Layered:
        return self._documents[_key(declared)]


def _key(declared: DesiredObject) -> ObjectKey:
    return ObjectKey(declared.catalog, declared.ident, "Table" if isinstance(declared, DesiredTable) else "Namespace")
