"""Changes of the namespaces of a directory catalog: rows of `__manifest`, with every condition checked inside the
commit."""

from __future__ import annotations

from dataclasses import replace

from reconciler.catalog.directory_read import DirectoryReader
from reconciler.catalog.directory_rows import NAMESPACE, Row, dump_properties, object_id
from reconciler.catalog.directory_rules import changed, need_free, need_namespace, need_parent, taken_by_table
from reconciler.catalog.marks import join
from reconciler.model.change import AdoptNamespace, CreateNamespace, DropNamespace, RenameNamespace, UpdateNamespace
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, dotted


class DirectoryNamespaces:
    def __init__(self, reader: DirectoryReader) -> None:
        self.reader = reader
        self.manifest = reader.manifest
        self.capabilities = reader.capabilities

    def create(self, change: CreateNamespace) -> None:
        key = object_id(change.ident)
        row = Row(key, NAMESPACE, None, dump_properties(join(change.properties, change.marks)))
        self._need_name(change.ident)

        def edit(rows: dict[str, Row]) -> None:
            need_parent(rows, change.ident)
            need_free(rows, change.ident)
            rows[key] = row

        self.manifest.edit(edit)

    def _need_name(self, ident: Ident) -> None:
        problem = self.capabilities.ident_problem("Namespace", ident)
        if problem:
            raise CatalogError(Code.INVALID_INPUT, problem)
        if self.capabilities.listed(ident) and self.reader.locate(ident)[0] is not None:
            raise taken_by_table(ident)

    def rename(self, change: RenameNamespace) -> None:
        """The namespace and every row below it, in one commit; data stays where it is."""
        self._need_name(change.ident)

        def edit(rows: dict[str, Row]) -> None:
            source = need_namespace(rows, change.source)
            need_parent(rows, change.ident)
            need_free(rows, change.ident)
            if change.ident[: len(change.source)] == change.source:
                raise CatalogError(Code.INVALID_INPUT, f"{dotted(change.source)} cannot move into itself")
            if there := min((key for key in rows if key.startswith(object_id(change.ident) + "$")), default=None):
                problem = f"{dotted(rows[there].ident)} is live below the new name already"
                raise CatalogError(Code.NAMESPACE_ALREADY_EXISTS, problem)
            prefix = source.object_id + "$"
            for old in [key for key in rows if key == source.object_id or key.startswith(prefix)]:
                key = object_id(change.ident) + old[len(source.object_id) :]
                rows[key] = replace(rows.pop(old), object_id=key)

        self.manifest.edit(edit)

    def update(self, change: UpdateNamespace | AdoptNamespace) -> None:
        def edit(rows: dict[str, Row]) -> None:
            row = need_namespace(rows, change.ident)
            set_, unset = (change.set, change.unset) if isinstance(change, UpdateNamespace) else ({}, ())
            rows[row.object_id] = changed(row, set_, unset, change.marks)

        self.manifest.edit(edit)

    def drop(self, change: DropNamespace) -> None:
        """RESTRICT, in the same commit as the removal: any row below, of whatever kind, keeps the namespace."""

        def edit(rows: dict[str, Row]) -> None:
            row = need_namespace(rows, change.ident)
            prefix = row.object_id + "$"
            inside = sorted(key for key in rows if key.startswith(prefix))
            if inside:
                raise CatalogError(
                    Code.NAMESPACE_NOT_EMPTY,
                    f"namespace {dotted(change.ident)} is not empty: {dotted(rows[inside[0]].ident)}"
                    + (f" and {len(inside) - 1} more are inside" if len(inside) > 1 else " is inside"),
                )
            del rows[row.object_id]

        self.manifest.edit(edit)
