"""Others who write while a step is at work, and steps that are cut off: what is noted never covers rows of others."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pipeline.external_runs import around_the_commit, cut_off, killed
from pipeline.filled_table import APPEND, ONCE, REPLACE, FilledTable, Make, declared
from servers.spark import need_java

from reconciler.catalog import lance_write
from reconciler.catalog.lance_data import CLAIM_KEY, load_claim
from reconciler.pipeline import claims, write_task
from reconciler.pipeline.claims import Held

pytestmark = pytest.mark.slow
WORDS = {APPEND: "allow:mix_rows", REPLACE: "allow:purge_data"}
OURS, THEIRS = list(range(20)), list(range(100, 110))
BACKENDS = ["dir-v1", "rest"]


def _no_fixture(name: str) -> Any:
    raise AssertionError(name)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("mode", [APPEND, REPLACE])
def test_an_append_while_the_rows_are_read_stops_the_step(
    make: Make, mode: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    t = make(mode, name)
    t.source(2)
    write, done = write_task.write, [False]

    def meanwhile(unit: Any) -> Any:
        if not done[0]:
            done[0] = True
            t.append(100)
        return write(unit)

    monkeypatch.setattr(write_task, "write", meanwhile)
    run = t.run("apply", "m.yaml", "--yes")
    assert run.code != 0
    assert "while this step was at work: version" in run.out
    assert t.ids() == [*OURS, *THEIRS]
    assert CLAIM_KEY not in t.dataset().metadata
    assert t.blocked()[0] == WORDS[mode]


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("mode", [APPEND, REPLACE])
def test_an_append_right_before_the_commit_stops_the_step(make: Make, mode: str, name: str) -> None:
    """After the last look of ours: Lance refuses the commit."""
    t = make(mode, name)
    t.source(2)
    with around_the_commit(before=lambda: t.append(100)):
        run = t.run("apply", "m.yaml", "--yes")
    assert run.code != 0
    assert "while this step was at work: version" in run.out
    assert "added 10 rows" in run.out
    assert t.ids() == [*OURS, *THEIRS]
    assert CLAIM_KEY not in t.dataset().metadata
    assert t.dataset().tags.list() == {}, "no way back from nothing"
    assert t.blocked()[0] == WORDS[mode]
    t.apply("--allow", "purge_data")
    assert t.ids() == list(range(30))


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("mode", [APPEND, REPLACE])
def test_an_append_right_after_the_commit_is_shown_by_the_next_plan(make: Make, mode: str, name: str) -> None:
    t = make(mode, name)
    t.source(2)
    with around_the_commit(after=lambda: t.append(100)):
        t.apply()
    assert t.ids() == [*range(30), *THEIRS]
    word, reason = t.blocked()
    assert word == WORDS[mode]
    assert "added 10 rows" in reason
    assert reason.count("not by this tool") == 1, "our own commit is ours"
    assert (t.origin() or (None,))[0] is False
    t.source(3)
    t.apply(code=3)
    assert t.ids() == [*range(30), *THEIRS]


@pytest.mark.parametrize("mode", [ONCE, APPEND, REPLACE])
def test_the_first_rows_are_not_put_beside_those_of_others(tmp_path: Path, mode: str) -> None:
    """Into a table that was never filled, right before the commit."""
    need_java()
    t = declared(tmp_path, _no_fixture, "dir-v1", mode)
    with around_the_commit(before=lambda: t.append(100)):
        run = t.run("apply", "m.yaml", "--yes")
    assert run.code != 0
    assert "while this step was at work: version" in run.out
    assert t.ids() == THEIRS
    assert t.blocked()[0] == ("allow:purge_data" if mode == REPLACE else "data_unaccounted")
    t.dataset().delete("true")
    t.apply()
    assert t.ids() == OURS
    t.need_settled()


@pytest.mark.parametrize("mode", [APPEND, REPLACE])
def test_a_compaction_right_before_the_commit_costs_another_try(make: Make, mode: str) -> None:
    t = make(mode)
    t.source(2)
    with around_the_commit(before=lambda: t.dataset().optimize.compact_files()):
        t.apply()
    assert t.ids() == list(range(30))
    t.need_settled()


@pytest.mark.parametrize("mode", [APPEND, REPLACE])
@pytest.mark.parametrize("others", ["nobody", "after", "later"])
def test_a_run_that_is_cut_off_after_its_commit(make: Make, mode: str, others: str) -> None:
    t = make(mode)
    t.source(2)
    theirs = {others: lambda: t.append(100)} if others == "after" else {}
    with cut_off(), around_the_commit(**theirs):
        t.run("apply", "m.yaml", "--yes")
    if others == "later":
        t.append(100)
    assert CLAIM_KEY in t.dataset().metadata
    t.apply(code=0 if others == "nobody" else 3)  # The rows are noted.
    assert CLAIM_KEY not in t.dataset().metadata
    if others == "nobody":
        assert t.ids() == list(range(30))
        t.need_settled()
    else:
        assert t.ids() == [*range(30), *THEIRS]
        assert t.blocked()[0] == WORDS[mode]


@pytest.mark.parametrize("others", ["after", "later"])
def test_rows_that_are_taken_away_before_they_are_noted(make: Make, others: str) -> None:
    """What is left are the rows from before our commit, which the record of a commit names."""
    t = make(APPEND)
    t.source(2)
    with (
        cut_off() if others == "later" else nullcontext(),
        around_the_commit(after=lambda: t.dataset().delete("id >= 20")),
    ):
        t.run("apply", "m.yaml", "--yes")
    assert t.ids() == OURS
    t.apply(code=3)  # The record is noted.
    word, reason = t.blocked()
    assert word == "allow:mix_rows"
    assert "(Delete, " in reason
    assert (t.origin() or (None,))[0] is False


@pytest.mark.parametrize("mode", [ONCE, APPEND, REPLACE])
def test_the_first_rows_are_taken_away_before_they_are_noted(tmp_path: Path, mode: str) -> None:
    t = declared(tmp_path, _no_fixture, "dir-v1", mode)
    with around_the_commit(after=lambda: t.dataset().delete("true")):
        t.apply()
    assert t.ids() == []
    assert (t.origin() or (None,))[0] is False
    if mode != ONCE:
        assert t.blocked()[0] == "allow:purge_data"


@pytest.mark.parametrize("mode", [APPEND, REPLACE])
def test_a_run_that_is_cut_off_before_its_commit(make: Make, mode: str) -> None:
    t = make(mode)
    t.source(2)
    with cut_off(), around_the_commit(before=killed):
        t.run("apply", "m.yaml", "--yes")
    assert t.ids() == OURS
    assert CLAIM_KEY in t.dataset().metadata
    t.append(100)
    t.apply(code=3)
    assert t.ids() == [*OURS, *THEIRS]
    t.dataset().delete("id >= 100")
    t.apply()
    assert t.ids() == list(range(30))
    t.need_settled()


def test_a_purge_that_is_cut_off_is_done_once(make: Make) -> None:
    t = make(REPLACE, allow=["purge_data"])
    t.append(100)
    with cut_off():
        t.run("apply", "m.yaml", "--yes")
    assert t.ids() == OURS
    t.apply()
    t.need_settled()
    t.spec = {}
    t.need_settled()


def test_an_overwrite_that_our_commit_loses_against_is_not_replaced(make: Make) -> None:
    """The commit is tried again after a conflict, over another table by then."""
    t = make(REPLACE)
    t.source(2)
    with around_the_commit(before=lambda: t.overwrite(100)):
        run = t.run("apply", "m.yaml", "--yes")
    assert run.code != 0
    assert t.ids() == THEIRS
    assert t.blocked()[0] == WORDS[REPLACE]


@pytest.mark.parametrize("before", [True, False], ids=["rows-before-the-plan", "none-before"])
def test_mixing_goes_on_beside_a_busy_writer(make: Make, before: bool) -> None:
    t = make(APPEND, allow=["mix_rows"])
    if before:
        t.append(100)
    t.source(2)
    with around_the_commit(before=lambda: t.append(200), after=lambda: t.append(300)):
        t.apply()
    theirs = THEIRS if before else []
    assert t.ids() == [*range(30), *theirs, *range(200, 210), *range(300, 310)]
    assert t.plan() == []


def test_a_column_step_that_is_cut_off_before_the_record_follows(make: Make) -> None:
    """Lance's own commits of columns carry no names."""
    t = make(APPEND)
    t.columns[0]["type"] = "int32"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lance_write, "_sign", lambda *_: None)
        t.apply("--allow", "narrow_type")
    t.need_settled()
    t.columns.append({"name": "size", "type": "int32", "backfill": {"sql": "length(text)"}})
    with cut_off():
        t.run("apply", "m.yaml", "--yes")
    t.need_settled()


def test_what_was_claimed_is_looked_at_again(make: Make) -> None:
    """After the check before the run, before the claim."""
    t = make(APPEND)
    t.source(2)
    acquired = claims._acquired

    def late(*args: Any) -> Held:
        t.append(100)
        return acquired(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "_acquired", late)
        run = t.run("apply", "m.yaml", "--yes")
    assert run.code != 0
    assert "since the plan was made" in run.out
    assert t.ids() == [*OURS, *THEIRS]
    assert t.blocked()[0] == WORDS[APPEND]


def renewed_and_cleaned(t: FilledTable) -> None:
    """A step takes long, so that its claim is renewed, and another team keeps no old versions: the transaction that
    made the claim is gone."""
    live = t.dataset()
    claim = load_claim(live.metadata[CLAIM_KEY])
    assert claim is not None
    claims._written(t.place, live, {CLAIM_KEY: replace(claim, until=claim.until + 60).dumped()}, claim)
    t.dataset().cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)


@pytest.mark.parametrize("mode", [APPEND, REPLACE])
def test_versions_that_are_cleaned_up_in_a_step_that_fails(
    make: Make, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run knows that nothing of it is in, whatever became of the history."""
    t = make(mode)
    t.source(2)

    def fails(unit: Any) -> Any:
        renewed_and_cleaned(t)
        raise OSError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(write_task, "write", fails)
        assert t.run("apply", "m.yaml", "--yes").code != 0
    assert CLAIM_KEY not in t.dataset().metadata
    t.apply()
    assert t.ids() == list(range(30))
    t.need_settled()


@pytest.mark.parametrize("others", [True, False], ids=["rows-too", "cleanup-alone"])
def test_versions_that_are_cleaned_up_before_the_rows_are_noted(make: Make, others: bool) -> None:
    t = make(APPEND)
    t.source(2)

    def after() -> None:
        if others:
            t.append(100)
        renewed_and_cleaned(t)

    with around_the_commit(after=after):
        t.apply()
    assert CLAIM_KEY not in t.dataset().metadata
    if others:
        assert t.blocked()[0] == WORDS[APPEND]
    else:
        t.need_settled()


def test_versions_that_are_cleaned_up_after_columns_were_written(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    t = make(APPEND)
    t.columns.append({"name": "size", "type": "int32", "backfill": {"sql": "length(text)"}})
    give_back = claims._give_back

    def later(held: Held) -> None:
        renewed_and_cleaned(t)
        give_back(held)

    with monkeypatch.context() as patch:
        patch.setattr(claims, "_give_back", later)
        t.apply()
    assert CLAIM_KEY not in t.dataset().metadata
    assert set(t.dataset().to_table()["size"].to_pylist()) == {5, 6}
    t.need_settled()


@pytest.mark.parametrize("mode", [APPEND, REPLACE])
def test_columns_that_come_while_rows_are_written(make: Make, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `schemaMode: at_least` a writer may add columns at every moment: the files that were written stay good."""
    t = make(mode, schemaMode="at_least")
    t.source(2)
    write, added = write_task.write, [0]

    def meanwhile(unit: Any) -> Any:
        added[0] += 1
        t.dataset().add_columns({f"theirs{added[0]}": "id * 2"})
        return write(unit)

    monkeypatch.setattr(write_task, "write", meanwhile)
    t.apply()
    assert added[0]
    assert t.dataset().to_table().num_rows == 30
    assert t.ids() == list(range(30))
    t.need_settled()


@pytest.mark.parametrize("when", ["before", "meanwhile"])
@pytest.mark.parametrize("mode", [APPEND, REPLACE])
def test_a_column_without_nulls_that_we_have_no_values_for(
    make: Make, mode: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lance would take the rows, and the table could not be read any more."""
    t = make(mode, schemaMode="at_least")
    t.source(2)
    write, added = write_task.write, [False]

    def adds() -> None:
        if not added[0]:
            added[0] = True
            t.dataset().add_columns({"theirs": "coalesce(id, 1) * 2"})
            t.dataset().alter_columns({"path": "theirs", "nullable": False})

    def meanwhile(unit: Any) -> Any:
        adds()
        return write(unit)

    monkeypatch.setattr(write_task, "write", meanwhile)
    if when == "before":
        adds()
    run = t.run("apply", "m.yaml", "--yes")
    assert (run.code, "NOT NULL: theirs" in run.out) == (1, True), run.out
    assert t.dataset().to_table().num_rows == 20
    t.dataset().alter_columns({"path": "theirs", "nullable": True})
    t.apply()
    assert t.dataset().to_table().num_rows == 30
    t.need_settled()
