"""--changed-since, in real git repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reconciler.manifest.load import Loaded, load

from .layer_files import IMAGES, LAKE, VISION, documents

LABELS = IMAGES.replace("images", "labels")
DEFAULTS = "kind: Defaults\nmetadata: {catalog: lake}\nspec: {match: ['vision.images'], properties: {cost: '7'}}\n"


class Repo:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        who = {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env=os.environ | who | alone,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")

    def load(self, revision: str = "main", path: str = "m", **options: object) -> Loaded:
        return load([str(self.folder / path)], changed_since=revision, environ={}, **options)  # type: ignore[arg-type]

    def changed(self, revision: str = "main", path: str = "m", **options: object) -> list[str]:
        """The objects that a run would be about."""
        found = self.load(revision, path, **options)
        assert [d for d in found.diagnostics if d.severity == "error"] == []
        assert found.changed is not None
        return sorted(".".join(ident) for idents in found.changed.only.values() for ident in idents)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """Two tables on `main`, and a branch `work` checked out."""
    made = Repo(tmp_path / "r")
    made.write("m/catalog.yaml", documents(LAKE))
    made.write("m/vision.yaml", documents(VISION, IMAGES, LABELS))
    made.write("m/fleet.yaml", documents(VISION.replace("vision", "fleet")))
    made.write("README.md", "text")
    made.commit()
    made.git("checkout", "-q", "-b", "work")
    return made


def test_documents_are_compared_not_files(repo: Repo) -> None:
    assert repo.changed() == []
    repo.write(
        "m/vision.yaml", "# why\n" + documents(LABELS, VISION, IMAGES).replace("{team: vision}", "{ team: vision }")
    )
    assert repo.changed() == [], "a comment, another order, other spaces"
    repo.write("m/vision.yaml", documents(VISION, LABELS))
    repo.write("m/moved.yaml", documents(IMAGES))
    assert repo.changed() == [], "a document that moved to another file"
    repo.write("m/moved.yaml", documents(IMAGES.replace("team: vision", "team: x")))
    assert repo.changed() == ["vision.images"]


def test_committed_staged_unstaged_untracked_and_ignored(repo: Repo) -> None:
    repo.write("m/vision.yaml", documents(VISION, IMAGES.replace("team: vision", "team: x"), LABELS))
    assert repo.changed() == ["vision.images"]
    repo.git("add", "-A")
    assert repo.changed() == ["vision.images"]
    repo.commit()
    assert repo.changed() == ["vision.images"]
    assert repo.changed("HEAD") == []
    repo.write(".gitignore", "m/new*\n")
    repo.write("m/new.yaml", documents(IMAGES.replace("images", "new")))
    assert repo.changed("HEAD") == ["vision.new"], "what is read and was not there is new, whatever git ignores"


def test_the_revision_counts_from_where_the_branch_left_it(repo: Repo) -> None:
    repo.git("checkout", "-q", "main")
    repo.write("m/fleet.yaml", documents(VISION.replace("vision", "fleet") + "spec: {protect: true}\n"))
    repo.commit()
    repo.git("checkout", "-q", "work")
    assert repo.changed("main") == [], "what others did on main meanwhile is not this branch's change"


def test_what_is_gone_is_part_of_it(repo: Repo) -> None:
    repo.write("m/vision.yaml", documents(VISION, LABELS))
    assert repo.changed() == ["vision.images"]
    (repo.folder / "m" / "fleet.yaml").unlink()
    assert repo.changed() == ["fleet", "vision.images"]
    repo.git("rm", "-q", "--cached", "m/catalog.yaml")
    assert repo.changed() == ["fleet", "vision.images"], "what git no longer tracks is compared all the same"


def test_what_depends_on_it_comes_along(repo: Repo) -> None:
    reader = LABELS.replace("labels", "copy") + (
        "  data: {source: {format: lance, table: {catalog: lake, id: [vision, images]}}, mode: once}\n"
    )
    moved = LABELS.replace("labels", "moved").replace(
        "spec:\n", "spec:\n  migration: {from: {catalog: lake, id: [vision, copy]}}\n"
    )
    repo.write("m/rows.yaml", documents(reader, moved))
    repo.commit()
    base = repo.git("rev-parse", "HEAD").strip()
    repo.write("m/vision.yaml", documents(VISION, IMAGES.replace("team: vision", "team: x"), LABELS))
    assert repo.changed(base) == ["vision.copy", "vision.images", "vision.moved"]
    repo.write("m/vision.yaml", documents(VISION + "spec: {protect: true}\n", IMAGES, LABELS))
    assert repo.changed(base) == ["vision", "vision.copy", "vision.images", "vision.labels", "vision.moved"]
    repo.git("checkout", "-q", ".")
    repo.write("m/catalog.yaml", documents(LAKE.replace("./lake", "./other")))
    assert len(repo.changed(base)) == 6, "all of a catalog that is somewhere else"


def test_defaults_variables_and_overlays(repo: Repo) -> None:
    repo.write("m/defaults.yaml", documents(DEFAULTS))
    assert repo.changed() == ["vision.images"]
    repo.commit()
    repo.write("m/defaults.yaml", documents(DEFAULTS.replace("vision.images", "vision.labels")))
    assert repo.changed("HEAD") == ["vision.images", "vision.labels"], "those they were for, and those they are for"
    (repo.folder / "m" / "defaults.yaml").unlink()
    assert repo.changed("HEAD") == ["vision.images"]
    repo.git("checkout", "-q", ".")

    repo.write("m/variables.yaml", documents("kind: Variables\nspec: {values: {team: a, other: b}}\n"))
    repo.write("m/vision.yaml", documents(VISION, IMAGES, LABELS.replace("team: vision", "team: '${var:team}'")))
    repo.commit()
    repo.write("m/variables.yaml", documents("kind: Variables\nspec: {values: {team: a, other: c}}\n"))
    assert repo.changed("HEAD") == []
    repo.write("m/variables.yaml", documents("kind: Variables\nspec: {values: {team: c, other: b}}\n"))
    assert repo.changed("HEAD") == ["vision.labels"]
    repo.git("checkout", "-q", ".")

    patch = documents("kind: Table\nmetadata: {catalog: lake, id: [vision, images]}\nspec: {protect: true}\n")
    repo.write("m/overlays/prod/p.yaml", patch)
    assert repo.changed("HEAD", environment="prod") == ["vision.images"]
    assert repo.changed("HEAD") == [], "an overlay of an environment that the run is not about"
    repo.commit()
    (repo.folder / "m/overlays/prod/p.yaml").write_text("")
    assert repo.changed("HEAD", environment="prod") == ["vision.images"]


def test_an_unknown_kind_of_change_is_a_change_of_everything(repo: Repo) -> None:
    repo.write("m/other.yaml", documents("kind: Other\nmetadata: {name: x}\n"))
    found = repo.load()
    assert found.changed is not None
    assert found.changed.only["lake"] == {("vision",), ("fleet",), ("vision", "images"), ("vision", "labels")}


def test_odd_names_links_and_folders_that_are_not_read(repo: Repo) -> None:
    repo.write("m/.hidden/x.yaml", "a: b")
    repo.write("m/notes.txt", "text")
    repo.write("m/overlays/dev/x.yaml", "a: b")
    assert repo.changed() == []
    repo.write("m/a\nb 'ü*.yaml", documents(IMAGES.replace("images", "odd")))
    assert repo.changed() == ["vision.odd"]
    repo.commit()
    (repo.folder / "m" / "a\nb 'ü*.yaml").unlink()
    assert repo.changed("HEAD") == ["vision.odd"]
    repo.write("shared/more/t.yaml", documents(IMAGES.replace("images", "linked")))
    (repo.folder / "m" / "link").symlink_to("../shared/more")
    repo.commit()
    assert repo.changed("HEAD") == []
    repo.write("shared/more/t.yaml", documents(IMAGES.replace("images", "linked").replace("team: vision", "team: x")))
    assert repo.changed("HEAD") == ["vision.linked"]


def test_one_file_and_the_folder_of_the_repository(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.write("m/vision.yaml", documents(VISION, IMAGES.replace("team: vision", "team: x"), LABELS))
    assert repo.changed(path=".") == ["vision.images"]
    monkeypatch.chdir(repo.folder / "m")
    for paths in (["."], ["catalog.yaml", "fleet.yaml", "vision.yaml"], ["../m/"]):
        found = load(paths, changed_since="main")
        assert found.changed is not None, found.diagnostics
        assert found.changed.only["lake"] == {("vision", "images")}, paths


def test_warnings_about_files_that_nobody_touched_are_left_out(repo: Repo) -> None:
    from reconciler.manifest.load import warnings_of_changed

    repo.write("m/deep.yaml", documents(IMAGES.replace("vision, images", "nowhere, t")))
    assert [d.code for d in warnings_of_changed(repo.load())] == ["M403"]
    repo.commit()
    assert warnings_of_changed(repo.load("HEAD")) == []


# -- what cannot be answered ---------------------------------------------------------------------------------------


def told(found: Loaded) -> list[tuple[str, str]]:
    assert found.changed is None
    return [(d.code, d.hint) for d in found.diagnostics]


def test_not_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "c.yaml").write_text(documents(LAKE))
    assert [c for c, _ in told(load([str(tmp_path / "m")], changed_since="main"))] == ["M531"]


def test_unknown_revisions(repo: Repo) -> None:
    assert told(repo.load("mian")) == [("M532", "did you mean main?")]
    repo.write("canary", "")
    for hostile in (
        "--output=stolen",
        "-h",
        "",
        "a\nb",
        "main..work",
        "--help",
        "main -- canary",
        "@{u}",
        ":README.md",
    ):
        found = repo.load(hostile)
        assert found.changed is None, hostile
        assert [d.code for d in found.diagnostics] == (["M532"] if hostile else []), hostile
    assert not (repo.folder / "stolen").exists()


def test_a_shallow_clone_says_how_to_get_the_rest(repo: Repo, tmp_path: Path) -> None:
    first = repo.git("rev-parse", "HEAD").strip()
    repo.write("m/fleet.yaml", documents(VISION.replace("vision", "fleet") + "spec: {protect: true}\n"))
    repo.commit()
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{repo.folder}", tmp_path / "c"], check=True)
    for revision in (first, "main"):
        ((code, hint),) = told(load([str(tmp_path / "c" / "m")], changed_since=revision))
        assert (code, "fetch-depth: 0" in hint) == ("M532", True)
    subprocess.run(
        ["git", "fetch", "-q", "--depth", "1", "origin", "main:refs/remotes/origin/main"],
        cwd=tmp_path / "c",
        check=True,
    )
    ((code, hint),) = told(load([str(tmp_path / "c" / "m")], changed_since="origin/main"))
    assert (code, "fetch-depth: 0" in hint) == ("M533", True)


def test_histories_that_never_met(repo: Repo) -> None:
    repo.git("checkout", "-q", "--orphan", "alone")
    repo.write("README.md", "another beginning")
    repo.commit()
    assert [c for c, _ in told(repo.load())] == ["M533"]


def test_files_outside_and_submodules(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "out.yaml").write_text(documents(VISION.replace("vision", "out")))
    paths = [str(repo.folder / "m"), str(tmp_path / "out.yaml")]
    assert [c for c, _ in told(load(paths, changed_since="main"))] == ["M534"]
    (repo.folder / "m" / "link.yaml").symlink_to(tmp_path / "out.yaml")
    assert [c for c, _ in told(repo.load())] == ["M534"]
    (repo.folder / "m" / "link.yaml").unlink()
    inner = Repo(repo.folder / "m" / "sub")
    inner.write("t.yaml", documents(IMAGES.replace("images", "sub")))
    inner.commit()
    repo.git("add", "m/sub")
    found = repo.load()
    assert [c for c, _ in told(found)] == ["M534"]
    assert "m/sub is a submodule" in found.diagnostics[0].message


def test_git_is_missing(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repo.folder))
    assert [c for c, _ in told(repo.load())] == ["M530"]


def test_nothing_that_the_repository_configures_is_run(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drivers, filters, hooks and monitors, and an environment that points elsewhere."""
    script = repo.folder / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {repo.folder}/ran\ncat\n")
    script.chmod(0o755)
    repo.write(".gitattributes", "*.yaml diff=evil filter=evil\n")
    repo.commit()
    for key in ("diff.external", "diff.evil.command", "diff.evil.textconv", "core.fsmonitor", "core.pager"):
        repo.git("config", key, str(script))
    for key in ("filter.evil.clean", "filter.evil.smudge", "filter.evil.process"):
        repo.git("config", key, str(script))
    for hook in ("post-index-change", "fsmonitor-watchman", "reference-transaction"):
        (repo.folder / ".git" / "hooks").mkdir(exist_ok=True)
        (repo.folder / ".git" / "hooks" / hook).symlink_to(script)
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(script))
    monkeypatch.setenv("GIT_DIR", str(repo.folder / "nothing"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(repo.folder / "nothing"))
    text = documents(VISION, IMAGES.replace("team: vision", "team: x"), LABELS)
    (repo.folder / "m" / "vision.yaml").write_text(text)
    index = (repo.folder / ".git" / "index").stat()
    os.utime(
        repo.folder / ".git" / "index", (1000, 1000)
    )  # Everything in it may have changed since: git looks closely.
    assert repo.changed() == ["vision.images"]
    assert not (repo.folder / "ran").exists()
    assert (repo.folder / ".git" / "index").stat().st_ino == index.st_ino, "reading writes nothing"
