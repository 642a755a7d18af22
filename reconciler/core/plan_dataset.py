"""The steps for a dataset that exists: columns, then metadata, then indexes."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.applied import (
    Applied,
    entries_left_to_others,
    expected_applied,
    field_entry,
    live_entries,
    parse_applied,
    wanted_metadata,
)
from reconciler.core.diff_index import by_name, index_differences
from reconciler.core.diff_properties import MapDiff, diff_map
from reconciler.core.diff_schema import aspect_of, ignore_rule
from reconciler.core.draft import Drafter
from reconciler.core.fields import annotated, find, past_renames, rename_path
from reconciler.core.notes import gives_up
from reconciler.core.plan_columns import plan_columns
from reconciler.core.plan_data import plan_data
from reconciler.core.plan_index import (
    create_indexes,
    drop_indexes,
    followed_indexes,
    replace_indexes,
    wanted_indexes,
    with_live_names,
)
from reconciler.core.record_text import record_reason
from reconciler.core.text import changed_keys, listing
from reconciler.model.arrow import Field
from reconciler.model.change import UpdateDataset
from reconciler.model.desired import DesiredTable
from reconciler.model.plan import Json
from reconciler.model.state import DatasetState

FieldChanges = dict[str, dict[str, str | None]]


def plan_dataset(d: Drafter, want: DesiredTable, bookkeeping: bool, notes: bool) -> None:
    """`bookkeeping`: also bring our own record up to date (not on tables that are held back). `notes`: see notes.py."""
    declares = want.fields is not None or want.config or want.schema_metadata or want.indexes
    unmarked = bookkeeping and d.dataset.owner != d.context.owner
    if not declares and not d.dataset.applied and not unmarked:
        return
    renames = plan_columns(d, want) if want.fields is not None else {}
    want = with_live_names(want, d.dataset)
    followed = followed_indexes(want, d.dataset)
    drop_indexes(d, want, but=followed)
    replace_indexes(d, want, managed=False)
    _update(d, want, renames, bookkeeping, notes)
    plan_data(d, want)
    create_indexes(d, want)  # First: one may come for the column that a replaced one leaves.
    replace_indexes(d, want, managed=True)
    before = d.dataset.indexes
    drop_indexes(d, want, only=followed)
    if d.dataset.indexes != before:  # Our record had them until now.
        _update(d, want, renames, bookkeeping, notes)


def _update(d: Drafter, want: DesiredTable, renames: dict[str, str], bookkeeping: bool, notes: bool) -> None:
    live = d.dataset
    ours = parse_applied(live.applied)
    ignored = frozenset(want.ignore_differences)
    config = diff_map(want.config, live.config, ours.config, ignored, "config")
    schema = diff_map(want.schema_metadata, live.schema_metadata, ours.schema, ignored, "schemaMetadata")
    fields = _field_changes(want, live.fields, ours, renames)
    kept = {*expected_applied(want, live.fields), *_still_ours(want, live, ours)}
    applied = tuple(sorted(kept - _still_theirs(want, live, ours)))
    given_up = gives_up(live.applied, applied, live_entries(live), entries_left_to_others(want.ignore_differences))
    noted = live.applied != applied if notes else given_up
    marks_differ = bookkeeping and (noted or live.owner != d.context.owner)
    if not (config or schema or fields or marks_differ):
        return
    change = UpdateDataset(
        want.ident,
        config.with_nulls(),
        schema.with_nulls(),
        fields,
        d.context.owner,
        applied,
    )
    parts = [_reason(config, schema, fields)]
    said = {*_said(change)}
    parts.append(record_reason({*live.applied} - said, {*applied} - said, (live.owner, change.owner), parts[0]))
    d.propose(change, "metadata", "; ".join(p for p in parts if p), _before(live, change))


def _still_ours(want: DesiredTable, live: DatasetState, ours: Applied) -> list[str]:
    """Indexes that we made, that the manifest lost and whose drop is held back: forgotten now, they would never go."""
    left, declared = entries_left_to_others(want.ignore_differences), {i.name for i in want.indexes}
    kept = [f"index:{i.name}" for i in live.indexes if i.name in ours.indexes and i.name not in declared]
    return [entry for entry in kept if not left(entry)]


def _still_theirs(want: DesiredTable, live: DatasetState, ours: Applied) -> set[str]:
    """Indexes of others that stand under a declared name and may not be dropped: declaring does not make them ours."""
    there = by_name(live.indexes)
    return {
        f"index:{i.name}"
        for i in wanted_indexes(want)
        if i.name in there and i.name not in ours.indexes and index_differences(i, there[i.name])
    }


def _field_changes(want: DesiredTable, live: tuple[Field, ...], ours: Applied, renames: dict[str, str]) -> FieldChanges:
    """Three-way, per column that exists."""
    rule = ignore_rule(want.ignore_differences)
    wanted = dict(annotated(want.fields or ()))
    if not wanted and not ours.fields:
        return {}
    if ours.fields:
        renames = renames | past_renames(want.fields or (), live)
    applied = {rename_path(path, renames): keys for path, keys in ours.fields.items()}
    out: FieldChanges = {}
    for path in sorted(wanted.keys() | applied.keys()):
        found = find(live, path)
        if found is None or rule(path, None):
            continue
        declared = wanted_metadata(wanted[path]) if path in wanted else {}
        shown = wanted_metadata(found)
        changes: dict[str, str | None] = {k: v for k, v in sorted(declared.items()) if shown.get(k) != v}
        changes |= {k: None for k in sorted(applied.get(path, ())) if k not in declared and k in shown}
        changes = {k: v for k, v in changes.items() if not rule(path, aspect_of(k))}
        if changes:
            out[path] = changes
    return out


def _said(change: UpdateDataset) -> Iterator[str]:
    """The entries of the record whose values the step itself sets or removes: those are told as such."""
    yield from (f"config:{key}" for key in change.config)
    yield from (f"schema:{key}" for key in change.schema_metadata)
    yield from (field_entry(path, key) for path, keys in change.fields.items() for key in keys)


def _reason(config: MapDiff, schema: MapDiff, fields: FieldChanges) -> str:
    """Empty when only our record differs."""
    parts = [changed_keys("config differs", config), changed_keys("schema metadata differs", schema)]
    if fields:
        parts.append(f"column metadata differs: {listing([*fields])}")
    return "; ".join(p for p in parts if p)


def _before(live: DatasetState, change: UpdateDataset) -> Json:
    out: dict[str, Json] = {}
    if change.config:
        out["config"] = {k: live.config.get(k) for k in change.config}
    if change.schema_metadata:
        out["schema_metadata"] = {k: live.schema_metadata.get(k) for k in change.schema_metadata}
    fields: dict[str, Json] = {}
    for path, changes in change.fields.items():
        found = find(live.fields, path)
        shown = wanted_metadata(found) if found is not None else {}
        fields[path] = {k: shown.get(k) for k in changes}
    if fields:
        out["fields"] = fields
    return out
