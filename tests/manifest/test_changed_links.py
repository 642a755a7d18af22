"""--changed-since where manifests are reached through symbolic links. To git a link is a file that holds a path."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.manifest.load import load

from .layer_files import IMAGES, LAKE, VISION, documents
from .test_changed_since import Repo, told

CATALOG = documents(LAKE, VISION)
Act = Callable[[Path], object]


def named(name: str, team: str = "vision") -> str:
    return documents(IMAGES.replace("images", name).replace("team: vision", f"team: {team}"))


def link(place: Path, target: str) -> None:
    """Made anew when it is there."""
    place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """Links to a file, to a folder, to a link, in an overlay and above the manifests: all on `main`."""
    made = Repo(tmp_path / "r")
    made.write("envs/one/m/catalog.yaml", CATALOG)
    made.write("shared/a/file.yaml", named("file"))
    made.write("shared/b/file.yaml", named("other"))
    made.write("shared/beside.yaml", named("beside"))
    made.write("versions/v1/t.yaml", named("folder"))
    made.write("versions/v2/t.yaml", named("folder", "x"))
    made.write("versions/v1/deep/t.yaml", named("deep"))
    patch = "kind: Table\nmetadata: {catalog: lake, id: [vision, folder]}\nspec: {protect: true}\n"
    made.write("patches/prod/p.yaml", documents(patch))
    made.write("patches/prod/q.yaml", documents(patch.replace("folder", "file")))
    m = made.folder / "envs/one/m"
    link(m / "file.yaml", "../../../shared/a/file.yaml")
    link(m / "folder", "../../../current")
    link(m / "overlays", "../../../patches")
    link(made.folder / "current", "versions/v1")
    link(made.folder / "env", "envs/one")
    made.commit()
    made.git("checkout", "-q", "-b", "work")
    return made


def refused(repo: Repo, path: str = "env/m", **options: object) -> str:
    """The link that is told."""
    found = repo.load("main", path, **options)
    assert [code for code, _ in told(found)] == ["M534"]
    name, _, rest = found.diagnostics[-1].message.partition(" is a link that is not what it was at main")
    assert rest, found.diagnostics
    return name


# -- links that are what they were -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["env/m", "envs/one/m", "env/../one/m/"])
def test_links_that_nobody_touched_are_followed(repo: Repo, path: str) -> None:
    assert repo.changed(path=path) == []
    repo.write("shared/a/file.yaml", named("file", "x"))
    repo.write("versions/v1/deep/t.yaml", named("deep", "x"))
    assert repo.changed(path=path) == ["vision.deep", "vision.file"]
    repo.commit()
    assert repo.changed(path=path) == ["vision.deep", "vision.file"]


def test_what_is_gone_behind_a_link(repo: Repo) -> None:
    (repo.folder / "versions/v1/deep/t.yaml").unlink()
    assert repo.changed(path="env/m") == ["vision.deep"]
    repo.git("rm", "-q", "-r", "versions/v1")
    assert repo.changed(path="env/m") == ["vision.deep", "vision.folder"], "nothing is left, and the link leads nowhere"
    repo.commit()
    assert repo.changed(path="env/m") == ["vision.deep", "vision.folder"]


def test_what_lies_beside_the_target_of_a_link_is_not_read(repo: Repo) -> None:
    repo.write("shared/a/beside.yaml", named("beside"))
    repo.write("shared/beside.yaml", named("beside", "x"))
    repo.write("versions/v3/t.yaml", named("folder", "y"))
    repo.write("versions/v2/t.yaml", named("folder", "y"))
    (repo.folder / "shared/b/file.yaml").unlink()
    assert repo.changed(path="env/m") == []


def test_an_overlay_behind_a_link(repo: Repo) -> None:
    assert repo.changed(path="env/m", environment="prod") == []
    (repo.folder / "patches/prod/q.yaml").unlink()
    assert repo.changed(path="env/m", environment="prod") == ["vision.file"]
    repo.write("patches/dev/p.yaml", named("dev"))
    assert repo.changed(path="env/m", environment="prod") == ["vision.file"]
    assert repo.changed(path="env/m") == []


def test_an_overlay_in_an_overlay_behind_a_link_is_not_read(repo: Repo) -> None:
    repo.write("patches/prod/overlays/prod/p.yaml", named("file"))
    repo.commit()
    repo.write("patches/prod/overlays/prod/p.yaml", named("file", "x"))
    assert repo.changed("HEAD", path="env/m", environment="prod") == []


def test_a_link_with_another_time_is_the_same_link(repo: Repo) -> None:
    """As after a copy of the work tree, or when the same link was made anew: git compares times first."""
    for name in ("env", "current", "envs/one/m/file.yaml", "envs/one/m/folder"):
        os.utime(repo.folder / name, (1000, 1000), follow_symlinks=False)
    assert "current" in repo.git("diff-index", "--name-only", "HEAD"), "git lists what it would have to look at"
    assert repo.changed(path="env/m") == []
    repo.git("rm", "-q", "--cached", "current")
    assert repo.changed(path="env/m") == [], "it is there, and the same, whether it is tracked or not"


def test_links_that_lead_to_no_manifest(repo: Repo) -> None:
    repo.write("notes.txt", "text")
    m = repo.folder / "envs/one/m"
    link(m / "notes", "../../../notes.txt")
    link(m / "nowhere", "no/such/folder")
    link(m / "circle", "circle")
    link(m / ".hidden", "../../../versions")
    link(repo.folder / "latest", "versions/v2")
    assert repo.changed(path="env/m") == []
    repo.commit()
    assert repo.changed(path="env/m") == []
    assert repo.changed("HEAD", path="env/m") == []
    link(m / ".hidden", "../../../shared")
    link(repo.folder / "latest", "versions/v1")
    assert repo.changed("HEAD", path="env/m") == []


# -- links that are not ------------------------------------------------------------------------------------------------


def replaced(place: Path, text: str) -> None:
    place.unlink(missing_ok=True)
    place.write_text(text)


def as_folder(place: Path) -> None:
    target = place.resolve()
    place.unlink()
    place.mkdir()
    for file in target.glob("*.yaml"):
        (place / file.name).write_text(file.read_text())


CHANGED: dict[str, tuple[Act, str]] = {
    "a file link that leads elsewhere": (
        lambda r: link(r / "envs/one/m/file.yaml", "../../../shared/b/file.yaml"),
        "envs/one/m/file.yaml",
    ),
    "a folder link that leads elsewhere": (
        lambda r: link(r / "envs/one/m/folder", "../../../versions/v2"),
        "envs/one/m/folder",
    ),
    "the link that a link leads to": (lambda r: link(r / "current", "versions/v2"), "current"),
    "the link that a link leads to, gone": (lambda r: (r / "current").unlink(), "current"),
    "a new file link": (
        lambda r: link(r / "envs/one/m/new.yaml", "../../../shared/b/file.yaml"),
        "envs/one/m/new.yaml",
    ),
    "a new folder link": (lambda r: link(r / "envs/one/m/new", "../../../shared/b"), "envs/one/m/new"),
    "a new link behind a link": (lambda r: link(r / "versions/v1/new", "../../shared/b"), "versions/v1/new"),
    "a file link that is gone": (lambda r: (r / "envs/one/m/file.yaml").unlink(), "envs/one/m/file.yaml"),
    "a folder link that is gone": (lambda r: (r / "envs/one/m/folder").unlink(), "envs/one/m/folder"),
    "a file where a link was": (
        lambda r: replaced(r / "envs/one/m/file.yaml", named("other")),
        "envs/one/m/file.yaml",
    ),
    "a folder where a link was": (lambda r: as_folder(r / "envs/one/m/folder"), "envs/one/m/folder"),
    "a folder where the link above was": (
        lambda r: ((r / "env").unlink(), (r / "env/m").mkdir(parents=True), replaced(r / "env/m/c.yaml", CATALOG)),
        "env",
    ),
    "a link where a file was": (
        lambda r: link(r / "versions/v1/t.yaml", "../../shared/b/file.yaml"),
        "versions/v1/t.yaml",
    ),
    "a link where a folder was": (
        lambda r: ((r / "versions/v1").rename(r / "v"), link(r / "versions/v1", "../v")),
        "versions/v1",
    ),
}


@pytest.mark.parametrize(("act", "name"), CHANGED.values(), ids=CHANGED)
def test_a_link_that_is_not_what_it_was_is_told(repo: Repo, act: Act, name: str) -> None:
    act(repo.folder)
    assert refused(repo) == name, "not committed"
    repo.commit()
    assert refused(repo) == name, "committed"
    assert repo.changed("HEAD", path="env/m") == []


def test_a_link_on_the_way_to_where_nothing_is_any_more(repo: Repo) -> None:
    link(repo.folder / "far", "versions")
    link(repo.folder / "envs/one/m/far", "../../../far/v2/deep")
    repo.write("versions/v2/deep/t.yaml", named("far"))
    repo.commit()
    repo.git("branch", "-f", "main")
    link(repo.folder / "far", "shared")
    assert refused(repo) == "far"


def test_the_link_of_the_given_path(repo: Repo) -> None:
    repo.write("envs/two/m/catalog.yaml", CATALOG)
    link(repo.folder / "env", "envs/two")
    assert refused(repo) == "env"
    assert repo.changed(path="envs/two/m") == ["vision"], "the folder itself can be compared"


def test_a_link_of_an_overlay_counts_with_its_environment(repo: Repo) -> None:
    repo.write("others/prod/p.yaml", (repo.folder / "patches/prod/p.yaml").read_text())
    link(repo.folder / "envs/one/m/overlays", "../../../others")
    assert refused(repo, environment="prod") == "envs/one/m/overlays"
    assert repo.changed(path="env/m") == []


def test_all_are_counted_and_the_first_is_named(repo: Repo) -> None:
    link(repo.folder / "envs/one/m/folder", "../../../versions/v2")
    (repo.folder / "envs/one/m/file.yaml").unlink()
    found = repo.load("main", "env/m")
    assert found.diagnostics[-1].message == (
        "envs/one/m/file.yaml is a link that is not what it was at main (and 1 more link): "
        "what changed through it cannot be told"
    )


def test_a_way_through_the_outside_is_followed(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As git-sync gives it: the repository itself is behind a link, which is none of its files."""
    link(tmp_path / "now", "r")
    repo.write("shared/a/file.yaml", named("file", "x"))
    for path in (tmp_path / "now/env/m", tmp_path / "now/envs/one/m"):
        found = load([str(path)], changed_since="main", environ={})
        assert found.changed is not None, found.diagnostics
        assert found.changed.only["lake"] == {("vision", "file")}
    monkeypatch.chdir(tmp_path / "now" / "env")
    found = load(["m"], changed_since="main", environ={})
    assert found.changed is not None
    assert found.changed.only["lake"] == {("vision", "file")}
