"""What is measured on a table before its maintenance, in threads of the driver, and what executors do: rewrite
fragments, refresh indexes, remove versions. Answers are plain values, as are those of `table_task`.

A rewrite only makes files; the driver commits it. A refresh and a cleanup are whole in one task and may be repeated:
what is done already is not there to be done. Both look for the claim of a data step first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from reconciler.pipeline.table_task import Unit, _rows, _told

CLAIM_KEY = "reconciler.data.claim"
"""In the dataset's metadata while a data step has the table in hand, or after it was cut off there. What it has
ingested is known from old versions then."""
CLAIMED = "a data step has taken it meanwhile"
ATTEMPTS = 3
FORGETFUL = ("zonemap", "bloomfilter")
"""Types of indexes from which a compaction takes the rows of the fragments that it joins. Measured on pylance 14."""
COMPACTION = {"num_threads": 2, "compaction_mode": "reencode"}
"""Two threads: one encodes while the other waits; an executor has other tasks too. To copy pages instead of encoding
them again would keep the small pages of small fragments, which are several times slower to read."""


def open_latest(unit: Unit, version: int | None = None) -> Any:
    import lance

    return lance.dataset(unit["uri"], version=version, storage_options=unit["options"] or None)


def is_conflict(error: BaseException) -> bool:
    """With another commit. pylance says it in two ways."""
    text = str(error).lower()
    return (
        type(error).__name__ == "CommitConflictError" or "commit conflict" in text or "concurrent transaction" in text
    )


def compaction_plan(dataset: Any, options: dict[str, Any]) -> Any:
    from lance.optimize import Compaction

    return Compaction.plan(dataset, {**options, **COMPACTION})  # type: ignore[typeddict-item]


def measure(unit: Unit) -> dict[str, Any]:
    """As keywords of `Facts`, or the error. `unit["parts"]`: what is asked for; listing versions is the dear part."""
    try:
        dataset = open_latest(unit)
        parts = unit["parts"]
        found: dict[str, Any] = {"version": dataset.version, "claim": dataset.metadata.get(CLAIM_KEY)}
        found["fragments"] = [
            (f.id, f.physical_rows, f.num_deletions, sum(file.file_size_bytes or 0 for file in f.files))
            for f in (fragment.metadata for fragment in dataset.get_fragments())
        ]
        if "compact" in parts:
            tasks = compaction_plan(dataset, unit["compaction"]).tasks
            found["groups"] = [[f.id for f in task.fragments] for task in tasks]
        if "indexes" in parts:
            found["unindexed"] = unindexed(dataset)
            found["segments"] = segments(dataset)
            kinds = {i.name: str(i.index_type).lower() for i in dataset.describe_indices()}
            found["forgetful"] = [name for name, kind in kinds.items() if kind in FORGETFUL]
        if "cleanup" in parts:
            found["versions"] = versions(dataset)
            found["tags"] = {name: tag["version"] for name, tag in dataset.tags.list().items() if not tag["branch"]}
            branches = dataset.branches.list().items()
            found["branches"] = {name: b["parent_version"] for name, b in branches if not b["parent_branch"]}
        return found
    except Exception as error:
        return {"error": _told(error)}


def unindexed(dataset: Any) -> dict[str, int]:
    """By the fragments that an index has: no file is read for it."""
    rows = _rows_of_fragments(dataset)
    found: dict[str, int] = {}
    for index in _indexes(dataset):
        held = {ident for segment in index.segments for ident in segment.fragment_ids}
        found[index.name] = sum(count for ident, count in rows.items() if ident not in held)
    return found


def segments(dataset: Any) -> dict[str, list[int]]:
    """The rows of each segment of an index."""
    rows = _rows_of_fragments(dataset)
    return {
        index.name: [sum(rows.get(ident, 0) for ident in segment.fragment_ids) for segment in index.segments]
        for index in _indexes(dataset)
    }


def _rows_of_fragments(dataset: Any) -> dict[int, int]:
    return {f.id: f.physical_rows - f.num_deletions for f in (x.metadata for x in dataset.get_fragments())}


def _indexes(dataset: Any) -> list[Any]:
    return [i for i in dataset.describe_indices() if not i.name.startswith("__lance")]  # Lance's own bookkeeping.


def versions(dataset: Any) -> list[tuple[int, float]]:
    """pylance gives local time without a zone. In the hour that comes twice the later one is meant: a version is
    rather too young than too old."""
    found = ((v["version"], v["timestamp"].replace(fold=1).timestamp()) for v in dataset.versions())
    return sorted(found)


def rewrite(unit: Unit) -> Iterator[Any]:
    """One compaction task: new files, no commit."""
    from lance.optimize import CompactionTask

    def run() -> dict[str, Any]:
        task = CompactionTask.from_json(unit["task"])  # type: ignore[attr-defined]
        return {"result": task.execute(open_latest(unit, unit["version"])).json()}

    yield _answer(unit, run)


def refresh(unit: Unit) -> Iterator[Any]:
    """The indexes `unit["indexes"]` take in the rows that they lack, as do the vector indexes `unit["deltas"]`, in a
    segment of their own: to merge them, Lance joins and splits partitions, and declared ones would not be as declared.
    `unit["rebuild"]`: name -> column, type and parameters of those that are built anew, each in one commit. The answer
    has the segments that they are in then."""

    def run() -> dict[str, Any]:
        if unit["indexes"]:
            _again(lambda: _unclaimed(unit).optimize.optimize_indices(index_names=unit["indexes"]))
        if unit["deltas"]:
            more = {"index_names": unit["deltas"], "num_indices_to_merge": 0}
            _again(lambda: _unclaimed(unit).optimize.optimize_indices(**more))
        for name, (column, type_, params) in unit["rebuild"].items():
            make = "create_scalar_index" if type_ == "INVERTED" else "create_index"
            how = {"name": name, "replace": True, **params}
            _again(lambda make=make, on=(column, type_), how=how: getattr(_unclaimed(unit), make)(*on, **how))  # type: ignore[misc]
        after = open_latest(unit)
        built = {i.name: [str(s.uuid) for s in i.segments] for i in _indexes(after) if i.name in unit["rebuild"]}
        return {"after": {"unindexed_rows": unindexed(after), "version": after.version}, "built": built}

    yield _answer(unit, run)


def _again(work: Callable[[], Any]) -> None:
    """Whoever loses against another commit tries again, on the table as it is then."""
    for attempt in range(ATTEMPTS):
        try:
            work()
            return
        except Exception as error:
            if attempt == ATTEMPTS - 1 or not is_conflict(error):
                raise


def clean(unit: Unit) -> Iterator[Any]:
    """Removes exactly the versions `unit["versions"]`, except those that were tagged meanwhile, and files of no version
    that are seven days old; before, the tags `unit["tags"]` where they still hold one of these versions. Lance reads
    the tags once, and then removes: of one that is made after that, the version may go. It is told."""

    def run() -> dict[str, Any]:
        dataset = _unclaimed(unit)
        tags = dataset.tags.list()
        for name in unit["tags"]:
            if name in tags and tags[name]["version"] in unit["versions"] and not tags[name]["branch"]:
                dataset.tags.delete(name)
        gone = dataset.cleanup_old_versions(
            versions=unit["versions"], error_if_tagged_old_versions=False, delete_unverified=False
        )
        latest = open_latest(unit)
        left = {int(ref["version"]) for ref in latest.version_refs()}
        after = {"versions": len(left), "removed": gone.old_versions, "bytes_removed": gone.bytes_removed}
        if late := _without_version(latest, {*unit["versions"]} - left):
            told = f"tags were set while their versions were being removed, and lead to nothing: {', '.join(late)}"
            return {"error": told, "after": after}
        failed = getattr(gone, "failed_deletes", 0)
        return {"after": after} if not failed else {"error": f"{failed} files could not be removed", "after": after}

    yield _answer(unit, run)


def _without_version(dataset: Any, removed: set[int]) -> list[str]:
    tags = dataset.tags.list().items()
    return sorted(name for name, tag in tags if tag["version"] in removed and not tag["branch"])


def _unclaimed(unit: Unit) -> Any:
    dataset = open_latest(unit)
    if CLAIM_KEY in dataset.metadata:
        raise RuntimeError(CLAIMED)
    return dataset


def _answer(unit: Unit, run: Callable[[], dict[str, Any]]) -> Any:
    try:
        answer = run()
    except Exception as error:
        answer = {"error": _told(error)}
    return _rows([json.dumps({"key": unit["key"], **answer})])
