"""`spec.checks` of a Table as pydantic models, and as values of the model."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints

from reconciler.manifest.ages import Age
from reconciler.manifest.catalog_documents import ABSENT, NonEmpty, Strict, whole
from reconciler.model.checks import NO_CHECKS, Checks, Expression, Freshness
from reconciler.model.maintenance import seconds_of

Rows = Annotated[int, BeforeValidator(whole), Field(ge=0, le=10**15)]
Columns = Annotated[list[NonEmpty], Field(min_length=1)]


class RowCountDoc(Strict):
    min: Rows = ABSENT
    max: Rows = ABSENT


class ExpressionDoc(Strict):
    name: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    sql: Annotated[str, StringConstraints(min_length=1, max_length=10_000)]


class FreshnessDoc(Strict):
    column: NonEmpty
    maxAge: Age


class ChecksDoc(Strict):
    rowCount: RowCountDoc = ABSENT
    notNull: list[NonEmpty] = ABSENT
    unique: list[NonEmpty | Columns] = ABSENT
    accepted: dict[NonEmpty, Annotated[list[str | int | float | bool], Field(min_length=1)]] = ABSENT
    expressions: list[ExpressionDoc] = ABSENT
    freshness: FreshnessDoc = ABSENT


def checks_of(doc: ChecksDoc | None) -> Checks:
    if doc is None:
        return NO_CHECKS
    fresh = doc.freshness
    return Checks(
        doc.rowCount.min if doc.rowCount else None,
        doc.rowCount.max if doc.rowCount else None,
        tuple(doc.notNull or ()),
        tuple((key,) if isinstance(key, str) else tuple(key) for key in doc.unique or ()),
        MappingProxyType({column: tuple(values) for column, values in (doc.accepted or {}).items()}),
        tuple(Expression(e.name, e.sql) for e in doc.expressions or ()),
        Freshness(fresh.column, seconds_of(fresh.maxAge)) if fresh else None,
    )
