"""Where the catalogs stand, for a terminal and for a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from reconciler.core.text import live_size
from reconciler.core.verdicts import span
from reconciler.model.coverage import covers
from reconciler.model.ident import Kind, ObjectKey, dotted
from reconciler.model.plan import Summary
from reconciler.model.report import Difference
from reconciler.model.run_context import AppliedBy
from reconciler.model.state import Index
from reconciler.model.status import CatalogStatus, FleetStatus, Pending
from reconciler.render.markdown_parts import WHY
from reconciler.render.safe_markdown import code, header, prose, row
from reconciler.render.safe_text import LONGEST, bounded, safe, safe_line

MOST = 20
"""Objects of one kind: this is an overview, `plan` says all of it."""
_LONGEST_NAME = 100
_NAMED = 5


def status_text(found: FleetStatus) -> str:
    return "\n".join("".join(f"{line}\n" for line in _lines(c)) for c in found.catalogs)


def _lines(c: CatalogStatus) -> Iterator[str]:
    yield f"Catalog {safe(c.name)} ({safe(c.type)}, owner {safe(c.owner)})"
    for title, value in _facts(c):
        yield f"  {title + ':':14}{safe(value)}"
    if not c.complete:
        yield "  Incomplete: what could not be read is in none of these figures"
        yield from (f"    {bounded(safe_line(p.message))}" for p in c.problems[:MOST])
        yield from _more(len(c.problems))
    for title, lines in _lists(c):
        yield f"  {title}:"
        yield from (f"    {safe(line)}" for line in lines[:MOST])
        yield from _more(len(lines))


def _more(count: int) -> Iterator[str]:
    if count > MOST:
        yield f"    and {count - MOST} more"


def _facts(c: CatalogStatus) -> Iterator[tuple[str, str]]:
    yield "Live", live_size(c.namespaces, c.tables, c.other_tables, ",")
    yield "Ours", f"{_count(c.owned_namespaces, 'namespace')}, {_count(c.owned_tables, 'table')}"
    yield "Pending", _summary(c.summary)
    if left := _left_out(c):
        yield "Left out", left
    if c.indexes:
        yield "Indexes", f"{len(c.indexes):,}, {f'{len(lack):,}' if (lack := _lacking(c)) else 'none'} without all rows"
    if c.tags or c.tags_unread:
        yield "Tags", _tags(c)
    yield "Last applied", "not known" if c.last is None else _who(c.last)


def _tags(c: CatalogStatus) -> str:
    """Of apply, on the tables of ours."""
    count = _count(sum(n for _, n in c.tags), "rollback tag")
    kept = "kept for ever" if c.tag_retention is None else f"kept {span(c.tag_retention)}"
    unread = f"; of {_count(c.tags_unread, 'table')} not known" if c.tags_unread else ""
    return f"{count} of apply on {_count(len(c.tags), 'table')}, {kept}{unread}"


def _left_out(c: CatalogStatus) -> str:
    """By --target. The figures above are without it, and must not be taken for those of the whole catalog."""
    parts = []
    if c.left_out:
        names = [bounded(dotted(k.ident), _LONGEST_NAME) for k in c.left_out[:_NAMED]]
        names += ["…"] if len(c.left_out) > _NAMED else []
        parts.append(f"{_count(len(c.left_out), 'declared object')} ({', '.join(names)})")
    if c.left_out_namespaces or c.left_out_tables or c.left_out_other_tables:
        live = live_size(c.left_out_namespaces, c.left_out_tables, c.left_out_other_tables, ",")
        parts.append(f"live and not in these figures: {live}")
    return f"by --target: {'; '.join(parts)}" if parts else ""


def _summary(s: Summary) -> str:
    counts = [(s.create, "to create"), (s.update, "to update"), (s.delete, "to delete")]
    counts += [(s.blocked, "blocked"), (s.unsupported, "unsupported")]
    return ", ".join(f"{n} {what}" for n, what in counts if n) or "nothing"


def _who(by: AppliedBy) -> str:
    """A note on a live object, in the hands of whoever may write there: each part of it is bounded."""
    at, who = _short(by.at), _short(by.by) or "somebody"
    commit = f", commit {_short(by.commit.removesuffix('+'))}" if by.commit else ""
    commit += " (with uncommitted changes)" if by.commit and by.commit.endswith("+") else ""
    run = f", {bounded(by.run, LONGEST)}" if by.run else ""
    return f"{at} by {who}{commit}{run}"


def _short(text: str) -> str:
    return bounded(text, _LONGEST_NAME)


def _lists(c: CatalogStatus) -> Iterator[tuple[str, Sequence[str]]]:
    owners = dict(c.others)
    if owners:
        yield "Live and not ours", _by_owner(c.others)
    if c.pending:
        yield "Not as declared", [_pending(p, owners) for p in c.pending]
    if c.orphans:
        yield "Orphans, ours and no longer declared", [_object(k) for k in c.orphans]
    if lacking := _lacking(c):
        yield "Indexes that do not cover all rows of their tables", [_uncovered(key, index) for key, index in lacking]
    if c.unowned:
        title = "As declared, and not ours yet (`apply --adopt` takes what nobody owns)"
        yield title, [f"{_object(k)}{_owned(k, owners)}" for k in c.unowned]


def _lacking(c: CatalogStatus) -> list[tuple[ObjectKey, Index]]:
    """Those that lack most come first. Unknown coverage is not taken for complete."""
    found = [(key, i) for key, i in c.indexes if i.rows is None or i.indexed_rows is None or i.indexed_rows < i.rows]
    return sorted(found, key=lambda one: -((one[1].rows or 0) - (one[1].indexed_rows or 0)))


def _uncovered(key: ObjectKey, index: Index) -> str:
    name = bounded(index.name, _LONGEST_NAME)
    if index.rows is None or index.indexed_rows is None:
        return f"{_object(key)}: what index {name} covers is not known"
    why = f": {index.untrained}" if index.untrained else ""
    return f"{_object(key)}: {covers(name, index.indexed_rows, index.rows)}{why}"


def _by_owner(others: Sequence[tuple[ObjectKey, str | None]]) -> list[str]:
    """Those who have most come first."""
    counts: dict[str | None, Counter[Kind]] = {}
    for key, owner in others:
        counts.setdefault(owner, Counter())[key.kind] += 1
    order = sorted(counts.items(), key=lambda entry: (-entry[1].total(), entry[0] is not None, entry[0] or ""))
    return [f"{_whose(owner)}: {_kinds(kinds)}" for owner, kinds in order]


def _kinds(counts: Mapping[Kind, int]) -> str:
    found = ((counts["Namespace"], "namespace"), (counts["Table"], "table"))
    return ", ".join(_count(number, noun) for number, noun in found if number)


def _whose(owner: str | None) -> str:
    return "without an owner" if owner is None else f"owned by {bounded(owner, _LONGEST_NAME)}"


def _owned(key: ObjectKey, owners: Mapping[ObjectKey, str | None]) -> str:
    return f", {_whose(owners[key])}" if key in owners else ""


def _pending(p: Pending, owners: Mapping[ObjectKey, str | None]) -> str:
    held = "" if p.verdict == "allowed" else f" ({p.verdict}{_owned(p.key, owners)})"
    fields = [_field(d) for d in p.differences if d.field not in ("state", "dataset")]
    more = [f"and {len(fields) - _NAMED} more"] if len(fields) > _NAMED else []
    told = f": {', '.join([*fields[:_NAMED], *more])}" if fields else ""
    return f"{_object(p.key)}: {', '.join(p.actions)}{held}{told}"


def _field(d: Difference) -> str:
    """Live, then declared."""
    name, live, declared = bounded(d.field, _LONGEST_NAME), _short(str(d.before)), _short(str(d.after))
    if d.before is None:
        return f"+ {name} {declared}"
    return f"- {name}" if d.after is None else f"~ {name} {live} -> {declared}"


def _object(key: ObjectKey) -> str:
    return f"{key.kind.lower()} {bounded(dotted(key.ident), _LONGEST_NAME)}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def status_markdown(found: FleetStatus) -> str:
    names = ("Catalog", "Live", "Ours", "Pending", "Orphans", "Not ours yet", "Complete", "Last applied")
    rows = "".join(_row(c) for c in found.catalogs)
    return f"## Status\n\n{header(*names)}{rows}{''.join(_details(c) for c in found.catalogs)}"


def _row(c: CatalogStatus) -> str:
    """Names and values come from others: they are code, or plain words."""
    facts = dict(_facts(c))
    counts = (str(len(c.orphans)), str(len(c.unowned)), "yes" if c.complete else "no")
    return row(code(c.name), facts["Live"], facts["Ours"], facts["Pending"], *counts, prose(facts["Last applied"]))


def _details(c: CatalogStatus) -> str:
    left = _left_out(c)
    out = f"\n**Catalog {code(c.name)}: Left out** {prose(left, WHY)}\n" if left else ""
    out += "" if c.complete else _list(c, "Incomplete", [prose(p.message) for p in c.problems])
    for title, lines in _lists(c):
        out += _list(c, title, [prose(line) for line in lines])
    return out


def _list(c: CatalogStatus, title: str, lines: Sequence[str]) -> str:
    shown = "".join(f"- {line}\n" for line in lines[:MOST])
    more = f"- and {len(lines) - MOST} more\n" if len(lines) > MOST else ""
    return f"\n**Catalog {code(c.name)}: {title}**\n\n{shown}{more}"
