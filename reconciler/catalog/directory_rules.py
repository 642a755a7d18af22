"""The conditions of the directory's changes, checked against the rows of one `__manifest` version."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.catalog.directory_rows import NAMESPACE, TABLE, BadRow, Row, load_properties, object_id
from reconciler.catalog.marks import join, updated
from reconciler.model.errors import CatalogError, Code
from reconciler.model.ident import Ident, dotted, parent
from reconciler.model.state import Marks


def need_parent(rows: Mapping[str, Row], ident: Ident) -> None:
    above = parent(ident)
    if not above:
        return
    row = rows.get(object_id(above))
    if row is None:
        raise CatalogError(Code.NAMESPACE_NOT_FOUND, f"namespace {dotted(above)} does not exist: create it first")
    if row.object_type != NAMESPACE:
        raise CatalogError(Code.INVALID_TABLE_STATE, f"{dotted(above)} is a table, nothing can be inside it")


def need_free(rows: Mapping[str, Row], ident: Ident) -> None:
    row = rows.get(object_id(ident))
    if row is None:
        return
    if row.object_type == NAMESPACE:
        raise CatalogError(Code.NAMESPACE_ALREADY_EXISTS, f"there is a namespace {dotted(ident)} already")
    raise table_exists(ident)


def need_namespace(rows: Mapping[str, Row], ident: Ident) -> Row:
    row = rows.get(object_id(ident))
    if row is None or row.object_type != NAMESPACE:
        raise CatalogError(Code.NAMESPACE_NOT_FOUND, f"namespace {dotted(ident)} does not exist")
    return row


def need_table(rows: Mapping[str, Row], ident: Ident) -> Row:
    row = rows.get(object_id(ident))
    if row is None or row.object_type != TABLE:
        raise CatalogError(Code.TABLE_NOT_FOUND, f"table {dotted(ident)} is not in the catalog")
    return row


def table_exists(ident: Ident) -> CatalogError:
    return CatalogError(Code.TABLE_ALREADY_EXISTS, f"there is a table {dotted(ident)} already")


def data_left(ident: Ident, where: str) -> CatalogError:
    return CatalogError(
        Code.TABLE_ALREADY_EXISTS,
        f"{where} holds the data of the deregistered table {dotted(ident)}: it can be reattached, not be left behind "
        "for an empty table",
    )


def taken_by_table(ident: Ident) -> CatalogError:
    return CatalogError(Code.INVALID_TABLE_STATE, f"there is a table named {dotted(ident)}: one name, one object")


def properties(row: Row) -> dict[str, str]:
    try:
        return load_properties(row)
    except BadRow as error:
        raise CatalogError(Code.INTERNAL, str(error)) from None


def changed(row: Row, set_: Mapping[str, str], unset: tuple[str, ...], marks: Marks) -> Row:
    return row.with_properties(join(updated(properties(row), set_, unset), marks))
