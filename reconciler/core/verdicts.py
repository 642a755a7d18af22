"""From what was counted to verdicts: the schema by the same comparison as a plan's, the checks by their rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.core.diff_schema import Difference, compare, ignore_rule
from reconciler.core.fields import Fields, find
from reconciler.core.plan_data import UNACCOUNTED
from reconciler.core.text import listing
from reconciler.model.checks import Checks
from reconciler.model.desired import DesiredTable
from reconciler.model.state import DatasetState
from reconciler.model.verification import CheckResult

Found = Mapping[str, Mapping[str, Any]]
"""By the name of a check: `bad` rows, or the `newest` time in microseconds, or an `error`."""
_MICROS = 1_000_000


def schema_verdict(want: DesiredTable, live: Fields) -> CheckResult | None:
    """None when no schema is declared."""
    if want.fields is None:
        return None
    found = list(compare(want.fields, live, want.at_least, ignore_rule(want.ignore_differences)))
    return CheckResult("schema", not found, listing([_told(x) for x in found]))


def origin_verdict(want: DesiredTable, dataset: DatasetState) -> CheckResult | None:
    """Whether the rows are those that we filled the table with. None when there is nothing to fill it with, it was not
    filled yet, or an earlier version did and nothing tells. Rows without a record are not ours: of a dataset that was
    put in the place of the one that we filled, or rows that were there before it. `mix_rows` says that others may write
    to it: then it is only asked that our rows are not all gone."""
    record = dataset.data
    if want.data is None:
        return None
    if record is None:
        return None if dataset.empty else CheckResult("origin", False, UNACCOUNTED)
    if record.lost:
        return CheckResult("origin", False, "a data step was cut off, and nothing tells whether its rows are in")
    external = record.external
    if external is None:
        return CheckResult("origin", True)
    if not external.seen:
        return None
    shared = want.data.mode != "replace-if-changed" and "mix_rows" in want.allow
    return CheckResult("origin", shared and not external.gone, external.reason)


def _told(x: Difference) -> str:
    match x.kind:
        case "missing":
            return f"{x.path} is missing"
        case "extra":
            return f"{x.path} is not declared"
        case "rename":
            return f"{x.path} is not renamed to {x.want.name if x.want else ''} yet"
        case "conflict":
            return f"{x.path} and {x.want.name if x.want else ''}, its new name, are both there"
        case "type":
            return f"{x.path} is {x.live.type if x.live else ''}, not {x.want.type if x.want else ''}"
        case "nullable":
            return f"{x.path} is {'' if x.live and x.live.nullable else 'not '}nullable"


def tasks_of(checks: Checks) -> Iterator[dict[str, Any]]:
    """The checks that need the rows, as plain data for executors."""
    for column in checks.not_null:
        yield {"kind": "not_null", "name": f"notNull:{column}", "column": column}
    for key in checks.unique:
        yield {"kind": "unique", "name": f"unique:{','.join(key)}", "columns": list(key)}
    for column, values in checks.accepted.items():
        yield {"kind": "accepted", "name": f"accepted:{column}", "column": column, "values": list(values)}
    for expression in checks.expressions:
        yield {"kind": "expression", "name": f"expression:{expression.name}", "sql": expression.sql}
    if checks.freshness is not None:
        column = checks.freshness.column
        yield {"kind": "freshness", "name": f"freshness:{column}", "column": column}


def without_column(task: Mapping[str, Any], live: Fields) -> str | None:
    """Why a check cannot be made on this table, or None."""
    columns = task.get("columns") or ([task["column"]] if "column" in task else [])
    lost = [c for c in columns if find(live, c) is None]
    return f"the table has no column {listing(lost)}" if lost else None


def verdicts(checks: Checks, rows: int, found: Found, now: int) -> Iterator[CheckResult]:
    """`now` in seconds since 1970."""
    if checks.min_rows is not None or checks.max_rows is not None:
        yield _row_count(checks, rows)
    for task in tasks_of(checks):
        name, kind = task["name"], task["kind"]
        seen = found[name]
        if "error" in seen:
            yield CheckResult(name, False, str(seen["error"]))
        elif kind == "freshness":
            yield _freshness(name, checks, seen["newest"], now)
        else:
            bad = int(seen["bad"])
            yield CheckResult(name, bad == 0, _WORDS[kind].format(_rows(bad)) if bad else "")


_WORDS = {
    "not_null": "a null in {}",
    "unique": "{} with a key that another row has",
    "accepted": "another value in {}",
    "expression": "false in {}",
}


def _rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"


def _row_count(checks: Checks, rows: int) -> CheckResult:
    low, high = checks.min_rows, checks.max_rows
    if low is not None and rows < low:
        return CheckResult("rowCount", False, f"{_rows(rows)}, at least {low} are wanted")
    if high is not None and rows > high:
        return CheckResult("rowCount", False, f"{_rows(rows)}, at most {high} are wanted")
    return CheckResult("rowCount", True)


def _freshness(name: str, checks: Checks, newest: int | None, now: int) -> CheckResult:
    assert checks.freshness is not None
    if newest is None:
        return CheckResult(name, False, "there is no time in the table")
    age = now - newest // _MICROS
    limit = checks.freshness.max_age
    late = f"the newest is {span(age)} old, at most {span(limit)} is wanted"
    return CheckResult(name, age <= limit, late if age > limit else "")


def span(seconds: int) -> str:
    """`90061` as `1d 1h`: the two largest parts."""
    parts = []
    for size, letter in ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        if seconds >= size:
            parts.append(f"{seconds // size}{letter}")
            seconds %= size
    return " ".join(parts[:2]) or "0s"
