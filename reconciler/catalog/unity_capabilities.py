"""What a Unity catalog can do, from its spec alone. Pure: no HTTP, no storage.

Three levels, fixed: the configured catalog, which is there already, a schema, a table. A table's entry cannot be
updated in this API, only removed and created again.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from reconciler.catalog.lance_types import type_problem
from reconciler.catalog.unity_columns import columns_of
from reconciler.core.text import utf16_length
from reconciler.core.uris import holds_userinfo
from reconciler.model.arrow import ArrowType, Field
from reconciler.model.capabilities import Capabilities
from reconciler.model.change import Change, DeclareTable, RenameNamespace, RenameTable, SyncColumns, UpdateTable
from reconciler.model.ident import Ident, Kind
from reconciler.model.state import DESCRIPTION_KEY, Column

LIMIT = 255
"""Of a name, a property's key and value, a schema's comment: what the server's database holds, in UTF-16 units. It
refuses more with a 500."""
MARKER = "table_type"
"""The property that says `lance`: written by us, and not the user's."""
LONG_COMMENT = 65535
"""Of a table and of a column."""
LONGEST_LOCATION = 2048
_NAME = re.compile(r"[a-zA-Z0-9_@-]+")
_CLOUD = ("s3", "gs", "abfs", "abfss")
_NOT_IN_A_URI = re.compile(r"[\x00-\x20\x7f\"<>\\^`{|}#?]|%(?![0-9A-Fa-f]{2})")
_NO_UPDATE = "Unity has no update of a table: the entry is replaced, with `allow: [replace_table]`"


@dataclass(frozen=True, slots=True)
class UnityCapabilities(Capabilities):
    catalog: str | None = None
    """None: not known offline (`${env:…}`). The same for `root`."""
    root: str | None = None
    type: str = "unity"
    max_parallelism: int = 16
    replaces_tables: bool = True
    chooses_location: bool = True

    def ident_problem(self, kind: Kind, ident: Ident) -> str | None:
        depth = 2 if kind == "Namespace" else 3
        if kind == "Namespace" and len(ident) == 1:
            return "the catalog is there already and cannot be declared: declare its schemas, [catalog, schema]"
        if len(ident) != depth:
            shape = "[catalog, schema]" if kind == "Namespace" else "[catalog, schema, table]"
            return f"a Unity {kind.lower()} has the id {shape}, not {len(ident)} names"
        if self.catalog is not None and ident[0] != self.catalog:
            return f"the first name must be the configured catalog {self.catalog!r}, not {ident[0]!r}"
        return next((p for n in ident if (p := _name_problem(n))), None) or self._root_problem(kind)

    def _root_problem(self, kind: Kind) -> str | None:
        """Unity would refuse every table below such a root."""
        root = self.root
        if kind != "Table" or root is None:
            return None
        if holds_userinfo(root):
            return "spec.root holds a user name or a password (scheme://user:password@...): give those as storage.*"
        if "://" not in root and not root.startswith("file:"):
            return None
        problem = _uri_problem(f"{root.rstrip('/')}/x")
        return f"spec.root: {problem}" if problem else None

    def type_problem(self, type_: ArrowType) -> str | None:
        return type_problem(type_)

    def schema_problem(self, fields: Sequence[Field]) -> str | None:
        for f in fields:
            problem = too_long(f"the column name {f.name[:20]}…", f.name, LIMIT) or too_long(
                f"the comment of column {f.name!r}", f.comment or "", LONG_COMMENT
            )
            if problem:
                return problem
        return None

    def property_problem(self, kind: Kind, key: str, value: str) -> str | None:
        if key == MARKER and kind == "Table":
            return f"the property {MARKER!r} is what makes it a Lance table: leave it out"
        if key == DESCRIPTION_KEY:
            return _comment_problem(kind, value)
        return too_long("the key", key, LIMIT) or too_long("the value", value, LIMIT)

    def owner_problem(self, owner: str) -> str | None:
        return too_long("it", owner, LIMIT)

    def location_problem(self, ident: Ident, location: str) -> str | None:
        if "${" in location:
            return None
        if holds_userinfo(location):
            return "the location holds a user name or a password (scheme://user:password@...): leave them out"
        if "://" not in location and not location.startswith("file:"):
            absolute = location.startswith("/") and location.strip("/") and not location.startswith("//")
            if not absolute:
                return f"the location {location!r} must be an absolute path of a folder, or a URI"
        elif problem := _uri_problem(location):
            return problem
        return too_long("the location, as the server stores it,", wire_location(location), LONGEST_LOCATION)

    def location_of(self, ident: Ident) -> str | None:
        return f"{wire_location(self.root)}/{'/'.join(ident)}" if self.root is not None else None

    def _place_problem(self, change: DeclareTable) -> str | None:
        """Of a place by rule: one that a manifest chooses is checked there."""
        location = change.location or self.location_of(change.ident)
        problem = too_long("its location", wire_location(location), LONGEST_LOCATION) if location else None
        return f"{problem}: choose a shorter spec.root, shorter names or a `location`" if problem else None

    def columns_of(self, fields: Sequence[Field]) -> tuple[Column, ...] | None:
        return columns_of(fields)

    def refuses(self, change: Change) -> str | None:
        if isinstance(change, DeclareTable):
            return self._place_problem(change)
        if isinstance(change, RenameTable) and change.ident[:2] != change.source[:2]:
            return "a table keeps its schema in a rename: deregister it and declare it under the new name"
        if isinstance(change, RenameNamespace) and change.ident[:1] != change.source[:1]:
            return "a schema cannot move to another catalog"
        if isinstance(change, SyncColumns) or (isinstance(change, UpdateTable) and (change.set or change.unset)):
            return _NO_UPDATE
        return None


def unity_capabilities(options: Mapping[str, object]) -> UnityCapabilities:
    """`options` as written or resolved. Without `root`, tables go below the working directory."""
    return UnityCapabilities(catalog=_known(options.get("catalog")), root=_known(options.get("root", os.curdir)))


def wire_location(location: str) -> str:
    """As the server stores it: a local path is an absolute `file:///` URI, and nothing ends in a slash. A relative path
    is ours to resolve: the server would take it from its own working directory."""
    if location.startswith("file:"):
        return "file://" + posixpath.normpath("/" + location[5:].lstrip("/"))
    if "://" not in location:
        return "file://" + quote(os.path.abspath(location))
    return location.rstrip("/")


def too_long(what: str, text: str, most: int) -> str | None:
    """Why the server's database does not hold this text, or None."""
    size = utf16_length(text)
    if size <= most:
        return None
    counted = f"{size} characters" if size == len(text) else f"{len(text)} characters, which are {size} UTF-16 units"
    return f"{what} has {counted}, Unity holds {most}"


def _known(value: object) -> str | None:
    return value if isinstance(value, str) and value and "${" not in value else None


def _name_problem(name: str) -> str | None:
    if not name:
        return "a name must not be empty"
    if len(name) > LIMIT:
        return f"the name {name[:20]}… has {len(name)} characters, {LIMIT} is the limit"
    if not _NAME.fullmatch(name):
        return f"the name {name!r} may hold only ASCII letters, digits, '_', '-' and '@'"
    return None


def _comment_problem(kind: Kind, value: str) -> str | None:
    most = LIMIT if kind == "Namespace" else LONG_COMMENT
    if not value:
        return "an empty description cannot be told from none in Unity: leave it out"
    return too_long("the description", value, most)


def _uri_problem(location: str) -> str | None:
    scheme, _, rest = location.partition(":")
    if scheme == "file":
        if rest.startswith("//") and not rest.startswith("///"):
            return f"the location {location!r} names a host: write file:///absolute/path"
        path = rest.removeprefix("//")
        if not path.startswith("/") or path.startswith("//") or not path.strip("/"):
            return f"the location {location!r} is not an absolute path of a folder: write file:///absolute/path"
    elif scheme not in _CLOUD:
        return f"Unity does not take the scheme {scheme!r} of {location!r}, only file, {', '.join(_CLOUD)}"
    else:
        parts = rest.removeprefix("//").rstrip("/").split("/")[1:]
        if not parts:
            return f"the location {location!r} is a whole bucket: name a folder in it"
        if any(p in ("", ".", "..") for p in parts):
            return f"the location {location!r} has an empty, '.' or '..' part, which Unity would rewrite"
    if _NOT_IN_A_URI.search(location):
        return f"the location {location!r} is not a valid URI: write %20 for a space, and so on"
    return None
