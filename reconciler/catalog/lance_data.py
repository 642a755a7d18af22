"""What we noted about the rows of a dataset, in the dataset's own metadata.

A data step claims the table (`CLAIM_KEY`), commits its rows with the new record in the transaction's properties, and
then folds the record into the metadata (`RECORD_KEY`) and gives the claim back. A claim that is still there says that a
step is under way or was cut: then the transactions since it was made tell whether the rows are in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from reconciler.model.data import DataRecord

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
    """Seconds since 1970: renewed while the run is alive."""

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
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def load_record(text: str) -> DataRecord:
    """What cannot be read counts as lost: nothing is concluded from it."""
    try:
        value = json.loads(text)
        return DataRecord(str(value["digest"]), dict(value.get("files", {})))
    except (KeyError, TypeError, ValueError):
        return LOST


LOST = DataRecord("", lost=True)


def record_of(dataset: Any, notes: Mapping[str, str]) -> DataRecord | None:
    """None: we never put rows there. The history is read only while a claim is there."""
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
        return replace(load_record(landed), noted=False)
    return folded if whole else LOST


def _landed(dataset: Any, base: int) -> tuple[str | None, bool]:
    """The newest record in the transactions after version `base`, and whether all of them could be read."""
    wanted = int(dataset.version) - base
    if wanted <= 0:
        return None, True
    found = dataset.get_transactions(wanted)
    for transaction in found:
        properties = transaction.transaction_properties if transaction is not None else None
        if properties and RECORD_KEY in properties:
            return str(properties[RECORD_KEY]), True
        if transaction is not None and type(transaction.operation).__name__ == "Restore":
            return None, False  # What came before may or may not be in the rows.
    return None, len(found) == wanted and all(t is not None for t in found)
