"""A plan as markdown, for a comment on a pull request.

Warnings of what others may not do, and those that are about no place in a manifest, stand before all else. What could
lose something and what is held back comes first and is the last to be cut: rows are put in the order of
their rank over all catalogs, and the first that does not fit ends them. Details are folded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from reconciler.core.text import plural, size_of
from reconciler.model.diagnostic import OF_OTHERS, Diagnostic
from reconciler.model.finding import Finding
from reconciler.model.ident import ObjectKey, dotted
from reconciler.model.plan import CatalogSummary, Plan, PlanNote, Step, reasons_of
from reconciler.render.markdown_parts import (
    DIAGNOSTICS_HEADER,
    LIMIT,
    POLICY_HEADER,
    WHY,
    Draft,
    Tally,
    diagnostic_row,
    finding_row,
    fold,
    listed,
    named,
    place,
    put_diagnostics,
)
from reconciler.render.safe_markdown import code, header, prose, row
from reconciler.render.safe_text import LONGEST_MESSAGE, bounded, safe
from reconciler.render.step_details import details
from reconciler.render.text import NEW, NO_CHANGES, coverage_text, plan_summary

_URGENT = 2
"""Ranks up to this: what is lost, what is held back, what cannot be done."""
_LONGEST_LINE = 2000
_EMPTY = frozenset({"create_namespace", "create_dataset"})
_ADVICE = "The saved plan has all of it: `plan -o FILE`, then `show FILE`."
_LISTS = (
    ("orphaned object", "ours, but in no manifest; untouched without --prune"),
    ("unowned object", "as declared, but without our mark"),
    ("stale projection", "the catalog shows other columns than the data has"),
)
LACKING_NOUN = "coverage note"


@dataclass
class _Row:
    """The steps of one rank on one object."""

    rank: int
    key: ObjectKey
    steps: list[Step] = field(default_factory=list)

    @property
    def actions(self) -> list[str]:
        return [s.action for s in self.steps]


def plan_markdown(
    plan: Plan,
    title: str = NO_CHANGES,
    warnings: Sequence[Diagnostic] = (),
    limit: int = LIMIT,
    said: Sequence[str] = (),
) -> str:
    """`said`: warnings that are about no place in a manifest."""
    return _PlanPage(plan, title, warnings, limit, said).text()


class _PlanPage:
    def __init__(self, plan: Plan, title: str, warnings: Sequence[Diagnostic], limit: int, said: Sequence[str]) -> None:
        self._plan, self._said, self.owners = plan, said, plan.owners
        self._foremost = [d for d in warnings if d.code in OF_OTHERS]
        self._warnings = [d for d in warnings if d.code not in OF_OTHERS]
        self._rows = _rows(plan.steps)
        self._refusing = [f for f in plan.findings if f.refuses]
        self._told = sorted((f for f in plan.findings if not f.refuses), key=lambda f: f.waiver is not None)
        self._draft = Draft(self._head(title), self._expected(), limit, _ADVICE)
        self._page = self._draft.page
        self._half = limit // 2
        self._first = self._page.section(f"#### Warnings\n\n{DIAGNOSTICS_HEADER}", "\n")
        self._findings = self._page.section(POLICY_HEADER, "\n")
        names = sorted({*plan.catalogs, *(s.catalog for s in plan.steps)})
        self._catalogs = {name: _Sections(self._draft, name, self) for name in names}
        left = f"{'was' if len(plan.left_out) == 1 else 'were'} left out, because the run was asked for others"
        self._left_out = fold(self._page, f"{plural(len(plan.left_out), 'declared object')} {left}")
        more = "more " if self._foremost or said else ""
        self._problems = fold(self._page, plural(len(self._warnings), f"{more}warning"), opened=True)
        self._problems.opening += DIAGNOSTICS_HEADER

    def text(self) -> str:
        """Filled by importance: this is the order in which things are cut, from the end."""
        urgent = [r for r in self._rows if r.rank <= _URGENT]
        others = [r for r in self._rows if r.rank > _URGENT]
        self._put_foremost(self._half // 2)
        self._put_findings(self._refusing, self._half)
        for sections in self._catalogs.values():
            sections.put_problems()
        fits = self._put_rows(urgent)
        self._put_details(urgent)
        self._put_findings(self._told, self._half // 2)
        if fits:
            self._put_rows(others)
        for sections in self._catalogs.values():
            sections.put_lists()
        put_diagnostics(self._draft, self._problems, self._warnings, "warning")
        listed(self._draft, self._left_out, self._plan.left_out, "left-out object")
        self._put_details(others)
        return self._draft.text()

    def summary_of(self, catalog: str) -> CatalogSummary:
        """Of one that only steps name nothing is known; its steps are shown all the same."""
        return self._plan.catalogs.get(catalog) or CatalogSummary("unknown", False, 0, 0, {})

    def lists_of(self, catalog: str) -> list[list[ObjectKey]]:
        """As in _LISTS."""
        stale = [ObjectKey(catalog, ident, "Table") for ident in self.summary_of(catalog).projection_stale]
        return [[k for k in keys if k.catalog == catalog] for keys in (self._plan.orphans, self._plan.unowned)] + [
            stale
        ]

    def notes_of(self, catalog: str) -> list[PlanNote]:
        return [note for note in self._plan.notes if note.key.catalog == catalog]

    def _head(self, title: str) -> str:
        first, *more = plan_summary(self._plan, title).split("\n")
        lines = [f"### {prose(first, LONGEST_MESSAGE)}\n\n"]
        for line in more:
            refused = "**Refused:** " if line.startswith("Refused: ") else ""
            lines.append(f"{refused}{prose(line.removeprefix('Refused: '), LONGEST_MESSAGE)}\n\n")
        return "".join(lines)

    def _expected(self) -> Tally:
        tally = Tally()
        tally.expect("step", (_kind(s) for s in self._plan.steps))
        tally.expect("policy finding", ("" for _ in self._plan.findings))
        tally.expect("listing problem", ("" for c in self._plan.catalogs.values() for _ in c.problems))
        for name in self._plan.catalogs:
            tally.expect(LACKING_NOUN, ("" for _ in self._plan.catalogs[name].coverage))
            for (noun, _), keys in zip(_LISTS, self.lists_of(name), strict=True):
                tally.expect(noun, ("" for _ in keys))
        tally.expect("warning", (d.severity for d in (*self._foremost, *self._warnings)))
        tally.expect("warning", ("warning" for _ in self._said))
        tally.expect("note", ("" for _ in self._plan.notes))
        tally.expect("left-out object", ("" for _ in self._plan.left_out))
        tally.expect("object diff", ("" for r in self._rows if _has_details(r)))
        return tally

    def _put_foremost(self, share: int) -> None:
        """They take their share of the page at most: the steps are to be seen as well."""
        least = self._page.left - share
        lines = [diagnostic_row(d, "**warning**") for d in self._foremost]
        lines += [row("**warning**", "", prose(text, LONGEST_MESSAGE), "") for text in self._said]
        for line in lines:
            if self._page.left < least or not self._draft.put(self._first, line, "warning", ("warning",)):
                return

    def _put_rows(self, rows: Sequence[_Row]) -> bool:
        """False when they did not all fit: nothing that matters less may be shown then."""
        refused = self._plan.refused
        return all(
            self._draft.put(self._catalogs[r.key.catalog].table, _line(r, refused), "step", [*map(_kind, r.steps)])
            for r in rows
        )

    def _put_details(self, rows: Sequence[_Row]) -> None:
        for r in rows:
            if self._page.left < 100:
                return
            if block := _details(r, self._half // 2):
                self._draft.put(self._catalogs[r.key.catalog].details, block, "object diff")

    def _put_findings(self, findings: Sequence[Finding], share: int) -> None:
        """They take their share of the page at most: the steps are to be seen as well."""
        least = self._page.left - share
        for f in findings:
            if self._page.left < least or not self._draft.put(self._findings, finding_row(f), "policy finding"):
                return


class _Sections:
    """Of one catalog."""

    def __init__(self, draft: Draft, name: str, page: _PlanPage) -> None:
        self._draft, self._catalog, self._owners = draft, page.summary_of(name), page.owners
        catalog = self._catalog
        size = prose(size_of(catalog))
        self._heading = draft.page.section(f"#### Catalog {code(name)} ({code(catalog.type)}: {size})\n\n")
        self._incomplete = draft.page.section("", "\n", self._heading)
        columns = header("change", "object", "steps", "why", "manifest")
        self.table = draft.page.section(columns, "\n", self._heading)
        self.details = fold(draft.page, "Details", self._heading, fence=True)
        lacking = f"{plural(len(catalog.coverage), LACKING_NOUN)}: indexes that do not cover all rows"
        self._lacking = fold(draft.page, lacking, self._heading, any(c.over for c in catalog.coverage))
        self._lists = [
            (
                noun,
                fold(draft.page, f"{plural(len(keys), noun)}: {text}", self._heading, noun.startswith("orphan")),
                keys,
            )
            for (noun, text), keys in zip(_LISTS, page.lists_of(name), strict=True)
        ]
        self._notes = page.notes_of(name)
        self._noted = fold(draft.page, f"{plural(len(self._notes), 'note')}: no step changes this", self._heading)

    def put_problems(self) -> None:
        for problem in self._catalog.problems:
            if not self._draft.put(
                self._incomplete, f"- **incomplete:** {prose(problem.message, WHY)}\n", "listing problem"
            ):
                return

    def put_lists(self) -> None:
        for found in self._catalog.coverage:
            line = f"- table {code(dotted(found.ident))}: {prose(coverage_text(found), WHY)}\n"
            if not self._draft.put(self._lacking, line, LACKING_NOUN):
                break
        for noun, section, keys in self._lists:
            listed(self._draft, section, keys, noun, self._owners)
        for note in self._notes:
            if not self._draft.put(self._noted, f"- {named(note.key)}: {prose(note.message, WHY)}\n", "note"):
                return


def _rows(steps: Sequence[Step]) -> list[_Row]:
    """By rank; within a rank as in the plan."""
    found: dict[tuple[int, ObjectKey], _Row] = {}
    for step in steps:
        place_ = (_rank(step), step.key)
        found.setdefault(place_, _Row(*place_)).steps.append(step)
    return sorted(found.values(), key=lambda r: r.rank)


def _rank(step: Step) -> int:
    if step.verdict != "allowed":
        return 1 if step.verdict == "blocked" else 2
    if step.deletes or step.risk == "destructive":
        return 0
    return 3 if step.risk == "rewrite" else 4


def _kind(step: Step) -> str:
    """For the count of what is not shown: whoever reads it asks first whether something is lost in there."""
    lost = "" if step.deletes else "destructive "
    return f"{(lost, 'blocked ', 'unsupported ', '', '')[_rank(step)]}{step.action}"


def _word(r: _Row) -> str:
    first = r.steps[0]
    match r.rank:
        case 0:
            return "**delete**" if first.deletes else "**destructive**"
        case 1:
            words = sorted({s.blocked_by for s in r.steps if s.blocked_by})
            return f"**blocked** {', '.join(code(w) for w in words)}".rstrip()
        case 2:
            return "**unsupported**"
        case 3:
            return "rewrite"
    return "create" if any(a in NEW for a in r.actions) else "adopt" if "adopt" in r.actions else "update"


def _line(r: _Row, refused: str | None) -> str:
    """Why: what blocks it first; not of what is new and empty, which needs no reason; what refuses the whole plan is
    said above."""
    told = r.steps if r.rank < 4 or _EMPTY.isdisjoint(r.actions) else []
    why = "; ".join("refused, see above" if reason == refused else reason for reason in reasons_of(told))
    source = next((s.source for s in r.steps if s.source is not None), None)
    actions = ", ".join(code(a) for a in dict.fromkeys(r.actions))
    return row(_word(r), named(r.key), actions, prose(why, WHY), place(source))


def _has_details(r: _Row) -> bool:
    return any(next(details(s), None) is not None for s in r.steps)


def _details(r: _Row, limit: int) -> str:
    """Every line begins with a sign of ours, so no line can end the fence."""
    lines = [bounded(line, _LONGEST_LINE) for step in r.steps for line in details(step)]
    if not lines:
        return ""
    held = f" ({r.steps[0].verdict})" if r.steps[0].verdict != "allowed" else ""
    text = f"@@ {r.key.kind.lower()} {safe(bounded(dotted(r.key.ident)))}{held} @@\n"
    return text + "".join(_cut(lines, limit))


def _cut(lines: Sequence[str], limit: int) -> Iterator[str]:
    for number, line in enumerate(lines):
        limit -= len(line)
        if limit < 0:
            yield f"… {plural(len(lines) - number, 'more line')}\n"
            return
        yield f"{line}\n"
