"""The step that fills a table from its declared source.

It comes after the columns and before the indexes. Rows that no record accounts for are neither replaced nor added to
without an allow word, whether they were there before the table was filled or another writer wrote them later. The
ledger of files is never guessed: what is not known blocks the step.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from reconciler.core.draft import Block, Drafter
from reconciler.core.fields import bare, plain
from reconciler.core.source_files import FilesBySight, by_sight, noted_also
from reconciler.core.text import listing, plural
from reconciler.model.change import MaterializeTable
from reconciler.model.data import DataRecord, DataSpec, ExternalRows, SourceState
from reconciler.model.desired import AllowWord, DesiredTable
from reconciler.model.plan import DATA_UNKNOWN, PARENT_BLOCKED, SOURCE_PROBLEM, Json, Risk
from reconciler.model.state import DatasetState

SHOWN = 5
PURGE_DATA: AllowWord = "purge_data"
MIX_ROWS: AllowWord = "mix_rows"
SKIP_FILES: AllowWord = "skip_files"
ADD_FILES: AllowWord = "add_files"
UNACCOUNTED = "the table has rows, and no record says where they came from"
_UNNOTED = "its rows are in, but not noted yet: a run was cut off before that, or a version from before it was restored"


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
    found = by_sight(source.files, source.also, record.files if spec.mode == "append" and record is not None else {})
    new = {**found.new, **found.questions} if ADD_FILES in d.allow and record is not None else found.new
    due = record is None or bool((new or found.questions) if spec.mode == "append" else record.digest != source.digest)
    external = _external(d, spec, record, due)
    skipped = {} if ADD_FILES in d.allow else found.questions
    known = {**skipped, **noted_also({**new, **skipped}, source.also, found.told)}
    change = _change(want, spec, source, new, record, known)
    if external is not None and (change.replace or not (new or found.questions) or PURGE_DATA in d.allow):
        every = dict(sorted(source.files.items()))
        known = dict(sorted(noted_also(every, source.also).items()))
        change = replace(change, replace=True, files=every, known=known, purges=external.version)
    elif record is None and change.replace and not d.dataset.empty:
        change = replace(change, purges=d.dataset.version)
    elif external is None and record is not None and record.external is not None:
        mixes = spec.mode == "append"
        change = replace(change, mixes=mixes, seen=record.external.version if mixes else None)
    elif record is not None and record.rows is not None and spec.mode == "append" and MIX_ROWS in d.allow:
        change = replace(change, mixes=True, seen=record.rows.version)  # Others may come while the step is at work.
    before: Json = {"digest": record.digest} if record is not None else None
    problem = _problem(d, want, spec, source, record, change)
    reads = external is not None and PURGE_DATA in d.allow
    idle = problem is not None and problem.word == SOURCE_PROBLEM and not reads and _idle(spec, source, record, new)
    if problem is not None and not idle:
        d.refuse(change, "rewrite", problem, before)
    elif external is not None and record is not None:
        word, reason = _over_external(d, spec, record, external)
        d.propose(change, "destructive", reason, before, word)
    elif found.questions:
        word, reason = _over_questions(d, source, found)
        d.propose(change, "safe", reason, before, word, [MIX_ROWS] if change.mixes else ())
    elif due:
        risk, allow_word = _risk(d, change, record)
        mixed = record is not None and record.external is not None and change.mixes
        d.propose(change, risk, _reason(spec, source, record, new), before, allow_word, [MIX_ROWS] if mixed else ())


def _external(d: Drafter, spec: DataSpec, record: DataRecord | None, due: bool) -> ExternalRows | None:
    """The external change of the rows, if it matters: in mode `append` a word accepts it. A record of an earlier
    version without any sign of a change blocks what would be done, and asks for nothing by itself."""
    external = record.external if record is not None else None
    if external is None or (spec.mode == "append" and MIX_ROWS in d.allow):
        return None
    return external if due or external.seen else None


def _over_external(d: Drafter, spec: DataSpec, record: DataRecord, external: ExternalRows) -> tuple[AllowWord, str]:
    """The word that lets the step through, and the reason. The other way, where there are two, is part of it."""
    why = external.reason
    if external.gone and record.files:
        why += f"; the rows of {plural(len(record.files), 'file')} are no longer there"
    if spec.mode == "replace-if-changed" or PURGE_DATA in d.allow:
        return PURGE_DATA, f"{why}; all rows of the table are replaced by those of the source"
    stay, go = "leaves the rows as they are", "replaces all rows by those of the source"
    if external.gone:
        return PURGE_DATA, f"{why}; `{PURGE_DATA}` {go}, `{MIX_ROWS}` {stay}"
    return MIX_ROWS, f"{why}; `{MIX_ROWS}` {stay} and adds those of new files, `{PURGE_DATA}` {go}"


def _over_questions(d: Drafter, source: SourceState, found: FilesBySight) -> tuple[AllowWord, str]:
    """Nobody can tell whether the rows of these files are in: a word has to say what they are."""
    told = []
    if found.changed:
        told.append(f"files that are in already have changed or were touched: {_named(source, found.changed)}")
    if found.copies:
        told.append(f"files that are in already are there under another path: {_named(source, found.copies)}")
    added = f"; {len(found.new)} new {'file' if len(found.new) == 1 else 'files'}: {_named(source, found.new)}"
    why = "; ".join(told) + (added if found.new else "")
    if ADD_FILES in d.allow:
        return ADD_FILES, f"{why}; the rows of all of them are added"
    if SKIP_FILES in d.allow:
        return SKIP_FILES, f"{why}; those that are in already count as in, and none of their rows is added"
    skip, add = f"`{SKIP_FILES}` counts them as in and adds no row of them", f"`{ADD_FILES}` adds their rows as well"
    return SKIP_FILES, f"{why}; {skip}, {add}; or restore them"


def _named(source: SourceState, files: Mapping[str, str]) -> str:
    names = sorted(source.names.get(path, path) for path in files)
    return listing(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def external_change(change: MaterializeTable, live: DatasetState) -> str | None:
    """An external change of the rows that a planned step did not expect. Rows that it may remove or add to are compared
    with those of the plan where their history can be read: before the first write, and by the step itself."""
    if change.mixes or change.purges is not None or change.only_notes:
        return None
    if live.data is not None:
        return live.data.external.reason if live.data.external is not None else None
    return None if live.empty else "rows were added, and no record says where they came from"


def _note(d: Drafter, want: DesiredTable, spec: DataSpec, source: SourceState, record: DataRecord) -> bool:
    """The same step again, which finds its rows there."""
    change = replace(_change(want, spec, source, {}, record), digest=record.digest, replace=False)
    return d.propose(change, "safe", _UNNOTED)


def _change(
    want: DesiredTable,
    spec: DataSpec,
    source: SourceState,
    new: Mapping[str, str],
    record: DataRecord | None,
    known: Mapping[str, str] = MappingProxyType({}),
) -> MaterializeTable:
    fields = tuple(replace(plain(f), default=f.default, function=f.function) for f in want.fields or ())
    replaces = spec.mode == "replace-if-changed"
    files = dict(sorted(new.items()))
    digest = source.digest
    if record is not None and not replaces and (files or known) and digest == record.digest:
        digest = _other_digest(digest, {**known, **files})
    return MaterializeTable(
        want.ident,
        spec.source,
        replaces,
        digest,
        files,
        fields,
        spec.columns,
        spec.partitions,
        spec.order_by,
        record.digest if record is not None else None,
        tuple(sorted(spec.casts)),
        tuple(sorted(f.name for f in fields if f.nullable and spec.may_lack(f.name))),
        source.unused,
        spec.units,
        known=dict(sorted(known.items())),
    )


def _other_digest(digest: str, files: Mapping[str, str]) -> str:
    """Where the files are does not count in the digest of a source: those of a copy are other rows all the same."""
    text = json.dumps([digest, sorted(files)])
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _problem(
    d: Drafter,
    want: DesiredTable,
    spec: DataSpec,
    source: SourceState,
    record: DataRecord | None,
    change: MaterializeTable,
) -> Block | None:
    if source.problem is not None:
        return Block(SOURCE_PROBLEM, source.problem)
    if record is not None and record.lost:
        why = (
            "the dataset is in the middle of a data step, which was cut off or came back with a version that was "
            "restored, and the history that would tell whether its rows are in was cleaned up: look at the rows; then "
            "remove the dataset's metadata keys reconciler.data and reconciler.data.claim"
        )
        return Block(DATA_UNKNOWN, why)
    if record is None and not d.dataset.empty and spec.mode != "replace-if-changed":
        why = "new ones would stand beside them; start with an empty table, or use mode: replace-if-changed"
        return Block(DATA_UNKNOWN, f"{UNACCOUNTED}: {why}")
    if spec.mode == "append" and PURGE_DATA in d.allow and (block := _lasting(record, change, source)):
        return block
    if spec.mode == "append" and record is not None and not change.replace:
        if not record.files:
            return Block(DATA_UNKNOWN, "the rows did not come from files, so no record says which files are in already")
        if SKIP_FILES in d.allow and ADD_FILES in d.allow and (change.files or change.known):
            why = f"both `{SKIP_FILES}` and `{ADD_FILES}` are allowed, and files cannot be skipped and added: allow one"
            return Block(DATA_UNKNOWN, why)
    live = {f.name: bare(f.type) for f in d.dataset.fields}
    if unlike := [f.name for f in want.fields or () if live.get(f.name) != bare(f.type)]:
        return Block(PARENT_BLOCKED, f"the columns {listing(unlike)} are not as declared yet")
    return None


def _idle(spec: DataSpec, source: SourceState, record: DataRecord | None, new: Mapping[str, str]) -> bool:
    """The rows of this very source are in: that it would not fit today changes nothing."""
    if record is None or record.lost or not source.digest:
        return False
    return not new if spec.mode == "append" else record.digest == source.digest


def _lasting(record: DataRecord | None, change: MaterializeTable, source: SourceState) -> Block | None:
    """Rows of files that are not in the source any more could not be written again."""
    if record is None or record.external is None or record.external.gone or not change.replace:
        return None
    there = {*source.files, *(key for keys in source.also.values() for key in keys)}
    lost = len(record.files.keys() - there)
    if not lost:
        return None
    why = (
        f"{record.external.reason}; all rows cannot be replaced by those of the source, which no longer has "
        f"{plural(lost, 'file')} that it was filled from: `allow: [{MIX_ROWS}]` leaves the rows as they are"
    )
    return Block(DATA_UNKNOWN, why)


def _risk(d: Drafter, change: MaterializeTable, record: DataRecord | None) -> tuple[Risk, str | None]:
    if d.dataset.empty or not change.replace:
        return "safe", None
    return ("rewrite", None) if record is not None else ("destructive", PURGE_DATA)


def _reason(spec: DataSpec, source: SourceState, record: DataRecord | None, new: Mapping[str, str]) -> str:
    if spec.mode != "append" or record is None:
        return f"never filled: {source.told}" if record is None else f"the source has changed: {source.told}"
    return f"{len(new)} new {'file' if len(new) == 1 else 'files'}: {_named(source, new)}"
