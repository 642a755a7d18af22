"""What a manifest says about the rows of a table: where they come from, or where they are moved from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from reconciler.model.ident import Ident

Mode = Literal["once", "append", "replace-if-changed"]
MODES: tuple[Mode, ...] = ("once", "append", "replace-if-changed")
FILE_FORMATS = frozenset({"parquet", "csv", "json"})
"""Read by pyarrow inside the executors, file by file."""
TEXTS = frozenset({"csv", "json"})
"""Without types of their own: a text becomes the declared type or is an error."""
FUNCTIONS = "reconciler.functions"
"""The entry-point group of the Python functions that a column's `backfill` may name."""
FORMATS = frozenset({*FILE_FORMATS, "lance", "delta", "iceberg", "jdbc", "sql"})


@dataclass(frozen=True, slots=True)
class DataSpec:
    """`spec.data`. `once`: filled when it never was. `append`: each source file exactly once. `replace-if-changed`:
    all rows anew, in one commit, when the source is another than the one they came from."""

    source: Mapping[str, object]
    """`format` and the keys of that format, as written: `${env:}` and `${file:}` of secrets unresolved."""
    mode: Mode
    partitions: int | None = None
    """How many fragments are written; None leaves it to the files of the source."""
    order_by: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Column of the table -> column of the source, where the names differ."""
    casts: frozenset[str] = frozenset()
    """Columns whose values may be cast to another family of types (`cast: true`)."""
    nulls: frozenset[str] = frozenset()
    """Columns that are null where the source lacks them (`missing: null` of the column)."""
    units: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Column of times -> what the numbers of the source count: s, ms, us or ns."""
    missing_null: bool = False
    """The same for every column (`missing: null` of `data`)."""
    unread: str | None = field(default=None, compare=False)
    """Why the source is not looked at."""
    untrusted: bool = field(default=False, compare=False)
    """The checkout that the source reads may be a stranger's: links that lead out of it are not followed, and no
    message shows what is in a file."""

    def may_lack(self, column: str) -> bool:
        return self.missing_null or column in self.nulls

    @property
    def format(self) -> str:
        return str(self.source["format"])


@dataclass(frozen=True, slots=True)
class Migration:
    """`spec.migration`: the rows come from this table, once; it stays as it is."""

    catalog: str
    ident: Ident
    checksum: bool = True
    """`verify: checksum`, or `verify: none`: the copy is compared with the source before the table shows it."""

    @property
    def digest(self) -> str:
        return migrated_from(self.catalog, self.ident)


def migrated_from(catalog: str, ident: Ident) -> str:
    """The digest of a record of rows that were moved: from where, and nothing about what was there."""
    return "migrated:" + hashlib.sha256(json.dumps([catalog, *ident]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class RowState:
    """The rows of a dataset at a version. Equal digests mean the same files with the same deletions; equal columns,
    that the same values are read from them."""

    version: int
    digest: str
    columns: Mapping[str, tuple[int, str]] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Dotted path -> number of the field and type. A column that is written anew has another number. Empty in records
    of earlier versions."""
    before: bool = False
    """The record describes these rows and those of the commit that came with it. Who finds these alone finds that the
    others were taken away."""


@dataclass(frozen=True, slots=True)
class ExternalRows:
    """What others did to the rows after we filled the table, as far as its history tells."""

    reason: str
    """For people: which commits, when, what they did; or why nothing tells."""
    version: int
    """Where this was seen."""
    changed: bool = True
    """False: rows were only added, and those that we wrote are as they were."""
    gone: bool = False
    """None of the rows that we wrote is there."""
    seen: bool = True
    """False: no change was seen; there is only no proof that there was none."""


@dataclass(frozen=True, slots=True)
class DataRecord:
    """What we noted about the rows of a table when we filled it."""

    digest: str
    """Of the source they came from; of all files so far in mode `append`."""
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Mode `append`: hash of a place -> hash of what the file was (size and time, or etag). The place is an absolute
    path or a URI; in records of earlier versions also a path below the folder that the source named."""
    lost: bool = False
    """A data step was cut off and the history that would tell whether it landed is gone: nothing may be concluded."""
    noted: bool = True
    """False: the run that brought the rows was cut off before it noted them where no cleanup of versions reaches."""
    purged: int | None = None
    """The version whose rows of unknown origin were removed when the table was last filled, if there were any."""
    rows: RowState | None = field(default=None, compare=False)
    """The rows that this describes; None in records of earlier versions. Never part of a fingerprint."""
    external: ExternalRows | None = field(default=None, compare=False)
    """Live only: the rows are not those any more. Never part of a fingerprint, as rows are not."""
    now: RowState | None = field(default=None, compare=False)
    """Live only: the same rows as they are now, for the record that follows them."""


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source as it was looked at for a plan."""

    digest: str = ""
    """Of its definition and what is there."""
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Hash of an absolute path or URI -> hash of what the file is; empty for a source without files."""
    names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False, compare=False)
    """Hash of a path -> the path, for people."""
    told: str = ""
    """What it is, in a few words: `3 files, 12.5 MB`."""
    problem: str | None = None
    """Why nothing can be read from it into this table."""
    unused: tuple[str, ...] = ()
    """Its columns that the table does not declare, as far as they are known before it is read."""
    also: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Hash of a path -> further keys under which a ledger may know the file: the place that its links lead to, and the
    names below the source's folder that earlier versions noted."""
