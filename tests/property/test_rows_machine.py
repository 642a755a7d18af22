"""A team that fills a table from files, others who write to it with plain pylance, applies that get killed: rows of
unknown origin are neither mixed with ours nor replaced, and what is not ours stays as it is, byte by byte."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import lance
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from pipeline.external_runs import around_the_commit, cut_off, killed
from pipeline.filled_table import APPEND, EACH, REPLACE, filled, rows
from prop_rows import KEEPING, Content, ExternalWriter
from servers.spark import need_java

from reconciler.catalog.lance_data import CLAIM_KEY

pytestmark = pytest.mark.slow


def bytes_of(folder: Path) -> dict[str, str]:
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


class Rows(ExternalWriter, RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        need_java()
        self.folder = Path(tempfile.mkdtemp())
        self.files = [0]
        self.then, self.done, self.accounted = {}, frozenset(), []

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @initialize(mode=st.sampled_from([APPEND, REPLACE]))
    def begin(self, mode: str) -> None:
        self.table = filled(self.folder, _no_fixture, "dir-v1", mode, files=self.files)
        lance.write_dataset(rows(0), self.folder / "site" / "lake" / "theirs.lance")
        self.foreign = bytes_of(self.folder / "site" / "lake" / "theirs.lance")
        self.mixed = False
        self._ended_well()

    def source(self) -> Content:
        ids = (n for number in self.files for n in range(number * EACH, (number + 1) * EACH))
        return sorted((n, f"row {n}") for n in ids)

    def _follows(self, before: Content, now: Content) -> bool:
        """The source. Once the team took what others did to the rows (`mix_rows`), that stays, and new rows join it."""
        return all(row in now for row in before) if self.mixed else now == self.source()

    def _ended_well(self) -> None:
        self.accounted, self.done = self.content(), frozenset()
        self.remember()

    @property
    def lost(self) -> bool:
        """A claim is left: what a restore brought back, or a kill."""
        return CLAIM_KEY in self.table.dataset().metadata

    # -- the team ----------------------------------------------------------------------------------------------------

    @rule()
    def adds_a_file(self) -> None:
        self.files.append(max(self.files) + 1)
        self.table.source(self.files[-1])

    @rule()
    def applies(self) -> None:
        before, changed, kept = self.content(), self.changed, self.done <= KEEPING and not self.lost
        run = self.table.run("apply", "m.yaml", "--yes")
        if changed:
            assert run.code == 3, run.out
            assert self.content() == before
            assert (self.table.origin() or (False,))[0] is False
        elif kept or run.code == 0:
            assert run.code == 0, run.out
            assert self._follows(before, self.content())
            self._ended_well()
        else:
            assert run.code == 3, run.out
            assert self.content() == before
        self.remember()

    @rule(word=st.sampled_from(["mix_rows", "purge_data"]))
    def applies_with_a_word(self, word: str) -> None:
        before, changed, version = self.content(), self.changed, int(self.table.dataset().version)
        run = self.table.run("apply", "m.yaml", "--yes", "--allow", word)
        now = self.content()
        if run.code != 0:
            assert now == before, run.out
        elif word == "purge_data":
            self.mixed = self.mixed and not changed
            assert self._follows(before, now)
            self._ended_well()
        else:
            self.mixed = self.mixed or changed
            assert all(row in now for row in before) or not changed, run.out
            if now != before or not (changed or int(self.table.dataset().version) == version):
                self._ended_well()  # Without new rows nothing was recorded: the word is needed again.
        self.remember()

    @rule(landed=st.booleans())
    def applies_and_gets_killed(self, landed: bool) -> None:
        before, changed = self.content(), self.changed
        with cut_off(), around_the_commit(**{"after" if landed else "before": killed}):
            self.table.run("apply", "m.yaml", "--yes")
        now = self.content()
        assert now == before or (landed and not changed and self._follows(before, now))
        if now != before:
            self._ended_well()
        self.remember()

    @rule()
    def applies_while_others_append(self) -> None:
        """Right before the commit, after the last look at the rows."""
        before, changed, start = self.content(), self.changed, self._fresh()
        slipped: list[int] = []

        def slip() -> None:
            self.table.append(start)
            slipped.append(start)

        with around_the_commit(before=slip):
            run = self.table.run("apply", "m.yaml", "--yes")
        if slipped:
            assert run.code != 0, run.out
            theirs = [(n, f"theirs {n}") for n in range(start, start + EACH)]
            assert self.content() == sorted([*before, *theirs]), "nothing of ours beside it, nothing of theirs lost"
            self.remember("appends")
            return
        assert self.content() == before
        if run.code == 0 and not changed:
            self._ended_well()
        self.remember()

    # -- always ------------------------------------------------------------------------------------------------------

    @invariant()
    def what_is_not_ours_is_as_it_was(self) -> None:
        if hasattr(self, "foreign"):
            assert bytes_of(self.folder / "site" / "lake" / "theirs.lance") == self.foreign


def _no_fixture(name: str) -> Any:
    raise AssertionError(name)


TestRows = Rows.TestCase
TestRows.settings = settings(max_examples=max(2, settings().max_examples // 10), stateful_step_count=12)
