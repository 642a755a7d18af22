"""From a lake that nobody declared to one that is ours; and the flags of `import`."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from cli_runs import catalog, command, environment, namespace, reconciler, table, write


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two owners' and nobody's."""
    write(tmp_path, catalog(), namespace("a"), namespace("a", "b"), table("a", "ours"), table("a", "b", "deep"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog(owner="other"), table("a", "others"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    lance.write_dataset(pa.schema([("id", pa.int64())]).empty_table(), str(tmp_path / "lake" / "nobodys.lance"))
    write(tmp_path, catalog(), name="c.yaml")
    (tmp_path / "m.yaml").unlink()
    return tmp_path


def files(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*.yaml"))}


def test_from_import_to_adoption(lake: Path) -> None:
    run = reconciler(lake, "import", "c.yaml", "-o", "live")
    assert run.code == 0
    assert "note: 1 object of catalog lake had no owner: `reconciler apply live --adopt` makes them ours" in run.err
    planned = reconciler(lake, "plan", "live", "--detailed-exitcode")
    assert planned.code == 0
    assert "without our mark (`apply --adopt` takes what nobody owns):\n    table nobodys\n" in planned.out
    adopted = reconciler(lake, "apply", "live", "--adopt", "--yes", "--target", "nobodys")
    assert adopted.code == 0, adopted.out
    assert "done     s1  adopt  lake:nobodys" in adopted.out
    again = reconciler(lake, "plan", "live", "--adopt", "--target", "nobodys", "--detailed-exitcode")
    assert (again.code, "unowned" in again.out) == (0, False)
    assert reconciler(lake, "import", "c.yaml", "-o", "live").out == ""


def test_what_carries_a_mark_in_its_data_alone_is_not_called_ownerless(lake: Path) -> None:
    """Its owner keeps his marks in another catalog; `--adopt` would not take it."""
    lance.dataset(str(lake / "lake" / "nobodys.lance")).update_metadata({"reconciler.owner": "carol"})
    run = reconciler(lake, "import", "c.yaml", "-o", "live")
    assert (run.code, "had no owner" in run.err) == (0, False)


def test_one_file_per_table(lake: Path) -> None:
    assert reconciler(lake, "import", "c.yaml", "-o", "live", "--split", "table").code == 0
    assert sorted(files(lake / "live")) == [
        "lake/a.yaml", "lake/a/b.yaml", "lake/a/b/deep.yaml", "lake/a/others.yaml", "lake/a/ours.yaml",
        "lake/catalog.yaml", "lake/root-tables/nobodys.yaml",
    ]  # fmt: skip
    assert reconciler(lake, "plan", "live", "--detailed-exitcode").code == 0
    assert reconciler(lake, "import", "c.yaml", "-o", "live").out == ""


def test_a_part_of_the_lake(lake: Path) -> None:
    run = reconciler(lake, "import", "c.yaml", "-o", "live", "--target", "a.b.**", "--catalog", "lake")
    assert run.out == "wrote live/lake/catalog.yaml\nwrote live/lake/a/b.yaml\n"
    assert reconciler(lake, "plan", "live", "--target", "a.b.**", "--detailed-exitcode").code == 0
    more = reconciler(lake, "import", "c.yaml", "-o", "live", "--target", "a.ours")
    assert more.out == "wrote live/lake/a.yaml\n"
    rest = reconciler(lake, "import", "c.yaml", "-o", "live")
    assert rest.out == "updated live/lake/a.yaml\nwrote live/lake/root-tables.yaml\n"
    assert reconciler(lake, "plan", "live", "--detailed-exitcode").code == 0
    typo = reconciler(lake, "import", "c.yaml", "-o", "none", "--target", "a.our")
    assert typo.code == 1
    assert "did you mean a.ours?" in typo.err
    assert not (lake / "none").exists()


def test_only_what_nobody_manages(lake: Path) -> None:
    lance.write_dataset(pa.schema([("id", pa.int64())]).empty_table(), str(lake / "lake" / "declared.lance"))
    write(lake, catalog(), table("declared"), name="c.yaml")
    run = reconciler(lake, "import", "c.yaml", "-o", "live", "--only-unmanaged")
    assert [*files(lake / "live")] == ["lake/catalog.yaml", "lake/root-tables.yaml"]
    assert "note: 1 object of other owners in catalog lake left out" in run.err
    text = files(lake / "live")["lake/root-tables.yaml"]
    assert (text.count("kind: Table"), "nobodys" in text) == (1, True)


@pytest.fixture
def ours(tmp_path: Path) -> lance.LanceDataset:
    spec = "config: {y: '1'}\n  indexes: [{column: id, type: btree}]"
    (tmp_path / "live").mkdir()
    write(tmp_path / "live", catalog(), table("t", spec=spec))
    assert reconciler(tmp_path, "apply", "live", "--yes").code == 0
    return lance.dataset(next(str(p) for p in tmp_path.glob("lake/*t.lance")))


def test_what_others_took_away_is_told_and_left_to_them(tmp_path: Path, ours: lance.LanceDataset) -> None:
    """In our record, and by nothing else, the same key would be removed when others set it again."""
    ours.drop_index("id_idx")
    ours.delete_config_keys(["y"])
    imported = reconciler(tmp_path, "import", "live", "-o", "live")
    assert "note: others took away what we had set: config y, index id_idx of lake:t; `ignoreDif" in imported.err
    assert "  ignoreDifferences: [config.y, indexes.id_idx]\n" in (tmp_path / "live/m.yaml").read_text()
    assert reconciler(tmp_path, "plan", "live", "--detailed-exitcode").code == 0
    assert "others took away" not in reconciler(tmp_path, "import", "live", "-o", "live").err

    ours.checkout_latest()
    ours.update_config({"y": "theirs"})
    planned = reconciler(tmp_path, "plan", "live").out
    assert "our record of what we set differs: config y, index id_idx are no longer ours\n" in planned
    assert reconciler(tmp_path, "apply", "live", "--yes").code == 0
    file = tmp_path / "live/m.yaml"
    file.write_text(file.read_text().replace("  ignoreDifferences: [config.y, indexes.id_idx]\n", ""))
    assert reconciler(tmp_path, "plan", "live", "--detailed-exitcode").code == 0
    assert lance.dataset(ours.uri).config()["y"] == "theirs"


def test_a_table_that_others_wrote_anew(tmp_path: Path) -> None:
    """Comments and indexes are gone with the old rows, and so are columns: left to others, also when they come back."""
    noted = "comment: key, metadata: {a.b: '1', type: '2'}"
    columns = f"[{{name: id, type: int64, {noted}}}, {{name: x, type: string, comment: old}}]"
    (tmp_path / "live").mkdir()
    spec = "indexes: [{column: id, type: btree}]\n  allow: [drop_index]"
    write(tmp_path / "live", catalog(), table("t", schema=columns, spec=spec))
    assert reconciler(tmp_path, "apply", "live", "--yes").code == 0
    uri = next(str(p) for p in tmp_path.glob("lake/*t.lance"))
    lance.write_dataset(pa.table({"id": pa.array([1]), "z": ["a"]}), uri, mode="overwrite")
    assert reconciler(tmp_path, "import", "live", "-o", "live").code == 0
    file = tmp_path / "live/m.yaml"
    left = "indexes.id_idx, schema.id.comment, schema.id.metadata.a.b, schema.id.metadata.type, schema.x.comment"
    assert f"  ignoreDifferences: [{left}]\n" in file.read_text()
    assert reconciler(tmp_path, "plan", "live", "--detailed-exitcode").code == 0

    dataset = lance.dataset(uri)
    dataset.add_columns(pa.schema([pa.field("x", pa.string(), metadata={"comment": "theirs"})]))
    dataset.create_scalar_index("id", "BITMAP", name="id_idx")
    file.write_text(file.read_text().replace("  schema:\n", "  schema:\n    - {name: x, type: string}\n"))
    again = reconciler(tmp_path, "import", "live", "-o", "live").err
    told = (
        "column x comment, index id_idx are live and left to others: the next plan has a step that takes that off our"
    )
    assert told in again
    done = reconciler(tmp_path, "apply", "live", "--yes")
    assert done.code == 0, done.out
    assert reconciler(tmp_path, "plan", "live", "--detailed-exitcode").code == 0
    assert lance.dataset(uri).schema.field("x").metadata == {b"comment": b"theirs"}
    assert [i.name for i in lance.dataset(uri).describe_indices()] == ["id_idx"]


def test_a_path_that_would_mean_a_column_too_is_not_written(tmp_path: Path) -> None:
    inner = "[{name: a, type: int64}, {name: metadata, type: 'struct<k: int64>'}]"
    (tmp_path / "live").mkdir()
    columns = f"[{{name: s, type: struct, fields: {inner}, metadata: {{k: v}}}}]"
    write(tmp_path / "live", catalog(), table("t", schema=columns))
    assert reconciler(tmp_path, "apply", "live", "--yes").code == 0
    dataset = lance.dataset(next(str(p) for p in tmp_path.glob("lake/*t.lance")))
    dataset.update_field_metadata({"s": {"k": None}})
    imported = reconciler(tmp_path, "import", "live", "-o", "live")
    assert "column s k of lake:t; `ignoreDifferences` could not be given that, and the next plan" in imported.err
    assert "ignoreDifferences" not in (tmp_path / "live/m.yaml").read_text()
    again = reconciler(tmp_path, "import", "live", "-o", "live")
    assert (again.out, "could not be given that" in again.err) == ("", True)
    assert "column s k is no longer ours" in reconciler(tmp_path, "plan", "live").out


def test_paths_that_the_live_columns_make_wrong_go(tmp_path: Path) -> None:
    """Also those that an earlier import wrote: with them the file could not be read any more."""
    inner = "[{name: a, type: int64}, {name: b, type: int64, comment: d}]"
    (tmp_path / "live").mkdir()
    write(tmp_path / "live", catalog(), table("t", schema=f"[{{name: s, type: struct, fields: {inner}}}]"))
    assert reconciler(tmp_path, "apply", "live", "--yes").code == 0
    uri = next(str(p) for p in tmp_path.glob("lake/*t.lance"))
    for values, left in (([{"a": 1}], True), ([1], False)):
        lance.write_dataset(pa.table({"s": values}), uri, mode="overwrite")
        imported = reconciler(tmp_path, "import", "live", "-o", "live")
        assert ("ignoreDifferences: [schema.s.b.comment]" in (tmp_path / "live/m.yaml").read_text()) is left
        assert reconciler(tmp_path, "validate", "live").code == 0
    assert "note: lake:t: schema.s.b.comment of `ignoreDifferences` can mean no live column" in imported.err
    assert "the next plan has a step" in imported.err
    assert "column s.b comment is no longer ours" in reconciler(tmp_path, "plan", "live").out
    assert reconciler(tmp_path, "apply", "live", "--yes").code == 0
    assert reconciler(tmp_path, "plan", "live", "--detailed-exitcode").code == 0


@pytest.mark.parametrize("left", ["schema.s.type", "schema.s", "schema"])
def test_paths_of_what_the_manifest_leaves_to_others_stay(tmp_path: Path, left: str) -> None:
    """The document goes on to declare the column as it was, so that they mean something."""
    inner = "[{name: a, type: int64}, {name: b, type: int64, comment: d}]"
    ignored = f"ignoreDifferences: [{left}, schema.s.b.comment]"
    (tmp_path / "live").mkdir()
    columns = f"[{{name: id, type: int64}}, {{name: s, type: struct, fields: {inner}}}]"
    write(tmp_path / "live", catalog(), table("t", schema=columns, spec=ignored))
    assert reconciler(tmp_path, "apply", "live", "--yes").code == 0
    uri = next(str(p) for p in tmp_path.glob("lake/*t.lance"))
    lance.write_dataset(pa.table({"id": [1], "s": [1]}), uri, mode="overwrite")
    assert reconciler(tmp_path, "plan", "live", "--detailed-exitcode").code == 0
    assert reconciler(tmp_path, "import", "live", "-o", "live").out == ""
    assert ignored in (tmp_path / "live/m.yaml").read_text()


@pytest.mark.parametrize("ignored", ["schema.id.metadata.k", "schema.id.type"])
def test_a_path_beside_leaves_nothing_else_to_others(tmp_path: Path, ignored: str) -> None:
    (tmp_path / "live").mkdir()
    columns = "[{name: id, type: int64, comment: c, metadata: {k: '1', k.x: '2'}}]"
    write(tmp_path / "live", catalog(), table("t", schema=columns, spec=f"ignoreDifferences: [{ignored}]"))
    assert reconciler(tmp_path, "apply", "live", "--yes").code == 0
    dataset = lance.dataset(next(str(p) for p in tmp_path.glob("lake/*t.lance")))
    dataset.update_field_metadata({"id": {"k.x": None, "comment": None}})
    assert reconciler(tmp_path, "import", "live", "-o", "live").code == 0
    left = f"[{ignored}, schema.id.comment, schema.id.metadata.k.x]"
    assert f"ignoreDifferences: {left}\n" in (tmp_path / "live/m.yaml").read_text()
    assert reconciler(tmp_path, "plan", "live", "--detailed-exitcode").code == 0


def test_a_protection_that_others_took_off_is_told(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    write(tmp_path / "live", catalog(), table("t", spec="protect: true"))
    assert reconciler(tmp_path, "apply", "live", "--yes").code == 0
    write(tmp_path, catalog(), table("t", spec="protect: false"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    imported = reconciler(tmp_path, "import", "live", "-o", "live")
    assert "note: lake:t has no protect mark any more, and its document says so now\n" in imported.err


def test_data_that_lost_our_mark_is_told(tmp_path: Path, ours: lance.LanceDataset) -> None:
    ours.update_metadata({"reconciler.owner": None})
    imported = reconciler(tmp_path, "import", "live", "-o", "live")
    assert "note: lake:t: the data does not carry our mark any more: `apply --adopt` takes it over" in imported.err
    assert "1 object is unowned" in reconciler(tmp_path, "plan", "live").out
    assert "nobody owned its data" in reconciler(tmp_path, "plan", "live", "--adopt").out


def test_what_others_added_leaves_nothing_to_do_and_is_ours_with_the_next_change(
    tmp_path: Path, ours: lance.LanceDataset
) -> None:
    dataset = ours
    dataset.update_config({"z": "1"})
    dataset.create_scalar_index("id", "BITMAP", name="theirs")
    assert reconciler(tmp_path, "import", "live", "-o", "live").out == "updated live/m.yaml\n"
    assert reconciler(tmp_path, "plan", "live", "--detailed-exitcode").code == 0
    file = tmp_path / "live/m.yaml"
    assert "{name: id, type: int64}" in file.read_text()
    file.write_text(file.read_text().replace("{name: id, type: int64}", "{name: id, type: int64, comment: key}"))
    planned = reconciler(tmp_path, "plan", "live", "--format", "json")
    (step,) = json.loads(planned.out)["steps"]
    assert step["after"]["applied"] == ["config:y", "config:z", "field:id:comment", "index:id_idx", "index:theirs"]
    assert step["reason"] == "column metadata differs: id; config z, index theirs are declared now"
    assert reconciler(tmp_path, "apply", "live", "--yes").code == 0
    assert reconciler(tmp_path, "plan", "live", "--detailed-exitcode").code == 0
    dataset = lance.dataset(dataset.uri)
    assert {i.name for i in dataset.describe_indices()} == {"id_idx", "theirs"}, "nothing else was changed"
    assert dataset.config()["z"] == "1"


def test_only_what_was_looked_at_is_told(lake: Path) -> None:
    """What is declared is not compared with live then, so nothing is said of it."""
    assert reconciler(lake, "import", "c.yaml", "-o", "live").code == 0
    file = lake / "live/lake/root-tables.yaml"
    file.write_text(file.read_text().replace("int64", "int32"))
    (lake / "c.yaml").unlink()
    run = reconciler(lake, "import", "live", "-o", "live", "--only-unmanaged")
    told = "nothing to do: all that is live has an owner or is declared; what is declared was not compared\n"
    assert (run.code, run.out) == (0, "")
    assert run.err.endswith(told)
    assert "nothing else is live" not in run.err
    part = reconciler(lake, "import", "live", "-o", "live", "--target", "a.**")
    assert part.err.endswith("nothing to do: the files in live say what is live (of what was asked for)\n")


def test_a_dry_run_is_a_diff_that_patch_understands(lake: Path) -> None:
    assert reconciler(lake, "import", "c.yaml", "-o", "live", "--target", "a.ours").code == 0
    before = files(lake)
    run = reconciler(lake, "import", "c.yaml", "-o", "live", "--dry-run")
    assert (run.code, files(lake)) == (0, before)
    (lake / "x.patch").write_text(run.out)
    subprocess.run(["patch", "-p0", "-i", "x.patch"], cwd=lake, check=True, capture_output=True)
    patched = files(lake)
    subprocess.run(["patch", "-R", "-p0", "-i", "x.patch"], cwd=lake, check=True, capture_output=True)
    assert reconciler(lake, "import", "c.yaml", "-o", "live").code == 0
    assert files(lake) == patched


def test_a_literal_secret_becomes_a_variable_and_it_is_said_which(tmp_path: Path) -> None:
    write(tmp_path, catalog(storage__token="hunter2-hunter2", storage__other="${env:OTHER}"), name="c.yaml")
    run = reconciler(tmp_path, "import", "c.yaml", "-o", "live", env={"OTHER": "x"})
    text = files(tmp_path / "live")["lake/catalog.yaml"]
    assert run.code == 0
    assert "To use it, set RECONCILER_LAKE_STORAGE_TOKEN" in run.err
    assert "storage.token: ${env:RECONCILER_LAKE_STORAGE_TOKEN}" in text
    assert "hunter2" not in text + run.out + run.err
    assert reconciler(tmp_path, "import", "c.yaml", "-o", "live", env={"OTHER": "x"}).out == ""


@pytest.mark.slow
def test_a_killed_import_loses_nothing_and_goes_on(tmp_path: Path) -> None:
    names = [f"n{number:03}" for number in range(120)]
    write(tmp_path, catalog(), *(namespace(name) for name in names))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog(), name="c.yaml")
    (tmp_path / "m.yaml").unlink()
    words = command("import", "c.yaml", "-o", "live")
    for files_before in (1, 40, 80):
        running = subprocess.Popen(words, cwd=tmp_path, env=environment(), stderr=subprocess.DEVNULL)
        while running.poll() is None and sum(1 for _ in (tmp_path / "live").rglob("*.yaml")) < files_before:
            time.sleep(0.001)
        running.kill()
        running.wait()
        if (tmp_path / "live").exists():
            assert reconciler(tmp_path, "validate", "live").code == 0
    assert reconciler(tmp_path, "import", "c.yaml", "-o", "live").code == 0
    assert reconciler(tmp_path, "plan", "live", "--detailed-exitcode").code == 0
    assert len(files(tmp_path / "live")) == 121


def test_a_file_where_a_folder_has_to_be_is_an_error(lake: Path) -> None:
    (lake / "live").write_text("")
    run = reconciler(lake, "import", "c.yaml", "-o", "live")
    assert run.code == 1
    assert "nothing was written" in run.err


def test_what_cannot_be_read_of_an_index_is_told(tmp_path: Path) -> None:
    """The files keep what they say of it; a new file leaves it out, and what we recorded is never written."""
    schema = "[{name: id, type: int64}, {name: v, type: 'fixed_size_list<float32>[4]'}]"
    first = "{column: v, type: ivf_flat, params: {metric: l2, num_partitions: 1}}"
    second = "{column: v, name: w, type: ivf_flat, params: {num_partitions: 1}}"
    for indexes, more in ((first, ""), (f"{first}, {second}", " (nor can 1 other parameter)")):
        write(tmp_path, catalog(), namespace("a"), table("a", "t", schema=schema, spec=f"indexes: [{indexes}]"))
        assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
        told = f"note: num_partitions of the index v_idx of lake:a.t cannot be read from the live index{more}: "
        (tmp_path / "m").mkdir(exist_ok=True)
        (tmp_path / "m.yaml").rename(tmp_path / "m" / "m.yaml")
        again = reconciler(tmp_path, "import", "m", "-o", "m")
        assert told in again.err
        assert again.err.endswith("nothing to do: the files in m say what is live, as far as it can be read\n")
        fresh = reconciler(tmp_path, "import", "m", "-o", f"new{len(more)}")
        assert fresh.code == 0
        assert told in fresh.err
        new = "".join(file.read_text() for file in (tmp_path / f"new{len(more)}").rglob("*.yaml"))
        assert "ivf_flat" in new
        assert "num_partitions" not in new
