"""The step that fills a table from its declared source.

It comes after the columns and before the indexes. Rows that nobody accounts for are never mixed with new ones, and the
ledger of files is never guessed: what is not known holds the step back.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.draft import Block, Drafter
from reconciler.core.fields import bare, plain
from reconciler.core.text import listing
from reconciler.model.change import MaterializeTable
from reconciler.model.data import DataRecord, DataSpec, SourceState
from reconciler.model.desired import DesiredTable
from reconciler.model.plan import DATA_UNKNOWN, PARENT_BLOCKED, SOURCE_PROBLEM, Json, Risk

SHOWN = 5


def plan_data(d: Drafter, want: DesiredTable) -> None:
    spec, source = want.data, d.context.snapshot.sources.get(want.ident)
    if spec is None or source is None:
        return
    record = d.dataset.data
    if record is not None and not record.lost:
        if not record.noted and not _note(d, want, spec, source, record):
            return
        if spec.mode == "once":
            return
    new = dict(source.files)
    if spec.mode == "append" and record is not None:
        new = {path: stamp for path, stamp in source.files.items() if record.files.get(path) != stamp}
    change = _change(want, spec, source, new, record)
    before: Json = {"digest": record.digest} if record is not None else None
    problem = _problem(d, want, spec, source, record, new)
    if problem is not None:
        d.refuse(change, "rewrite", problem, before)
    elif record is None or (new if spec.mode == "append" else record.digest != source.digest):
        risk, word = _risk(d, change, record)
        d.propose(change, risk, _reason(spec, source, record, new), before, word)


def _note(d: Drafter, want: DesiredTable, spec: DataSpec, source: SourceState, record: DataRecord) -> bool:
    """The same step again, which finds its rows there."""
    change = replace(_change(want, spec, source, {}, record), digest=record.digest, replace=False)
    return d.propose(change, "safe", "its rows are in, but the run that brought them was cut off before it noted that")


def _change(
    want: DesiredTable, spec: DataSpec, source: SourceState, new: dict[str, str], record: DataRecord | None
) -> MaterializeTable:
    fields = tuple(replace(plain(f), default=f.default, function=f.function) for f in want.fields or ())
    replaces = spec.mode == "replace-if-changed"
    files = dict(sorted(new.items()))
    order = spec.order_by
    base = record.digest if record is not None else None
    return MaterializeTable(
        want.ident, spec.source, replaces, source.digest, files, fields, spec.columns, spec.partitions, order, base
    )


def _problem(
    d: Drafter,
    want: DesiredTable,
    spec: DataSpec,
    source: SourceState,
    record: DataRecord | None,
    new: dict[str, str],
) -> Block | None:
    if source.problem is not None:
        return Block(SOURCE_PROBLEM, source.problem)
    if record is not None and record.lost:
        why = (
            "an earlier data step was cut off, and the history that would tell whether its rows are in was cleaned up: "
            "look at the rows; then remove the dataset's metadata keys reconciler.data and reconciler.data.claim"
        )
        return Block(DATA_UNKNOWN, why)
    if record is None and not d.dataset.empty and spec.mode != "replace-if-changed":
        why = (
            "the table has rows, and no record says where they came from: new ones would stand beside them; start with "
            "an empty table, or use mode: replace-if-changed"
        )
        return Block(DATA_UNKNOWN, why)
    if spec.mode == "append" and record is not None:
        if not record.files:
            return Block(DATA_UNKNOWN, "the rows did not come from files, so no record says which files are in already")
        if changed := [source.names.get(path, path) for path in new if path in record.files]:
            why = f"files that are in already have changed: {listing(sorted(changed)[:SHOWN])}; a file is taken once"
            return Block(DATA_UNKNOWN, f"{why}: restore them, add new files, or use mode: replace-if-changed")
        if moved := _moved(record, source, new):
            why = f"files that are in already under another path: {listing(sorted(moved)[:SHOWN])}"
            return Block(DATA_UNKNOWN, f"{why}; restore the path, or use mode: replace-if-changed")
    live = {f.name: bare(f.type) for f in d.dataset.fields}
    if unlike := [f.name for f in want.fields or () if live.get(f.name) != bare(f.type)]:
        return Block(PARENT_BLOCKED, f"the columns {listing(unlike)} are not as declared yet")
    return None


def _moved(record: DataRecord, source: SourceState, new: dict[str, str]) -> list[str]:
    """New names of files that are gone under the names they were taken by: the same size, and the same time or etag."""
    gone = {stamp for path, stamp in record.files.items() if path not in source.files}
    return [source.names.get(path, path) for path, stamp in new.items() if stamp in gone]


def _risk(d: Drafter, change: MaterializeTable, record: DataRecord | None) -> tuple[Risk, str | None]:
    if d.dataset.empty or not change.replace:
        return "safe", None
    return ("rewrite", None) if record is not None else ("destructive", "purge_data")


def _reason(spec: DataSpec, source: SourceState, record: DataRecord | None, new: dict[str, str]) -> str:
    if spec.mode != "append" or record is None:
        return f"never filled: {source.told}" if record is None else f"the source has changed: {source.told}"
    names = sorted(source.names.get(path, path) for path in new)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{len(names)} new {'file' if len(names) == 1 else 'files'}: {listing(names[:SHOWN])}{more}"
