"""Whether an index has to be built again because it lacks rows, and what a plan reports of indexes that lack some.

Pure rules over `Index.rows` and `Index.indexed_rows`. Unknown coverage is never past a limit.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.diff_index import by_name, index_differences
from reconciler.core.draft import Draft, Drafter
from reconciler.core.kept_params import keeping
from reconciler.core.ownership import data_owner
from reconciler.core.plan_index import wanted_indexes, with_live_names
from reconciler.model.change import DropIndex, MaterializeTable, RefreshIndex
from reconciler.model.coverage import Coverage, Limit, covers, parse_limit
from reconciler.model.desired import DesiredTable
from reconciler.model.observed import Finding, Present
from reconciler.model.state import DatasetState, Index, TableState

MAINTAIN = "run `reconciler pipeline maintain PATH`"


def lacks_rows(index: Index) -> bool:
    return index.rows is not None and index.indexed_rows is not None and index.indexed_rows < index.rows


def past(index: Index, limit: Limit) -> bool:
    """An index that covers none of the rows is past every limit."""
    if index.rows is None or index.indexed_rows is None or index.rows == 0:
        return False
    return index.indexed_rows == 0 or limit.exceeded(index.rows, index.indexed_rows)


def refresh_due(change: RefreshIndex, finding: Finding) -> bool:
    """Whether the step is still to be done on the live table. An index that Lance cannot train on the rows that are
    there is as good as it gets."""
    state = finding.state if isinstance(finding, Present) else None
    if not isinstance(state, TableState) or not isinstance(state.dataset, DatasetState):
        return False
    live = by_name(state.dataset.indexes).get(change.index.name)
    if live is None or live.untrained is not None or not past(live, parse_limit(change.max_unindexed)):
        return False
    return change.max_rows is None or (live.rows or 0) <= change.max_rows


def refresh_indexes(d: Drafter, want: DesiredTable) -> None:
    """The last steps of a table: each declared index that lacks too many rows is built again, with the declared
    parameters. Only on tables that are ours and small enough; rows that this plan brings count whatever their number,
    as they do for an index that is created after them."""
    state = d.now.state if isinstance(d.now, Present) else None
    if d.block is not None or not isinstance(state, TableState) or not isinstance(state.dataset, DatasetState):
        return
    refresh = d.context.index_refresh
    if data_owner(d.context.owner, state) != d.context.owner or not refresh.max_rows:
        return
    fills = next((x.change for x in d.drafts if _brings_rows(x)), None)
    before = _live(d.start)
    for index in _as_declared(want, state.dataset):
        live = by_name(state.dataset.indexes)[index.name]
        limit = str(refresh.max_unindexed)
        if isinstance(fills, MaterializeTable) and index.name in before:
            known = before[index.name]
            whole = fills.replace or not known.indexed_rows
            if not whole and (known.rows or 0) > refresh.max_rows:
                continue
            change = RefreshIndex(want.ident, index, limit, None if whole else refresh.max_rows)
            d.propose(change, "safe", f"index {index.name} takes in the rows that this plan brings")
        elif live.untrained is None and past(live, refresh.max_unindexed) and (live.rows or 0) <= refresh.max_rows:
            change = RefreshIndex(want.ident, index, limit, refresh.max_rows)
            told = f"{covers(live.name, live.indexed_rows or 0, live.rows or 0)}: it is built again"
            d.propose(change, "safe", told, {"rows": live.rows, "indexed_rows": live.indexed_rows})


def coverage_of(d: Drafter, want: DesiredTable, found: Finding, limit: Limit | None) -> Iterator[Coverage]:
    """What the plan reports: indexes that lack rows of a table that the plan changes; of other tables those that are
    past their limit and that no step refreshes, with the reason; and what exceeds `limit`."""
    state = found.state if isinstance(found, Present) else None
    if not isinstance(state, TableState) or not isinstance(state.dataset, DatasetState):
        return
    live = by_name(state.dataset.indexes)
    gone = {x.change.name for x in d.drafts if isinstance(x.change, DropIndex) and x.verdict == "allowed"}
    stepped = {i.name for x in d.drafts if isinstance(i := getattr(x.change, "index", None), Index)}
    declares = wanted_indexes(with_live_names(want, state.dataset))
    for declared in sorted(declares, key=lambda i: i.name):
        index = live.get(declared.name)
        if index is None or index.name in gone or not lacks_rows(index):
            continue
        advice = "" if index.name in stepped else _advice(d, state, index)
        over = str(limit) if limit is not None and limit.exceeded(index.rows or 0, index.indexed_rows or 0) else ""
        if advice or over or d.drafts:
            yield Coverage(want.ident, index.name, index.rows or 0, index.indexed_rows or 0, advice, over)


def _advice(d: Drafter, state: TableState, index: Index) -> str:
    """Why no step refreshes an index that is past its limit, and what does."""
    refresh = d.context.index_refresh
    if not past(index, refresh.max_unindexed):
        return ""
    if index.untrained is not None:
        return index.untrained
    if data_owner(d.context.owner, state) != d.context.owner:
        return "the table is not managed by this catalog's owner, so nothing refreshes it"
    if d.block is not None:
        return "the table's steps are blocked"
    if (index.rows or 0) > refresh.max_rows:
        return MAINTAIN
    return ""


def _as_declared(want: DesiredTable, dataset: DatasetState) -> Iterator[Index]:
    """The declared indexes that are live and equal, with what a build keeps. One that differs has a step of its own,
    or may not be touched."""
    live = by_name(dataset.indexes)
    for index in sorted(wanted_indexes(with_live_names(want, dataset)), key=lambda i: i.name):
        if index.name in live and not index_differences(index, live[index.name]):
            yield keeping(index, live[index.name])


def _live(start: Finding) -> dict[str, Index]:
    state = start.state if isinstance(start, Present) else None
    dataset = state.dataset if isinstance(state, TableState) else None
    return dict(by_name(dataset.indexes)) if isinstance(dataset, DatasetState) else {}


def _brings_rows(draft: Draft) -> bool:
    change = draft.change
    return draft.verdict == "allowed" and isinstance(change, MaterializeTable) and not change.only_notes
