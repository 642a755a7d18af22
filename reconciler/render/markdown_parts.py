"""What the markdown of plans, reports, journals and diagnostics has in common: folds, lists, and the tally of cuts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from reconciler.core.text import plural
from reconciler.model.diagnostic import Diagnostic, Source, foremost
from reconciler.model.finding import Finding
from reconciler.model.ident import ObjectKey, dotted
from reconciler.render.bounded_page import Page, Section
from reconciler.render.safe_markdown import code, header, length, prose, row
from reconciler.render.safe_text import LONGEST_MESSAGE

LIMIT = 60_000
"""GitHub takes comments of 65,536 characters; whoever posts this adds a line or two."""
WHY = 400
"""Of a reason or a message in a table: its beginning and its end."""


class Tally:
    """What there is and what is shown of it, by kind: says exactly what was cut."""

    def __init__(self) -> None:
        self._total: dict[str, Counter[str]] = {}
        self._shown: dict[str, Counter[str]] = {}

    def expect(self, noun: str, kinds: Iterable[str]) -> None:
        self._total.setdefault(noun, Counter()).update(kinds)

    def show(self, noun: str, kinds: Iterable[str]) -> None:
        self._shown.setdefault(noun, Counter()).update(kinds)

    def lines(self, nothing_shown: bool = False) -> list[str]:
        """Those for what is not shown; with `nothing_shown`, the longest that they can be."""
        lines = []
        for noun, total in self._total.items():
            shown = Counter[str]() if nothing_shown else self._shown.get(noun, Counter())
            hidden = total - shown
            if hidden:
                kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(hidden.items()) if kind)
                cut = f"{hidden.total()} of {plural(total.total(), noun)}"
                lines.append(f"**{cut} not shown**{f': {kinds}' if kinds else ''}\n")
        return lines


def notice(lines: Sequence[str], advice: str) -> str:
    return f"{'<br>'.join(line.strip() for line in lines)}<br>{advice}\n\n" if lines else ""


class Draft:
    """A page with its head and its tally. The room for the notice of cuts is set aside before anything else."""

    def __init__(self, head: str, tally: Tally, limit: int, advice: str) -> None:
        self._head, self._advice = head, advice
        self.tally = tally
        self.page = Page(limit - length(head) - length(notice(tally.lines(nothing_shown=True), advice)))

    def put(self, section: Section, text: str, noun: str, kinds: Sequence[str] = ("",)) -> bool:
        if not self.page.put(section, text):
            return False
        self.tally.show(noun, kinds)
        return True

    def text(self) -> str:
        text = self._head + notice(self.tally.lines(), self._advice) + self.page.text()
        return text.rstrip("\n") + "\n"


def fold(page: Page, summary: str, under: Section | None = None, opened: bool = False, fence: bool = False) -> Section:
    """`summary` is ours, plain words and numbers: inside HTML nothing else is safe."""
    begin, end = ("```diff\n", "```\n\n") if fence else ("", "\n")
    tag = "<details open>" if opened else "<details>"
    return page.section(f"{tag}<summary>{summary}</summary>\n\n{begin}", f"{end}</details>\n\n", under)


def listed(
    draft: Draft,
    section: Section,
    keys: Iterable[ObjectKey],
    noun: str,
    owners: Mapping[ObjectKey, str] = MappingProxyType({}),
) -> None:
    for key in keys:
        owner = f", owned by {code(owners[key])}" if key in owners else ""
        if not draft.put(section, f"- {named(key)}{owner}\n", noun):
            return


def named(key: ObjectKey) -> str:
    return (
        f"{key.kind.lower() if key.kind in ('Namespace', 'Table') else code(str(key.kind))} {code(dotted(key.ident))}"
    )


def place(source: Source | None) -> str:
    return "" if source is None else code(f"{source.file}:{source.line}")


POLICY_HEADER = f"#### Policy\n\n{header('', 'object', 'finding', 'manifest')}"


def finding_row(f: Finding) -> str:
    word = "waived" if f.waiver is not None else "**refused**" if f.refuses else "warning"
    hint = f"; {prose(f.hint, WHY)}" if f.hint else ""
    waiver = f"; waived until {prose(f.waiver.until)}: {prose(f.waiver.reason, WHY)}" if f.waiver is not None else ""
    key = "" if f.key is None else f"{named(f.key)} in {code(f.key.catalog)}"
    return row(f"{word} {code(f.code)}", key, f"{prose(f.message, WHY)}{hint}{waiver}", place(f.source))


DIAGNOSTICS_HEADER = header("", "where", "problem", "hint")


def diagnostic_row(d: Diagnostic, word: str = "") -> str:
    """`word`: in place of the severity."""
    severity = word or ("**error**" if d.severity == "error" else "warning")
    hint = prose(d.hint, WHY) if d.hint else ""
    return row(f"{severity} {code(d.code)}", place(d.source), prose(d.message, WHY), hint)


def put_diagnostics(draft: Draft, section: Section, found: Iterable[Diagnostic], noun: str) -> None:
    for d in found:
        if not draft.put(section, diagnostic_row(d), noun, (d.severity,)):
            return


def diagnostics_markdown(
    found: Sequence[Diagnostic], documents: int | None = None, message: str = "", limit: int = LIMIT
) -> str:
    """What others may not do first, then errors. `message`: why there is nothing else to show."""
    errors = sum(1 for d in found if d.severity == "error")
    counts = [plural(errors, "error"), plural(len(found) - errors, "warning")]
    counts[:0] = [] if documents is None else [plural(documents, "document")]
    head = f"### {', '.join(counts)}\n\n" if found or not message else "### Error\n\n"
    head += f"**Error:** {prose(message, LONGEST_MESSAGE)}\n\n" if message else ""
    tally = Tally()
    tally.expect("problem", (d.severity for d in found))
    draft = Draft(head, tally, limit, "All of them are in the output of `reconciler validate`.")
    table = draft.page.section(DIAGNOSTICS_HEADER, "\n")
    put_diagnostics(draft, table, foremost(found), "problem")
    return draft.text()


def counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {what}" for what, n in counts.items() if n)
