"""What a Lance REST namespace can do, from its spec alone. Pure: no HTTP, no storage.

The protocol creates, describes and removes. It changes nothing: properties are what they were at creation, and nothing
is renamed. Our own marks find a place all the same (`rest_inventory`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.catalog.lance_types import type_problem
from reconciler.core.uris import holds_userinfo
from reconciler.model.arrow import ArrowType
from reconciler.model.capabilities import Capabilities
from reconciler.model.change import (
    Change,
    DeclareTable,
    RenameNamespace,
    RenameTable,
    UpdateNamespace,
    UpdateTable,
)
from reconciler.model.ident import Ident, Kind

DELIMITER = "$"
"""The default, and what the reference server joins names with in its store, whatever the routes use."""
INVENTORY = "__reconciler"
MAX_NAME_BYTES = 255
_PREFIX_BYTES = 9  # the folder of a table is eight hex digits, an underscore and the joined names
_ENCODED = frozenset('\\{}^%`[]"<>~#|*?')
_NO_UPDATE = "the Lance REST protocol cannot change properties after creation"
_NO_RENAME = "has no rename that servers implement: create the new one, move the data, then remove the old one"


@dataclass(frozen=True, slots=True)
class RestCapabilities(Capabilities):
    delimiter: str | None = DELIMITER
    """None: not known offline (`${env:…}`)."""
    type: str = "rest"
    max_parallelism: int = 16

    def ident_problem(self, kind: Kind, ident: Ident) -> str | None:
        """Measured on pylance's server: with right encoding every printable character arrives, but `$` splits a name
        in its store, `/` makes folders in folders, a quote in a namespace breaks its listing, object stores refuse
        control characters, and pylance's client sends `+` for a space."""
        if not ident:
            return "the root namespace has no name and cannot be declared"
        if ident[0] == INVENTORY:
            return f"the namespace {INVENTORY!r} is where the reconciler keeps its own notes"
        quoted = next((n for n in (ident if kind == "Namespace" else ident[:-1]) if "'" in n), None)
        if quoted is not None:
            return f"the namespace name {quoted!r} must not contain a single quote: servers cannot list inside it"
        problem = next((p for n in ident if (p := self.name_problem(n))), None)
        if problem or kind == "Namespace":
            return problem
        size = _folder_bytes(ident)
        if size > MAX_NAME_BYTES:
            return f"the table's folder name would take {size} bytes, {MAX_NAME_BYTES} is the limit: use shorter names"
        return None

    def name_problem(self, name: str) -> str | None:
        if not name:
            return "a name must not be empty"
        if name in (".", ".."):
            return f"{name!r} cannot be a name: it means a place in an address"
        for bad in dict.fromkeys((DELIMITER, self.delimiter or DELIMITER, "/")):
            if bad in name:
                return f"the name {name!r} must not contain {bad!r}"
        if " " in name:
            return f"the name {name!r} must not contain a space: pylance's own client cannot ask for it"
        if any(ord(c) < 32 or ord(c) == 127 for c in name):
            return f"the name {name!r} must not contain control characters"
        try:
            size = len(name.encode())
        except UnicodeEncodeError:
            return f"the name {name!r} is not valid Unicode"
        return f"the name has {size} bytes, {MAX_NAME_BYTES} is the limit" if size > MAX_NAME_BYTES else None

    def type_problem(self, type_: ArrowType) -> str | None:
        return type_problem(type_)

    def location_problem(self, ident: Ident, location: str) -> str | None:
        """The server chooses locations: one that is given names data that is there already, and is registered."""
        if "${" in location:
            return None
        if holds_userinfo(location):
            return "the location holds a user name or a password (scheme://user:password@...): leave them out"
        if "://" not in location and not location.startswith(("/", "file:")):
            return f"the location {location!r} must be absolute, or a URI"
        return None

    def remark(self, change: Change) -> str | None:
        if isinstance(change, DeclareTable) and change.properties and (change.location or len(change.ident) == 1):
            what = "a table that is registered on data" if change.location else "a root table"
            return (
                f"servers need not keep the properties of {what}: our inventory has them, and other clients may not "
                "see them"
            )
        return None

    def refuses(self, change: Change) -> str | None:
        match change:
            case UpdateNamespace() | UpdateTable() if change.set or change.unset:
                keys = ", ".join(sorted({*change.set, *change.unset}))
                return f"{_NO_UPDATE}: {keys} would have to change. Put the manifest back, or create a new object"
            case RenameTable() | RenameNamespace():
                return f"the Lance REST protocol {_NO_RENAME}"
        return None


def _folder_bytes(ident: Ident) -> int:
    """pylance's server encodes the folder's name twice when it marks a declared table: `%25C3` for one byte."""
    name = DELIMITER.join(ident).encode()
    return _PREFIX_BYTES + sum(5 if byte > 127 or chr(byte) in _ENCODED else 1 for byte in name)


def rest_capabilities(options: Mapping[str, object]) -> RestCapabilities:
    """`options` as written or resolved."""
    delimiter = options.get("delimiter", DELIMITER)
    known = isinstance(delimiter, str) and delimiter and "${" not in delimiter
    return RestCapabilities(delimiter=str(delimiter) if known else None)
