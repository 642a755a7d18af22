"""The records of a lease in Glue: tables of the database `__reconciler`, which Glue creates once. (UpdateTable with a
VersionId would do as well, but only AWS itself keeps to it.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.catalog.glue_api import GlueApi
from reconciler.catalog.glue_capabilities import OWN
from reconciler.catalog.lease_records import KEY, NOTE, created, numbered, numbers_in, unless_missing
from reconciler.model.errors import Code

_BEFORE = "lease_"
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
        return numbers_in(unless_missing(self._names) or (), _BEFORE)

    def _names(self) -> list[str]:
        pages = self.api.pages(f"list the tables of {OWN}", "get_tables", "TableList", self._arguments(), _MISSING)
        return [table["Name"] for page in pages for table in page]

    def read(self, number: int) -> str | None:
        doing, arguments = f"read {OWN}.{_name(number)}", self._arguments(Name=_name(number))
        answer = unless_missing(lambda: self.api.read(doing, "get_table", "Table", arguments, _MISSING))
        return None if answer is None else str((answer["Table"].get("Parameters") or {}).get(KEY, ""))

    def create(self, number: int, text: str) -> bool:
        """Before the first record there is nothing to hold it: a call that cannot succeed would only be lost."""
        if number > 1 and (made := unless_missing(lambda: self._created(number, text))) is not None:
            return made
        self._make_database()
        return self._created(number, text)

    def _make_database(self) -> None:
        """Looks first: in a repeated step, one that is there is not sent again."""
        doing, named = f"read database {OWN}", {**self.catalog, "Name": OWN}
        if unless_missing(lambda: self.api.read(doing, "get_database", "Database", named, _MISSING)) is None:
            database = {**self.catalog, "DatabaseInput": {"Name": OWN, "Description": NOTE}}
            created(lambda: self._create(f"create database {OWN}", "create_database", database))

    def _created(self, number: int, text: str) -> bool:
        arguments = self._arguments(TableInput={"Name": _name(number), "Parameters": {KEY: text}})
        return created(lambda: self._create(f"create table {OWN}.{_name(number)}", "create_table", arguments))

    def drop(self, number: int) -> None:
        doing, arguments = f"delete table {OWN}.{_name(number)}", self._arguments(Name=_name(number))
        unless_missing(lambda: self.api.write(doing, "delete_table", arguments, _MISSING))

    def _create(self, doing: str, call: str, arguments: Mapping[str, Any]) -> None:
        self.api.write(doing, call, arguments, _MISSING, Code.TABLE_ALREADY_EXISTS)

    def _arguments(self, **more: Any) -> dict[str, Any]:
        return {**self.catalog, "DatabaseName": OWN, **more}


def _name(number: int) -> str:
    return f"{_BEFORE}{numbered(number)}"
