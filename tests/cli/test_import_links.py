"""Import changes nothing outside of its folder: not through links among its folders and files either."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runs import catalog, namespace, reconciler, table, write


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Live objects at the root and in two namespaces, a manifest to import with, and a folder of somebody else."""
    write(tmp_path, catalog(), namespace("a"), namespace("b"), table("a", "t"), table("r"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog())
    (tmp_path / "theirs").mkdir()
    return tmp_path


def snapshot(folder: Path) -> dict[str, str | None]:
    """Files and folders, those reached by links too."""
    found = {p for name in ("live", "theirs") for p in (folder / name).rglob("*")}
    return {str(p.relative_to(folder)): p.read_text() if p.is_file() else None for p in sorted(found)}


def refused(folder: Path, message: str, *flags: str) -> None:
    before = snapshot(folder)
    for more in ((), ("--dry-run",)):
        run = reconciler(folder, "import", "m.yaml", "-o", "live", *flags, *more)
        assert (run.code, run.out) == (1, ""), run.err
        assert message in run.err
        assert "nothing was written" in run.err
        assert snapshot(folder) == before


OUT = "is reached by a link that leads out of live"


@pytest.mark.parametrize("link", ["live/lake", "live/lake/b.yaml", "live/lake/catalog.yaml"])
@pytest.mark.parametrize("there", [True, False], ids=["to what is there", "to nothing"])
def test_a_link_that_leads_out(lake: Path, link: str, there: bool) -> None:
    target = lake / "theirs" / "new"
    if there and link.endswith(".yaml"):
        target.write_text("# theirs\n")
    elif there:
        target.mkdir()
    (lake / link).parent.mkdir(parents=True)
    (lake / link).symlink_to(target)
    refused(lake, OUT)


def test_a_link_that_leads_up(lake: Path) -> None:
    (lake / "live").mkdir()
    (lake / "live/lake").symlink_to("..")
    refused(lake, OUT)
    assert not (lake / "a.yaml").exists()


def test_a_link_of_a_namespace_with_a_file_for_each_table(lake: Path) -> None:
    (lake / "live/lake").mkdir(parents=True)
    (lake / "live/lake/a").symlink_to("../../theirs")
    refused(lake, OUT, "--split", "table")


def test_a_link_that_leads_nowhere_stops_before_the_first_file(lake: Path) -> None:
    (lake / "live/lake").mkdir(parents=True)
    (lake / "live/lake/b.yaml").symlink_to("nothing.yaml")
    refused(lake, "b.yaml is a link that leads nowhere")


@pytest.mark.parametrize("moved", ["live/lake", "live/lake/a.yaml"], ids=["folder", "file"])
def test_a_link_that_appears_before_the_next_import(lake: Path, moved: str) -> None:
    assert reconciler(lake, "import", "m.yaml", "-o", "live").code == 0
    (lake / moved).rename(lake / "theirs/moved")
    (lake / moved).symlink_to(lake / "theirs/moved")
    assert reconciler(lake, "import", "m.yaml", "-o", "live").code == 0, "there is nothing to write"
    described = table("a", "t").replace("spec:", "spec:\n  description: new", 1)
    write(lake, catalog(), namespace("a"), described, table("r"), name="more.yaml")
    assert reconciler(lake, "apply", "more.yaml", "--yes").code == 0
    refused(lake, OUT)


def test_links_that_stay_inside_and_the_folder_itself(lake: Path) -> None:
    """The folder of the command line may be a link: whoever starts the program said so."""
    (lake / "theirs/kept").mkdir()
    (lake / "theirs/lake").symlink_to("kept")
    (lake / "live").symlink_to("theirs")
    assert reconciler(lake, "import", "m.yaml", "-o", "live").code == 0
    assert (lake / "theirs/kept/a.yaml").exists()
    assert reconciler(lake, "plan", "live", "--detailed-exitcode").code == 0
