"""The outsider of the toy: somebody who edits the JSON file by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from contract.backends import Site, service_site
from contract.outsider import Ident
from contract.outsider_service import Entry, ServiceOutsider


class JsonFileOutsider(ServiceOutsider):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "tables")
        self.file = folder / "catalog.json"

    def namespaces(self) -> dict[Ident, dict[str, str]]:
        return {tuple(json.loads(k)): v for k, v in self._data()["namespaces"].items()}

    def entries(self) -> dict[Ident, Entry]:
        tables = self._data()["tables"]
        return {tuple(json.loads(k)): Entry(v["location"], v["properties"], v) for k, v in tables.items()}

    def create_namespace(self, ident: Ident, properties: Mapping[str, str] | None = None) -> None:
        self._put("namespaces", ident, dict(properties or {}))

    def put_table(self, ident: Ident, location: str, properties: Mapping[str, str]) -> None:
        self._put("tables", ident, {"location": location, "properties": dict(properties)})

    def set_properties(self, kind: str, ident: Ident, values: Mapping[str, str]) -> None:
        data = self._data()
        found = data[f"{kind.lower()}s"][_key(ident)]
        (found if kind == "Namespace" else found["properties"]).update(values)
        self.file.write_text(json.dumps(data, ensure_ascii=False))

    def _data(self) -> dict[str, Any]:
        empty = '{"namespaces": {}, "tables": {}, "detached": {}}'
        data: dict[str, Any] = json.loads(self.file.read_text() if self.file.exists() else empty)
        return data

    def _put(self, kind: str, ident: Ident, value: Any) -> None:
        data = self._data()
        data[kind][_key(ident)] = value
        self.file.write_text(json.dumps(data, ensure_ascii=False))


def _key(ident: Ident) -> str:
    return json.dumps(ident, ensure_ascii=False)


def jsonfile_site(folder: Path, fixture: Callable[[str], Any]) -> Site:
    outsider = JsonFileOutsider(folder)
    options = {"type": "jsonfile", "file": str(outsider.file), "root": str(outsider.root)}
    copies = iter(range(1000))

    def copy() -> Site:
        target = folder / f"copy{next(copies)}"
        target.mkdir()
        made = jsonfile_site(target, fixture)
        assert isinstance(made.outsider, JsonFileOutsider)
        outsider.copy_to(made.outsider)
        detached = {k: v.replace(str(folder), str(target)) for k, v in outsider._data()["detached"].items()}
        for key, location in detached.items():
            made.outsider._put("detached", tuple(json.loads(key)), location)
        return made

    return service_site(options, outsider, copy)
