"""--changed-since, in real git repositories."""

from __future__ import annotations

import os
import shutil
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


@pytest.mark.parametrize(
    "place", ["prod/overlays/prod", "dev/overlays/prod", "prod/overlays/dev", "prod/x/overlays/prod"]
)
def test_an_overlay_in_an_overlay_is_not_read(repo: Repo, place: str) -> None:
    patch = documents("kind: Table\nmetadata: {catalog: lake, id: [vision, images]}\nspec: {protect: true}\n")
    repo.write("m/overlays/prod/p.yaml", patch)
    repo.write(f"m/overlays/{place}/p.yaml", patch)
    repo.commit()
    assert repo.changed("HEAD", environment="prod") == []
    repo.write(f"m/overlays/{place}/p.yaml", patch.replace("true", "false"))
    assert repo.changed("HEAD", environment="prod") == []
    (repo.folder / f"m/overlays/{place}/p.yaml").unlink()
    assert repo.changed("HEAD", environment="prod") == []
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


# -- what is no change, and what is, however it is written ------------------------------------------------------------


def rewritten(repo: Repo, old: str | bytes, new: str | bytes) -> list[str]:
    """What changed when the file of the tables was the one, and is the other."""
    path = repo.folder / "m" / "vision.yaml"
    for text, commit in ((old, True), (new, False)):
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        if commit:
            repo.commit()
    found = repo.load("HEAD")
    assert found.changed is not None
    return sorted(".".join(ident) for ident in found.changed.only["lake"])


BLOCK = """\
kind: Table
metadata:
  catalog: lake
  id: [vision, images]
spec:
  properties: {team: vision}
  description: |
    text
    ---
    more
  schema:
    - name: id
      type: int64
"""
ANCHORS = IMAGES.replace("{team: vision}", "&p {team: vision}") + "  config: *p\n"
ALL = documents(VISION, IMAGES, LABELS)

SAME: dict[str, tuple[str | bytes, str | bytes]] = {
    "comments": (ALL, ALL.replace("kind", "# why\nkind").replace("spec:", "spec: # because")),
    "keys in another order": (
        documents(VISION, BLOCK),
        documents(VISION, BLOCK.replace("  catalog: lake\n  id: [vision, images]", "  id: [vision, images]\n  catalog: lake")),  # noqa: E501
    ),
    "other line ends": (ALL, ALL.replace("\n", "\r\n")),
    "other line ends and a comment": (ALL, "# why\r\n" + ALL.replace("\n", "\r\n")),
    "a byte order mark": (ALL, b"\xef\xbb\xbf" + ALL.encode()),
    "block style": (ALL, ALL.replace(" {team: vision}", "\n    team: vision")),
    "an anchor instead of twice": (
        documents(VISION, ANCHORS),
        documents(VISION, IMAGES + "  config: {team: vision}\n"),
    ),
    "a merge key": (
        documents(VISION, IMAGES),
        documents(VISION, IMAGES.replace("{team: vision}", "{<<: {team: vision}}")),
    ),
    "a text with a marker in it": (documents(VISION, BLOCK), "# c\n" + documents(BLOCK, VISION)),
    "directives": (ALL, "%YAML 1.1\n---\n" + ALL.replace("---\n", "...\n%YAML 1.1\n---\n")),
    "quotes": (ALL, ALL.replace("team: vision", "team: 'vision'")),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), SAME.values(), ids=SAME)
def test_another_way_to_write_it_is_no_change(repo: Repo, old: str | bytes, new: str | bytes) -> None:
    assert old != new
    assert rewritten(repo, old, new) == []
    assert rewritten(repo, new, old) == []


OTHER: dict[str, tuple[str | bytes, str | bytes, list[str]]] = {
    "a line of a text": (documents(BLOCK), documents(BLOCK.replace("    more", "    other")), ["images"]),
    "a marker in a text": (documents(BLOCK), documents(BLOCK.replace("    ---\n", "")), ["images"]),
    "what an anchor names": (documents(ANCHORS), documents(ANCHORS.replace("team: v", "team: w")), ["images"]),
    "a merge key": (
        documents(IMAGES.replace("{team: vision}", "{<<: {team: a}, x: b}")),
        documents(IMAGES.replace("{team: vision}", "{<<: {team: b}, x: b}")),
        ["images"],
    ),
    "the order of columns": (
        documents(IMAGES.replace("int64}", "int64}, {name: b, type: int8}")),
        documents(IMAGES.replace("[{name: id, type: int64}", "[{name: b, type: int8}, {name: id, type: int64}")),
        ["images"],
    ),
    "a number for a boolean": (
        documents(IMAGES + "  protect: true\n"),
        documents(IMAGES + "  protect: 1\n"),
        ["images"],
    ),
    "the name": (documents(IMAGES), documents(LABELS), ["images", "labels"]),
    "what could not be read before": (documents("kind: [\n", IMAGES), documents(LABELS, IMAGES), ["labels"]),
    "what can no longer be read": (documents(LABELS, IMAGES), documents("kind: [\n", IMAGES), ["labels"]),
    "UTF-16 before": (documents(IMAGES).encode("utf-16"), documents(IMAGES), ["images"]),
    "UTF-16 now": (documents(IMAGES), documents(IMAGES).encode("utf-16"), ["images"]),
    "one of two that are the same": (documents(IMAGES, IMAGES), documents(IMAGES), ["images"]),
    "a second one of the same": (documents(IMAGES), documents(IMAGES, IMAGES), ["images"]),
}


@pytest.mark.parametrize(("old", "new", "changed"), OTHER.values(), ids=OTHER)
def test_what_is_a_change(repo: Repo, old: str | bytes, new: str | bytes, changed: list[str]) -> None:
    assert rewritten(repo, old, new) == [f"vision.{name}" for name in changed]


def test_moved_files(repo: Repo) -> None:
    repo.write("m/block.yaml", documents(BLOCK.replace("images", "block"), ANCHORS.replace("images", "anchors")))
    repo.commit()
    for name in ("vision.yaml", "fleet.yaml", "block.yaml"):
        (repo.folder / "m" / "moved").mkdir(exist_ok=True)
        (repo.folder / "m" / name).rename(repo.folder / "m" / "moved" / name)
    assert repo.changed("HEAD") == []
    found = repo.load("HEAD").changed
    assert found is not None
    assert {Path(name).parent.name for name in found.files} == {"moved"}
    path = repo.folder / "m" / "moved" / "block.yaml"
    path.write_text(path.read_text().replace("    more", "    other"))
    assert repo.changed("HEAD") == ["vision.block"]


def test_each_of_several_variables_documents_counts(repo: Repo) -> None:
    """None of them has a name that tells them apart."""
    first = "kind: Variables\nspec: {values: {one: a, other: a}}\n"
    second = "kind: Variables\nspec: {values: {two: a, another: a}}\n"
    repo.write("m/variables.yaml", documents(first, second))
    repo.write(
        "m/vision.yaml",
        documents(
            VISION,
            IMAGES.replace("team: vision", "team: '${var:one}'"),
            LABELS.replace("team: vision", "team: '${var:two}'"),
        ),
    )
    repo.commit()
    repo.write("m/variables.yaml", documents(first, second.replace("two: a", "two: b")))
    assert repo.changed("HEAD") == ["vision.labels"]
    repo.write("m/variables.yaml", documents(second, first.replace("one: a", "one: b")))
    assert repo.changed("HEAD") == ["vision.images"]
    repo.write("m/variables.yaml", documents(second, first))
    assert repo.changed("HEAD") == []


def test_what_a_run_does_with_documents_changes_no_comparison(repo: Repo) -> None:
    """Defaults, overlays and references are applied to copies: the documents of the run are compared as written."""
    repo.write("m/defaults.yaml", documents(DEFAULTS))
    repo.write("m/variables.yaml", documents("kind: Variables\nspec: {values: {team: a, keep: 'true'}}\n"))
    images = IMAGES.replace("team: vision", "team: '${var:team}'") + "  protect: ${var:keep}\n"
    repo.write("m/vision.yaml", documents(VISION, images, LABELS))
    patch = (
        "kind: Table\nmetadata: {catalog: lake, id: [vision, images]}\nspec: {properties: {cost: '8', team: null}}\n"
    )
    repo.write("m/overlays/prod/p.yaml", documents(patch))
    repo.commit()
    for name in ("defaults.yaml", "variables.yaml", "vision.yaml", "overlays/prod/p.yaml"):
        path = repo.folder / "m" / name
        path.write_text("# why\n" + path.read_text())
    assert repo.changed("HEAD", environment="prod") == []
    repo.write("m/overlays/prod/p.yaml", documents(patch.replace("'8'", "'9'")))
    assert repo.changed("HEAD", environment="prod") == ["vision.images"]


def test_defaults_with_another_name_say_the_same(repo: Repo) -> None:
    named = DEFAULTS.replace("{catalog: lake}", "{catalog: lake, name: costs}")
    repo.write("m/vision.yaml", documents(VISION, IMAGES, LABELS))
    repo.write("m/variables.yaml", documents("kind: Variables\nspec: {values: {cost: '7'}}\n"))
    repo.write("m/defaults.yaml", documents(named.replace("'7'", "'${var:cost}'")))
    repo.commit()
    renamed = named.replace("costs", "prices").replace("'7'", "'${var:cost}'")
    repo.write("m/defaults.yaml", documents(renamed))
    assert repo.changed("HEAD") == []
    repo.write("m/variables.yaml", documents("kind: Variables\nspec: {values: {cost: '8'}}\n"))
    assert repo.changed("HEAD") == ["vision.images"]
    repo.git("checkout", "m/variables.yaml")
    repo.write("m/defaults.yaml", documents(renamed.replace("cost: '", "price: '")))
    assert repo.changed("HEAD") == ["vision.images"]
    repo.write("m/defaults.yaml", documents(renamed.replace("vision.images", "vision.labels")))
    assert repo.changed("HEAD") == ["vision.images", "vision.labels"]
    repo.git("rm", "-qf", "m/defaults.yaml")
    assert repo.changed("HEAD") == ["vision.images"]


def test_defaults_with_another_name_where_an_overlay_may_change_those_of_either(repo: Repo) -> None:
    named = DEFAULTS.replace("{catalog: lake}", "{catalog: lake, name: costs}")
    repo.write("m/defaults.yaml", documents(named))
    patch = "kind: Defaults\nmetadata: {catalog: lake, name: prices}\nspec: {properties: {cost: '9'}}\n"
    repo.write("m/overlays/prod/p.yaml", documents(patch))
    repo.commit()
    repo.write("m/defaults.yaml", documents(named.replace("costs", "prices")))
    assert repo.changed("HEAD") == []
    assert repo.changed("HEAD", environment="prod") == ["vision.images"]


def test_all_of_many_namespaces(repo: Repo) -> None:
    names = [f"n{n}" for n in range(30)]
    spaces = [VISION.replace("vision", name) for name in names]
    repo.write("m/many.yaml", documents(*spaces, *(IMAGES.replace("[vision", f"[{name}") for name in names)))
    repo.commit()
    path = repo.folder / "m" / "many.yaml"
    changed = documents(*(s + "spec: {protect: true}\n" for s in spaces[:20]), *spaces[20:])
    path.write_text(changed + "---\n" + documents(*(IMAGES.replace("[vision", f"[{name}") for name in names)))
    assert repo.changed("HEAD") == sorted(i for name in names[:20] for i in (name, f"{name}.images"))


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


@pytest.mark.parametrize("instead", ["nothing", "a folder", "a file"])
def test_a_submodule_that_is_gone(repo: Repo, instead: str) -> None:
    """What it declared is an orphan now, and no blob of this repository says what that was."""
    name = "m/sub.yaml" if instead == "a file" else "m/sub"
    inner = Repo(repo.folder / name)
    inner.write("t.yaml", documents(IMAGES.replace("images", "sub")))
    inner.commit()
    repo.git("add", name)
    repo.git("commit", "-qm", "sub")
    repo.git("tag", "with-sub")
    repo.git("rm", "-q", "--cached", name)
    shutil.rmtree(repo.folder / name)
    if instead != "nothing":
        repo.write(name if instead == "a file" else f"{name}/t.yaml", documents(IMAGES.replace("images", "sub")))
        repo.git("add", name)
    for _ in range(2):
        found = load([str(repo.folder / "m")], changed_since="with-sub")
        assert [c for c, _ in told(found)] == ["M534"]
        assert f"{name} was a submodule" in found.diagnostics[0].message
        repo.git("commit", "-qm", "gone", "--allow-empty")
    assert load([str(repo.folder / "m")], changed_since="HEAD").diagnostics == []


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


FLAGS = ["--assume-unchanged", "--skip-worktree"]


@pytest.mark.parametrize("path", ["m", "."])
@pytest.mark.parametrize("flag", FLAGS)
def test_a_file_that_git_does_not_look_at_is_compared(tmp_path: Path, flag: str, path: str) -> None:
    repo = flagged(tmp_path, flag)
    assert repo.changed(path=path) == []
    repo.write("m/images.yaml", documents(IMAGES.replace("int64", "int32")))
    assert repo.git("status", "--porcelain") == ""
    assert repo.changed(path=path) == ["vision.images"]


def test_a_file_that_git_does_not_look_at_and_that_is_gone_is_a_change(tmp_path: Path) -> None:
    repo = flagged(tmp_path, "--assume-unchanged")
    (repo.folder / "m/images.yaml").unlink()
    assert repo.changed() == ["vision.images"]


@pytest.mark.parametrize("flag", FLAGS)
def test_a_new_file_that_git_does_not_look_at(tmp_path: Path, flag: str) -> None:
    repo = flagged(tmp_path, flag)
    repo.write("m/labels.yaml", documents(LABELS))
    repo.commit()
    repo.git("update-index", flag, "m/labels.yaml")
    repo.write("m/labels.yaml", documents(LABELS.replace("labels", "marks")))
    assert repo.changed() == ["vision.marks"]


@pytest.mark.parametrize("flag", FLAGS)
def test_a_link_that_git_does_not_look_at(tmp_path: Path, flag: str) -> None:
    repo = flagged(tmp_path, flag)
    repo.write("kept/one.yaml", documents(LABELS))
    repo.write("kept/two.yaml", documents(LABELS.replace("labels", "marks")))
    os.symlink("../kept/one.yaml", repo.folder / "m/link.yaml")
    repo.commit()
    repo.git("branch", "-f", "main")
    repo.git("update-index", flag, "m/link.yaml")
    assert repo.changed() == []
    (repo.folder / "m/link.yaml").unlink()
    os.symlink("../kept/two.yaml", repo.folder / "m/link.yaml")
    (told,) = [d for d in repo.load().diagnostics if d.severity == "error"]
    assert told.code == "M534"
    assert "m/link.yaml" in told.message


def test_what_a_sparse_checkout_leaves_out_is_not_gone(tmp_path: Path) -> None:
    repo = flagged(tmp_path, "--no-assume-unchanged")
    repo.write("m/more/labels.yaml", documents(LABELS))
    repo.commit()
    repo.git("branch", "-f", "main")
    repo.git("sparse-checkout", "set", "--no-cone", "/*", "!/m/more")
    assert not (repo.folder / "m/more").exists()
    assert repo.changed() == []


def flagged(tmp_path: Path, flag: str) -> Repo:
    repo = Repo(tmp_path / "r")
    repo.write("m/lake.yaml", documents(LAKE, VISION))
    repo.write("m/images.yaml", documents(IMAGES))
    repo.commit()
    repo.git("checkout", "-q", "-b", "work")
    repo.git("update-index", flag, "m/images.yaml")
    return repo
