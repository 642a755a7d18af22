"""Moving a table, on the driver: what is copied, what is refused, and every place at which a run can be cut."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from contract.backends import BACKENDS
from pipeline import in_process
from pipeline.migrate_lake import ROWS, Move, beside, errors, files, local, row, statuses

from reconciler.catalog.lance_data import record_of
from reconciler.model.errors import CatalogError, Code
from reconciler.model.observed import Present, Scope
from reconciler.model.plan import Plan
from reconciler.pipeline import claims, copy_task, migrate, table_task


@pytest.fixture
def move(tmp_path: Path) -> Move:
    return local(tmp_path, in_process.running())


def target(move: Move) -> Path:
    (found,) = [p for p in (move.folder / "new").iterdir() if p.name.endswith("moved")]
    return found


def test_it_moves_once(move: Move) -> None:
    before = files(move.folder / "old")
    report = move.apply()
    assert errors(report) == []
    move.moved()
    assert files(move.folder / "old") == before
    assert beside(files(target(move))) == []
    move.dataset("old", move.old).insert(move.dataset("old", move.old).to_table())
    assert move.plan().steps == (), "what the source does later is its own business"
    (move.folder / "old").rename(move.folder / "gone")
    (move.folder / "old").mkdir()
    assert move.plan().steps == ()


def test_only_the_files_of_that_version_are_copied(move: Move) -> None:
    source = move.dataset("old", move.old)
    source.optimize.compact_files()
    move.apply()
    live = {f.path for fragment in move.dataset("old", move.old).get_fragments() for f in fragment.data_files()}
    assert {p.name for p in (target(move) / "data").iterdir()} == live
    assert len(list((target(move) / "_versions").glob("*.manifest"))) == 2, "the copied one, and the marks"
    assert move.dataset("new", move.new).count_rows() == ROWS - 1


def test_the_rest_of_the_manifest_is_applied_to_the_copy(move: Move) -> None:
    move.spec = {
        "schema": [
            {"name": "id", "type": "int64"},
            {"name": "words", "type": "string", "renamedFrom": "text"},
            {"name": "vector", "type": "fixed_size_list<float32>[2]"},
            {"name": "more", "type": "int32"},
        ],
        "indexes": [{"column": "id", "type": "btree", "name": "by_id"}],
        "config": {"lance.auto_cleanup.interval": "20"},
    }
    assert errors(move.apply()) == []
    dataset = move.dataset("new", move.new)
    assert dataset.schema.names == ["id", "words", "vector", "more"]
    assert dataset.config()["lance.auto_cleanup.interval"] == "20"
    assert move.plan().steps == ()


def test_a_table_without_a_schema_gets_the_source_as_it_is(move: Move) -> None:
    move.spec = {}
    move.verify = "none"
    assert errors(move.apply()) == []
    move.moved()


def cut(move: Move, after: int, plan: Plan | None = None) -> None:
    """The run ends when so many files are copied, and leaves what it did."""
    real, done = copy_task._copied, iter(range(10_000))

    def copied(unit: Any) -> int:
        if next(done) >= after:
            raise OSError("cut")
        return real(unit)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copy_task, "_copied", copied)
        patch.setattr(table_task, "THREADS", 1)
        assert errors(move.apply(plan)) == ["a Spark job failed: cut"]


@pytest.mark.slow
@pytest.mark.parametrize("after", range(6))
def test_cut_between_any_two_files(move: Move, after: int) -> None:
    plan = move.plan()
    cut(move, after, plan)
    (found,) = move.target.open().read([("Table", move.new)], _scope(move))
    assert isinstance(found.finding, Present), "a copy under way is not damage"
    assert found.finding.state.dataset is None  # type: ignore[union-attr]
    copied = [p for p in target(move).rglob("*.lance") if p.is_file()]
    times = {p: p.stat().st_mtime_ns for p in copied}
    report = move.apply(plan if after % 2 else None)
    assert errors(report) == []
    assert times == {p: p.stat().st_mtime_ns for p in copied}, "what was copied is not copied again"
    move.moved()


def test_what_others_put_there_meanwhile_is_not_the_copy(move: Move) -> None:
    """The note that a copy was begun proves nothing about a dataset that somebody else made."""
    cut(move, 2)
    foreign = pa.table({"id": [7, 7, 7]})
    lance.write_dataset(foreign, str(target(move)))
    report = move.apply()
    assert "done" not in statuses(report)
    assert lance.dataset(str(target(move))).to_table() == foreign
    assert "reconciler.owner" not in lance.dataset(str(target(move))).metadata


@pytest.mark.slow
@pytest.mark.parametrize(("name", "home"), [("dir-v1", ()), ("dir-default-root", ()), ("unity", ("m",))])
def test_cut_wherever_the_table_is(name: str, home: tuple[str, ...], tmp_path: Path) -> None:
    """Catalogs have their own ways to tell a table without data from one that lost it."""
    made = {b.name: b.make for b in BACKENDS}
    (tmp_path / "to").mkdir()
    source = made["dir-v2"](tmp_path / "from", lambda fixture: None)
    move = Move(tmp_path, source, made[name](tmp_path / "to", lambda fixture: None), in_process.running(), home=home)
    move.fill()
    cut(move, 4)
    (found,) = move.target.open().read([("Table", move.new)], _scope(move))
    assert isinstance(found.finding, Present), found
    assert errors(move.apply()) == []
    move.moved()


def _scope(move: Move) -> Any:
    return Scope(detail=frozenset({move.new}))


@pytest.mark.parametrize("saved", [True, False])
def test_cut_before_the_marks(move: Move, monkeypatch: pytest.MonkeyPatch, saved: bool) -> None:
    """The table shows the copy and is not marked yet: the same plan goes on, and so does a new one."""
    plan = move.plan()

    def die(*_: object) -> None:
        raise CatalogError(Code.INTERNAL, "cut")

    with monkeypatch.context() as patch:
        patch.setattr(migrate, "_commit", die)
        assert errors(move.apply(plan)) == ["cut"]
    assert move.dataset("new", move.new).metadata == {}
    assert [s.verdict for s in move.plan().steps] == ["allowed"]
    (move.folder / "old").rename(move.folder / "gone")
    (move.folder / "old").mkdir()
    assert errors(move.apply(plan if saved else None)) == []
    move.moved()
    assert beside(files(target(move))) == []


def damage(move: Move) -> Path:
    """One byte or more of a file that is copied already."""
    (file,) = [p for p in (target(move) / "data").iterdir() if b"row 1" in p.read_bytes()]
    file.write_bytes(file.read_bytes().replace(b"row 1", b"row X"))
    return file


def test_a_copy_that_differs_is_never_shown(move: Move) -> None:
    cut(move, 2)
    broken = damage(move)
    report = move.apply()
    assert statuses(report)["migrate_table"] == "failed"
    (message,) = errors(report)
    assert message.startswith("the copy differs from the source, and the table does not show it: 39 rows with checksum")
    with pytest.raises(ValueError, match="was not found"):
        lance.dataset(str(target(move)))
    assert errors(move.apply()) == []
    assert b"row X" not in broken.read_bytes()
    move.moved()


def test_without_a_look_a_wrong_copy_is_shown(move: Move) -> None:
    """That is what `verify: none` asks for; and that the look above is what finds it."""
    move.verify = "none"
    cut(move, 2)
    damage(move)
    assert errors(move.apply()) == []
    assert "row X" in [r["text"][:5] for r in move.dataset("new", move.new).to_table().to_pylist()]


def test_a_file_of_another_size_is_left_alone(move: Move) -> None:
    cut(move, 1)
    (theirs,) = (target(move) / "data").iterdir()
    theirs.write_bytes(b"theirs")
    (message,) = errors(move.apply())
    assert "is there with 6 bytes" in message
    assert theirs.read_bytes() == b"theirs"


def test_the_version_that_was_begun_is_the_one_that_is_finished(move: Move) -> None:
    """Also when the source goes on. When it has lost that version, its latest is copied."""
    cut(move, 2)
    source = move.dataset("old", move.old)
    source.insert(source.to_table())
    assert errors(move.apply()) == []
    move.moved()


def test_a_lost_version_is_not_waited_for(move: Move) -> None:
    cut(move, 2)
    source = move.dataset("old", move.old)
    source.tags.delete("kept-there")
    source.insert(source.to_table())
    source.cleanup_old_versions(timedelta(0))
    assert errors(move.apply()) == []
    assert move.dataset("new", move.new).count_rows() == 2 * (ROWS - 1)
    assert move.plan().steps == ()


def writes(source: Any) -> None:
    source.insert(source.to_table())
    source.delete("id < 3")


def compacts(source: Any) -> None:
    source.optimize.compact_files()
    source.optimize.optimize_indices()


def overwrites(source: Any) -> None:
    lance.write_dataset(pa.table({"other": [1]}), source.uri, mode="overwrite")


def cleans_up(source: Any) -> None:
    """Of what is copied the tag keeps the version."""
    source.insert(source.to_table())
    source.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)


def untags_and_cleans_up(source: Any) -> None:
    source.tags.delete("kept-there")
    compacts(source)
    source = lance.dataset(source.uri)
    source.cleanup_old_versions(timedelta(0))


def at_file(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], object]) -> None:
    """Right before that file is copied."""
    real, seen = copy_task.copy, [0]

    def copy(unit: Any) -> Any:
        seen[0] += 1
        if seen[0] == number:
            act()
        return real(unit)

    monkeypatch.setattr(copy_task, "copy", copy)


def before_the_look(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    real = migrate._compare

    def compare(*arguments: Any) -> None:
        act()
        real(*arguments)

    monkeypatch.setattr(migrate, "_compare", compare)


@pytest.mark.parametrize("when", ["copy", "look"])
@pytest.mark.parametrize("change", [writes, compacts, overwrites, cleans_up])
def test_the_source_goes_on_while_it_is_copied(
    move: Move, monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], None], when: str
) -> None:
    """What arrives are the rows of one version: the one that was the newest when the copy began."""

    def act() -> None:
        change(move.dataset("old", move.old))

    at_file(monkeypatch, 2, act) if when == "copy" else before_the_look(monkeypatch, act)
    assert errors(move.apply()) == []
    move.moved()


@pytest.mark.parametrize("when", ["list", "copy", "look"])
def test_a_version_that_is_removed_while_it_is_copied(move: Move, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    plan = move.plan()

    def act() -> None:
        untags_and_cleans_up(move.dataset("old", move.old))

    with monkeypatch.context() as patch:
        if when == "list":
            real = migrate._manifest

            def manifest(*arguments: Any) -> Any:
                act()
                return real(*arguments)

            patch.setattr(migrate, "_manifest", manifest)
        elif when == "copy":
            at_file(patch, 2, act)
        else:
            before_the_look(patch, act)
        report = move.apply(plan)
    (message,) = errors(report)
    assert "was removed while it was copied: old versions were cleaned up there" in message
    assert statuses(report)["migrate_table"] == "failed"
    assert list(target(move).glob("_versions/*.manifest")) == [], "the table does not show anything"
    assert errors(move.apply()) == []
    move.moved()


def test_rows_that_others_add_before_the_marks_are_not_part_of_the_copy(
    move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = migrate._mark

    def mark(*arguments: Any) -> Any:
        live = lance.dataset(str(target(move)))
        live.insert(live.to_table().slice(0, 1))
        return real(*arguments)

    monkeypatch.setattr(migrate, "_mark", mark)
    assert errors(move.apply()) == []
    live = move.dataset("new", move.new)
    record = record_of(live, live.metadata)
    assert record is not None
    assert record.external is not None
    assert "added 1 row" in record.external.reason


def claim(source: Any) -> None:
    source.update_metadata({"reconciler.data.claim": "{}"})


def other_schema(source: Any) -> None:
    source.add_columns({"late": "id + 1"})


@pytest.mark.parametrize(
    ("change", "told"),
    [(claim, "a run is filling old n.events"), (other_schema, "has changed since the plan was made")],
)
def test_a_source_that_is_not_as_planned(move: Move, change: Callable[[Any], None], told: str) -> None:
    plan = move.plan()
    change(move.dataset("old", move.old))
    report = move.apply(plan)
    assert statuses(report)["migrate_table"] == "failed"
    assert told in errors(report)[0]
    assert [p.name for p in target(move).iterdir()] == [".lance-reserved"], "nothing was written"


def test_a_clone_that_uses_others_files_is_refused(move: Move) -> None:
    source = move.dataset("old", move.old)
    place = Path(move.place("old", move.old).uri)
    source.shallow_clone(str(place.with_name("clone.lance")), source.version)
    place.rename(place.with_name("original"))
    place.with_name("clone.lance").rename(place)
    (message,) = errors(move.apply())
    assert "uses files of other datasets" in message


def test_rows_that_are_there_are_not_written_over(move: Move) -> None:
    move.apply()
    dataset = move.dataset("new", move.new)
    dataset.update_metadata({"reconciler.data": None})
    (step,) = move.plan().steps
    assert (step.action, step.verdict, step.blocked_by) == ("migrate_table", "blocked", "data_unaccounted")
    assert "Remove `migration` to keep it" in step.reason
    move.apply()
    assert move.dataset("new", move.new).version == dataset.version


def test_a_source_that_cannot_be_read_holds_it_back(move: Move) -> None:
    (move.folder / "old").rename(move.folder / "gone")
    (move.folder / "old").mkdir()
    report = move.apply()
    steps = {s.action: (s.verdict, s.blocked_by) for s in move.plan().steps}
    assert steps == {"migrate_table": ("blocked", "source")}, "the table is declared, and not made empty"
    assert statuses(report)["declare_table"] == "done"


@pytest.mark.slow
def test_two_runs_at_a_time(move: Move, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second begins and ends while the first is about to note what it copies, to compare, to mark."""
    plan = move.plan()
    for moment in ("_pinned", "_compare", "_commit"):
        with monkeypatch.context() as patch:
            real, other = getattr(migrate, moment), Move(move.folder, move.source, move.target, in_process.running())

            def meanwhile(
                *args: Any, real: Any = real, other: Move = other, patch: Any = patch, at: str = moment
            ) -> Any:
                patch.setattr(migrate, at, real)
                assert errors(other.apply(plan)) == []
                return real(*args)

            patch.setattr(migrate, moment, meanwhile)
            assert errors(move.apply(plan)) == []
        move.moved()
        assert beside(files(target(move))) == []
        assert len(list((target(move) / "_versions").glob("*.manifest"))) == 2
        move.dataset("new", move.new)
        _start_again(move)


def test_a_late_run_does_not_bring_a_later_version(move: Move, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has seen a table without data; now the table is moved, and the source has gone on."""
    plan, real = move.plan(), migrate._pinned
    other = Move(move.folder, move.source, move.target, in_process.running())

    def meanwhile(*args: Any) -> Any:
        monkeypatch.setattr(migrate, "_pinned", real)
        assert errors(other.apply(plan)) == []
        source = move.dataset("old", move.old)
        for _ in range(3):
            source.insert(source.to_table())
        return real(*args)

    monkeypatch.setattr(migrate, "_pinned", meanwhile)
    assert errors(move.apply(plan)) == []
    move.moved()
    assert beside(files(target(move))) == []


def _start_again(move: Move) -> None:
    shutil.rmtree(move.folder / "new")


def test_a_lost_answer_to_the_marks(move: Move, monkeypatch: pytest.MonkeyPatch) -> None:
    real = claims.committed

    def lost(*args: Any) -> None:
        real(*args)
        raise OSError("operation timed out")

    monkeypatch.setattr(migrate, "committed", lost)
    assert errors(move.apply()) == []
    assert move.dataset("new", move.new).to_table().num_rows == ROWS - 1
    move.moved()


def test_what_is_lost_after_a_move_is_not_taken_for_a_copy_under_way(
    move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the note of the copy stayed, because a run was killed right after the marks."""
    with monkeypatch.context() as patch:
        patch.setattr("reconciler.catalog.storage_local.LocalStorage.delete", lambda *_: None)
        move.apply()
    assert (target(move) / ".reconciler-migration").exists()
    move.moved()
    for file in (target(move) / "_versions").iterdir():
        file.unlink()
    (found,) = move.target.open().read([("Table", move.new)], _scope(move))
    assert not isinstance(found.finding, Present)


def test_the_first_rows_are_those_of_the_source(move: Move) -> None:
    """Of the helpers: they would see another row."""
    assert move.dataset("old", move.old).to_table().sort_by("id").to_pylist()[:2] == [row(0), row(1)]


def empty(folder: str) -> None:
    lance.write_dataset([], folder, schema=pa.schema([("id", pa.int64())]), mode="overwrite")


def old_names(folder: str) -> None:
    """Of versions, as lance wrote them once."""
    shutil.rmtree(folder)
    lance.write_dataset(pa.table({"id": [1, 2]}), folder, enable_v2_manifest_paths=False)
    assert Path(folder, "_versions", "1.manifest").exists()


def stable_rows(folder: str) -> None:
    shutil.rmtree(folder)
    made = lance.write_dataset(
        pa.table({"id": list(range(10))}), folder, enable_stable_row_ids=True, max_rows_per_file=3
    )
    made.delete("id < 4")
    made.optimize.compact_files()


def large_values(folder: str) -> None:
    """Lance keeps them in files of their own, in a folder beside the data file."""
    shutil.rmtree(folder)
    values = [b"x" * 5_000_000, b"y" * 100_000, b"z"]
    table = pa.table(
        {"id": [1, 2, 3], "v": lance.blob_array(values)},
        schema=pa.schema([pa.field("id", pa.int64()), lance.blob_field("v")]),
    )
    lance.write_dataset(table, folder, data_storage_version="2.2")
    assert any(p.is_dir() for p in Path(folder, "data").iterdir())


def old_format(folder: str) -> None:
    shutil.rmtree(folder)
    lance.write_dataset(pa.table({"id": list(range(10))}), folder, data_storage_version="2.0", max_rows_per_file=4)


def vector_index(folder: str) -> None:
    shutil.rmtree(folder)
    vectors = pa.array([[n % 7, n % 5] for n in range(512)], pa.list_(pa.float32(), 2))
    made = lance.write_dataset(pa.table({"id": list(range(512)), "v": vectors}), folder)
    made.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=2)


@pytest.mark.parametrize("make", [empty, old_names, stable_rows, large_values, old_format, vector_index])
def test_any_source(move: Move, make: Callable[[str], None]) -> None:
    make(move.place("old", move.old).uri)
    move.spec = {}
    assert errors(move.apply()) == []
    old, new = move.dataset("old", move.old), move.dataset("new", move.new)
    ids = [d.scanner(columns=["id"], with_row_id=True).to_table() for d in (old, new)]
    assert ids[0] == ids[1]
    if "v" in old.schema.names:
        both = [d.scanner(columns=["v"], blob_handling="all_binary").to_table() for d in (old, new)]
        assert both[0] == both[1]
    assert [i.name for i in old.describe_indices()] == [i.name for i in new.describe_indices()]
    assert old.data_storage_version == new.data_storage_version
    assert move.plan().steps == ()
