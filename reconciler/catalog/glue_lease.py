"""The records of a lease in Glue: tables of the database `__reconciler`, which Glue creates once. (UpdateTable with a
VersionId would do as well, but only AWS itself keeps to it.)"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.catalog.glue_api import GlueApi
from reconciler.catalog.glue_capabilities import OWN
from reconciler.catalog.lease_files import is_missing, is_there
from reconciler.model.errors import CatalogError, Code

_NAME = re.compile(r"lease_([0-9]{10})")
_KEY = "reconciler.lease"
_MISSING = Code.TABLE_NOT_FOUND


@dataclass(frozen=True)
class GlueLease:
    """`catalog`: what every call gets, `CatalogId` or nothing."""

    api: GlueApi
    where: str
    catalog: Mapping[str, str]

    @property
    def place(self) -> str:
        of = f" of catalog {self.catalog['CatalogId']}" if self.catalog else ""
        return f"{self.where}, database {OWN}{of}"

    def numbers(self) -> Sequence[int]:
        arguments = {**self.catalog, "DatabaseName": OWN}
        pages = self.api.pages(f"list the tables of {OWN}", "get_tables", "TableList", arguments, _MISSING)
        try:
            return [int(m[1]) for page in pages for table in page if (m := _NAME.fullmatch(table["Name"]))]
        except CatalogError as error:
            if is_missing(error):
                return []
            raise

    def read(self, number: int) -> str | None:
        arguments = {**self.catalog, "DatabaseName": OWN, "Name": _name(number)}
        try:
            answer = self.api.read(f"read {OWN}.{_name(number)}", "get_table", "Table", arguments, _MISSING)
        except CatalogError as error:
            if is_missing(error):
                return None
            raise
        return str((answer["Table"].get("Parameters") or {}).get(_KEY, ""))

    def create(self, number: int, text: str) -> bool:
        table = {"Name": _name(number), "Parameters": {_KEY: text}}
        arguments = {**self.catalog, "DatabaseName": OWN, "TableInput": table}
        doing = f"create table {OWN}.{_name(number)}"
        try:
            return self._created(doing, "create_table", arguments)
        except CatalogError as error:
            if not is_missing(error):
                raise
        database = {"Name": OWN, "Description": "Notes of the reconciler. Do not change."}
        self._created(f"create database {OWN}", "create_database", {**self.catalog, "DatabaseInput": database})
        return self._created(doing, "create_table", arguments)

    def _created(self, doing: str, call: str, arguments: Mapping[str, Any]) -> bool:
        try:
            self.api.write(doing, call, arguments, _MISSING, Code.TABLE_ALREADY_EXISTS)
        except CatalogError as error:
            if is_there(error):
                return False
            raise
        return True

    def drop(self, number: int) -> None:
        arguments = {**self.catalog, "DatabaseName": OWN, "Name": _name(number)}
        try:
            self.api.write(f"delete table {OWN}.{_name(number)}", "delete_table", arguments, _MISSING)
        except CatalogError as error:
            if not is_missing(error):
                raise


def _name(number: int) -> str:
    return f"lease_{number:010d}"
