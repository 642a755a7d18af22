"""The steps that give columns another type or forbid nulls, one for each column, and the indexes that they cost.

Lance binds an index to the column as it is: the commit that shows the column in its new type has no such index. So no
index is dropped beforehand. It goes with that commit, when the values are known to fit, and a declared one is built
again right after it; a step that fails leaves both as they were. Each column has steps of its own, so that one whose
values do not fit holds up no other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from reconciler.core.casts import rounds
from reconciler.core.diff_schema import Difference, ignore_rule
from reconciler.core.draft import Block, Drafter, allow_block
from reconciler.core.fields import bare, in_list, small_dictionary
from reconciler.core.kept_params import keeping
from reconciler.core.plan_index import rebuild_index, wanted_indexes, with_live_names
from reconciler.core.rewrite import rewritten
from reconciler.core.text import listing
from reconciler.model.arrow import ArrowType, Dictionary, Field
from reconciler.model.change import AlterColumns, Change, ColumnAlteration, RewriteColumns
from reconciler.model.codec import field_json
from reconciler.model.desired import DesiredTable
from reconciler.model.errors import Code, ReadError
from reconciler.model.plan import UNREADABLE, VALUES, Json, Risk
from reconciler.model.state import Index
from reconciler.model.values import ValueCheck, ValueFinding

RECIPE = (
    "declare a new column of that type with a `backfill`, apply, then let it replace this one: `renamedFrom` the new "
    "column, with `allow: [drop_column]`"
)


def needs_rewrite(x: Difference) -> bool:
    """Lance cannot do it in place."""
    return x.cast in ("rewrite", "never") or (x.kind == "missing" and "." in x.path)


def is_on(column: str, paths: Collection[str]) -> bool:
    return any(column == p or column.startswith(p + ".") for p in paths)


class Casts:
    def __init__(self, d: Drafter, want: DesiredTable) -> None:
        self.d = d
        self.want = want
        self._again: dict[str, Index] = {}
        """Declared indexes that a new type takes away, by the names they have."""

    def rewrite(self, name: str, found: Sequence[Difference]) -> None:
        """A whole column that Lance cannot change in place."""
        want, d = self.want, self.d
        rule = ignore_rule(want.ignore_differences)
        live = next(f for f in d.dataset.fields if f.name == name)
        new = next(rewritten(f, live, rule, name) for f in want.fields or () if f.name == name)
        before: Json = {"columns": [field_json(live)]}
        if d.dataset.empty:
            self._on_no_rows(name, [(name, bare(live.type), bare(new.type))])
            return
        lost, note = self._lost([name])
        reason = f"Lance cannot change {name} in place: the column is written anew"
        change = RewriteColumns(want.ident, (new,), tuple(i.name for i in lost))
        never = [x for x in found if x.cast == "never"]
        if never and d.block is None:
            why = "; ".join(f"{x.path}: no {_types(x)[0]} can be made {_types(x)[1]}" for x in never)
            d.refuse(change, "rewrite", Block("", f"{why}, and the table has rows: {RECIPE}", "unsupported"), before)
            return
        inexact = rounds(live.type, new.type)
        if inexact:
            reason = f"{reason}; {new.type} does not have all digits of {live.type}: values are rounded"
        risk: Risk = "destructive" if inexact else "rewrite"
        word = "narrow_type" if inexact else None
        self._propose(change, risk, reason + note, before, word, lost, [ValueCheck(name, bare(new.type))])

    def in_place(self, found: Sequence[Difference]) -> None:
        """Casts that pylance does itself. What cannot fail and costs no index is one step."""
        free = [x for x in found if x.cast == "widen" and not self._indexes([x.path])]
        if free:
            self._cast(free, [])
        for column, these in _by_column([x for x in found if x not in free]):
            self._cast(these, [ValueCheck(x.path, _types(x)[1]) for x in these if x.cast == "narrow"])
            self.build_indexes(column)

    def _cast(self, these: Sequence[Difference], checks: list[ValueCheck]) -> None:
        types = [(x.path, *_types(x)) for x in these]
        if checks and self.d.dataset.empty:
            self._on_no_rows(these[0].column, types)
            return
        paths = [x.path for x in these]
        lost, note = self._lost([these[0].column]) if self._indexes(paths) else ((), "")
        columns = tuple(ColumnAlteration(path, type=new) for path, _, new in types)
        before: Json = {"columns": {path: str(old) for path, old, _ in types}}
        reason = f"{'narrower' if checks else 'wider'} type: {_told(types)}{note}"
        change = AlterColumns(self.want.ident, columns, tuple(i.name for i in lost))
        risk: Risk = "destructive" if checks else "rewrite"
        if checks and (deep := next((x for x in these if self._hidden_dictionary(x)), None)) and self.d.block is None:
            why = (
                f"{deep.path}: Lance cannot read the dictionaries with a small index that it makes inside of lists: "
                f"declare the index int32; {reason}"
            )
            self.d.refuse(change, risk, Block("", why, "unsupported"), before)
            return
        self._propose(change, risk, reason, before, "narrow_type" if checks else None, lost, checks)

    def _hidden_dictionary(self, x: Difference) -> bool:
        """One that is new in a list, where the plan cannot count its values."""
        new = _types(x)[1]
        if isinstance(new, Dictionary):
            return new.room is not None and in_list(self.d.dataset.fields, x.path)
        return small_dictionary(new) is not None

    def _on_no_rows(self, column: str, types: Sequence[tuple[str, ArrowType, ArrowType]]) -> None:
        """Nothing can be lost and nothing can fail: any type will do."""
        lost, note = self._lost([column])
        columns = tuple(ColumnAlteration(path, type=new) for path, _, new in types)
        change = AlterColumns(self.want.ident, columns, tuple(i.name for i in lost), empty=True)
        before: Json = {"columns": {path: str(old) for path, old, _ in types}}
        reason = f"another type: {_told(types)}; the table has no rows{note}"
        self._propose(change, "rewrite" if lost else "metadata", reason, before, None, lost, [])

    def nullability(self, found: Sequence[Difference]) -> None:
        """Nulls that become allowed are one step, but a column whose cast comes first, which may fail, has its own, and
        so has each column that is to have none any more."""
        cast = {name for draft in self.d.drafts for name in _cast_by(draft.change)}
        freed = [x for x in found if _wanted(x).nullable]
        if together := [x.path for x in freed if x.column not in cast]:
            self._nullable(together, True, None)
        for _, these in _by_column([x for x in freed if x.column in cast]):
            self._nullable([x.path for x in these], True, None)
        for _, these in _by_column([x for x in found if not _wanted(x).nullable]):
            self._nullable([x.path for x in these], False, "set_not_null")

    def _nullable(self, paths: Sequence[str], nullable: bool, word: str | None) -> None:
        columns = tuple(ColumnAlteration(p, nullable=nullable) for p in paths)
        reason = f"{listing([*paths])}: " + ("nulls allowed" if nullable else "no nulls allowed any more")
        before: Json = {"columns": {p: {"nullable": not nullable} for p in paths}}
        change = AlterColumns(self.want.ident, columns)
        checks = [] if nullable or self.d.dataset.empty else [ValueCheck(p) for p in paths]
        self._propose(change, "metadata", reason, before, word, (), checks)

    def _propose(
        self,
        change: AlterColumns | RewriteColumns,
        risk: Risk,
        reason: str,
        before: Json,
        word: str | None,
        lost: Sequence[Index],
        checks: Sequence[ValueCheck],
    ) -> None:
        """Values that cannot be read or do not fit, and an index that would be lost for good, hold the step back. None
        is asked for before the step could run."""
        d = self.d
        declared = self._declared()
        foreign = [i.name for i in lost if i.name not in declared or _is_another(declared[i.name], i)]
        if d.block is None and d.may(change, word):
            if unread := next((f.unread for c in checks if (f := self._finding(c)) is not None and f.unread), None):
                error = ReadError(Code.INVALID_TABLE_STATE, unread)
                d.refuse(change, risk, Block(UNREADABLE, f"{unread}; {reason}", error=error), before)
                return
            if problem := self._misfits(checks):
                d.refuse(change, risk, Block(VALUES, f"{problem}; {reason}"), before)
                return
            if foreign and "drop_index" not in d.allow:
                stuck = allow_block(d, "drop_index")
                why = f"{stuck.reason}; index {listing(foreign)} is not declared and would be lost; {reason}"
                d.refuse(change, risk, replace(stuck, reason=why), before)
                return
        risk = "destructive" if foreign else risk
        if d.propose(change, risk, reason + self._unread(checks), before, word, ["drop_index"] if foreign else ()):
            self._again |= {i.name: keeping(declared[i.name], i) for i in lost if i.name in declared}

    def _declared(self) -> dict[str, Index]:
        named = with_live_names(self.want, self.d.dataset)
        return {i.name: i for i in wanted_indexes(named)}

    def _indexes(self, paths: Collection[str]) -> list[Index]:
        return [i for i in sorted(self.d.dataset.indexes, key=lambda i: i.name) if is_on(i.column, paths)]

    def _lost(self, columns: Sequence[str]) -> tuple[Sequence[Index], str]:
        """The indexes that go with the commit, and what the plan says about those that come back."""
        lost = self._indexes(columns)
        declared = self._declared()
        again = [i.name for i in lost if i.name in declared]
        return lost, f"; index {listing(again)} goes with the old column and is built again afterwards" if again else ""

    def build_indexes(self, column: str | None = None) -> None:
        """Right after the last step that gives the column another type: the table is without them no longer than it has
        to be. None: all that are left. What does not fit its column yet waits for that column's step, or for the end:
        `create_indexes` says why it cannot be built."""
        again = {n: i for n, i in self._again.items() if column is None or is_on(i.column, [column])}
        there = {i.name for i in self.d.dataset.indexes}
        for name, index in sorted(again.items()):
            if name in there or rebuild_index(self.d, self.want, index):
                del self._again[name]

    def _finding(self, check: ValueCheck) -> ValueFinding | None:
        return self.d.context.snapshot.values.get((self.want.ident, check))

    def _misfits(self, checks: Sequence[ValueCheck]) -> str | None:
        """What the values say against it, as far as they were read."""
        found = [(check, f) for check in checks if (f := self._finding(check)) is not None and f.misfits]
        if not found:
            return None
        hint = "change these values first" if found[0][0].type is None else f"change these values, or {RECIPE}"
        return f"{'; '.join(_said(check, finding) for check, finding in found)}: {hint}"

    def _unread(self, checks: Sequence[ValueCheck]) -> str:
        """Of a table too large for plan to read: the step checks every value before it commits anything."""
        partly = [f for check in checks if (f := self._finding(check)) is not None and not f.complete]
        if not partly:
            return ""
        return f"; plan read {partly[0].rows:,} rows, and they fit: apply reads all of them before it commits"


def _is_another(declared: Index, live: Index) -> bool:
    """Somebody else's, under the declared name."""
    return live.external and (declared.column, declared.type) != (live.column, live.type)


def _said(check: ValueCheck, finding: ValueFinding) -> str:
    rows = f"{finding.rows:,}" if finding.complete else f"the first {finding.rows:,}"
    room = check.type.room if isinstance(check.type, Dictionary) else None
    fits = "is no" if room is None else "does not fit into"
    what = "no value" if check.type is None else f"a value that {fits} {check.type}"
    examples = f", for instance {', '.join(finding.examples)}" if finding.examples else ""
    verb = "has" if finding.misfits == 1 else "have"
    why = "" if room is None else f" (Lance counts the values of each batch anew, up to {room:,}: use index int32)"
    return f"column {check.path}: {finding.misfits:,} of {rows} rows {verb} {what}{why}{examples}"


def _told(types: Sequence[tuple[str, ArrowType, ArrowType]]) -> str:
    return listing([f"{path} {old} -> {new}" for path, old, new in types])


def _wanted(x: Difference) -> Field:
    assert x.want is not None
    return x.want


def _types(x: Difference) -> tuple[ArrowType, ArrowType]:
    """Live and wanted, as compared."""
    assert x.live is not None
    return bare(x.live.type), bare(_wanted(x).type)


def _cast_by(change: Change) -> set[str]:
    """The columns that a step gives another type."""
    match change:
        case RewriteColumns():
            return {f.name for f in change.fields}
        case AlterColumns():
            return {a.path.partition(".")[0] for a in change.columns if a.type is not None}
    return set()


def _by_column(found: Sequence[Difference]) -> Iterator[tuple[str, list[Difference]]]:
    for column, these in groupby(sorted(found, key=lambda x: x.column), key=lambda x: x.column):
        yield column, list(these)
