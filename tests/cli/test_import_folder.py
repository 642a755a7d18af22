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
    assert (run.code, run.out) == (0, f"wrote {Path(folder) / 'lake.yaml'}\n"), run.err
    assert "note: catalog lake is declared at " in run.err
    assert "m/catalog.yaml:1:1 already and not written again" in run.err
    assert "kind: Catalog" not in (live / folder / "lake.yaml").read_text()
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


def test_a_file_beside_the_new_folder_is_told(live: Path) -> None:
    """Each of the two is good by itself; it cannot be known which one the user goes on with."""
    run = reconciler(live, "import", "m/catalog.yaml", "-o", "m/deep")
    assert run.code == 0
    assert "note: m/deep/lake.yaml and m/catalog.yaml both declare catalog lake" in run.err
    assert reconciler(live, "plan", "m/deep", "--detailed-exitcode").code == 0


@pytest.mark.parametrize("folder", ["m", "m/deep"])
def test_what_is_declared_already_is_refused_before_anything_is_written(live: Path, folder: str) -> None:
    write(live / "m", table("a", "t").removeprefix("---\n"), name="tables.yaml")
    before = files(live)
    run = reconciler(live, "import", "m", "-o", folder)
    assert (run.code, run.out) == (1, "")
    assert "lake:a.t is declared at m/tables.yaml:1:1 already, which is read together with" in run.err
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
