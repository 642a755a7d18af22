"""The documents as pydantic models: what turns data that the JSON Schema accepts into values.

A test generates documents and proves that model and schema accept and refuse the same ones. `integer` in JSON Schema
takes 20.0 for 20, so the model does too.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, StringConstraints

from reconciler.manifest.catalog_documents import ABSENT, AnyCatalog, CatalogName, Id, NonEmpty, Strict, whole
from reconciler.manifest.check_documents import ChecksDoc
from reconciler.manifest.data_documents import DataDoc, MigrationDoc
from reconciler.manifest.maintenance_documents import MaintenanceDoc
from reconciler.manifest.policy_documents import PolicyDocument, WaiverDoc
from reconciler.model.desired import AllowWord

API_VERSION = "reconciler.lance/v1"

Name = Annotated[str, StringConstraints(min_length=1, max_length=255)]
TypeText = Annotated[str, StringConstraints(min_length=1, max_length=65536)]
Strings = dict[NonEmpty, str]
Positive = Annotated[int, BeforeValidator(whole), Field(ge=1, le=2**31 - 1)]
Bits = Annotated[int, BeforeValidator(whole), Field(ge=1, le=16)]
Level = Annotated[int, BeforeValidator(whole), Field(ge=1, le=64)]


class CatalogMetadata(Strict):
    name: CatalogName


class ObjectMetadata(Strict):
    catalog: CatalogName
    id: Id


class _Document(Strict):
    apiVersion: Literal["reconciler.lance/v1"]


class CatalogDocument(_Document):
    kind: Literal["Catalog"]
    metadata: CatalogMetadata
    spec: AnyCatalog


class _ObjectSpec(Strict):
    description: str = ""
    properties: Strings = ABSENT
    state: Literal["present", "absent"] = "present"
    protect: bool = False
    renamedFrom: Id = ABSENT
    ignoreDifferences: list[NonEmpty] = ABSENT
    allow: list[AllowWord] = ABSENT
    waivers: list[WaiverDoc] = ABSENT


class NamespaceSpec(_ObjectSpec):
    level: Literal["catalog", "database"] = ABSENT


class NamespaceDocument(_Document):
    kind: Literal["Namespace"]
    metadata: ObjectMetadata
    spec: NamespaceSpec = NamespaceSpec()


_WITH_STRUCT = re.compile(r"^((.*[<, ])?struct([>, ].*)?|(large_)?list)\Z")


def _with_struct(text: str) -> str:
    if not _WITH_STRUCT.match(text):
        raise ValueError("the type has no struct where the fields go")
    return text


class LeafDoc(Strict):
    """A column or field as most are written. Tried first: it needs no check in Python."""

    name: Name
    type: TypeText
    nullable: bool = True
    comment: str = ""
    metadata: Strings = ABSENT
    renamedFrom: NonEmpty = ""


class StructDoc(Strict):
    name: Name
    type: Annotated[TypeText, AfterValidator(_with_struct)] = "struct"
    nullable: bool = True
    comment: str = ""
    metadata: Strings = ABSENT
    renamedFrom: NonEmpty = ""
    fields: Annotated[list[FieldDoc], Field(min_length=1)]


class BackfillSql(Strict):
    sql: Annotated[str, StringConstraints(min_length=1, max_length=10_000)]


class BackfillFunction(Strict):
    function: NonEmpty


Backfill = BackfillSql | BackfillFunction


class DefaultDoc(LeafDoc):
    default: str | int | float | bool


class BackfillDoc(LeafDoc):
    backfill: Backfill


class StructDefaultDoc(StructDoc):
    default: str | int | float | bool


class StructBackfillDoc(StructDoc):
    backfill: Backfill


FieldDoc = Annotated[LeafDoc | StructDoc, Field(union_mode="left_to_right")]
ColumnDoc = Annotated[
    LeafDoc | StructDoc | DefaultDoc | BackfillDoc | StructDefaultDoc | StructBackfillDoc,
    Field(union_mode="left_to_right"),
]


class NoParams(Strict):
    pass


class InvertedParams(Strict):
    with_position: bool = False
    base_tokenizer: NonEmpty = "simple"
    language: NonEmpty = "English"
    max_token_length: Positive = 40
    lower_case: bool = True
    stem: bool = True
    remove_stop_words: bool = True
    ascii_folding: bool = True
    min_ngram_length: Positive = 3
    max_ngram_length: Positive = 3
    prefix_only: bool = False


class FlatParams(Strict):
    metric: Literal["l2", "cosine", "dot", "hamming"] = "l2"
    num_partitions: Positive = 1


class QuantizedParams(FlatParams):
    num_bits: Bits = 8


class PqParams(QuantizedParams):
    num_sub_vectors: Positive


class HnswParams(FlatParams):
    m: Positive = 20
    ef_construction: Positive = 150
    max_level: Level = 7


class HnswSqParams(HnswParams):
    num_bits: Bits = 8


class HnswPqParams(HnswSqParams):
    num_sub_vectors: Positive


class _Index(Strict):
    column: NonEmpty
    name: Name = ""


class PlainIndex(_Index):
    type: Literal["btree", "bitmap", "label_list", "ngram", "zonemap", "bloomfilter"]
    params: NoParams = NoParams()


class InvertedIndex(_Index):
    type: Literal["inverted"]
    params: InvertedParams = InvertedParams()


class FlatIndex(_Index):
    type: Literal["ivf_flat"]
    params: FlatParams = FlatParams()


class QuantizedIndex(_Index):
    type: Literal["ivf_sq", "ivf_rq"]
    params: QuantizedParams = QuantizedParams()


class PqIndex(_Index):
    type: Literal["ivf_pq"]
    params: PqParams


class HnswIndex(_Index):
    type: Literal["ivf_hnsw_flat"]
    params: HnswParams = HnswParams()


class HnswSqIndex(_Index):
    type: Literal["ivf_hnsw_sq"]
    params: HnswSqParams = HnswSqParams()


class HnswPqIndex(_Index):
    type: Literal["ivf_hnsw_pq"]
    params: HnswPqParams


IndexDoc = Annotated[
    PlainIndex | InvertedIndex | FlatIndex | QuantizedIndex | PqIndex | HnswIndex | HnswSqIndex | HnswPqIndex,
    Discriminator("type"),
]


class TableSpec(_ObjectSpec):
    location: NonEmpty = ""
    columns: Annotated[list[ColumnDoc], Field(min_length=1, alias="schema")] = ABSENT
    schemaMode: Literal["exact", "at_least"] = "exact"
    schemaMetadata: Strings = ABSENT
    config: Strings = ABSENT
    indexes: list[IndexDoc] = ABSENT
    checks: ChecksDoc = ABSENT
    data: DataDoc = ABSENT
    migration: MigrationDoc = ABSENT
    maintenance: MaintenanceDoc = ABSENT


class TableDocument(_Document):
    kind: Literal["Table"]
    metadata: ObjectMetadata
    spec: TableSpec


AnyDocument = Annotated[CatalogDocument | NamespaceDocument | TableDocument | PolicyDocument, Discriminator("kind")]
