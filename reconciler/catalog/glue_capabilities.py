"""What a Glue catalog can do, from its spec alone. Pure: no boto3.

A namespace is a database or a child catalog. The identifier of a database is `[database]`, or `[catalog…, database]`
for one of a child catalog; `[catalog]` is a child catalog, the same way. A catalog with data of its own (federated, of
Redshift) and one that is inside another are AWS's: listed, never created, changed or dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.catalog import glue_columns
from reconciler.catalog.lance_types import type_problem
from reconciler.catalog.storage import escape
from reconciler.core.uris import holds_userinfo
from reconciler.model.arrow import ArrowType, Field
from reconciler.model.capabilities import Capabilities
from reconciler.model.change import Change, CreateNamespace, DeclareTable, RenameNamespace, RenameTable, SyncColumns
from reconciler.model.ident import Ident, Kind, dotted
from reconciler.model.state import DESCRIPTION_KEY, Column

OWN = "__reconciler"
"""Our database: never listed, never declared."""
TABLE_TYPE = "table_type"
LOCATION_KEY = "location"
"""Of a namespace: the database's LocationUri, as the other Lance implementations for Glue have it."""
MAX_NAME = 255
CATALOG = "catalog"
DATABASE = "database"
_MAX_CATALOG_NAME = 64
MAX_KEY = 255
MAX_VALUE = 512_000
_MAX_DESCRIPTION = 2048
_MAX_LOCATION = 2056
_MAX_LOCATION_URI = 1024
_MAX_FOLDER = 255
_SUFFIX = ".lance"
_NO_LOCATION = (
    "Glue does not choose a place for a new table: give it spec.location, or give the catalog a `root` under which "
    "tables are kept as <root>/<database>/<table>.lance"
)


@dataclass(frozen=True, slots=True)
class GlueCapabilities(Capabilities):
    root: str | None = None
    root_known: bool = True
    """False: given, but not known offline (`${env:…}`)."""
    type: str = "glue"
    max_parallelism: int = 16
    drop_needs_allow: bool = True
    chooses_location: bool = True
    all_catalogs: bool = False
    """Child catalogs are read whether or not a manifest speaks of them."""
    levels: tuple[str, ...] = (CATALOG, DATABASE)
    told: tuple[str, ...] = ("account", "region")
    inner_root: bool = False
    """spec.catalog_id is a child catalog itself."""

    @property
    def problem(self) -> str | None:
        """Why the catalog itself makes no sense, or None."""
        if self.root is None:
            return None
        if holds_userinfo(self.root):
            return "spec.root holds a user name or a password (scheme://user:password@...): give those as storage.*"
        return None if _absolute(self.root) else f"spec.root {self.root!r} is not a URI and not an absolute path"

    def covers(self, kind: Kind, ident: Ident, namespaces: Collection[Ident]) -> bool:
        """A database of a child catalog is looked for where an identifier leads into that catalog."""
        above = ident[:-1]
        return (
            kind == "Table"
            or not above
            or self.all_catalogs
            or any(c[: len(above)] == above for c in chains(namespaces))
        )

    def ident_problem(self, kind: Kind, ident: Ident) -> str | None:
        if self.problem:
            return self.problem
        if not ident:
            return "the root namespace has no name and cannot be declared"
        if kind == "Table" and len(ident) < 2:
            return "a Glue table is inside a database: its id is [database, table] or [catalog…, database, table]"
        if ident[0] == OWN and len(ident) == (1 if kind == "Namespace" else 2):
            return f"the database {OWN!r} is where the reconciler keeps its own notes"
        if problem := next((p for n in ident if (p := _name_problem(n))), None):
            return problem
        if problem := next((p for n in ident[: -1 if kind == "Namespace" else -2] if (p := _catalog_problem(n))), None):
            return problem
        return self._folder_problem(ident) if kind == "Table" else None

    def _folder_problem(self, ident: Ident) -> str | None:
        """Also of a table with a location of its own: where it would be by rule, a note of its place is kept."""
        if self.root is None or not self.root.lower().startswith(("/", "file:")):
            return None
        for name in (*ident[:-1], ident[-1] + _SUFFIX):
            if (size := len(name.encode("utf-8", "surrogatepass"))) > _MAX_FOLDER:
                return (
                    f"the folder {name[:20] + '…'!r} would have a name of {size} bytes, {_MAX_FOLDER} is the limit of "
                    f"file systems (a table's folder ends in {_SUFFIX}): take a shorter name"
                )
        return None

    def type_problem(self, type_: ArrowType) -> str | None:
        return type_problem(type_)

    def schema_problem(self, fields: Sequence[Field]) -> str | None:
        return glue_columns.schema_problem(fields)

    def property_problem(self, kind: Kind, key: str, value: str) -> str | None:
        if not 1 <= len(key) <= MAX_KEY or not glue_columns.printable(key):
            return f"Glue takes property keys of 1 to {MAX_KEY} printable characters"
        if kind == "Table" and key == TABLE_TYPE:
            return f"{TABLE_TYPE!r} is how Glue knows a Lance table: it is set by itself, leave it out"
        if key == DESCRIPTION_KEY:
            if not value:
                return "an empty description cannot be told from none in Glue: leave it out"
            return _too_long("a description", value, _MAX_DESCRIPTION)
        if kind == "Namespace" and key == LOCATION_KEY:
            if not value:
                return "the location of a database cannot be empty: leave it out"
            return _too_long("the location of a database", value, _MAX_LOCATION_URI)
        return _too_long("a property", value, MAX_VALUE)

    def location_problem(self, ident: Ident, location: str) -> str | None:
        if holds_userinfo(location):
            return "the location holds a user name or a password (scheme://user:password@...): leave them out"
        if "${" in location:
            return None
        if not _absolute(location):
            return f"the location {location!r} is relative, and other users of the catalog cannot know to what"
        return _too_long("a location", location, _MAX_LOCATION)

    def location_of(self, ident: Ident) -> str | None:
        if self.root is None:
            return None
        path = "/".join(ident) + _SUFFIX
        remote = "://" in self.root
        return f"{self.root.rstrip('/')}/{escape(path) if remote else path}"

    def columns_of(self, fields: Sequence[Field]) -> tuple[Column, ...] | None:
        return glue_columns.columns_of(fields)

    def refuses(self, change: Change) -> str | None:
        if self.problem:
            return self.problem
        match change:
            case CreateNamespace(level="catalog"):
                return self._no_catalog(change.ident)
            case RenameNamespace():
                return (
                    f"Glue cannot rename a database: give {dotted(change.source)} and its tables `state: absent` in "
                    f"one apply (the data stays), and declare {dotted(change.ident)} without renamedFrom, with its "
                    "tables at those locations, in the next"
                )
            case RenameTable():
                return (
                    f"Glue cannot rename a table: give {dotted(change.source)} `state: absent` in one apply (its data "
                    f"stays), and declare {dotted(change.ident)} with that location and without renamedFrom in the next"
                )
            case DeclareTable():
                if change.location is None and self.root is None and self.root_known:
                    return _NO_LOCATION
                return glue_columns.columns_problem(change.columns or ())
            case SyncColumns():
                return glue_columns.columns_problem(change.columns)
            case _:
                return None

    def _no_catalog(self, ident: Ident) -> str | None:
        if len(ident) > 1 or self.inner_root:
            return (
                f"{dotted(ident)} would be a catalog inside another catalog, and Glue's CreateCatalog makes catalogs "
                "of the account only: those inside others come from AWS's own sources (federation, Redshift)"
            )
        return _catalog_problem(ident[-1])


def glue_capabilities(options: Mapping[str, object]) -> GlueCapabilities:
    """`options` as written or resolved."""
    root = options.get("root")
    known = not (isinstance(root, str) and "${" in root)
    everything = options.get("catalogs") in (True, "true")
    chosen = root if isinstance(root, str) and root and known else None
    start = options.get("catalog_id")
    inner = isinstance(start, str) and "${" not in start and any(c in start for c in ":/")
    return GlueCapabilities(chosen, known, all_catalogs=everything, inner_root=inner)


def chains(namespaces: Iterable[Ident]) -> frozenset[Ident]:
    """The child catalogs that databases are in."""
    return frozenset(n[:-1] for n in namespaces if n[:-1])


def _absolute(location: str) -> bool:
    return "://" in location or location.startswith(("/", "file:/"))


def _name_problem(name: str) -> str | None:
    if not name or name in (".", ".."):
        return f"{name!r} cannot be a name"
    if len(name) > MAX_NAME:
        return f"the name {name[:20] + '…'!r} has {len(name)} characters, {MAX_NAME} is the limit of Glue"
    if name != name.lower():
        return f"Glue folds names to lower case: write {name.lower()!r} instead of {name!r}"
    if bad := next((c for c in "/\\" if c in name), None):
        return f"the name {name!r} must not contain {bad!r}: it separates catalogs and folders"
    if not glue_columns.printable(name):
        return f"the name {name!r} must not contain control characters"
    return None


def _catalog_problem(name: str) -> str | None:
    if len(name) > _MAX_CATALOG_NAME:
        return f"the catalog {name[:20] + '…'!r} has {len(name)} characters, {_MAX_CATALOG_NAME} is the limit of Glue"
    if "." in name or name.startswith("aws:"):
        return f"the name of the catalog {name!r} must not contain a dot or start with 'aws:'"
    return None


def _too_long(what: str, value: str, limit: int) -> str | None:
    return f"{what} has at most {limit} characters in Glue, this one has {len(value)}" if len(value) > limit else None
