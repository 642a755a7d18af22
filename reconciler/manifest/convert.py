"""A document that the schema accepted -> its desired object, with the rules that one document can break by itself."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from reconciler.manifest.columns import Columns
from reconciler.manifest.ignore_paths import check_ignore_differences
from reconciler.manifest.index_rules import check_indexes, warn_of_nested
from reconciler.manifest.problem import Problem
from reconciler.manifest.reserved_keys import check_reserved
from reconciler.manifest.storage_rules import check_storage_properties
from reconciler.manifest.table_rules import check_properties, check_schema
from reconciler.model.arrow import Field
from reconciler.model.checks import NO_CHECKS, Checks
from reconciler.model.coverage import IndexRefresh, parse_limit
from reconciler.model.data import DataSpec, Migration
from reconciler.model.desired import NOT_OPTIONS, CatalogSpec, DesiredNamespace, DesiredTable, Management
from reconciler.model.diagnostic import Source
from reconciler.model.maintenance import Maintenance, tag_retention
from reconciler.model.policy import DeclaredWaiver, Policy
from reconciler.model.spark import InProcess
from reconciler.model.state import DESCRIPTION_KEY, EMPTY, Index, default_index_name

Declared = CatalogSpec | DesiredNamespace | DesiredTable | Policy


@lru_cache(maxsize=1)
def _adapter() -> Any:
    from pydantic import TypeAdapter

    from reconciler.manifest.documents import AnyDocument

    adapter: TypeAdapter[Any] = TypeAdapter(AnyDocument)
    return adapter.validator


def convert(value: Any, source: Source, columns: Columns, problems: list[Problem]) -> Declared:
    document = _adapter().validate_python(value)
    match document.kind:
        case "Catalog":
            return _catalog(document, value, source)
        case "Namespace":
            return _namespace(document, source, problems)
        case "Policy":
            return _policy(document, value, source, problems)
        case _:
            return _table(document, source, columns, problems)


def _frozen(mapping: Mapping[str, str] | None) -> Mapping[str, str]:
    return MappingProxyType(dict(mapping)) if mapping else EMPTY


def _catalog(document: Any, value: Any, source: Source) -> CatalogSpec:
    written = value["spec"]
    options = {k: v for k, v in written.items() if k not in NOT_OPTIONS}
    management = Management()
    m = document.spec.management
    if m is not None:
        limits = m.thresholds
        refresh, kept = _index_refresh(m.indexRefresh), tag_retention(m.tagRetention)
        ignored = tuple(m.ignore or ())
        management = Management(
            m.owner,
            m.adopt,
            ignored,
            limits.deletes,
            limits.deletePercent,
            refresh,
            kept,
            InProcess(m.inProcess.maxRows, m.inProcess.maxBytes),
            _frozen(m.expect),
        )
    return CatalogSpec(
        document.metadata.name,
        document.spec.type,
        options,
        management,
        source,
        dict(written.get("management", {})),
        require_environment=bool(document.spec.requireEnvironment),
    )


def _index_refresh(written: Any) -> IndexRefresh:
    if isinstance(written, int):
        return IndexRefresh() if written else IndexRefresh(max_rows=0)
    return IndexRefresh(written.maxRows, parse_limit(written.maxUnindexed))


def _common(document: Any, problems: list[Problem], fields: tuple[Field, ...] | None = None) -> dict[str, Any]:
    spec = document.spec
    given = spec.model_fields_set
    properties = spec.properties
    if properties or "description" in given:
        check_properties(spec, problems)
        check_storage_properties(properties or {}, problems)
        if "description" in given:
            properties = {**(properties or {}), DESCRIPTION_KEY: spec.description}
    if spec.ignoreDifferences:
        indexes = {_index(i).name for i in getattr(spec, "indexes", None) or ()}
        check_ignore_differences(spec.ignoreDifferences, document.kind, fields, problems, indexes)
    if spec.renamedFrom and spec.state == "absent":
        message = "an object that is to be `state: absent` is not renamed"
        hint = "remove renamedFrom, and give the old object `state: absent` if it is that one that has to go"
        problems.append(Problem("M415", ("spec", "renamedFrom"), message, hint))
    return {
        "catalog": document.metadata.catalog,
        "ident": tuple(document.metadata.id),
        "properties": _frozen(properties),
        "absent": spec.state == "absent",
        "protect": spec.protect if "protect" in given else None,
        "renamed_from": tuple(spec.renamedFrom) if spec.renamedFrom else None,
        "ignore_differences": tuple(spec.ignoreDifferences or ()),
        "allow": tuple(spec.allow or ()),
        "waivers": _waivers(spec.waivers, problems),
    }


def _waivers(docs: Any, problems: list[Problem]) -> tuple[DeclaredWaiver, ...]:
    if docs is None:
        return ()
    from reconciler.manifest.policy_rules import waivers_of

    return waivers_of(docs, problems)


def _policy(document: Any, value: Any, source: Source, problems: list[Problem]) -> Policy:
    from reconciler.manifest.policy_documents import policy_of
    from reconciler.manifest.policy_rules import check_patterns

    check_patterns(value, problems)
    return policy_of(document, source)


def _namespace(document: Any, source: Source, problems: list[Problem]) -> DesiredNamespace:
    return DesiredNamespace(source=source, level=document.spec.level or None, **_common(document, problems))


def _table(document: Any, source: Source, columns: Columns, problems: list[Problem]) -> DesiredTable:
    spec = document.spec
    fields = None
    if spec.columns:
        before = len(problems)
        fields = columns.fields(spec.columns, ("spec", "schema"), problems)
        check_schema(fields, spec.columns, problems)
        complete = len(problems) == before
        if any(f.filled for f in fields):
            _check_filled(fields, spec.columns, problems)
    else:
        complete = False
    indexes = tuple(_index(i) for i in spec.indexes or ())
    if indexes:
        before = len(problems)
        check_indexes(indexes, fields, problems)
        if len(problems) == before:
            warn_of_nested(indexes, problems)
    for key, mapping in (("config", spec.config), ("schemaMetadata", spec.schemaMetadata)):
        if mapping:
            check_reserved(mapping, ("spec", key), problems)
    return DesiredTable(
        source=source,
        location=spec.location or None,
        fields=fields,
        at_least=spec.schemaMode == "at_least",
        indexes=indexes,
        config=_frozen(spec.config),
        schema_metadata=_frozen(spec.schemaMetadata),
        checks=_checks(spec.checks, fields, problems),
        data=_data(spec, fields, problems),
        migration=_migration(spec, problems),
        maintenance=_maintenance(spec.maintenance, problems),
        **_common(document, problems, fields if complete else None),
    )


def _checks(doc: Any, fields: tuple[Field, ...] | None, problems: list[Problem]) -> Checks:
    if doc is None:
        return NO_CHECKS
    from reconciler.manifest.check_documents import checks_of
    from reconciler.manifest.check_rules import check_checks

    checks = checks_of(doc)
    check_checks(checks, fields, problems)
    return checks


def _data(spec: Any, fields: tuple[Field, ...] | None, problems: list[Problem]) -> DataSpec | None:
    if spec.data is None:
        return None
    from reconciler.manifest.data_documents import data_of
    from reconciler.manifest.data_rules import check_data

    data = data_of(spec.data)
    check_data(data, fields, spec.state == "absent", problems)
    return data


def _migration(spec: Any, problems: list[Problem]) -> Migration | None:
    if spec.migration is None:
        return None
    from reconciler.manifest.data_documents import migration_of

    place = ("spec", "migration")
    if spec.state == "absent":
        message = "a table that is to be `state: absent` gets no rows"
        problems.append(Problem("M486", place, message, "remove migration, or state: absent", at_key=True))
    if spec.data is not None:
        message = "the rows come from `migration` or from `data`, not from both"
        problems.append(Problem("M487", place, message, "keep one of them", at_key=True))
    return migration_of(spec.migration)


def _check_filled(fields: tuple[Field, ...], docs: Any, problems: list[Problem]) -> None:
    from reconciler.manifest.backfill_rules import check_backfills

    check_backfills(fields, docs, problems)


def _maintenance(doc: Any, problems: list[Problem]) -> Maintenance | None:
    if doc is None:
        return None
    from reconciler.manifest.maintenance_documents import maintenance_of
    from reconciler.manifest.maintenance_rules import check_maintenance

    maintenance = maintenance_of(doc)
    check_maintenance(maintenance, problems)
    return maintenance


def _index(doc: Any) -> Index:
    """Only what the manifest says becomes a parameter: the rest is the backend's choice and never a difference."""
    params = doc.params.model_dump(exclude_unset=True) if doc.params.model_fields_set else {}
    return Index(doc.name or default_index_name(doc.column), doc.column, doc.type, MappingProxyType(params))
