"""What we noted about the rows of a dataset, in the dataset's own metadata.

A data step claims the table (`CLAIM_KEY`), commits its rows with the new record in the transaction's properties, and
then folds the record into the metadata (`RECORD_KEY`) and gives the claim back. A claim that is still there says that a
step is under way or was cut: then the transactions since it was made tell whether the rows are in.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from reconciler.catalog.lance_rows import account_of, history, row_state
from reconciler.model.data import DataRecord, RowState
from reconciler.model.state import OWNER_KEY

CLAIM_KEY = "reconciler.data.claim"
RECORD_KEY = "reconciler.data"
"""Of the metadata, and of the properties of the transaction that brought the rows."""
PLAN_PROPERTY, STEP_PROPERTY, RUN_PROPERTY = "reconciler.plan", "reconciler.step", "reconciler.run"


@dataclass(frozen=True)
class Claim:
    """Who works on the rows of a table. `base`: the version before the first claim that no record followed."""

    run: str
    plan: str
    step: str
    base: int
    host: str
    pid: int
    born: str
    """When the process started, as its system counts it: a process id is used again."""
    until: float
    """Seconds since 1970, by the clock of its machine: renewed while the run is alive."""

    def dumped(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def holder(self) -> str:
        return f"process {self.pid} on {self.host} (step {self.step} of plan {self.plan[7:15]})"


def load_claim(text: str | None) -> Claim | None:
    """Raises ValueError: somebody else's text under our key is not taken for nobody's claim."""
    if text is None:
        return None
    try:
        return Claim(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise ValueError(f"the metadata key {CLAIM_KEY} holds something that this version cannot read") from error


def dump_record(record: DataRecord) -> str:
    value: dict[str, Any] = {"digest": record.digest}
    if record.files:
        value["files"] = dict(record.files)
    if record.purged is not None:
        value["purged"] = record.purged
    if record.rows is not None:
        value["rows"] = {"version": record.rows.version, "digest": record.rows.digest}
        if record.rows.before:
            value["rows"]["before"] = True
        if record.rows.columns:
            value["columns"] = {path: list(column) for path, column in record.rows.columns.items()}
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def load_record(text: str) -> DataRecord:
    """What cannot be read counts as lost: nothing is concluded from it."""
    try:
        value = json.loads(text)
        rows = _row_state(value["rows"], value.get("columns", {})) if "rows" in value else None
        return DataRecord(str(value["digest"]), dict(value.get("files", {})), purged=value.get("purged"), rows=rows)
    except (AttributeError, KeyError, TypeError, ValueError):
        return LOST


def _row_state(value: Any, columns: Any) -> RowState:
    known = {str(path): (int(number), str(type_)) for path, (number, type_) in columns.items()}
    return RowState(int(value["version"]), str(value["digest"]), known, bool(value.get("before", False)))


LOST = DataRecord("", lost=True)


def record_of(dataset: Any, notes: Mapping[str, str], mine: Collection[int] = ()) -> DataRecord | None:
    """None: we never put rows there. The history is read only while a claim is there, or when the rows are not those
    that the record describes. `mine`: versions that the caller made without naming itself in their transactions."""
    record = _record(dataset, notes)
    if record is None or record.lost:
        return record
    account = account_of(dataset, record.rows, is_ours, _fills, mine)
    return replace(record, external=account.external, now=account.rows)


def is_ours(transaction: Any, around: Iterator[Any]) -> bool:
    """A step of a plan on this dataset made it. Names alone prove nothing: properties are copied, and other teams run
    this tool as well. Rows are written by the run that had the claim; a cast in process, which takes none, has the
    owner of the dataset. `around`: the dataset with the transaction, and the one that it was made from; in between
    another run may have taken the claim over."""
    properties = transaction.transaction_properties or {}
    if PLAN_PROPERTY not in properties or STEP_PROPERTY not in properties:
        return False
    run = properties.get(RUN_PROPERTY)
    if run is not None:
        return any(_claims(dataset.metadata, run) for dataset in around)
    owner = properties.get(OWNER_KEY)
    cast = type(transaction.operation).__name__ == "Merge"
    return cast and owner is not None and any(dataset.metadata.get(OWNER_KEY) == owner for dataset in around)


def _claims(notes: Mapping[str, str], run: str) -> bool:
    try:
        claim = load_claim(notes.get(CLAIM_KEY))
    except ValueError:
        return False
    return claim is not None and claim.run == run


def _fills(properties: Mapping[str, str]) -> bool:
    return RECORD_KEY in properties


def described(dataset: Any, record: DataRecord) -> DataRecord:
    """The record for the rows as they are now, if nobody else changed them since it was written. Otherwise it stays: an
    external change must not become part of it unseen."""
    return record if record.external is not None else replace(record, rows=record.now or row_state(dataset))


def renewed_record(dataset: Any, mine: Collection[int] = ()) -> dict[str, str]:
    """The metadata that binds the record to the rows as they are now; empty when it is bound to them, or may not be.
    To be written after we gave the same rows other files or columns, in the versions `mine`, and before old versions
    are removed."""
    notes = dataset.metadata
    if CLAIM_KEY in notes or RECORD_KEY not in notes:
        return {}
    record = record_of(dataset, notes, mine)
    if record is None or record.lost or record.external is not None:
        return {}
    renewed = described(dataset, record)
    assert renewed.rows is not None
    if record.rows is not None and replace(renewed.rows, version=record.rows.version) == record.rows:
        return {}
    return {RECORD_KEY: dump_record(renewed)}


def _record(dataset: Any, notes: Mapping[str, str]) -> DataRecord | None:
    folded = load_record(notes[RECORD_KEY]) if RECORD_KEY in notes else None
    if CLAIM_KEY not in notes:
        return folded
    try:
        claim = load_claim(notes[CLAIM_KEY])
    except ValueError:
        return LOST
    assert claim is not None
    landed, whole = _landed(dataset, claim.base)
    if landed is not None:
        record = load_record(landed)
        rows = replace(record.rows, before=True) if record.rows is not None else None
        return replace(record, noted=False, rows=rows)
    return folded if whole else LOST


def _landed(dataset: Any, base: int) -> tuple[str | None, bool]:
    """The newest record in the transactions after version `base`, and whether all of them could be read. What a restore
    has undone is not in the rows; the claim is there because one brought it back, or because a step was cut off."""
    for _, transaction in history(dataset, base, int(dataset.version)):
        if transaction is None:
            return None, False
        if (properties := transaction.transaction_properties) and RECORD_KEY in properties:
            return str(properties[RECORD_KEY]), True
    return None, True
