"""What an Iceberg REST catalog can do, from its spec alone. Pure: no HTTP, no lance.

An identifier is `[warehouse, namespace..., table]`: the warehouse is always there and cannot be declared.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from reconciler.catalog.lance_types import type_problem
from reconciler.core.uris import holds_userinfo
from reconciler.model.arrow import ArrowType
from reconciler.model.capabilities import Capabilities
from reconciler.model.change import Change, RenameNamespace, RenameTable
from reconciler.model.ident import Ident, Kind, dotted

TABLE_TYPE = "table_type"
LANCE = "lance"
LOCATION = "lance.location"
"""Where the Lance dataset is: some servers put their own location in place of the one that was asked for."""
_SERVERS_OWN = ("nessie.",)
_ADDED: Mapping[Kind, frozenset[str]] = {
    "Namespace": frozenset({"location"}),
    "Table": frozenset({"write.parquet.compression-codec", "created-at", "gc.enabled"}),
}
"""What servers add to new objects without being asked."""
_RESERVED = frozenset({
    "format-version", "uuid", "snapshot-count", "current-snapshot-summary", "current-snapshot-id",
    "current-snapshot-timestamp-ms", "current-schema", "default-partition-spec", "default-sort-order",
})  # fmt: skip
"""Iceberg takes these for orders to change the table, or refuses them."""
_LONGEST_NAME = 255
_BAD = frozenset("/\\%#@:")
"""Servers take these in a body and then cannot be asked for them in an address (Apache's own: `/ \\ %`), or read them
as something else (Nessie: `#` and `@` name a branch, `:` a place)."""
_LONGEST_FOLDER = 255
_ODD = re.compile(r"[\x00-,/:-@\[-^`{-\x7f]")
OWN = "__reconciler"


def shown(kind: Kind, key: str, applied: Collection[str]) -> bool:
    """False for what is not the user's: what makes a table a Lance table, what a server keeps for itself, and what it
    adds to every new object (unless it was us who set it: then it is among the `applied` keys)."""
    return not _hidden(kind, key) and (key not in _ADDED[kind] or key in applied)


def _hidden(kind: Kind, key: str) -> bool:
    return key.startswith(_SERVERS_OWN) or (kind == "Table" and key in (TABLE_TYPE, LOCATION))


@dataclass(frozen=True, slots=True)
class IcebergCapabilities(Capabilities):
    root: str | None = None
    """Absolute, without a trailing slash. None: not known offline (`${env:…}`)."""
    type: str = "iceberg"
    max_parallelism: int = 48
    chooses_location: bool = True

    def ident_problem(self, kind: Kind, ident: Ident) -> str | None:
        if not ident:
            return "the root namespace has no name and cannot be declared"
        if kind == "Namespace" and len(ident) == 1:
            return (
                f"{ident[0]!r} is a warehouse: it is always there and cannot be declared; ids are [warehouse, name...]"
            )
        if kind == "Table" and len(ident) < 3:
            return "a table's id is [warehouse, namespace..., table]: at least three names"
        if not ident[0]:
            return "the warehouse's name must not be empty"
        levels = ident[1:] if kind == "Namespace" else ident[1:-1]
        if levels and is_own(levels[0]):
            return f"namespaces whose names begin with {OWN!r} are the reconciler's own notes"
        dotted_level = next((n for n in levels if "." in n), None)
        if dotted_level is not None:
            return f"the namespace {dotted_level!r} must not contain a dot: Iceberg servers part the levels by it"
        return next((p for n in ident[1:] if (p := _name_problem(n))), None)

    def type_problem(self, type_: ArrowType) -> str | None:
        return type_problem(type_)

    def property_problem(self, kind: Kind, key: str, value: str) -> str | None:
        if not key:
            return "a property needs a name"
        if _hidden(kind, key):
            return f"the property {key!r} is set by the catalog itself: leave it out"
        if kind == "Table" and key in _RESERVED:
            return f"the property {key!r} is reserved by Iceberg: leave it out"
        return None

    def location_problem(self, ident: Ident, location: str) -> str | None:
        if "${" in location:
            return None
        if holds_userinfo(location):
            return "the location holds a user name or a password (scheme://user:password@...): leave them out"
        if "://" not in location and not location.lower().startswith(("/", "file:")):
            return f"the location {location!r} is relative: the catalog is read from other places too, write it in full"
        return None

    def location_of(self, ident: Ident) -> str | None:
        """`{root}/{warehouse}/{namespace...}/{table}`. A character that means something in a path or a URI is written
        as `=` and its number, so that two names never share a folder."""
        if self.root is None:
            return None
        return "/".join((self.root, *(_folder(n) for n in ident)))

    def refuses(self, change: Change) -> str | None:
        if isinstance(change, RenameNamespace):
            return "the Iceberg REST protocol cannot rename a namespace: declare a new one and move its tables"
        if isinstance(change, RenameTable) and change.source[0] != change.ident[0]:
            return f"a table cannot move to another warehouse ({dotted(change.source)} to {dotted(change.ident)})"
        return None


def is_own(name: str) -> bool:
    """A top-level namespace of ours: never listed, never declared."""
    return name == OWN or name.startswith(f"{OWN}_")


def _name_problem(name: str) -> str | None:
    if not name:
        return "a name must not be empty"
    if name.startswith("."):
        return f"the name {name!r} must not start with a dot"
    if bad := next((c for c in name if c in _BAD), None):
        return f"the name {name!r} must not contain {bad!r}: it has a meaning in the addresses of Iceberg servers"
    if any(ord(c) < 32 or ord(c) == 127 for c in name):
        return f"the name {name!r} must not contain control characters"
    if len(name) > _LONGEST_NAME:
        return f"the name {name[:20]!r}... has {len(name)} characters, {_LONGEST_NAME} is the limit"
    try:
        name.encode()
    except UnicodeEncodeError:
        return f"the name {name!r} is not valid Unicode"
    return None


def _folder(name: str) -> str:
    text = _ODD.sub(lambda m: f"={ord(m.group()):02X}", name)
    if text in (".", ".."):
        text = text.replace(".", "=2E")
    data = text.encode()
    if len(data) <= _LONGEST_FOLDER:
        return text
    digest = hashlib.sha256(data).hexdigest()[:32]
    return data[: _LONGEST_FOLDER - 33].decode(errors="ignore") + "=" + digest


def iceberg_capabilities(options: Mapping[str, object]) -> IcebergCapabilities:
    """`options` as written or resolved."""
    root = options.get("root")
    if root is None or root == "":
        return IcebergCapabilities(os.getcwd())
    if not isinstance(root, str) or "${" in root:
        return IcebergCapabilities(None)
    return IcebergCapabilities(_absolute(root))


def _absolute(root: str) -> str:
    if "://" in root or root.lower().startswith("file:"):
        return root.rstrip("/")
    return os.path.abspath(root).rstrip("/")
