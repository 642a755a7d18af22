"""`spec.data` and `spec.migration` of a Table as pydantic models, and as values of the model."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, StringConstraints

from reconciler.manifest.catalog_documents import ABSENT, Flat, Id, NonEmpty, Strict, whole
from reconciler.manifest.catalog_documents import CatalogName as Name
from reconciler.model.data import DataSpec, Migration

Paths = NonEmpty | Annotated[list[NonEmpty], Field(min_length=1)]
Sign = Annotated[str, StringConstraints(pattern=r"^[^\r\n]$")]
Version = Annotated[int, BeforeValidator(whole), Field(ge=1, le=2**53)] | NonEmpty
Options = dict[NonEmpty, str]
JdbcUrl = Annotated[str, StringConstraints(pattern=r"^(jdbc:|\$\{(env|file):)")]
ViewName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class TableRef(Strict):
    catalog: Name
    id: Id


class ParquetSource(Flat):
    format: Literal["parquet"]
    path: Paths


class CsvSource(Flat):
    format: Literal["csv"]
    path: Paths
    delimiter: Sign = ","
    header: bool = True
    quote: Sign = '"'
    nullValues: Annotated[list[str], Field(min_length=1)] = ABSENT


class JsonSource(Flat):
    format: Literal["json"]
    path: Paths


class LanceSource(Flat):
    format: Literal["lance"]
    path: NonEmpty = ABSENT
    table: TableRef = ABSENT
    version: Version = ABSENT
    either: ClassVar[tuple[str, ...]] = ("path", "table")


class DeltaSource(Flat):
    format: Literal["delta"]
    path: NonEmpty
    options: Options = ABSENT


class IcebergSource(Flat):
    format: Literal["iceberg"]
    table: NonEmpty = ABSENT
    path: NonEmpty = ABSENT
    options: Options = ABSENT
    token: NonEmpty = ABSENT
    prefixes: ClassVar[tuple[str, ...]] = ()
    either: ClassVar[tuple[str, ...]] = ("table", "path")


class JdbcSource(Flat):
    format: Literal["jdbc"]
    url: JdbcUrl
    table: NonEmpty = ABSENT
    query: NonEmpty = ABSENT
    user: NonEmpty = ABSENT
    password: NonEmpty = ABSENT
    driver: NonEmpty = ABSENT
    options: Options = ABSENT
    token: NonEmpty = ABSENT
    prefixes: ClassVar[tuple[str, ...]] = ()
    either: ClassVar[tuple[str, ...]] = ("table", "query")


ViewDoc = Annotated[
    ParquetSource | CsvSource | JsonSource | LanceSource | DeltaSource | IcebergSource | JdbcSource,
    Discriminator("format"),
]


class SqlSource(Flat):
    format: Literal["sql"]
    sql: Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
    views: dict[ViewName, ViewDoc] = ABSENT
    token: NonEmpty = ABSENT
    prefixes: ClassVar[tuple[str, ...]] = ()


SourceDoc = Annotated[
    ParquetSource | CsvSource | JsonSource | LanceSource | DeltaSource | IcebergSource | JdbcSource | SqlSource,
    Discriminator("format"),
]


MissingNull = Annotated[Literal["null"] | None, Field()]
"""`missing: null`, as YAML's null or as the text: an overlay can only write the text, as null removes a key there."""


class SourceColumn(Strict):
    source: Annotated[NonEmpty, Field(alias="from")] = ABSENT
    cast: bool = False
    unit: Literal["s", "ms", "us", "ns"] = ABSENT
    missing: MissingNull = None


class DataDoc(Strict):
    source: SourceDoc
    mode: Literal["once", "append", "replace-if-changed"]
    partitions: Annotated[int, BeforeValidator(whole), Field(ge=1, le=100_000)] = ABSENT
    orderBy: Annotated[list[NonEmpty], Field(min_length=1)] = ABSENT
    columns: dict[NonEmpty, NonEmpty | SourceColumn] = ABSENT
    missing: MissingNull = None


class MigrationDoc(Strict):
    source: Annotated[TableRef, Field(alias="from")]
    verify: Literal["checksum", "none"] = "checksum"


def data_of(doc: DataDoc) -> DataSpec:
    source: dict[str, Any] = doc.source.model_dump(exclude_unset=True)
    columns = {name: _column(given) for name, given in (doc.columns or {}).items()}
    return DataSpec(
        source,
        doc.mode,
        doc.partitions,
        tuple(doc.orderBy or ()),
        MappingProxyType({name: c.source for name, c in columns.items() if c.source is not None}),
        frozenset(name for name, c in columns.items() if c.cast),
        frozenset(name for name, c in columns.items() if "missing" in c.model_fields_set),
        MappingProxyType({name: c.unit for name, c in columns.items() if c.unit is not None}),
        "missing" in doc.model_fields_set,
    )


def _column(given: str | SourceColumn) -> SourceColumn:
    return SourceColumn.model_validate({"from": given}) if isinstance(given, str) else given


def migration_of(doc: MigrationDoc) -> Migration:
    return Migration(doc.source.catalog, tuple(doc.source.id), doc.verify == "checksum")
