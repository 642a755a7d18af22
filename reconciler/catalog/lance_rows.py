"""Whether the rows of a dataset are those that a record describes, and if not, who changed them.

A record names a version and a digest of its rows: every fragment with its files and deletions. An equal digest proves
equal rows and takes no read, whatever was committed in between. Otherwise the transactions since that version tell:
ours carry the plan and step; indexes, configuration, new and dropped columns and compactions keep the rows. Anything
else is an external change. What the history does not tell is never guessed: the rows count as changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from reconciler.catalog.lance_errors import is_missing_dataset
from reconciler.core.text import plural
from reconciler.model.data import ExternalRows, RowState

MOST = 512
"""Transactions that are read of one dataset, two small reads each."""
ENOUGH = 64
"""After so many no more are read once an external change was found."""
CHUNK = 16
SHOWN = 3
_KEEP_ROWS = frozenset({"UpdateConfig", "CreateIndex", "Project", "Restore"})
"""A restore is followed to the version that it restored."""
_WITHOUT_UPDATES = _KEEP_ROWS | {"Append", "Delete", "Overwrite"}
"""Under these a fragment of ours keeps its number as long as it has a row."""
_OTHER = "its history does not have the rows of version {}, which the record describes"
_DELETED_ALL = "replaced all rows"
Asked = Callable[[Mapping[str, str]], bool]
"""Of the properties of a transaction."""


def row_state(dataset: Any) -> RowState:
    """From the open dataset alone: nothing is read."""
    fragments = sorted(_fragment(f.metadata) for f in dataset.get_fragments())
    return RowState(int(dataset.version), hashlib.sha256(repr(fragments).encode()).hexdigest()[:32])


def _fragment(metadata: Any) -> tuple[Any, ...]:
    # `path` of a data file makes a class for each call, for the sake of callers of long ago.
    files = sorted((getattr(f, "_path", None) or str(f.path), tuple(f.fields)) for f in metadata.files)
    return (int(metadata.id), int(metadata.physical_rows), *_deletions(metadata), tuple(files))


def _deletions(metadata: Any) -> tuple[str, str]:
    deleted = metadata.deletion_file
    overlays = sorted(str(o.data_file) for o in metadata.overlays or ())
    return ("" if deleted is None else str(deleted.path(metadata.id)), repr(overlays))


@dataclass(frozen=True)
class Rewrite:
    """A compaction that pylance has no object for."""

    groups: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Opaque:
    """Any other transaction of which pylance shows nothing but that it exists."""


@dataclass(frozen=True)
class _Shown:
    operation: Rewrite | Opaque
    transaction_properties: Mapping[str, str] | None = None


def transactions(dataset: Any, count: int) -> list[Any]:
    """The newest `count`, newest first; fewer when older ones were cleaned up. pylance fails on a list that has a
    compaction which remapped an index: then they are read one by one."""
    if count <= 0:
        return []  # pylance would take it for some.
    try:
        return list(dataset.get_transactions(count))
    except TypeError:
        pass
    found = []
    for version in range(int(dataset.version), int(dataset.version) - count, -1):
        try:
            found.append(dataset.read_transaction(version))
        except TypeError as error:
            found.append(_Shown(Rewrite() if "RewrittenIndex" in str(error) else Opaque()))
        except (OSError, ValueError) as error:
            if is_missing_dataset(error):
                break
            raise
    return found


@dataclass(frozen=True)
class _Commit:
    version: int
    operation: str
    effect: str
    adds_only: bool = False


def external_rows(dataset: Any, since: RowState | None, ours: Asked, fills: Asked) -> ExternalRows | None:
    """None when the rows are those of `since` and what we did to them afterwards. Without `since` the newest
    transaction that `fills` the table is where the record starts."""
    version = int(dataset.version)
    if since is not None and _same(dataset, since):
        return None
    if since is not None and _made_anew(dataset, since):
        return ExternalRows(
            f"the dataset was replaced by another one: {_OTHER.format(since.version)}", version, gone=True
        )
    found: list[_Commit] = []
    operations = set()
    readable = since is not None
    for number, (at, transaction) in enumerate(_history(dataset, since.version if since is not None else 0), 1):
        if transaction is None:
            readable = False
            break
        properties = transaction.transaction_properties or {}
        operations.add((type(transaction.operation).__name__, ours(properties)))
        if since is None and fills(properties):
            readable = True
            break
        if not ours(properties) and (commit := _judged(dataset, at, transaction)) is not None:
            found.append(commit)
        if found and number >= ENOUGH:
            readable = False
            break
    at_first = _at(dataset, since.version) if since is not None else None
    readable = readable and _proven(dataset, since)
    if not found and readable:
        anew = _anew(at_first, dataset) if ("Merge", True) not in operations else []
        return ExternalRows(f"another writer wrote {', '.join(anew)} anew in all rows", version) if anew else None
    if not found:
        return ExternalRows(_unexplained(since), version, seen=since is not None)
    gone = any(c.effect.startswith(_DELETED_ALL) for c in found) or dataset.count_rows() == 0
    if readable and at_first is not None and {name for name, _ in operations} <= _WITHOUT_UPDATES:
        gone = gone or not _numbers(at_first) & _numbers(dataset)
    adds_only = readable and all(c.adds_only for c in found)
    return ExternalRows(_listed(dataset, found), version, changed=not adds_only, gone=gone)


def _same(dataset: Any, since: RowState) -> bool:
    """A record without a digest is of this very dataset, a moment ago."""
    return row_state(dataset).digest == since.digest if since.digest else int(dataset.version) == since.version


def _made_anew(dataset: Any, since: RowState) -> bool:
    """Another dataset is there: it may have all metadata of the one that was, versions of the same numbers, and a
    harmless transaction in each, so that only the rows of the recorded version tell."""
    if not since.digest or since.version > int(dataset.version):
        return bool(since.digest)
    at = _at(dataset, since.version)
    return at is not None and row_state(at).digest != since.digest


def _proven(dataset: Any, since: RowState | None) -> bool:
    """The rows of the record are in the history of the dataset. Where their version was cleaned up, the next one tells
    as long as it kept the rows."""
    if since is None or not since.digest:
        return True
    seen = (_at(dataset, version) for version in (since.version, since.version + 1) if version <= int(dataset.version))
    return any(row_state(at).digest == since.digest for at in seen if at is not None)


def _numbers(dataset: Any) -> set[int]:
    return {f.fragment_id for f in dataset.get_fragments()}


def _anew(before: Any, now: Any) -> list[str]:
    """Columns that were dropped and are there again, under the same name with the same type."""
    if before is None:
        return []
    ids, new_ids = ({f.name(): f.id() for f in d.lance_schema.fields()} for d in (before, now))
    types, new_types = before.schema, now.schema
    return sorted(
        f"column {name}"
        for name in ids.keys() & new_ids.keys()
        if ids[name] != new_ids[name] and types.field(name).type == new_types.field(name).type
    )


def _unexplained(since: RowState | None) -> str:
    if since is None:
        return "the record of the rows names no version, and the history that would tell who changed them is not there"
    return (
        f"the rows are not those of version {since.version}, which the record describes, and the history that would "
        "tell who changed them is not there any more"
    )


def _listed(dataset: Any, found: list[_Commit]) -> str:
    """The newest changes, in the order in which they were made."""
    more = f"; and {len(found) - SHOWN} more changes before" if len(found) > SHOWN else ""
    texts = []
    for commit in reversed(found[:SHOWN]):
        made = [commit.operation, _time(_at(dataset, commit.version)), "not by this tool"]
        texts.append(f"version {commit.version} ({', '.join(part for part in made if part)}) {commit.effect}")
    return "; ".join(texts) + more


# the history


def _history(dataset: Any, since: int) -> Iterator[tuple[int, Any]]:
    """Versions and their transactions after version `since`, newest first; what a restore has undone is left out. The
    last is None when the rest cannot be read, or is too much."""
    version, left, at = int(dataset.version), MOST, dataset
    while version > since:
        count = min(CHUNK, version - since, left)
        found = transactions(at, count) if at is not None else []
        restored = None
        for transaction in found:
            yield version, transaction
            if transaction is None:
                return
            version -= 1
            left -= 1
            if type(transaction.operation).__name__ == "Restore":
                restored = int(transaction.operation.version)
                break
        if restored is not None:
            version = restored
        if version < since or (restored is None and len(found) < max(count, 1)):
            yield version, None
            return
        at = _at(dataset, version) if version > since else None


def _at(dataset: Any, version: int) -> Any:
    """None for a version that was cleaned up."""
    try:
        return dataset if version == dataset.version else dataset.checkout_version(version)
    except (OSError, ValueError) as error:
        if is_missing_dataset(error):
            return None
        raise


def _judged(dataset: Any, version: int, transaction: Any) -> _Commit | None:
    """What a transaction did to the rows; None when it keeps them."""
    operation = transaction.operation
    name = type(operation).__name__
    match name:
        case _ if name in _KEEP_ROWS:
            return None
        case "Append":
            return _Commit(version, name, f"added {_rows(operation.fragments)}", adds_only=True)
        case "Overwrite":
            return _Commit(version, name, f"{_DELETED_ALL} by {_rows(operation.fragments)}")
        case "Delete":
            return _Commit(version, name, "deleted rows")
        case "Update":
            if not (operation.removed_fragment_ids or operation.updated_fragments or operation.fields_modified):
                return _Commit(version, name, f"added {_rows(operation.new_fragments)}", adds_only=True)
            return _Commit(version, name, "updated rows")
        case "Rewrite":
            same = all(_live(g.old_fragments) == _live(g.new_fragments) for g in operation.groups)
            return None if same else _Commit(version, name, "rewrote fragments with another number of rows")
        case "DataReplacement" | "DataOverlay":
            return _Commit(version, name, "replaced values")
        case "Merge" | "BaseOperation" | "Opaque":  # What pylance has no class for.
            shown = name if name == "Merge" else ""
            return None if _same_rows(dataset, version) else _Commit(version, shown, "changed rows")
        case _:
            return _Commit(version, name, "changed rows")


def _rows(fragments: Any) -> str:
    return plural(sum(int(f.physical_rows or 0) for f in fragments), "row")


def _live(fragments: Any) -> int:
    return sum(int(f.physical_rows) - int(f.num_deletions) for f in fragments)


def _same_rows(dataset: Any, version: int) -> bool:
    """Every fragment of the version before is there with its deletions, and every column that was kept has its file."""
    before, after = _at(dataset, version - 1), _at(dataset, version)
    if before is None or after is None:
        return False
    old, new = ({f.fragment_id: f.metadata for f in d.get_fragments()} for d in (before, after))
    return old.keys() == new.keys() and all(_same_values(old[i], new[i]) for i in old)


def _same_values(old: Any, new: Any) -> bool:
    if old.physical_rows != new.physical_rows or _deletions(old) != _deletions(new):
        return False
    was, now = ({field: str(f.path) for f in m.files for field in f.fields if field >= 0} for m in (old, new))
    return all(now.get(field, path) == path for field, path in was.items())


def _time(dataset: Any) -> str:
    """When the version was made; pylance shows it only in a list of all versions, in local time."""
    try:
        stamp = _message(_message(dataset._ds.serialized_manifest())[_TIMESTAMP])
        return datetime.fromtimestamp(stamp[_SECONDS], UTC).strftime("%Y-%m-%d %H:%M UTC")
    except Exception:
        return ""


_TIMESTAMP, _SECONDS = 7, 1


def _message(data: bytes) -> dict[int, Any]:
    """The fields of a protobuf message, by number; of one that is repeated the last."""
    found: dict[int, Any] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == 0:
            found[tag >> 3], at = _varint(data, at)
            continue
        size, at = _varint(data, at) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], at)
        found[tag >> 3] = data[at : at + size]
        at += size
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return number, at
