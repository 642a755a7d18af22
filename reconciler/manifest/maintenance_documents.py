"""`spec.maintenance` of a Table as pydantic models, and as values of the model."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from reconciler.manifest.ages import Age
from reconciler.manifest.catalog_documents import ABSENT, Strict, whole
from reconciler.model.coverage import Limit
from reconciler.model.maintenance import Cleanup, Compact, Indexes, Maintenance, seconds_of

Count = Annotated[int, BeforeValidator(whole), Field(ge=1, le=2**31 - 1)]
Several = Annotated[int, BeforeValidator(whole), Field(ge=2, le=2**31 - 1)]
Rows = Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**15)]
Percent = Annotated[float, Field(ge=0, le=100)]


class CompactDoc(Strict):
    targetRowsPerFragment: Count = 1_048_576
    minSmallFragments: Several = 8
    maxDeletedPercent: Percent = 10.0


class IndexesDoc(Strict):
    maxUnindexedRows: Rows = 100_000


class CleanupDoc(Strict):
    olderThan: Age = "14d"
    keepTagged: bool = True
    retainVersions: Count = 1


class MaintenanceDoc(Strict):
    compact: CompactDoc = ABSENT
    indexes: IndexesDoc = ABSENT
    cleanup: CleanupDoc = ABSENT

    @model_validator(mode="after")
    def _not_empty(self) -> MaintenanceDoc:
        if not self.model_fields_set:
            raise ValueError("maintenance asks for nothing")
        return self


def maintenance_of(doc: MaintenanceDoc) -> Maintenance:
    compact, indexes, cleanup = doc.compact, doc.indexes, doc.cleanup
    return Maintenance(
        Compact(compact.targetRowsPerFragment, compact.minSmallFragments, compact.maxDeletedPercent)
        if compact
        else None,
        Indexes(Limit(indexes.maxUnindexedRows)) if indexes else None,
        Cleanup(seconds_of(cleanup.olderThan), cleanup.keepTagged, cleanup.retainVersions) if cleanup else None,
    )
