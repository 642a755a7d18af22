"""Plans, reports and diagnostics for people. Deterministic; every object that changes gives at least one line."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from reconciler.model.diagnostic import Diagnostic
from reconciler.model.ident import ObjectKey, dotted
from reconciler.model.plan import CatalogSummary, Plan, Step
from reconciler.render.columns import aligned, wrapped
from reconciler.render.policy_text import policy_lines
from reconciler.render.ran import held_back
from reconciler.render.safe_text import bounded, safe, safe_line
from reconciler.render.step_details import details

CREATES = frozenset({"create_namespace", "declare_table", "create_dataset", "add_columns", "create_index"})
NEW = frozenset({"create_namespace", "declare_table", "create_dataset"})
TOLD = frozenset({"adopt", "rename_table", "rename_namespace"})
REMOVES = frozenset({"drop_namespace", "deregister_table", "drop_columns", "drop_index"})
NO_CHANGES, DRIFT = "No changes.", "Drift."
"""How the last line begins when there is nothing to apply, but something to tell."""
NOT_APPLIED = "An apply of this plan ends with exit code 3 and writes nothing."
"""Said with the reason: `plan` itself may end with 0, and its counts read as if the rest would be done."""
STALE = "The catalog shows other columns than the data has; `allow: [replace_table]` replaces the entry"
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
        if steps or orphans or unowned or stale or catalog.problems:
            yield from _catalog_lines(name, catalog, steps)
            yield from _listed("Orphaned: ours, but in no manifest; untouched without --prune", orphans)
            yield from _unowned(unowned, plan.owners)
            yield from _listed(STALE, stale, ": projection: stale")
            yield ""
    yield from policy_lines(plan.findings)
    yield from plan_summary(plan, title).split("\n")


def _catalog_lines(name: str, catalog: CatalogSummary, steps: Sequence[Step]) -> Iterator[str]:
    size = f"{_count(catalog.namespaces, 'namespace')}, {_count(catalog.tables, 'table')}"
    yield f"Catalog {safe(name)} ({safe(catalog.type)}: {size})"
    for problem in catalog.problems:
        yield f"  incomplete: {safe(problem)}"
    for key, its_steps in _by_object(steps):
        yield f"  {_object_symbol(its_steps)} {_object(key)}"
        lines = [line for step in its_steps for line in _step_lines(step)]
        for deeper, together in groupby(lines, key=lambda line: line[0]):
            indent = "        " if deeper else "      "
            yield from (indent + line for line in aligned([line for _, line in together]))


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


def _step_lines(step: Step) -> Iterator[tuple[bool, str]]:
    """What changes; and in words when the step is held back, could lose something, or has nothing else to show. With
    each line: is it part of what is held back."""
    symbol, held = symbol_of(step), step.verdict != "allowed"
    lines = list(details(step))
    if held:
        yield False, f"{symbol} {step.action} {step.verdict}: {safe(step.reason)}"
    elif step.risk in ("destructive", "rewrite") or step.action in TOLD or (not lines and step.action not in NEW):
        yield False, f"{symbol} {step.action}: {safe(step.reason)}"
    yield from ((held, line) for line in lines)


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
    parts += [f"the listing of {safe(n)} is incomplete" for n, c in sorted(plan.catalogs.items()) if not c.complete]
    if not parts and plan.left_out:
        return f"{NO_CHANGES} What was looked at matches the manifests."
    if not parts:
        return f"{NO_CHANGES} The live catalogs match the manifests."
    return f"{title if plan.orphans else NO_CHANGES} There is nothing to apply, but {', and '.join(parts)}."


_MARKS = {"done": "done", "skipped": "skipped", "failed": "FAILED", "unknown": "UNKNOWN", "not_run": "not run"}


def report_text(report: Mapping[str, Any]) -> str:
    """From the report's JSON, so that a saved report reads the same. Raises KeyError, TypeError when it is none."""
    lines = [_result_line(r) for r in report["steps"]]
    title = str(report["outcome"]).replace("_", " ").capitalize()
    message = safe(report.get("message") or "")
    return "\n".join([*lines, title if message in ("", title.lower()) else f"{title}: {message}"]) + "\n"


def _result_line(result: Mapping[str, Any]) -> str:
    key = ObjectKey(result["catalog"], tuple(result["object"]["id"]), result["object"]["kind"])
    line = f"  {_MARKS[result['status']]:8} {safe(result['id'])}  {safe(result['action'])}  {safe(str(key))}"
    error, tag = result.get("error"), result.get("tag")
    if error is not None:
        line += f"\n           {safe(error['name'])} ({error['code']}): {safe(error['message'])}"
    if held := held_back(result):
        line += f"\n           {safe(held)}"
    if tag is not None:
        line += f"\n           version {result.get('version_before')} is tagged {safe(tag)}"
    return line


def diagnostics_text(diagnostics: Iterable[Diagnostic]) -> str:
    """`file:line:column: error[M204]: message`, as editors and CI know it."""
    lines = []
    for d in diagnostics:
        lines.append(f"{safe_line(str(d.source))}: {d.severity}[{d.code}]: {safe(bounded(d.message))}")
        if d.hint:
            lines.append(f"  hint: {safe(bounded(d.hint))}")
    return "".join(f"{line}\n" for line in lines)
