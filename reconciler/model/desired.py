"""The manifests as values: what the user wants, with the place it was written at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from reconciler.model.arrow import Field
from reconciler.model.checks import NO_CHECKS, Checks
from reconciler.model.coverage import IndexRefresh
from reconciler.model.data import DataSpec, Migration
from reconciler.model.diagnostic import Source
from reconciler.model.ident import Ident, ObjectKey
from reconciler.model.maintenance import TAG_RETENTION, Maintenance
from reconciler.model.policy import DeclaredWaiver, Policy
from reconciler.model.spark import InProcess
from reconciler.model.state import EMPTY, Index

DEFAULT_OWNER = "default"

AllowWord = Literal[
    "drop_column",
    "narrow_type",
    "set_not_null",
    "drop_index",
    "replace_table",
    "drop_namespace",
    "purge_data",
    "mix_rows",
    "skip_files",
    "add_files",
    "recreate",
]
ALLOW_WORDS: tuple[AllowWord, ...] = (
    "drop_column", "narrow_type", "set_not_null", "drop_index", "replace_table", "drop_namespace", "purge_data",
    "mix_rows", "skip_files", "add_files", "recreate",
)  # fmt: skip


EMPTY_SOURCES: Mapping[str, Source] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Management:
    owner: str = DEFAULT_OWNER
    adopt: bool = False
    ignore: tuple[str, ...] = ()
    max_deletes: int = 10
    max_delete_percent: float = 20.0
    index_refresh: IndexRefresh = field(default_factory=IndexRefresh)
    tag_retention: int | None = TAG_RETENTION
    """Seconds; None keeps the tags of apply for ever."""
    in_process: InProcess = field(default_factory=InProcess)
    expect: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """What the catalog must be before anything in it is read, by option or by what its service says; globs."""


NOT_OPTIONS = ("type", "management", "requireEnvironment")
"""Keys of a Catalog's spec that no backend is given."""


@dataclass(frozen=True, slots=True)
class CatalogSpec:
    name: str
    type: str
    options: Mapping[str, object]
    """Spec keys other than `NOT_OPTIONS`, flat, as written: `${env:}` and `${file:}` unresolved."""
    management: Management
    source: Source
    management_written: Mapping[str, object] = field(default_factory=dict)
    places: Mapping[tuple[str, int], Source] = field(default_factory=dict, compare=False)
    """Where references stand, by the option and the offset in its text: they are resolved when nobody has the manifests
    at hand any more."""
    require_environment: bool = False
    """No run without `--env`."""


@dataclass(frozen=True, slots=True)
class DesiredNamespace:
    catalog: str
    ident: Ident
    source: Source
    properties: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """`spec.description` included, under `description`."""
    absent: bool = False
    protect: bool | None = None
    """None: the manifest does not say, the live mark stays as it is."""
    renamed_from: Ident | None = None
    ignore_differences: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    allow_sources: Mapping[str, Source] = field(default_factory=lambda: EMPTY_SOURCES, compare=False)
    """Where each of the words is written."""
    waivers: tuple[DeclaredWaiver, ...] = ()
    """Never compared with anything live."""
    level: str | None = None
    """As written. None: what is declared inside says it (`core.plan_namespace.with_levels`)."""


@dataclass(frozen=True, slots=True)
class DesiredTable:
    catalog: str
    ident: Ident
    source: Source
    properties: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    location: str | None = None
    fields: tuple[Field, ...] | None = None
    """None: no schema declared; the table is only declared in the catalog and its schema is not compared."""
    at_least: bool = False
    """`schemaMode: at_least`: live columns that are not declared stay."""
    indexes: tuple[Index, ...] = ()
    config: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    schema_metadata: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    absent: bool = False
    protect: bool | None = None
    renamed_from: Ident | None = None
    ignore_differences: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    allow_sources: Mapping[str, Source] = field(default_factory=lambda: EMPTY_SOURCES, compare=False)
    checks: Checks = NO_CHECKS
    """Never compared with anything live, and no part of a plan."""
    data: DataSpec | None = None
    migration: Migration | None = None
    maintenance: Maintenance | None = None
    """The same."""
    waivers: tuple[DeclaredWaiver, ...] = ()
    held_back: str | None = field(default=None, compare=False)
    """Why nobody looks at `location`: the table is made by no plan that has this."""


DesiredObject = DesiredNamespace | DesiredTable
Places = Callable[[ObjectKey | str, tuple[str | int, ...]], Source | None]


@dataclass(frozen=True, slots=True)
class Desired:
    catalogs: Mapping[str, CatalogSpec]
    namespaces: Mapping[str, Mapping[Ident, DesiredNamespace]]
    """By catalog name; a catalog without objects may be missing."""
    tables: Mapping[str, Mapping[Ident, DesiredTable]]
    digest: str = ""
    """`sha256:` over the documents, independent of file layout and order."""
    policies: tuple[Policy, ...] = ()
    """By name. They add up."""
    places: Places | None = field(default=None, compare=False, repr=False)
    """Where a part of a document stands; None when only the documents' own places are known."""

    def place(self, of: ObjectKey | str, path: tuple[str | int, ...]) -> Source | None:
        """Of an object, or of the catalog of this name."""
        return self.places(of, path) if self.places is not None else None
