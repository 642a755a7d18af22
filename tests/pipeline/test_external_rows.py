"""Rows that others wrote into a table which we fill: they are seen, neither replaced nor added to without the word, and
what keeps the rows counts as nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation
from lance.file import LanceFileWriter
from lance.fragment import DataFile
from pipeline.external_runs import killed
from pipeline.filled_table import APPEND, ONCE, REPLACE, FilledTable, Make, filled, rows
from pipeline.maintain_lake import later

from reconciler.catalog import lance_rows
from reconciler.catalog.lance_data import CLAIM_KEY, RECORD_KEY, load_record
from reconciler.pipeline import claims, materialize

pytestmark = pytest.mark.slow
EVERYWHERE = ["dir-v2", "dir-s3", "rest", "iceberg", "unity", "glue"]
OURS = list(range(20))


# what others do, with plain pylance


def deletes(t: FilledTable) -> None:
    t.dataset().delete("id = 3")


def deletes_a_file(t: FilledTable) -> None:
    t.dataset().delete("id < 10")


def updates(t: FilledTable) -> None:
    t.dataset().update({"text": "'theirs'"}, where="id = 3")


def upserts(t: FilledTable) -> None:
    t.dataset().merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(15))


def inserts(t: FilledTable) -> None:
    t.dataset().merge_insert("id").when_not_matched_insert_all().execute(rows(100))


def empties(t: FilledTable) -> None:
    t.dataset().delete("true")


def restores_theirs(t: FilledTable) -> None:
    """Their rows are taken away, and come back."""
    t.append(100)
    with_theirs = t.dataset().version
    t.dataset().delete("id >= 100")
    t.dataset(with_theirs).restore()


def replaces_values(t: FilledTable) -> None:
    """Files of the same rows with other values, under the same fragments."""
    live = t.dataset()
    groups = []
    for fragment in live.get_fragments():
        path = f"theirs-{fragment.fragment_id}.lance"
        values = pa.table({"id": [-1] * fragment.count_rows(), "text": ["theirs"] * fragment.count_rows()})
        with LanceFileWriter(f"{live.uri}/data/{path}", schema=values.schema) as writer:
            writer.write_batch(values)
        old = fragment.metadata.files[0]
        new = DataFile(path, old.fields, old.column_indices, old.file_major_version, old.file_minor_version)
        groups.append(LanceOperation.DataReplacementGroup(fragment.fragment_id, new))
    LanceDataset.commit(live.uri, LanceOperation.DataReplacement(groups), read_version=live.version)


def writes_a_column_anew(t: FilledTable) -> None:
    """As long as it takes for nobody to miss it."""
    t.dataset().add_columns({"theirs": "text || ' theirs'"})
    t.dataset().drop_columns(["text"])
    t.dataset().alter_columns({"path": "theirs", "name": "text"})


def swaps_columns_after_cleanup(t: FilledTable) -> None:
    """Of the version that the record names nothing is left."""
    t.dataset().cleanup_old_versions(older_than=timedelta(0))
    drops_and_adds(t)


def drops_and_adds(t: FilledTable) -> None:
    t.dataset().drop_columns(["text"])
    adds(t)


def adds(t: FilledTable) -> None:
    t.dataset().add_columns({"text": "'theirs'"})
    t.dataset().alter_columns({"path": "text", "nullable": True})


def drops_and_adds_nulls(t: FilledTable) -> None:
    """No file is written: all fragments are as they were."""
    t.dataset().drop_columns(["text"])
    t.dataset().add_columns(pa.field("text", pa.string()))


def drops_and_cleans_up_and_adds(t: FilledTable) -> None:
    t.dataset().drop_columns(["text"])
    t.dataset().cleanup_old_versions(older_than=timedelta(0))
    adds(t)


def deletes_all_and_appends(t: FilledTable) -> None:
    t.dataset().delete("true")
    t.append(100)


def hides_it_behind_a_compaction(t: FilledTable) -> None:
    t.append(100)
    t.dataset().optimize.compact_files()


def changes_after_cleanup(t: FilledTable) -> None:
    t.append(100)
    t.dataset().optimize.compact_files()
    t.dataset().cleanup_old_versions(older_than=timedelta(0))


def makes_it_anew(t: FilledTable, versions: int = 0) -> None:
    """Another dataset in its folder, with all of its metadata: a tool that copies tables does so."""
    old = t.dataset()
    metadata = dict(old.metadata)
    shutil.rmtree(old.uri)
    lance.write_dataset(rows(100, text="theirs"), old.uri).update_metadata(metadata)
    for _ in range(versions):
        t.dataset().update_config({"theirs": "1"})


def _as_if(t: FilledTable, **properties: str) -> None:
    named = {f"reconciler.{name}": value for name, value in properties.items()}
    live = t.dataset()
    lance.write_dataset(rows(100, text="theirs"), live.uri, mode="append", transaction_properties=named)


def appends_with_our_names(t: FilledTable) -> None:
    _as_if(t, plan="x", step="y")


def appends_as_another_team(t: FilledTable) -> None:
    _as_if(t, plan="sha256:00", step="s1", owner="them", run="0123")
    _as_if(t, plan="sha256:00", step="s1", owner="them")


def appends_with_copied_properties(t: FilledTable) -> None:
    """Of our own commit of rows."""
    (ours,) = (x for x in t.dataset().get_transactions(20) if RECORD_KEY in (x.transaction_properties or {}))
    live = t.dataset()
    copied = {**ours.transaction_properties, "reconciler.owner": "us"}
    lance.write_dataset(rows(100, text="theirs"), live.uri, mode="append", transaction_properties=copied)


EXTERNAL = [
    lambda t: t.append(100), lambda t: t.overwrite(100), deletes, deletes_a_file, updates, upserts, inserts, empties,
    restores_theirs, replaces_values, writes_a_column_anew, deletes_all_and_appends, hides_it_behind_a_compaction,
    changes_after_cleanup, swaps_columns_after_cleanup, drops_and_adds_nulls, drops_and_cleans_up_and_adds,
    appends_with_our_names, appends_as_another_team, appends_with_copied_properties,
    makes_it_anew, lambda t: makes_it_anew(t, t.dataset().version + 3),
]  # fmt: skip
NAMES = [
    "append", "overwrite", "delete", "delete-a-file", "update", "upsert", "insert", "empty",
    "restore", "values", "column", "delete-and-append", "compacted", "cleaned-up",
    "column-after-cleanup", "column-of-nulls", "column-around-cleanup", "our-names", "another-team",
    "copied-properties", "anew", "anew-with-history",
]  # fmt: skip


@pytest.mark.parametrize("mode", [APPEND, REPLACE])
@pytest.mark.parametrize("change", EXTERNAL, ids=NAMES)
def test_what_others_changed_is_neither_replaced_nor_added_to(
    make: Make, mode: str, change: Callable[[FilledTable], None]
) -> None:
    t = make(mode)
    change(t)
    live, version = t.dataset().to_table().sort_by("id"), t.dataset().version
    word, _ = t.blocked()
    gone = live.num_rows == 0 or live["id"][0].as_py() == 100
    assert word == ("allow:mix_rows" if mode == APPEND and not gone else "allow:purge_data")
    t.source(2)
    t.blocked()
    t.apply(code=3)
    assert t.dataset().version == version, "not even a claim was written"
    assert t.dataset().to_table().sort_by("id") == live
    ok, detail = t.origin() or (None, "")
    assert ok is False
    assert detail


@pytest.mark.parametrize("name", EVERYWHERE)
@pytest.mark.parametrize("mode", [APPEND, REPLACE])
def test_in_every_catalog(make: Make, name: str, mode: str) -> None:
    t = make(mode, name)
    t.need_settled()
    t.append(100)
    t.source(2)
    word, reason = t.blocked()
    assert word == ("allow:mix_rows" if mode == APPEND else "allow:purge_data")
    assert "Append" in reason
    t.apply(code=3)
    assert t.ids() == [*OURS, *range(100, 110)]
    t.overwrite(200)
    word, reason = t.blocked()
    assert word == "allow:purge_data"
    assert "Overwrite" in reason
    t.apply(code=3)
    assert t.ids() == list(range(200, 210))
    ok, told = t.origin() or (None, "")
    assert (ok, told in reason, "Overwrite" in told) == (False, True, True)
    t.spec = {"allow": ["purge_data"]}
    t.apply()
    assert t.ids() == list(range(30))
    t.need_settled()


@pytest.mark.parametrize("name", EVERYWHERE)
@pytest.mark.parametrize("mode", [APPEND, REPLACE, ONCE])
def test_another_dataset_in_the_place_of_ours_is_told(make: Make, name: str, mode: str) -> None:
    """It has neither our mark nor a record: no step touches it, and `verify` does not take its rows for ours."""
    t = make(mode, name)
    place = t.place
    options = dict(place.storage_options) or None
    lance.LanceDataset.drop(place.uri, storage_options=options)
    lance.write_dataset(rows(100).slice(0, 0), place.uri, storage_options=options)
    assert t.origin() is None, "there is no row to account for"
    lance.write_dataset(rows(100), place.uri, mode="append", storage_options=options)
    assert t.origin() == (False, "the table has rows, and no record says where they came from")
    t.spec = {"allow": ["mix_rows"]}
    assert (t.origin() or (None,))[0] is False
    assert t.run("apply", "m.yaml", "--yes").code == 3
    assert t.ids() == list(range(100, 110))


def test_the_reason_names_version_time_and_rows(make: Make) -> None:
    t = make(APPEND)
    t.append(100)
    version = t.dataset().version
    _, reason = t.blocked()
    assert f"; version {version} (Append, 2" in reason
    assert " UTC, not by this tool) added 10 rows; " in reason
    assert "`mix_rows` leaves the rows as they are" in reason
    when = t.dataset().versions()[-1]["timestamp"].astimezone(UTC)
    assert f"{when:%Y-%m-%d %H:%M} UTC" in reason
    text = t.run("plan", "m.yaml").out
    assert f"version {version} (Append" in text
    t.overwrite(200)
    _, reason = t.blocked()
    assert "(Overwrite, " in reason
    assert "replaced all rows by 10 rows; the rows of 2 files are no longer there" in reason


def test_purge_data_replaces_them_and_the_version_before_is_tagged(make: Make) -> None:
    t = make(REPLACE)
    t.append(100)
    before = t.dataset().version
    done = t.apply("--allow", "purge_data", "--format", "json").json
    (step,) = done["steps"]
    assert step["status"] == "done"
    assert t.dataset().tags.list()[step["tag"]]["version"] == before
    assert t.ids() == OURS
    t.need_settled()
    t.append(100)
    assert t.blocked()[0] == "allow:purge_data", "what was allowed is done"


def test_purge_data_fills_an_appended_table_anew(make: Make) -> None:
    t = make(APPEND)
    t.overwrite(100)
    t.source(2)
    t.apply("--allow", "purge_data")
    assert t.ids() == list(range(30))
    t.need_settled()
    t.source(3)
    t.apply()
    assert t.ids() == list(range(40)), "each file once"


def test_rows_of_files_that_are_gone_are_not_given_up(make: Make) -> None:
    """They are in the table and nowhere else."""
    t = make(APPEND)
    (t.folder / "raw" / "0.parquet").unlink()
    t.append(100)
    t.spec = {"allow": ["purge_data"]}
    word, reason = t.blocked()
    assert word == "data_unaccounted"
    assert "no longer has 1 file" in reason
    t.apply(code=3)
    assert t.ids() == [*OURS, *range(100, 110)]


def test_a_replacement_forgets_the_files_whose_rows_it_removes(make: Make) -> None:
    """Appended, replaced, appended: a file that comes back is taken once more, and the others are not."""
    t = make(APPEND)
    (t.folder / "raw" / "0.parquet").unlink()
    t.source(2)
    t.mode = REPLACE
    t.apply()
    assert t.ids() == list(range(10, 30))
    t.mode = APPEND
    t.need_settled()
    t.source(0)
    t.apply()
    assert t.ids() == list(range(30))
    t.need_settled()


def test_mix_rows_goes_on_beside_them(make: Make) -> None:
    t = make(APPEND)
    t.append(100)
    deletes(t)
    assert t.blocked()[0] == "allow:mix_rows"
    t.spec = {"allow": ["mix_rows"]}
    assert t.plan() == [], "they may be there"
    assert (t.origin() or (None,))[0] is True
    t.source(2)
    t.append(200)
    t.apply()
    mixed = sorted([*(n for n in range(30) if n != 3), *range(100, 110), *range(200, 210)])
    assert t.ids() == mixed
    t.spec = {}
    t.need_settled()  # They are part of what the record describes now.
    t.append(300)
    assert t.blocked()[0] == "allow:mix_rows"


def test_mix_rows_does_not_let_a_replacement_through(make: Make) -> None:
    t = make(REPLACE)
    t.append(100)
    t.spec = {"allow": ["mix_rows"]}
    assert t.blocked()[0] == "allow:purge_data"
    assert "M436" in t.run("validate", "m.yaml", "--format", "json").out


def test_a_table_that_is_filled_once_is_left_to_others_but_verify_tells(make: Make) -> None:
    t = make(ONCE)
    t.append(100)
    t.source(2)
    assert t.plan() == []
    assert (t.origin() or (None,))[0] is False
    t.spec = {"allow": ["mix_rows"]}
    assert (t.origin() or (None,))[0] is True


# what keeps the rows


def compacts(t: FilledTable) -> None:
    t.dataset().optimize.compact_files()


def compacts_an_indexed_table(t: FilledTable) -> None:
    t.dataset().create_scalar_index("id", "BTREE", name="theirs")
    t.dataset().optimize.compact_files()
    t.dataset().drop_index("theirs")
    with pytest.raises(TypeError):
        t.dataset().get_transactions(3)  # When it can be read, `lance_rows.transactions` has one reason less.


def indexes(t: FilledTable) -> None:
    t.dataset().create_scalar_index("id", "BTREE", name="theirs")
    t.dataset().optimize.optimize_indices()
    t.dataset().drop_index("theirs")


def configures(t: FilledTable) -> None:
    t.dataset().update_config({"theirs": "1"})
    t.dataset().update_metadata({"theirs": "1"})
    t.dataset().update_schema_metadata({"theirs": "1"})
    t.dataset().update_config({"theirs": None})
    t.dataset().update_schema_metadata({"theirs": None})


def adds_and_drops_a_column(t: FilledTable) -> None:
    t.dataset().add_columns({"more": "id * 2"})
    t.dataset().drop_columns(["more"])


def takes_its_rows_back(t: FilledTable) -> None:
    t.append(100)
    t.dataset().delete("id >= 100")


def restores_ours(t: FilledTable) -> None:
    ours = t.dataset().version
    t.overwrite(100)
    t.append(200)
    t.dataset(ours).restore()


def compacts_and_restores(t: FilledTable) -> None:
    compacts(t)
    ours = t.dataset().version
    t.append(100)
    t.dataset(ours).restore()
    configures(t)


def cleans_up(t: FilledTable) -> None:
    configures(t)
    t.dataset().cleanup_old_versions(older_than=timedelta(0))


@pytest.mark.parametrize("mode", [APPEND, REPLACE])
@pytest.mark.parametrize(
    "change",
    [
        compacts, compacts_an_indexed_table, indexes, configures, adds_and_drops_a_column, takes_its_rows_back,
        restores_ours, compacts_and_restores, cleans_up,
    ],
    ids=lambda change: change.__name__,
)  # fmt: skip
def test_what_keeps_the_rows_blocks_nothing(make: Make, mode: str, change: Callable[[FilledTable], None]) -> None:
    t = make(mode)
    change(t)
    t.need_settled()
    t.source(2)
    t.apply()
    assert t.ids() == list(range(30))
    t.need_settled()


def _no_fixture(name: str) -> Any:
    raise AssertionError(name)


def test_our_own_changes_are_ours(make: Make) -> None:
    """Everything that a manifest can ask of a table that has rows; the record follows, so that a later cleanup takes
    nothing away that a plan needs."""
    t = make(APPEND)
    t.columns.append({"name": "size", "type": "int32", "backfill": {"sql": "length(text)"}})
    t.columns.append({"name": "empty", "type": "float32"})
    t.spec = {"indexes": [{"column": "id", "type": "btree"}], "config": {"a": "1"}}
    t.apply()
    t.need_settled()
    t.columns[2]["type"] = "int64"
    t.columns[3]["renamedFrom"] = "empty"
    t.columns[3]["name"] = "renamed"
    t.apply("--allow", "drop_index")
    t.need_settled()
    del t.columns[3]
    t.apply("--allow", "drop_column")
    t.need_settled()
    t.spec["maintenance"] = {"compact": {"minSmallFragments": 2}, "cleanup": {"olderThan": "14d"}}
    done = t.run("pipeline", "maintain", "m.yaml")
    assert done.code == 0, done.out + done.err
    t.need_settled()
    t.dataset().cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)
    t.need_settled()
    t.source(2)
    t.apply()
    assert t.ids() == list(range(30))
    t.need_settled()


@pytest.mark.parametrize("mode", [APPEND, REPLACE])
@pytest.mark.parametrize("change", [drops_and_adds, drops_and_adds_nulls], ids=["values", "nulls"])
def test_our_columns_do_not_hide_theirs(make: Make, mode: str, change: Callable[[FilledTable], None]) -> None:
    """Not the one they wrote, whatever we then write, drop, rename or cast beside it."""
    t = make(mode)
    t.columns.append({"name": "size", "type": "int32", "backfill": {"sql": "id + 1"}})
    t.apply()
    t.need_settled()
    change(t)
    word, reason = t.blocked()
    assert "dropped 1 column or wrote it anew in all rows: text;" in reason
    t.columns.append({"name": "note", "type": "string", "default": "x"})
    t.columns.append({"name": "empty", "type": "float32"})
    t.apply(code=3)
    assert t.dataset().to_table(columns=["note"])["note"].to_pylist() == ["x"] * 20
    assert t.blocked() == (word, reason)
    t.columns[2]["type"] = "int64"
    t.columns[4].update(name="renamed", renamedFrom="empty")
    t.apply(code=3)
    del t.columns[4]
    t.apply("--allow", "drop_column", code=3)
    assert t.blocked() == (word, reason)
    t.apply("--allow", word.removeprefix("allow:"))
    if mode == REPLACE:
        t.need_settled()


def test_a_cast_of_ours_does_not_make_their_column_ours(make: Make) -> None:
    t = make(APPEND)
    t.dataset().drop_columns(["id"])
    t.dataset().add_columns({"id": "cast(7 as int)"})
    t.columns.append({"name": "note", "type": "string", "default": "x"})
    t.apply()
    assert t.dataset().schema.field("id").type == pa.int64()
    assert "wrote it anew in all rows: id;" in t.blocked()[1]


@pytest.mark.parametrize("more", [{"default": 1}, {}], ids=["values", "nulls"])
def test_a_column_that_we_dropped_and_made_again_is_ours(make: Make, more: dict[str, Any]) -> None:
    t = make(APPEND)
    for _ in range(2):
        t.columns.append({"name": "more", "type": "int64", **more})
        t.apply()
        t.need_settled()
        del t.columns[2]
        t.apply("--allow", "drop_column")
        t.need_settled()
    t.columns.append({"name": "more", "type": "int64", **more})
    t.apply()
    t.dataset().drop_columns(["more"])
    t.dataset().add_columns({"more": "id + 1"})
    t.blocked()


def test_a_field_of_a_column_that_is_written_anew(tmp_path: Path) -> None:
    values = pa.table({"s": [{"a": 1, "b.c": 2}], "id": [1]})
    dataset = lance.write_dataset(values, tmp_path / "t.lance")
    before = lance_rows.row_state(dataset)
    assert set(before.columns) == {"s", "s.a", "s.b..c", "id"}
    dataset.drop_columns(["s.a"])
    dataset.add_columns(pa.schema([pa.field("s", pa.struct({"a": pa.int64()}))]))
    found = lance_rows.account_of(dataset, before, lambda *_: False, lambda _: False)
    assert found.external is not None
    assert "wrote it anew in all rows: s.a" in found.external.reason
    assert found.rows.columns == before.columns


def test_a_cleanup_after_our_columns_blocks_nothing(make: Make) -> None:
    t = make(APPEND)
    t.columns.append({"name": "size", "type": "int32", "backfill": {"sql": "id + 1"}})
    t.apply()
    t.columns[0]["type"] = "int32"
    t.apply("--allow", "narrow_type")
    t.dataset().cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)
    t.need_settled()


def test_our_compaction_is_known_after_a_cleanup(make: Make) -> None:
    t = make(APPEND, maintenance={"compact": {"minSmallFragments": 2}})
    assert t.run("pipeline", "maintain", "m.yaml").code == 0
    assert len(t.dataset().get_fragments()) == 1
    t.dataset().cleanup_old_versions(older_than=timedelta(0))
    t.need_settled()


def test_a_cleanup_of_ours_keeps_what_proves_the_rows(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compaction was somebody else's; once its versions are gone nothing tells that it was one."""
    t = make(APPEND, maintenance={"cleanup": {"olderThan": "1d"}})
    compacts(t)
    configures(t)
    later(monkeypatch, 7)
    done = t.run("pipeline", "maintain", "m.yaml", "--format", "json")
    monkeypatch.undo()
    assert done.json["tables"][0]["parts"][2]["outcome"] == "done", done.out
    assert len(t.dataset().versions()) < t.dataset().version, "history is gone"
    t.dataset().cleanup_old_versions(older_than=timedelta(0))
    t.need_settled()


@pytest.mark.parametrize("mode", [APPEND, REPLACE])
@pytest.mark.parametrize("back", [1, 2], ids=["with-rows", "before-rows"])
def test_a_version_from_within_our_step_may_be_restored(tmp_path: Path, mode: str, back: int) -> None:
    """Our claim comes back with it. The transaction of the rows has their record."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "_born", lambda pid: "another")
        t = filled(tmp_path, _no_fixture, mode=mode)
    filled_at = t.dataset().version
    t.overwrite(100)
    t.dataset(filled_at - back).restore()
    assert CLAIM_KEY in t.dataset().metadata
    assert t.ids() == (OURS if back == 1 else [])
    (step,) = t.plan()
    assert (step["action"], step["verdict"], step["risk"]) == ("materialize_table", "allowed", "safe")
    if back == 1:
        assert "not noted yet" in step["reason"]
    t.apply()
    assert t.ids() == OURS
    t.need_settled()
    t.append(100)
    t.blocked()


# what is not known


def test_a_compaction_that_nothing_proves_is_not_believed(make: Make) -> None:
    t = make(APPEND)
    compacts(t)
    t.dataset().cleanup_old_versions(older_than=timedelta(0))
    word, reason = t.blocked()
    assert word == "allow:mix_rows"
    assert "is not there any more" in reason
    t.spec = {"allow": ["mix_rows"]}
    t.source(2)
    t.apply()
    t.spec = {}
    t.need_settled()


def forget_the_rows(t: FilledTable) -> None:
    """The record as versions wrote it that did not know of rows, also beside the rows themselves."""
    record = json.loads(t.dataset().metadata[RECORD_KEY])
    del record["rows"]
    t.dataset().update_metadata({RECORD_KEY: json.dumps(record)})


@pytest.mark.parametrize("mode", [APPEND, REPLACE])
def test_a_record_of_an_earlier_version_is_believed_as_far_as_the_history_tells(make: Make, mode: str) -> None:
    t = make(mode)
    forget_the_rows(t)
    compacts(t)
    t.need_settled()
    t.source(2)
    t.apply()
    assert load_record(t.dataset().metadata[RECORD_KEY]).rows is not None
    forget_the_rows(t)
    t.append(100)
    t.blocked()


@pytest.mark.parametrize("mode", [APPEND, REPLACE])
def test_without_history_a_record_of_an_earlier_version_blocks_what_is_new(make: Make, mode: str) -> None:
    t = make(mode)
    forget_the_rows(t)
    t.dataset().cleanup_old_versions(older_than=timedelta(0))
    assert t.plan() == [], "nothing speaks against it"
    assert t.origin() is None
    t.source(2)
    word, reason = t.blocked()
    assert word == ("allow:mix_rows" if mode == APPEND else "allow:purge_data")
    assert "names no version" in reason
    t.apply("--allow", word.removeprefix("allow:"))
    assert t.ids() == list(range(30))
    t.need_settled()


def test_more_history_than_is_read_is_not_believed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    t = make(APPEND)
    compacts(t)
    for number in range(40):
        t.dataset().update_metadata({"theirs": str(number)})
    t.need_settled()
    monkeypatch.setattr(lance_rows, "MOST", 20)
    assert t.blocked()[0] == "allow:mix_rows"


# what it costs


def test_a_plan_reads_no_history_while_the_rows_are_as_noted(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    t = make(APPEND, indexes=[{"column": "id", "type": "btree"}], config={"a": "1"})
    indexes(t)
    configures(t)
    asked: list[int] = []
    judged = lance_rows.history
    monkeypatch.setattr(lance_rows, "history", lambda *a: asked.append(1) or judged(*a))
    assert t.plan() == []
    assert asked == []
    t.append(100)
    t.blocked()
    assert asked == [1]


# between the plan and the commit


@pytest.mark.parametrize(("mode", "word"), [(APPEND, "mix_rows"), (REPLACE, "purge_data")])
def test_rows_that_come_after_the_plan_are_not_touched(make: Make, mode: str, word: str) -> None:
    t = make(mode)
    t.source(2)
    t.run("plan", "m.yaml", "-o", "plan.json")
    t.append(100)
    version = t.dataset().version
    done = t.run("apply", "--plan", "plan.json", "--yes")
    assert done.code == 4, done.out
    assert "added 10 rows" in done.out + done.err
    assert t.dataset().version == version
    assert t.ids() == [*OURS, *range(100, 110)]
    assert t.blocked()[0] == f"allow:{word}"


@pytest.mark.parametrize("change", [lambda t: t.append(200), deletes], ids=["append", "delete"])
@pytest.mark.parametrize(("mode", "word"), [(APPEND, "mix_rows"), (APPEND, "purge_data"), (REPLACE, "purge_data")])
def test_a_saved_plan_is_for_the_rows_that_it_was_made_on(
    make: Make, mode: str, word: str, change: Callable[[FilledTable], None]
) -> None:
    t = make(mode)
    t.append(100)
    t.source(2)
    t.columns.append({"name": "more", "type": "int64", "default": 1})
    t.run("plan", "m.yaml", "-o", "plan.json", "--allow", word)
    change(t)
    version, ids = t.dataset().version, t.ids()
    done = t.run("apply", "--plan", "plan.json", "--yes")
    assert done.code == 4, done.out
    assert "another writer has changed the rows since the plan was made (version " in done.out + done.err
    assert (t.dataset().version, t.ids()) == (version, ids), "nothing was written"


def test_a_saved_plan_of_first_rows_is_for_those_that_it_was_made_on(make: Make) -> None:
    t = make(REPLACE)
    t.dataset().update_metadata({RECORD_KEY: None})
    t.run("plan", "m.yaml", "-o", "plan.json", "--allow", "purge_data")
    t.append(100)
    assert t.run("apply", "--plan", "plan.json", "--yes").code == 4
    assert t.ids() == [*OURS, *range(100, 110)]


def test_a_saved_plan_that_was_begun_goes_on(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own steps are no changes of others."""
    t = make(REPLACE)
    t.append(100)
    t.columns.append({"name": "size", "type": "int64", "backfill": {"sql": "id + 1"}})
    t.run("plan", "m.yaml", "-o", "plan.json", "--allow", "purge_data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(materialize, "_listed", lambda *_: killed())
        patch.setattr(materialize, "moved", lambda *_: None)
        assert t.run("apply", "--plan", "plan.json", "--yes").code == 5
    assert t.run("apply", "--plan", "plan.json", "--yes").code == 0
    assert t.ids() == OURS
    t.need_settled()


def test_purge_data_is_for_what_the_plan_saw(make: Make) -> None:
    t = make(REPLACE)
    t.append(100)
    t.run("plan", "m.yaml", "-o", "plan.json", "--allow", "purge_data")
    configures(t)
    t.append(200)
    done = t.run("apply", "--plan", "plan.json", "--yes")
    assert done.code != 0
    assert t.ids() == [*OURS, *range(100, 110), *range(200, 210)]
    t.run("plan", "m.yaml", "-o", "plan.json", "--allow", "purge_data")
    configures(t)
    t.dataset().optimize.compact_files()
    assert t.run("apply", "--plan", "plan.json", "--yes").code == 0, "a compaction adds nothing"
    assert t.ids() == OURS


def test_the_first_rows_are_not_put_beside_others(make: Make) -> None:
    """Nor in the place of others, in a table that we never filled."""
    t = make(REPLACE)
    t.dataset().update_metadata({RECORD_KEY: None})
    t.dataset().delete("true")
    for mode in (APPEND, REPLACE):
        t.mode = mode
        t.run("plan", "m.yaml", "-o", f"{mode}.json")
    t.append(100)
    for mode in (APPEND, REPLACE):
        assert t.run("apply", "--plan", f"{mode}.json", "--yes").code != 0
        assert t.ids() == list(range(100, 110))
    t.run("plan", "m.yaml", "-o", "purge.json", "--allow", "purge_data")
    t.append(200)
    assert t.run("apply", "--plan", "purge.json", "--yes").code != 0
    assert t.ids() == [*range(100, 110), *range(200, 210)]
