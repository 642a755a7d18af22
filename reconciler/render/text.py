"""Plans, reports and diagnostics for people. Deterministic; every object that changes gives at least one line."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from reconciler.core.text import size_of
from reconciler.model.change import RefreshIndex
from reconciler.model.coverage import Coverage
from reconciler.model.diagnostic import Diagnostic
from reconciler.model.ident import Ident, ObjectKey, dotted
from reconciler.model.plan import CatalogSummary, Plan, Step
from reconciler.model.report import StaleObject
from reconciler.render.columns import aligned, wrapped
from reconciler.render.policy_text import policy_lines
from reconciler.render.ran import Ran, each_reason_once, run_of_report
from reconciler.render.safe_text import bounded, safe, safe_line
from reconciler.render.step_details import details, difference

CREATES = frozenset({"create_namespace", "declare_table", "create_dataset", "add_columns", "create_index"})
NEW = frozenset({"create_namespace", "declare_table", "create_dataset"})
TOLD = frozenset({"adopt", "rename_table", "rename_namespace"})
REMOVES = frozenset({"drop_namespace", "deregister_table", "drop_columns", "drop_index"})
NO_CHANGES, DRIFT = "No changes.", "Drift."
"""How the last line begins when there is nothing to apply, but something to tell."""
NOT_APPLIED = "An apply of this plan ends with exit code 3 and writes nothing."
"""Said with the reason: `plan` itself may end with 0, and its counts read as if the rest would be done."""
STALE = "The catalog shows other columns than the data has; `allow: [replace_table]` replaces the entry"
LACKING = "Indexes that do not cover all rows of their tables"
_SHOWN = 5
_COLOURS = {"+": "32", "~": "33", "-": "31", "!": "35", "?": "36"}


def plan_text(plan: Plan, color: bool = False, title: str = NO_CHANGES, width: int | None = None) -> str:
    """`width`: columns of the terminal; None when it is none, so that nothing is broken for whoever searches it."""
    out: list[str] = []
    for line in _plan_lines(plan, title):
        sign = line.lstrip(" ")[:1] if line.startswith("  ") else ""
        out += (_painted(part, sign, color) for part in wrapped(line, width))
    return "\n".join(out) + "\n"


def _plan_lines(plan: Plan, title: str) -> Iterator[str]:
    for name, catalog in sorted(plan.catalogs.items()):
        steps = [s for s in plan.steps if s.catalog == name]
        orphans = [k for k in plan.orphans if k.catalog == name]
        unowned = [k for k in plan.unowned if k.catalog == name]
        stale = [ObjectKey(name, ident, "Table") for ident in catalog.projection_stale]
        notes = [n for n in plan.notes if n.key.catalog == name]
        changed = {s.change.ident for s in steps}
        lacking = [c for c in catalog.coverage if c.ident not in changed or c.over]
        if steps or orphans or unowned or stale or notes or lacking or catalog.problems:
            yield from _catalog_lines(name, catalog, steps, plan.refused)
            yield from _listed("Orphaned: ours, but in no manifest; untouched without --prune", orphans)
            yield from _unowned(unowned, plan.owners)
            yield from _listed(STALE, stale, ": projection: stale")
            yield from (f"  note: {_object(n.key)}: {safe(n.message)}" for n in notes)
            if lacking:
                yield f"  {LACKING}:"
                yield from (f"    {_object(ObjectKey(name, c.ident, 'Table'))}: {coverage_text(c)}" for c in lacking)
            yield ""
    yield from policy_lines(plan.findings)
    yield from plan_summary(plan, title).split("\n")


def _catalog_lines(name: str, catalog: CatalogSummary, steps: Sequence[Step], refused: str | None) -> Iterator[str]:
    yield f"Catalog {safe(name)} ({safe(catalog.type)}: {safe(size_of(catalog))})"
    for problem in catalog.problems:
        yield f"  incomplete: {safe(problem.message)}"
    lacking: dict[Ident, list[Coverage]] = {}
    for found in catalog.coverage:
        lacking.setdefault(found.ident, []).append(found)
    for key, its_steps in _by_object(steps):
        yield f"  {_object_symbol(its_steps)} {_object(key)}{_coverage(lacking.get(key.ident, ()), its_steps)}"
        lines = [*_object_lines(its_steps, refused)]
        for deeper, together in groupby(lines, key=lambda line: line[0]):
            indent = "        " if deeper else "      "
            yield from (indent + line for line in aligned([line for _, line in together]))


def _coverage(lacking: Sequence[Coverage], steps: Sequence[Step]) -> str:
    """Beside the name of a table: which of its indexes lack rows, apart from those whose step says so itself."""
    told = {s.change.index.name for s in steps if isinstance(s.change, RefreshIndex)}
    shown = [c for c in lacking if c.index not in told] if steps[0].change.kind == "Table" else []
    if not shown or any(s.deletes for s in steps):
        return ""
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return f" ({'; '.join(coverage_text(c) for c in shown[:_SHOWN])}{more})"


def coverage_text(found: Coverage) -> str:
    over = f"more than {found.over} unindexed" if found.over else ""
    return safe(": ".join(part for part in (found.text, over, found.advice) if part))


def _by_object(steps: Sequence[Step]) -> Iterable[tuple[ObjectKey, list[Step]]]:
    """In order of their first step; what is created and what is deleted under one name stay apart."""
    groups: dict[tuple[ObjectKey, bool], list[Step]] = {}
    for step in steps:
        groups.setdefault((step.key, step.deletes), []).append(step)
    return ((key, its_steps) for (key, _), its_steps in groups.items())


def _object_symbol(steps: Sequence[Step]) -> str:
    allowed = [s for s in steps if s.verdict == "allowed"]
    if not allowed:
        return "!" if any(s.verdict == "blocked" for s in steps) else "?"
    if any(s.deletes for s in allowed):
        return "-"
    return "+" if any(s.action in NEW for s in allowed) else "~"


def _object_lines(steps: Sequence[Step], refused: str | None) -> Iterator[tuple[bool, str]]:
    """With each line: is it part of what is blocked. What blocks several steps is said with the first of them, and what
    refuses the whole plan below it."""
    said = ""
    for step in steps:
        if step.verdict == "allowed":
            yield from _step_lines(step)
            continue
        why = step.blocking_reason
        parts = ["as above"] if why == said else [f": {'refused, see below' if why == refused else safe(why)}"]
        parts += [safe(step.purpose)] if step.purpose else []
        between = " " if why == said else ""
        yield False, f"{symbol_of(step)} {step.action} {step.verdict}{between}{'; '.join(parts)}"
        yield from ((True, line) for line in details(step))
        said = why


def _step_lines(step: Step) -> Iterator[tuple[bool, str]]:
    """What changes; and in words when the step could lose something, or has nothing else to show."""
    lines = list(details(step))
    grave = step.risk in ("destructive", "rewrite") or step.deletes or step.reattaches
    if grave or step.permissions or step.kept or step.action in TOLD or (not lines and step.action not in NEW):
        yield False, f"{symbol_of(step)} {step.action}: {safe(step.told_reason)}"
    yield from ((False, line) for line in lines)


def symbol_of(step: Step) -> str:
    if step.verdict != "allowed":
        return "!" if step.verdict == "blocked" else "?"
    return "+" if step.action in CREATES else "-" if step.action in REMOVES else "~"


def _object(key: ObjectKey) -> str:
    return f"{key.kind.lower()} {safe(dotted(key.ident))}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _listed(title: str, keys: Sequence[ObjectKey], what: str = "") -> Iterator[str]:
    if keys:
        yield f"  {title}:"
        yield from (f"    {_object(k)}{what}" for k in keys)


def _unowned(keys: Sequence[ObjectKey], owners: Mapping[ObjectKey, str]) -> Iterator[str]:
    nobodys = [k for k in keys if k not in owners]
    yield from _listed("Unowned: as declared, but without our mark (`apply --adopt` takes what nobody owns)", nobodys)
    for owner in sorted({owners[k] for k in keys if k in owners}):
        name = safe(owner)
        title = f"Owned by {name}: as declared, and not ours (`--take-over {shlex.quote(name)}` takes it)"
        yield from _listed(title, [k for k in keys if owners.get(k) == owner])


def _painted(line: str, symbol: str, color: bool) -> str:
    return f"\x1b[{_COLOURS[symbol]}m{line}\x1b[0m" if color and symbol in _COLOURS else line


def plan_summary(plan: Plan, title: str = NO_CHANGES) -> str:
    return _counts(plan, title) + _left_out(plan)


def _left_out(plan: Plan) -> str:
    """What nobody looked at, so that a limited run is not taken for a whole one."""
    if not plan.left_out:
        return ""
    several = len({k.catalog for k in plan.left_out}) > 1
    names = [safe(str(k) if several else dotted(k.ident)) for k in plan.left_out[:_SHOWN]]
    names += ["…"] if len(plan.left_out) > _SHOWN else []
    count = _count(len(plan.left_out), "declared object")
    return f"\nLeft out by --target or --changed-since: {count} ({', '.join(names)})"


def _counts(plan: Plan, title: str) -> str:
    refused = f"\nRefused: {safe(plan.refused)}\n{NOT_APPLIED}" if plan.refused is not None else ""
    if not plan.has_changes:
        return _nothing_to_apply(plan, title) + refused
    s = plan.summary
    parts = [f"{s.create} to create", f"{s.update} to update", f"{s.delete} to delete", f"{s.blocked} blocked"]
    if s.unsupported:
        parts.append(f"{s.unsupported} unsupported")
    return f"Plan: {', '.join(parts)}.{refused}"


def _nothing_to_apply(plan: Plan, title: str) -> str:
    """The catalogs match the manifests only when there is nothing else to tell. Orphans alone are a drift."""
    noted = [(len(plan.orphans), "orphaned"), (len(plan.unowned), "unowned")]
    parts = [f"{_count(n, 'object')} {'is' if n == 1 else 'are'} {what}" for n, what in noted if n]
    stale = sum(len(c.projection_stale) for c in plan.catalogs.values())
    parts += [f"{_count(stale, 'projection')} {'is' if stale == 1 else 'are'} stale"] if stale else []
    lacking = sum(1 for c in plan.catalogs.values() for i in c.coverage if i.advice or i.over)
    parts += [f"{lacking} {'index does' if lacking == 1 else 'indexes do'} not cover all rows"] if lacking else []
    parts += [f"the listing of {safe(n)} is incomplete" for n, c in sorted(plan.catalogs.items()) if not c.complete]
    if not parts and plan.left_out:
        return f"{NO_CHANGES} What was looked at matches the manifests."
    if not parts:
        return f"{NO_CHANGES} The live catalogs match the manifests."
    drifted = plan.orphans or any(i.over for c in plan.catalogs.values() for i in c.coverage)
    return f"{title if drifted else NO_CHANGES} There is nothing to apply, but {', and '.join(parts)}."


_MARKS = {"failed": "FAILED", "unknown": "UNKNOWN"}


def report_text(report: Mapping[str, Any], planned: bool = False, refused: str | None = None) -> str:
    """From the report's JSON, so that a saved report reads the same. `planned`: the plan stands right above, with
    why steps are blocked and why the whole run is `refused`. Raises KeyError, TypeError when it is no report."""
    run = run_of_report(report)
    width = max([7, *(len(s.word) for s in run.steps)])
    lines = [_result_line(s, width, planned) for s in (run.steps if planned else each_reason_once(run.steps))]
    lines += [f"  {'tags':{width}}  {safe(line)}" for line in run.expired]
    lines += [line for found in run.stale for line in _stale_lines(found)]
    message = safe(run.told if refused is None else run.told.removesuffix(f": {refused}"))
    plain = message in ("", run.title.lower())
    return "\n".join([*lines, run.title if plain else f"{run.title}: {message}"]) + "\n"


def _stale_lines(found: StaleObject) -> Iterator[str]:
    yield f"  changed  {found.key.kind.lower()} {safe(str(found.key))}: {safe(found.problem)}"
    yield from (f"      {difference(d)}" for d in found.differences)


def _result_line(step: Ran, width: int, planned: bool) -> str:
    mark = _MARKS.get(step.status, step.word)
    line = f"  {mark:{width}}  {safe(step.id)}  {safe(step.action)}  {safe(str(step.key))}"
    problem = step.problem.partition(": ")[0] if planned and step.verdict else step.problem
    below = [text for text in (problem, step.note) if text and text != step.word]
    return "\n".join([line, *(f"  {'':{width}}  {safe(text)}" for text in below)])


def diagnostics_text(diagnostics: Iterable[Diagnostic]) -> str:
    """`file:line:column: error[M204]: message`, as editors and CI know it."""
    lines = []
    for d in diagnostics:
        lines.append(f"{safe_line(str(d.source))}: {d.severity}[{d.code}]: {safe(bounded(d.message))}")
        if d.hint:
            lines.append(f"  hint: {safe(bounded(d.hint))}")
    return "".join(f"{line}\n" for line in lines)
