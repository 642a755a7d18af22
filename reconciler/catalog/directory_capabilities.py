"""What a directory catalog can do, from its spec alone. Pure: no lance, no storage.

Three layouts: the default (`__manifest` for namespaces and their tables, `<t>.lance` folders for root tables), V2
(`dir_listing_enabled: false`: `__manifest` for everything) and V1 (`manifest_enabled: false`: folders only).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.catalog.lance_types import type_problem
from reconciler.catalog.storage import escape, relative_to
from reconciler.core.uris import canonical_location, holds_userinfo, is_file_uri
from reconciler.model.arrow import ArrowType
from reconciler.model.capabilities import Capabilities
from reconciler.model.change import Change, DeclareTable, RenameTable, UpdateTable
from reconciler.model.ident import Ident, Kind, dotted

DELIMITER = "$"
SUFFIX = ".lance"
MAX_NAME_BYTES = 255
_PREFIX_BYTES = 9  # eight hex digits and an underscore
_BOTH_OFF = (
    "manifest_enabled and dir_listing_enabled are both false, so the catalog can hold nothing: leave one of them on"
)
_V1_PROPERTIES = "a V1 directory catalog has no place for table properties: set manifest_enabled: true"
_V1_NAMESPACES = "namespaces need manifest_enabled: true; a V1 directory catalog holds root tables only"


def hidden(name: str) -> bool:
    """Root names that are never an object: `__manifest`, our `__reconciler`, and dot files."""
    return name.startswith(("__", "."))


@dataclass(frozen=True, slots=True)
class DirectoryCapabilities(Capabilities):
    manifest: bool = True
    listing: bool = True
    plain_folders: bool = False
    path: str | None = None
    """None: not known offline (`${env:…}`)."""
    type: str = "dir"
    max_parallelism: int = 16

    @property
    def problem(self) -> str | None:
        """Why the catalog itself makes no sense, or None."""
        if not self.manifest and not self.listing:
            return _BOTH_OFF
        if self.path is not None and self.path.startswith("file://") and not self.path.startswith("file:///"):
            return f"the path {self.path!r} names a host: write file:///absolute/path, or the path without file://"
        if self.path is not None and holds_userinfo(self.path):
            return "the path holds a user name or a password (scheme://user:password@...): give those as storage.*"
        return None

    def listed(self, ident: Ident) -> bool:
        """True for a root table whose folder, not a `__manifest` row, is its existence."""
        return self.listing and len(ident) == 1

    def ident_problem(self, kind: Kind, ident: Ident) -> str | None:
        if self.problem:
            return self.problem
        if not ident:
            return "the root namespace has no name and cannot be declared"
        if not self.manifest and kind == "Namespace":
            return _V1_NAMESPACES
        if not self.manifest and len(ident) > 1:
            return f"a table of a V1 directory catalog has one name, not {len(ident)}: {_V1_NAMESPACES}"
        return next((p for n in ident if (p := _name_problem(n))), None) or self._root_problem(kind, ident)

    def _root_problem(self, kind: Kind, ident: Ident) -> str | None:
        if hidden(ident[0]):
            return f"{ident[0]!r} cannot be used: root names that start with '__' or '.' are reserved"
        if kind == "Table" and self.listed(ident):
            if ident[0].endswith(SUFFIX):
                return f"a root table's name must not end in {SUFFIX}: its folder is <name>{SUFFIX}"
            longest = len((ident[0] + SUFFIX).encode())
        else:
            longest = len(DELIMITER.join(ident).encode()) + (_PREFIX_BYTES if kind == "Table" else 0)
        if longest > MAX_NAME_BYTES:
            return f"the folder name would take {longest} bytes, {MAX_NAME_BYTES} is the limit: use shorter names"
        return None

    def type_problem(self, type_: ArrowType) -> str | None:
        return type_problem(type_)

    def location_problem(self, ident: Ident, location: str) -> str | None:
        """A location can only name a folder below the root that exists already; the table is registered on it."""
        if holds_userinfo(location):
            return "the location holds a user name or a password (scheme://user:password@...): leave them out"
        if self.path is None or "${" in location:
            return None
        folder = relative_to(self.path, location)
        if folder is None:
            return f"the location {location!r} is not below the catalog's root folder; leave it out or move the data"
        if hidden(folder):
            return f"the location {location!r} is reserved: folders that start with '__' or '.' are not tables"
        if self.listed(ident) and folder not in self.root_folders(ident[0]):
            return (
                f"a root table lives at {' or '.join(self.root_folders(ident[0]))}: leave the location out, or put the "
                "table into a namespace"
            )
        return None

    def whole_place(self, location: str = "") -> str | None:
        if self.path is None:
            return None
        if not location:
            return self._root
        folder = relative_to(self.path, location)
        if folder is None:
            return location if location.startswith("/") or ":/" in location else f"{self._root}/{location}"
        return f"{self._root}/{escape(folder) if '://' in self._root else folder}"

    @property
    def _root(self) -> str:
        path = (self.path or "").rstrip("/")
        if is_file_uri(path):
            return canonical_location(path)
        return path if "://" in path else os.path.abspath(self.path or "")

    def root_folders(self, name: str) -> tuple[str, ...]:
        """Where a root table of that name may be, the place of a new one first. A folder without the suffix is one when
        it is a dataset; with `plain_folders` any that is listed."""
        return (name, name + SUFFIX) if self.lists_plain(name) else (name + SUFFIX, name)

    def lists_plain(self, folder: str) -> bool:
        """Is a folder without the suffix listed as a table? Names that other tools use for their own things are not."""
        return self.plain_folders and not folder.startswith(("_", ".")) and DELIMITER not in folder

    def holds_properties(self, kind: Kind, ident: Ident) -> bool:
        return self.manifest

    def refuses(self, change: Change) -> str | None:
        if self.problem:
            return self.problem
        if not self.manifest and change.kind == "Namespace":
            return _V1_NAMESPACES
        if isinstance(change, DeclareTable) and not self.manifest and change.properties:
            return _V1_PROPERTIES
        if isinstance(change, UpdateTable) and not self.manifest and (change.set or change.unset):
            return _V1_PROPERTIES
        if isinstance(change, RenameTable):
            for ident in (change.source, change.ident):
                if self.listed(ident):
                    return (
                        f"{dotted(ident)} is a root table, its folder is its name and cannot be renamed: use a "
                        "namespace, or set dir_listing_enabled: false"
                    )
        return None


def _name_problem(name: str) -> str | None:
    if not name:
        return "a name must not be empty"
    if name in (".", ".."):
        return f"{name!r} cannot be a name"
    for bad in (DELIMITER, "/", "\\"):
        if bad in name:
            return f"the name {name!r} must not contain {bad!r}"
    if any(ord(c) < 32 or ord(c) == 127 for c in name):
        return f"the name {name!r} must not contain control characters"
    try:
        name.encode()
    except UnicodeEncodeError:
        return f"the name {name!r} is not valid Unicode"
    return None


def directory_capabilities(options: Mapping[str, object]) -> DirectoryCapabilities:
    """`options` as written or resolved. A switch that is not known yet counts as its default."""
    path = options.get("path")
    known = isinstance(path, str) and "${" not in path
    return DirectoryCapabilities(
        manifest=_switch(options.get("manifest_enabled"), True),
        listing=_switch(options.get("dir_listing_enabled"), True),
        plain_folders=_switch(options.get("plain_folders"), False),
        path=path if known and isinstance(path, str) else None,
    )


def _switch(value: object, default: bool) -> bool:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(str(value).strip().lower(), default)
