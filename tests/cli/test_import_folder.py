"""Import into a folder that is read together with the Catalog document: what was valid stays valid."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runs import catalog, namespace, reconciler, table, write


@pytest.fixture
def live(tmp_path: Path) -> Path:
    """A lake, and nothing but its Catalog document in `m/`."""
    write(tmp_path, catalog(), namespace("a"), table("a", "t"), name="first.yaml")
    assert reconciler(tmp_path, "apply", "first.yaml", "--yes").code == 0
    (tmp_path / "first.yaml").unlink()
    (tmp_path / "m" / "deep").mkdir(parents=True)
    write(tmp_path / "m", catalog(), name="catalog.yaml")
    return tmp_path


def files(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*.yaml"))}


@pytest.mark.parametrize(
    ("given", "folder"),
    [("m", "m"), ("m", "./m/"), ("m", "m/deep"), ("m", "m/new/er"), ("m/catalog.yaml", "m"), ("m/catalog.yaml", ".")],
)
def test_the_catalog_is_not_written_again(live: Path, given: str, folder: str) -> None:
    before = (live / "m/catalog.yaml").read_text()
    run = reconciler(live, "import", given, "-o", folder)
    assert (run.code, run.out) == (0, f"wrote {Path(folder) / 'lake/a.yaml'}\n"), run.err
    assert "note: catalog lake is declared at " in run.err
    assert "m/catalog.yaml:1:1 already and not written again" in run.err
    assert not (live / folder / "lake/catalog.yaml").exists()
    assert (live / "m/catalog.yaml").read_text() == before
    whole = folder if folder == "." else "m"
    assert reconciler(live, "plan", whole, "--detailed-exitcode").code == 0


@pytest.mark.parametrize("folder", ["other", "m/.hidden", "m/overlays/x"])
def test_elsewhere_the_folder_stands_alone(live: Path, folder: str) -> None:
    """Neither hidden folders nor overlays are read with the one they are in."""
    run = reconciler(live, "import", "m", "-o", folder)
    assert (run.code, run.err) == (0, "")
    for valid in ("m", folder):
        assert reconciler(live, "plan", valid, "--detailed-exitcode").code == 0


@pytest.mark.slow
def test_a_file_beside_the_new_folder_is_told(live: Path) -> None:
    """Each of the two is good by itself; it cannot be known which one the user goes on with."""
    run = reconciler(live, "import", "m/catalog.yaml", "-o", "m/deep")
    assert run.code == 0
    assert "note: m/deep/lake/catalog.yaml and m/catalog.yaml both declare catalog lake" in run.err
    assert reconciler(live, "plan", "m/deep", "--detailed-exitcode").code == 0


def test_what_is_declared_is_brought_up_to_date_where_it_is(live: Path) -> None:
    old = table("a", "t", schema="[{name: id, type: int32}]  # mine").removeprefix("---\n")
    write(live / "m", old, name="tables.yaml")
    run = reconciler(live, "import", "m", "-o", "m")
    assert (run.code, run.out) == (0, "wrote m/lake/a.yaml\nupdated m/tables.yaml\n"), run.err
    assert files(live)["m/tables.yaml"] == old.replace("int32", "int64")
    assert "kind: Table" not in files(live)["m/lake/a.yaml"]
    assert reconciler(live, "plan", "m", "--detailed-exitcode").code == 0


def test_nothing_outside_the_folder_is_changed(live: Path) -> None:
    write(live / "m", table("a", "t", schema="[{name: id, type: int32}]").removeprefix("---\n"), name="tables.yaml")
    before = files(live)
    run = reconciler(live, "import", "m", "-o", "m/deep")
    assert (run.code, run.out) == (0, "wrote m/deep/lake/a.yaml\n")
    assert "lake:a.t is not as m/tables.yaml:1:1 says, which is not below m/deep: it is left as it is" in run.err
    assert {**before, "m/deep/lake/a.yaml": files(live)["m/deep/lake/a.yaml"]} == files(live)


def test_a_folder_whose_catalog_is_elsewhere_is_read_with_it(live: Path) -> None:
    """Whoever took the Catalog document out of the folder does not get it back."""
    assert reconciler(live, "import", "m", "-o", "out").code == 0
    (live / "out/lake/catalog.yaml").unlink()
    before = files(live)
    run = reconciler(live, "import", "m", "-o", "out")
    assert (run.code, run.out) == (0, ""), run.err
    assert files(live) == before


def test_a_broken_folder_is_refused_before_anything_is_written(live: Path) -> None:
    (live / "out").mkdir()
    write(live / "out", "kind: Nonsense\n", name="x.yaml")
    before = files(live)
    run = reconciler(live, "import", "m", "-o", "out")
    assert (run.code, run.out) == (1, "")
    assert "out/x.yaml:1:1: error" in run.err
    assert "error: the manifests in out have errors; nothing was written" in run.err
    assert files(live) == before


def test_another_catalog_of_that_name_is_refused(live: Path) -> None:
    (live / "out").mkdir()
    write(live / "out", catalog(path="./elsewhere"), name="theirs.yaml")
    before = files(live)
    run = reconciler(live, "import", "m", "-o", "out")
    assert (run.code, run.out) == (1, "")
    assert "catalog lake is declared otherwise at out/theirs.yaml:1:1" in run.err
    assert files(live) == before


def test_an_empty_catalog_gives_no_second_file(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    write(tmp_path / "m", catalog(), name="catalog.yaml")
    run = reconciler(tmp_path, "import", "m", "-o", "m")
    assert (run.code, run.out) == (0, "")
    assert "nothing else is live" in run.err
    assert sorted(files(tmp_path)) == ["m/catalog.yaml"]
