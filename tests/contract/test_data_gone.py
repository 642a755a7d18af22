"""A table of ours whose entry stands and whose data is gone: an empty table in its place would hide that, so it takes
an allow word, as where the entry is gone too (test_recreate.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from contract.backends import BACKENDS, Backend
from contract.conftest import _param
from contract.lake import US, Doc, Lake, held_back, steps, table
from contract.outsider_dir import DirOutsider
from contract.outsider_service import ServiceOutsider
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
    take_away(lake)
    return docs


def take_away(lake: Lake) -> Callable[[], object]:
    """The data of `t`; gives how to bring it back."""
    outsider = lake.outsider
    if isinstance(outsider, DirOutsider):
        files, folder = outsider.files, outsider.folder(lake.t("t"))
        kept = {path: files.read(path) for path in files.all() if path.startswith(f"{folder}/")}
        files.remove(folder)
        return lambda: [files.write(path, data) for path, data in kept.items()]
    assert isinstance(outsider, ServiceOutsider)
    place, aside = outsider.place(lake.t("t")), lake.folder / "aside"
    place.rename(aside)
    return lambda: aside.rename(place)


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
    docs = declared(standing, allow=["recreate"])
    (step,) = standing.plan(docs).steps
    assert [p.word for p in step.permissions] == ["recreate"]
    standing.reach(docs)


def test_data_that_comes_back_after_the_plan_was_made_is_left_as_it_is(standing: Lake) -> None:
    docs = declared(standing)
    standing.reach(docs)
    standing.outsider.append(standing.t("t"), FOREIGN_ROWS)
    put_back = take_away(standing)
    plan = standing.plan(docs, allow=words(standing))
    assert steps(plan) == [("create_dataset", standing.t("t"))]
    put_back()
    assert standing.unchanged_by(lambda: standing.apply(plan)).outcome in ("applied", "no_changes", "stale")
    assert standing.plan(docs).steps == ()


def test_other_data_that_is_put_there_after_the_plan_was_made_makes_it_stale(standing: Lake) -> None:
    docs = declared(standing)
    standing.reach(docs)
    standing.outsider.mark_data(standing.t("t"), "another-team")
    put_back = take_away(standing)
    plan = standing.plan(docs, allow=words(standing))
    put_back()
    assert standing.unchanged_by(lambda: standing.apply(plan)).outcome == "stale"


def test_prune_does_not_take_it(standing: Lake) -> None:
    lose(standing)
    plan = standing.plan([*standing.home(), table(standing.t("u"), COLUMNS)], prune=True, allow=words(standing))
    assert held_back(plan) == [("deregister_table", standing.t("t"), "blocked", "unreadable")]
    standing.unchanged_by(lambda: standing.apply(plan))


@pytest.mark.parametrize("mark", [None, "another-team"])
def test_prune_leaves_an_entry_whose_data_somebody_replaced(standing: Lake, mark: str | None) -> None:
    """Data without our mark is not ours, whatever the entry says; a manifest can still name what is to go."""
    lose(standing)
    outsider, ident = standing.outsider, standing.t("t")
    if isinstance(outsider, DirOutsider):
        where, options = outsider.files.uri(outsider.folder(ident)), outsider.files.options
    else:
        assert isinstance(outsider, ServiceOutsider)
        where, options = str(outsider.place(ident)), {}
    lance.write_dataset(pa.Table.from_pylist(FOREIGN_ROWS, schema=FOREIGN), where, storage_options=options or None)
    if mark is not None:
        outsider.mark_data(ident, mark)
    plan = standing.plan([*standing.home(), table(standing.t("u"), COLUMNS)], prune=True)
    assert plan.steps == ()
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
        assert isinstance(standing.outsider, ServiceOutsider)
        place = standing.outsider.place(standing.t("t"))
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
    take_away(standing)
    report = standing.unchanged_by(lambda: standing.apply(plan))
    assert report.outcome not in ("applied", "no_changes")


@pytest.mark.parametrize("backend", [_param(b) for b in BACKENDS if b.name in ("dir-v2", "dir-default-root", "unity")])
def test_where_a_disk_may_be_missing_nothing_is_called_gone(
    backend: Backend, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """An empty folder in the place of the table may be the mount point of its own disk."""
    lake = Lake(backend, backend.make(tmp_path, request.getfixturevalue), tmp_path)
    docs = declared(lake)
    lake.reach(docs)
    put_back = take_away(lake)
    outsider = lake.outsider
    place = Path(outsider.files.uri(outsider.folder(lake.t("t")))) if isinstance(outsider, DirOutsider) else None
    if isinstance(outsider, ServiceOutsider):
        place = outsider.place(lake.t("t"))
    assert place is not None
    place.mkdir()
    plan = lake.plan(docs, allow=words(lake))
    assert [h[2:] for h in held_back(plan)] == [("blocked", "unreadable")]
    assert "may be the mount point of a disk that is not mounted" in plan.steps[0].reason
    lake.unchanged_by(lambda: lake.apply(plan))
    assert [*place.iterdir()] == []
    place.rmdir()
    assert steps(lake.plan(docs, allow=words(lake))) == [("create_dataset", lake.t("t"))]
    put_back()
    assert lake.plan(docs).steps == ()
