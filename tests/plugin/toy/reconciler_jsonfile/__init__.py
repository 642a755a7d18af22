"""`type: jsonfile`: a catalog that is one JSON file. This module is what `validate` loads, so it imports little."""

import os
from collections.abc import Mapping

from reconciler.catalog.base import Catalog
from reconciler.catalog.lance_types import type_problem
from reconciler.catalog.registry import Backend
from reconciler.model.arrow import ArrowType
from reconciler.model.capabilities import Capabilities
from reconciler.model.change import Change, RenameNamespace, RenameTable
from reconciler.model.ident import Ident, Kind


class JsonFileCapabilities(Capabilities):
    """What can be said without opening the file. All other answers are those of the base class."""

    type = "jsonfile"
    chooses_location = True

    def __init__(self, root: str) -> None:
        self.root = root if "://" in root or "${" in root else os.path.abspath(root)

    def ident_problem(self, kind: Kind, ident: Ident) -> str | None:
        for name in ident:
            if not name or name.startswith(".") or any(c in "/\\$" or ord(c) < 32 for c in name):
                return f"the name {name!r} is empty, starts with a dot, or has one of / \\ $ or a control character"
        too_long = len(self._folder(ident).encode()) > 255
        return "the names are too long together for a folder" if too_long else None

    def type_problem(self, type_: ArrowType) -> str | None:
        return type_problem(type_)

    def location_of(self, ident: Ident) -> str | None:
        return None if "${" in self.root else f"{self.root}/{self._folder(ident)}"

    def refuses(self, change: Change) -> str | None:
        renames = isinstance(change, RenameTable | RenameNamespace)
        return "a table's folder has its name, so nothing is renamed" if renames else None

    def _folder(self, ident: Ident) -> str:
        return "$".join(ident) + ".lance"


def capabilities(options: Mapping[str, object]) -> JsonFileCapabilities:
    return JsonFileCapabilities(str(options["root"]))


def connect(options: Mapping[str, str]) -> Catalog:
    from reconciler_jsonfile.store import open_catalog

    return open_catalog(options)


backend = Backend(
    capabilities,
    connect,
    {
        "properties": {
            "file": {"type": "string", "minLength": 1, "description": "The JSON file."},
            "root": {"type": "string", "minLength": 1, "description": "The folder of the tables."},
            "pin": {"type": "string", "x-secret": True, "description": "Must be the file's own, if it has one."},
            "max_retries": {"type": "integer", "minimum": 0, "default": 3},
        },
        "required": ["file", "root"],
    },
)
