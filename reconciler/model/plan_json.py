"""The plan as JSON and back (`schemas/plan.schema.json`)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

from reconciler.model import change as c
from reconciler.model.arrow import Field
from reconciler.model.codec import (
    canonical,
    column_from,
    column_json,
    field_from,
    field_json,
    index_from,
    index_json,
    marks_from,
    marks_json,
    type_from,
    type_json,
)
from reconciler.model.coverage import Coverage
from reconciler.model.diagnostic import Source
from reconciler.model.errors import Code, ReadError
from reconciler.model.finding import Finding, Waiver
from reconciler.model.ident import ObjectKey
from reconciler.model.plan import (
    FORMAT_VERSION,
    CatalogSummary,
    Expect,
    Json,
    Permission,
    Plan,
    PlanNote,
    Step,
    Summary,
)
from reconciler.model.plan_rules import problem_of
from reconciler.model.spark import RUNNERS, Runner
from reconciler.model.state import Column, Index, Marks
from reconciler.model.values import KeptColumn

_SERVER: dict[str, Json] = {"unknown": "server"}


class PlanFormatError(ValueError):
    """The file is not a plan this version can apply."""


def plan_to_json(plan: Plan) -> dict[str, Json]:
    out: dict[str, Json] = {
        "format_version": FORMAT_VERSION,
        "plan_id": plan.plan_id,
        "tool_version": plan.tool_version,
        "manifests_digest": plan.manifests_digest,
        "catalogs": {name: _catalog_json(s) for name, s in sorted(plan.catalogs.items())},
        "steps": [step_to_json(s) for s in plan.steps],
        "orphans": [_key_json(k) for k in plan.orphans],
        "unowned": [_key_json(k) | _owner(plan.owners.get(k)) for k in plan.unowned],
        "summary": {f.name: getattr(plan.summary, f.name) for f in fields(Summary)},
    }
    if plan.findings:
        out["findings"] = [finding_to_json(f) for f in plan.findings]
    if plan.left_out:
        out["left_out"] = [_key_json(k) for k in plan.left_out]
    if plan.judged_on:
        out["judged_on"] = plan.judged_on
    if plan.notes:
        out["notes"] = [_key_json(note.key) | {"message": note.message} for note in plan.notes]
    return out


def plan_from_json(value: object) -> Plan:
    """Refuses what is malformed, of another format version, edited since it was written, or no order of steps that
    can run. The id is a checksum: whoever writes a file can give it one that is right."""
    if not isinstance(value, dict) or "format_version" not in value or "steps" not in value:
        raise PlanFormatError("this is not a plan file")
    version = value["format_version"]
    if not isinstance(version, str) or version.split(".")[0] != FORMAT_VERSION.split(".")[0]:
        raise PlanFormatError(f"the plan has format_version {version!r}; this version reads {FORMAT_VERSION}")
    rest = {k: v for k, v in value.items() if k not in ("plan_id", "differences")}  # The latter only `drift` prints.
    if value.get("plan_id") != "sha256:" + hashlib.sha256(canonical(rest).encode()).hexdigest():
        raise PlanFormatError("the plan was changed after it was written: its plan_id does not match; make a new plan")
    try:
        plan = Plan(
            value["plan_id"],
            value["tool_version"],
            value["manifests_digest"],
            {name: _catalog_from(s) for name, s in value["catalogs"].items()},
            tuple(_step_from(s) for s in value["steps"]),
            tuple(_key_from(k) for k in value["orphans"]),
            tuple(_key_from(k) for k in value["unowned"]),
            Summary(**value["summary"]),
            tuple(finding_from(f) for f in value.get("findings", ())),
            tuple(_key_from(k) for k in value.get("left_out", ())),
            value.get("judged_on", ""),
            owners={_key_from(k): k["owner"] for k in value["unowned"] if "owner" in k},
            notes=tuple(PlanNote(_key_from(n), n["message"]) for n in value.get("notes", ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise PlanFormatError(f"the plan is malformed: {type(e).__name__} {e}") from e
    problem = problem_of(plan)
    if problem is not None:
        raise PlanFormatError(f"the plan is malformed: {problem}; make a new plan")
    return plan


def step_to_json(step: Step) -> dict[str, Json]:
    out: dict[str, Json] = {
        "id": step.id,
        "action": step.action,
        "catalog": step.catalog,
        "object": {"kind": step.change.kind, "id": list(step.change.ident)},
        "plane": step.plane,
        "risk": step.risk,
        "reason": step.reason,
        "verdict": step.verdict,
        "blocked_by": step.blocked_by,
        "needs": list(step.needs),
        "expect": _expect_json(step.expect),
        "yields": _expect_json(step.yields),
        "via": list(step.via),
        "before": step.before,
        "after": step.after,
        "source": _source_json(step.source),
    }
    if step.runner is not None:
        out["runner"] = step.runner
    if step.purpose:
        out["purpose"] = step.purpose
    if step.permissions:
        out["permissions"] = [{"word": p.word, "source": _source_json(p.source)} for p in step.permissions]
    if step.kept:
        out["kept_columns"] = [asdict(k) for k in step.kept]
    if step.error is not None:
        out["error"] = step.error.to_json()  # type: ignore[assignment]
    return out


def _source_json(source: Source | None) -> Json:
    return {"file": source.file, "line": source.line} if source else None


def _source_from(value: Mapping[str, Any] | None) -> Source | None:
    return Source(value["file"], value["line"]) if value else None


def _step_from(value: Mapping[str, Any]) -> Step:
    ident = tuple(value["object"]["id"])
    change = change_from_json(value["action"], value["object"]["kind"], ident, value["after"])
    if value["plane"] != ("data" if isinstance(change, c.DATA_PLANE) else "control"):
        raise ValueError(f"plane of {value['action']}: {value['plane']!r}")
    return Step(
        value["id"],
        value["catalog"],
        change,
        value["risk"],
        value["reason"],
        value["verdict"],
        value["blocked_by"],
        tuple(value["needs"]),
        _expect_from(value["expect"]),
        _expect_from(value["yields"]),
        tuple(value["via"]),
        value["before"],
        value["after"],
        _source_from(value["source"]),
        value.get("purpose", ""),
        _runner_from(value),
        tuple(Permission(p["word"], _source_from(p["source"])) for p in value.get("permissions", ())),
        read_error_from(value["error"]) if "error" in value else None,
        tuple(KeptColumn(k["column"], k["tag"], k["version"], k["location"]) for k in value.get("kept_columns", ())),
    )


def _runner_from(value: Mapping[str, Any]) -> Runner | None:
    """Earlier plans have none: their data steps run on Spark."""
    if "runner" not in value:
        return "spark" if value["plane"] == "data" else None
    return RUNNERS[RUNNERS.index(value["runner"])]


def change_to_json(change: c.Change) -> dict[str, Json]:
    """Everything but the identifier, which the step's `object` has."""
    out: dict[str, Json] = {}
    for f in fields(change):
        if f.name == "ident":
            continue
        value = getattr(change, f.name)
        if isinstance(change, c.DeclareTable) and f.name == "location":
            out["location"] = _SERVER if value is None else value
        elif f.name == "columns" and value is None:
            continue  # The catalog shows no columns.
        elif f.name in _OPTIONAL and not value:
            continue  # Earlier plans have no such keys.
        elif f.name in ("purges", "mixes", "seen", "known") and not value:
            continue  # No rows of unknown origin are concerned, and no files but those that are read.
        else:
            out[f.name] = _encode(value)
    return out


def _encode(value: Any) -> Json:
    if isinstance(value, Marks):
        return marks_json(value)
    if isinstance(value, Index):
        return index_json(value)
    if isinstance(value, Field):
        return field_json(value)
    if isinstance(value, c.ColumnAlteration):
        out: dict[str, Json] = {"path": value.path}
        if value.rename is not None:
            out["rename"] = value.rename
        if value.type is not None:
            out["type"] = type_json(value.type)
        if value.nullable is not None:
            out["nullable"] = value.nullable
        return out
    if isinstance(value, Column):
        return column_json(value)
    if isinstance(value, tuple | list):
        return [_encode(v) for v in value]
    if isinstance(value, Mapping):
        return {k: _encode(v) for k, v in value.items()}
    return value  # type: ignore[no-any-return]


def _alteration_from(value: Mapping[str, Any]) -> c.ColumnAlteration:
    type_ = value.get("type")
    return c.ColumnAlteration(
        value["path"], value.get("rename"), None if type_ is None else type_from(type_), value.get("nullable")
    )


def _fields_from(value: Any) -> Any:
    return tuple(field_from(f) for f in value) if isinstance(value, list) else dict(value)


_OPTIONAL = frozenset({"casts", "nulls", "unused", "units", "loses", "empty", "level"})
"""Left out where they say nothing."""

_DECODERS: dict[str, Callable[[Any], Any]] = {
    "properties": dict,
    "set": dict,
    "unset": tuple,
    "marks": marks_from,
    "location": lambda v: None if v == _SERVER else v,
    "config": dict,
    "schema_metadata": dict,
    "fields": _fields_from,
    "owner": str,
    "level": str,
    "applied": tuple,
    "indexes": lambda v: None if v is None else tuple(index_from(i) for i in v),
    "source": tuple,
    "columns": lambda v: tuple(_alteration_from(a) if "path" in a else column_from(a) for a in v),
    "paths": tuple,
    "loses": tuple,
    "empty": bool,
    "index": index_from,
    "again": int,
    "name": str,
    "max_unindexed": str,
    "max_rows": lambda v: v,
    "reads": dict,
    "replace": bool,
    "digest": str,
    "files": dict,
    "mapping": dict,
    "partitions": lambda v: v,
    "order_by": tuple,
    "base": lambda v: v,
    "casts": tuple,
    "nulls": tuple,
    "unused": tuple,
    "units": dict,
    "purges": lambda v: v,
    "mixes": bool,
    "seen": lambda v: v,
    "known": dict,
    "from_catalog": str,
    "from_ident": tuple,
    "checksum": bool,
    "copied_owner": lambda v: v,
    "copied_applied": tuple,
    "copied_data": lambda v: v,
}

_CLASSES: dict[tuple[str, str], type[Any]] = {
    (cls.action, cls.kind): cls
    for cls in (
        c.CreateNamespace, c.UpdateNamespace, c.AdoptNamespace, c.RenameNamespace, c.DropNamespace, c.DeclareTable,
        c.UpdateTable, c.ReplaceTable, c.AdoptTable, c.RenameTable, c.DeregisterTable, c.CreateDataset, c.AddColumns,
        c.AlterColumns, c.DropColumns, c.CreateIndex, c.ReplaceIndex, c.RefreshIndex, c.DropIndex, c.BackfillColumns,
        c.RewriteColumns,
        c.MaterializeTable, c.MigrateTable,
    )
}  # fmt: skip


def change_from_json(action: str, kind: str, ident: tuple[str, ...], after: Mapping[str, Any]) -> c.Change:
    cls = _CLASSES.get((action, kind))
    if cls is None:
        raise PlanFormatError(f"the plan has an action this version does not know: {action} on a {kind}")
    if action == "update_table" and "applied" in after:
        cls = c.UpdateDataset
    elif action == "update_table" and "columns" in after:
        cls = c.SyncColumns
    if cls in (c.UpdateDataset, c.AdoptTable):  # Plans of earlier versions say what to record of indexes.
        after = {name: value for name, value in after.items() if name != "indexes"}
    change: c.Change = cls(ident, **{name: _DECODERS[name](value) for name, value in after.items()})
    return change


def _expect_json(expect: Expect) -> dict[str, Json]:
    out: dict[str, Json] = {"state": expect.state}
    if expect.fingerprint is not None:
        out["fingerprint"] = expect.fingerprint
    if expect.compared is not None:
        out["compared"] = expect.compared
    if expect.columns is not None:
        out["columns"] = [*expect.columns]
    return out


def _expect_from(value: Mapping[str, Any]) -> Expect:
    columns = tuple(value["columns"]) if "columns" in value else None
    return Expect(value["state"], value.get("fingerprint"), value.get("compared"), columns)


def read_error_from(value: Any) -> ReadError:
    if isinstance(value, str):
        return ReadError(None, value)
    return ReadError(Code(value["code"]), value["message"])


def _catalog_json(s: CatalogSummary) -> dict[str, Json]:
    out: dict[str, Json] = {
        "type": s.type,
        "complete": s.complete,
        "namespaces": s.namespaces,
        "tables": s.tables,
        "spec": dict(s.spec),
        "problems": [p.to_json() for p in s.problems],  # type: ignore[misc]
    }
    if s.other_tables:
        out["other_tables"] = s.other_tables
    if s.projection_stale:
        out["projection_stale"] = [list(ident) for ident in s.projection_stale]
    if s.coverage:
        out["coverage"] = [_coverage_json(c) for c in s.coverage]
    if s.new_at is not None:
        out["new_at"] = s.new_at
    if s.skipped_folders:
        out["skipped_folders"] = s.skipped_folders
    return out


def _catalog_from(v: Mapping[str, Any]) -> CatalogSummary:
    stale = tuple(tuple(ident) for ident in v.get("projection_stale", ()))
    problems = tuple(map(read_error_from, v["problems"]))
    coverage = tuple(_coverage_from(c) for c in v.get("coverage", ()))
    counted = v["type"], v["complete"], v["namespaces"], v["tables"]
    kept = stale, coverage, v.get("other_tables", 0)
    return CatalogSummary(*counted, v["spec"], problems, *kept, v.get("new_at"), v.get("skipped_folders", 0))


def _coverage_json(found: Coverage) -> dict[str, Json]:
    out: dict[str, Json] = {
        "id": list(found.ident),
        "index": found.index,
        "rows": found.rows,
        "indexed_rows": found.indexed_rows,
    }
    if found.advice:
        out["advice"] = found.advice
    if found.over:
        out["max_unindexed"] = found.over
    return out


def _coverage_from(v: Mapping[str, Any]) -> Coverage:
    ident, rows = tuple(v["id"]), (v["rows"], v["indexed_rows"])
    return Coverage(ident, v["index"], *rows, v.get("advice", ""), v.get("max_unindexed", ""))


def _key_json(key: ObjectKey) -> dict[str, Json]:
    return {"catalog": key.catalog, "object": {"kind": key.kind, "id": list(key.ident)}}


def _owner(name: str | None) -> dict[str, Json]:
    return {} if name is None else {"owner": name}


def _key_from(value: Mapping[str, Any]) -> ObjectKey:
    return ObjectKey(value["catalog"], tuple(value["object"]["id"]), value["object"]["kind"])


def finding_to_json(finding: Finding) -> dict[str, Json]:
    source, waiver = finding.source, finding.waiver
    out: dict[str, Json] = {"catalog": None, "object": None} if finding.key is None else _key_json(finding.key)
    return out | {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "hint": finding.hint,
        "source": _source_json(source),
        "waiver": {"reason": waiver.reason, "until": waiver.until} if waiver else None,
    }


def finding_from(value: Mapping[str, Any]) -> Finding:
    source, waiver = value["source"], value["waiver"]
    return Finding(
        value["code"],
        value["severity"],
        None if value["object"] is None else _key_from(value),
        value["message"],
        value["hint"],
        _source_from(source),
        Waiver(waiver["reason"], waiver["until"]) if waiver else None,
    )
