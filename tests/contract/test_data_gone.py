"""A table of ours whose entry stands and whose data is gone: an empty table in its place would hide that, so it takes
an allow word, as where the entry is gone too (test_recreate.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contract.backends import BACKENDS, Backend
from contract.conftest import _param
from contract.lake import US, Doc, Lake, held_back, steps, table
from contract.outsider_dir import DirOutsider
from contract.sample import FOREIGN, FOREIGN_ROWS

COLUMNS = {f.name: str(f.type) for f in FOREIGN}
WORD = frozenset({"recreate"})


@pytest.fixture(params=[_param(b) for b in BACKENDS if b.rows and b.name != "dir-v1"])
def standing(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """Backends whose entry is not the folder itself."""
    backend: Backend = request.param
    return Lake(backend, backend.make(tmp_path, request.getfixturevalue), tmp_path)


def declared(lake: Lake, **spec: Any) -> list[Doc]:
    """Two tables: beside an empty folder nothing proves that no disk is missing."""
    return [*lake.home(), *(table(lake.t(name), COLUMNS, **spec) for name in "tu")]


def lose(lake: Lake) -> list[Doc]:
    docs = declared(lake)
    lake.reach(docs)
    lake.outsider.append(lake.t("t"), FOREIGN_ROWS)
    lake.outsider.data_of(lake.t("t"))
    lake.outsider.lose(lake.t("t"))
    return docs


def words(lake: Lake) -> frozenset[str]:
    return lake.words | WORD


def test_it_is_not_made_empty_in_silence(standing: Lake) -> None:
    docs = lose(standing)
    plan = standing.plan(docs)
    assert held_back(plan) == [("create_dataset", standing.t("t"), "blocked", "allow:recreate")]
    assert "it existed at " in plan.steps[0].reason
    assert "its data is gone; it would be created empty" in plan.steps[0].reason
    assert plan.catalogs["lake"].problems == ()
    assert standing.unchanged_by(lambda: standing.apply(plan)).outcome == "refused"


def test_with_the_word_it_is_made_empty_at_its_place_and_is_ours(standing: Lake) -> None:
    docs = lose(standing)
    where = standing.outsider.data_of(standing.t("u"))
    assert steps(standing.plan(docs, allow=words(standing))) == [("create_dataset", standing.t("t"))]
    standing.reach(docs, allow=words(standing))
    standing.reach(docs)
    found = standing.outsider.state().tables[standing.t("t")]
    assert (found.rows, found.owner) == ([], US)
    assert standing.outsider.data_of(standing.t("u")) == where
    standing.reach([*standing.home(), table(standing.t("u"), COLUMNS)], prune=True, allow=words(standing))


def test_the_word_in_the_manifest_counts_too(standing: Lake) -> None:
    lose(standing)
    standing.reach(declared(standing, allow=["recreate"]))


def test_data_that_came_back_is_left_as_it_is(standing: Lake) -> None:
    docs = lose(standing)
    again = standing.copy()
    plan = again.plan(docs, allow=words(standing))
    again.apply(plan)
    again.outsider.append(again.t("t"), FOREIGN_ROWS)
    assert again.unchanged_by(lambda: again.apply(plan)).outcome in ("applied", "no_changes", "stale")
    assert again.plan(docs).steps == ()


def test_prune_does_not_take_it(standing: Lake) -> None:
    lose(standing)
    plan = standing.plan([*standing.home(), table(standing.t("u"), COLUMNS)], prune=True, allow=words(standing))
    assert held_back(plan) == [("deregister_table", standing.t("t"), "blocked", "unreadable")]
    standing.unchanged_by(lambda: standing.apply(plan))


def test_of_another_owner_it_is_theirs(standing: Lake) -> None:
    docs = lose(standing)
    standing.management = {"owner": "another-team"}
    options: dict[str, Any]
    for options in ({}, {"adopt": True}, {"take_over": frozenset({US}), "adopt": True}):
        plan = standing.plan(docs, allow=words(standing), **options)
        held = {h[2:] for h in held_back(plan) if h[1] == standing.t("t")}
        assert held == {("blocked", "unreadable")}
        if not options:
            standing.unchanged_by(lambda plan=plan: standing.apply(plan))  # type: ignore[misc]


def test_what_is_left_in_the_folder_is_not_written_over(standing: Lake) -> None:
    """Somebody's file there: it is not gone without a trace."""
    docs = lose(standing)
    if isinstance(standing.outsider, DirOutsider):
        standing.outsider.files.write(f"{standing.outsider.folder(standing.t('t'))}/notes.txt", b"mine")
    else:
        place = standing.outsider.place(standing.t("t"))  # type: ignore[attr-defined]
        place.mkdir(exist_ok=True)
        (place / "notes.txt").write_bytes(b"mine")
    plan = standing.plan(docs, allow=words(standing))
    assert [h[2:] for h in held_back(plan)] == [("blocked", "unreadable")]
    standing.unchanged_by(lambda: standing.apply(plan))


def test_a_folder_that_vanishes_after_the_plan_was_made_is_not_filled(standing: Lake) -> None:
    """The plan said nothing of lost data: whoever reviewed it did not agree to an empty table."""
    standing.reach([*standing.home(), table(standing.t("t")), table(standing.t("u"), COLUMNS)])
    plan = standing.plan(declared(standing), allow=words(standing))
    assert steps(plan) == [("create_dataset", standing.t("t"))]
    standing.outsider.data_of(standing.t("t"))
    standing.outsider.lose(standing.t("t"))
    report = standing.unchanged_by(lambda: standing.apply(plan))
    assert report.outcome not in ("applied", "no_changes")
