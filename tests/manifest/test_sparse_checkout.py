"""A manifest that a sparse checkout leaves out is not gone: it is never planned as removed, and its change is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.app import Failure, PlanOptions, Reading, Refusal, Request, Session, plan
from reconciler.manifest.sparse import why_not_to_prune

from .layer_files import IMAGES, LAKE, VISION, documents
from .test_changed_since import LABELS, Repo, told

OWNED = LAKE.replace("path: ./lake", "path: ./lake, management: {owner: me}")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "r")
    made.write("m/all.yaml", documents(OWNED, VISION, IMAGES))
    made.write("m/labels.yaml", documents(LABELS))
    made.write("m/other.yaml", documents(VISION.replace("vision", "other")))
    made.commit()
    made.git("checkout", "-q", "-b", "work")
    made.write("m/labels.yaml", documents(LABELS.replace("team: vision", "team: x")))
    made.commit()
    return made


def leave_out(repo: Repo, *names: str) -> None:
    repo.git("sparse-checkout", "set", "--no-cone", "/*", *(f"!{name}" for name in names))
    assert not any((repo.folder / name).exists() for name in names)


def test_a_change_in_it_is_told(repo: Repo) -> None:
    leave_out(repo, "m/labels.yaml")
    ((code, hint),) = told(repo.load())
    assert (code, "git sparse-checkout" in hint) == ("M534", True)
    assert repo.load().changed is None
    leave_out(repo, "m/other.yaml")
    assert repo.changed() == ["vision.labels"], "what did not change is not missed"


def test_what_is_removed_in_a_sparse_checkout_counts(repo: Repo) -> None:
    leave_out(repo, "m/other.yaml")
    (repo.folder / "m/labels.yaml").unlink()
    assert repo.changed() == ["vision.labels"]
    assert why_not_to_prune([str(repo.folder / "m/all.yaml")], "") is None, "a path that is there as a whole"


def planned(repo: Repo, monkeypatch: pytest.MonkeyPatch, **reading: str) -> list[str]:
    monkeypatch.chdir(repo.folder)
    session = Session()
    try:
        made, _ = plan(Request(("m",), Reading(**reading), options=PlanOptions(prune=True)), session)  # type: ignore[arg-type]
    finally:
        session.close()
    return [s.action for s in made.steps]


def test_pruning_is_refused(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "drop_namespace" not in planned(repo, monkeypatch)
    leave_out(repo, "m/other.yaml")
    with pytest.raises(Refusal, match=r"m/other.yaml is in git and not checked out"):
        planned(repo, monkeypatch)
    leave_out(repo, "m/labels.yaml")
    with pytest.raises(Failure):
        planned(repo, monkeypatch, changed_since="main")
    leave_out(repo, "README.md")
    assert "drop_namespace" not in planned(repo, monkeypatch)


def test_an_overlay_counts_in_its_environment(repo: Repo) -> None:
    repo.write("m/overlays/prod/x.yaml", "")
    repo.commit()
    leave_out(repo, "m/overlays/prod/x.yaml")
    path = str(repo.folder / "m")
    assert why_not_to_prune([path], "") is None
    assert "x.yaml" in (why_not_to_prune([path], "prod") or "")


@pytest.mark.parametrize("sparse", [True, False])
def test_where_git_has_no_answer(repo: Repo, sparse: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a container without git, all may be there; in one with a sparse checkout nobody knows."""
    if sparse:
        leave_out(repo, "m/other.yaml")
    monkeypatch.setenv("PATH", str(tmp_path))
    told = why_not_to_prune([str(repo.folder / "m")], "")
    assert (told is not None and "sparse checkout" in told) is sparse


def test_outside_of_a_repository_there_is_nothing_to_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert why_not_to_prune([str(tmp_path)], "prod") is None


@pytest.mark.parametrize("way", ["above", "link to the folder", "link to a file"])
def test_a_checkout_that_the_way_leads_into(repo: Repo, way: str, tmp_path: Path) -> None:
    """As the volume of git-sync has it: a link to the work tree."""
    leave_out(repo, "m/other.yaml", "n/far.yaml")
    given = tmp_path / "given"
    given.mkdir()
    (given / "own.yaml").write_text(documents(OWNED))
    if way == "above":
        (given / "current").symlink_to(repo.folder)
    elif way == "link to the folder":
        (given / "x").symlink_to(repo.folder / "m")
    else:
        (given / "all.yaml").symlink_to(repo.folder / "m/all.yaml")
    told = why_not_to_prune([str(given)], "")
    assert (told is not None and "m/other.yaml is in git" in told) is (way != "link to a file")


def test_a_submodule(repo: Repo, tmp_path: Path) -> None:
    """One that is there is read; one that was not checked out is not gone."""
    inner = Repo(tmp_path / "inner")
    inner.write("x.yaml", documents(VISION.replace("vision", "inner")))
    inner.commit()
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.folder), "m/sub")
    repo.commit()
    path = str(repo.folder / "m")
    assert why_not_to_prune([path], "") is None
    leave_out(repo, "nothing")
    assert why_not_to_prune([path], "") is None, "sparse, and all there"
    repo.git("submodule", "--quiet", "deinit", "--force", "m/sub")
    assert "m/sub is a submodule that is not checked out" in (why_not_to_prune([path], "") or "")
    assert why_not_to_prune([str(repo.folder / "m/all.yaml")], "") is None


def test_a_checkout_that_is_no_longer_sparse(repo: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    leave_out(repo, "m/other.yaml")
    repo.git("sparse-checkout", "disable")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert why_not_to_prune([str(repo.folder / "m")], "") is None


def test_a_further_work_tree(repo: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its settings are its own."""
    repo.git("worktree", "add", "-q", str(tmp_path / "further"), "main")
    further = tmp_path / "further"
    repo.git("-C", str(further), "sparse-checkout", "set", "--no-cone", "/*", "!m/other.yaml")
    assert "m/other.yaml is in git" in (why_not_to_prune([str(further / "m")], "") or "")
    assert why_not_to_prune([str(repo.folder / "m")], "") is None
    monkeypatch.setenv("PATH", str(tmp_path))
    told = why_not_to_prune([str(further / "m")], "")
    assert told is not None
    assert "safe.directory" in told
    assert "--changed-since" not in told
