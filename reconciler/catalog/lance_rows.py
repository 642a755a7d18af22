"""Whether the rows of a dataset are those that a record describes, and if not, who changed them.

A record names a version and a digest of its rows: every fragment with its files and deletions. An equal digest proves
equal rows and takes no read, whatever was committed in between. Otherwise the transactions since that version tell:
ours carry the plan and step; indexes, configuration, new and dropped columns and compactions keep the rows. Anything
else is an external change. What the history does not tell is never guessed: the rows count as changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from reconciler.catalog.lance_errors import is_missing_dataset
from reconciler.core.text import listing, plural
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
Ours = Callable[[Any, Iterator[Any]], bool]
"""Of a transaction, with the datasets at its version and at the one that it was made from, as far as they are there."""
Fills = Callable[[Mapping[str, str]], bool]
"""Of the properties of a transaction."""
Columns = Mapping[str, tuple[int, str]]


def row_state(dataset: Any) -> RowState:
    """From the open dataset alone: nothing is read."""
    fragments = sorted(_fragment(f.metadata) for f in dataset.get_fragments())
    digest = hashlib.sha256(repr(fragments).encode()).hexdigest()[:32]
    return RowState(int(dataset.version), digest, columns_of(dataset))


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


@dataclass(frozen=True)
class Account:
    external: ExternalRows | None
    """None when the rows are those of the record, and what we did to them afterwards."""
    rows: RowState
    """Those of now, for a record that follows them. Of columns that nobody can vouch for it has what was recorded."""


@dataclass
class _Walk:
    """What the history since the record tells."""

    found: list[_Commit] = field(default_factory=list)
    """Of others, newest first."""
    operations: set[str] = field(default_factory=set)
    merges: set[int] = field(default_factory=set)
    """Versions in which we wrote columns."""
    readable: bool = True


def account_of(dataset: Any, since: RowState | None, ours: Ours, fills: Fills, mine: Collection[int] = ()) -> Account:
    """Without `since` the newest transaction that `fills` the table is where the record starts. `mine`: versions in
    which we wrote or dropped columns, whatever their transactions say."""
    version, now = int(dataset.version), row_state(dataset)
    if since is not None and _same(now, since):
        return Account(None, _followed(now, _vouched(dataset, since.columns, mine)))
    at_first = _at(dataset, since.version) if since is not None and since.version <= version else None
    if since is not None and _made_anew(at_first, version, since):
        text = f"the dataset was replaced by another one: {_OTHER.format(since.version)}"
        return Account(ExternalRows(text, version, gone=True), now)
    proof = _proof(dataset, at_first, since)
    recorded = since.columns if since is not None and since.columns else columns_of(proof) if proof is not None else {}
    walk = _walk(dataset, since, {number for number, _ in recorded.values()}, ours, fills)
    readable = walk.readable and (since is None or not since.digest or proof is not None)
    good = _vouched(dataset, recorded, walk.merges | {*mine})
    anew = sorted(path for path, column in now.columns.items() if _is_anew(good.get(path), column))
    rows = _followed(now, good)
    if not walk.found and not anew:
        external = None if readable else ExternalRows(_unexplained(since), version, seen=since is not None)
        return Account(external, rows)
    gone = any(c.effect.startswith(_DELETED_ALL) for c in walk.found) or dataset.count_rows() == 0
    if readable and at_first is not None and walk.operations <= _WITHOUT_UPDATES:
        gone = gone or not _numbers(at_first) & _numbers(dataset)
    adds_only = readable and not anew and all(c.adds_only for c in walk.found)
    return Account(ExternalRows(_listed(dataset, walk.found, anew), version, changed=not adds_only, gone=gone), rows)


def _walk(dataset: Any, since: RowState | None, known: Collection[int], ours: Ours, fills: Fills) -> _Walk:
    walk, first = _Walk(readable=since is not None), since.version if since is not None else 0
    for number, (at, transaction) in enumerate(history(dataset, first, MOST), 1):
        if transaction is None:
            walk.readable = False
            break
        name = type(transaction.operation).__name__
        walk.operations.add(name)
        if since is None and fills(transaction.transaction_properties or {}):
            walk.readable = True
            break
        if name in _KEEP_ROWS:
            continue
        if ours(transaction, _around(dataset, at, transaction)):
            walk.merges |= {at} if name == "Merge" else set()
        elif (commit := _judged(dataset, at, transaction, known)) is not None:
            walk.found.append(commit)
        if walk.found and number >= ENOUGH:
            walk.readable = False
            break
    return walk


def _around(dataset: Any, version: int, transaction: Any) -> Iterator[Any]:
    for number in (version, getattr(transaction, "read_version", 0)):
        if number and (found := _at(dataset, number)) is not None:
            yield found


def _same(now: RowState, since: RowState) -> bool:
    """A record without a digest is of this very dataset, a moment ago. Columns may have come and gone. Of rows that
    others came to, the history has to tell what became of those."""
    if since.before:
        return False
    if not since.digest:
        return now.version == since.version
    return now.digest == since.digest and all(now.columns.get(p, c) == c for p, c in since.columns.items())


def _made_anew(at_first: Any, version: int, since: RowState) -> bool:
    """Another dataset is there: it may have all metadata of the one that was, versions of the same numbers, and a
    harmless transaction in each, so that only the rows of the recorded version tell."""
    if not since.digest or since.version > version:
        return bool(since.digest)
    return at_first is not None and row_state(at_first).digest != since.digest


def _proof(dataset: Any, at_first: Any, since: RowState | None) -> Any:
    """The version of the dataset that has the rows of the record, or None. Where the recorded one was cleaned up, the
    next one tells as long as it kept the rows."""
    if since is None or at_first is not None or not since.digest:
        return at_first
    after = _at(dataset, since.version + 1)
    return after if after is not None and row_state(after).digest == since.digest else None


def _numbers(dataset: Any) -> set[int]:
    return {f.fragment_id for f in dataset.get_fragments()}


# the columns


def columns_of(dataset: Any) -> dict[str, tuple[int, str]]:
    """Field number and type by dotted path; a dot in a name is doubled. From the open dataset alone."""
    found: dict[str, tuple[int, str]] = {}

    def walk(fields: Sequence[Any], arrow: Sequence[Any], prefix: str) -> None:
        for number, each in enumerate(fields):
            path = prefix + each.name().replace(".", "..")
            type_ = arrow[number].type if number < len(arrow) else None
            children = each.children()
            found[path] = (each.id(), str(type_).partition("<")[0] if children else str(type_))
            if children:
                walk(
                    children, [type_.field(i) for i in range(type_.num_fields)] if type_ is not None else [], path + "."
                )

    walk(dataset.lance_schema.fields(), list(dataset.schema), "")
    return found


def _vouched(dataset: Any, recorded: Columns, ours: Collection[int]) -> dict[str, tuple[int, str]]:
    """The recorded columns as they have to be now: in the versions `ours` we gave some of them other numbers, dropped
    some, and made some that were gone. One that somebody else wrote does not become ours by a later change of ours."""
    good = dict(recorded)
    for version in sorted(ours) if good else ():
        before, after = _at(dataset, version - 1), _at(dataset, version)
        if before is None or after is None:
            continue
        was, became = columns_of(before), columns_of(after)
        for path in [p for p, column in good.items() if was.get(p, column) == column]:
            if path in became:
                good[path] = became[path]
            elif path in was:
                del good[path]
    return good


def _followed(now: RowState, good: Columns) -> RowState:
    """Of a column that is gone, or not the one that was recorded, the record keeps what it has: it may come back."""
    return replace(now, columns={**now.columns, **good})


def _is_anew(good: tuple[int, str] | None, now: tuple[int, str]) -> bool:
    """Dropped, and there again under the same name with the same type. A change of the type is seen by itself."""
    return good is not None and good[0] != now[0] and good[1] == now[1]


def _unexplained(since: RowState | None) -> str:
    if since is None:
        return "the record of the rows names no version, and the history that would tell who changed them is not there"
    return (
        f"the rows are not those of version {since.version}, which the record describes, and the history that would "
        "tell who changed them is not there any more"
    )


def _listed(dataset: Any, found: list[_Commit], anew: Sequence[str]) -> str:
    """The newest changes, in the order in which they were made, and the columns that are not those of the record."""
    more = f"; and {len(found) - SHOWN} more changes before" if len(found) > SHOWN else ""
    texts = []
    for commit in reversed(found[:SHOWN]):
        made = [commit.operation, _time(_at(dataset, commit.version)), "not by this tool"]
        texts.append(f"version {commit.version} ({', '.join(part for part in made if part)}) {commit.effect}")
    if anew:
        names = listing([path.replace("..", ".") for path in anew])
        texts.append(f"another writer dropped {plural(len(anew), 'column')} or wrote it anew in all rows: {names}")
    return "; ".join(texts) + more


# the history


def history(dataset: Any, since: int, most: int) -> Iterator[tuple[int, Any]]:
    """Versions and their transactions after version `since`, newest first; what a restore has undone is left out. The
    last is None when the rest cannot be read, or is more than `most`."""
    version, left, at = int(dataset.version), most, dataset
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


def _judged(dataset: Any, version: int, transaction: Any, known: Collection[int]) -> _Commit | None:
    """What a transaction did that may change rows; None when it keeps them. `known`: the fields of the record."""
    operation = transaction.operation
    name = type(operation).__name__
    match name:
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
            return None if _same_rows(dataset, version, known) else _Commit(version, shown, "changed rows")
        case _:
            return _Commit(version, name, "changed rows")


def _rows(fragments: Any) -> str:
    return plural(sum(int(f.physical_rows or 0) for f in fragments), "row")


def _live(fragments: Any) -> int:
    return sum(int(f.physical_rows) - int(f.num_deletions) for f in fragments)


def _same_rows(dataset: Any, version: int, known: Collection[int]) -> bool:
    """Every fragment of the version before is there with its deletions, and every column that was kept has its file.
    One of nulls has none, and lance gives its number to the next column when it was dropped."""
    before, after = _at(dataset, version - 1), _at(dataset, version)
    if before is None or after is None:
        return False
    old, new = ({f.fragment_id: f.metadata for f in d.get_fragments()} for d in (before, after))
    return old.keys() == new.keys() and all(_same_values(old[i], new[i], known) for i in old)


def _same_values(old: Any, new: Any, known: Collection[int]) -> bool:
    if old.physical_rows != new.physical_rows or _deletions(old) != _deletions(new):
        return False
    was, now = ({field: str(f.path) for f in m.files for field in f.fields if field >= 0} for m in (old, new))
    return all(now.get(field, path) == path for field, path in was.items()) and not (now.keys() - was).intersection(
        known
    )


def _time(dataset: Any) -> str:
    """When the version was made; pylance shows it only in a list of all versions, in local time."""
    try:
        stamp = _message(_message(dataset._ds.serialized_manifest())[_TIMESTAMP])
        return datetime.fromtimestamp(stamp[_SECONDS], UTC).strftime("%Y-%m-%d %H:%M UTC")
    except Exception:
        return ""


_TIMESTAMP, _SECONDS = 7, 1
_HIGHEST_FRAGMENT = 11


def highest_fragment(dataset: Any) -> int | None:
    """The highest number that a fragment of this dataset has ever had; None when there never was one. pylance does not
    show it, and the fragments of today do not tell: the last one may be gone while an index still names it."""
    noted = _message(dataset._ds.serialized_manifest()).get(_HIGHEST_FRAGMENT)
    return max(
        [int(f.fragment_id) for f in dataset.get_fragments()] + ([noted] if noted is not None else []), default=None
    )


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
