"""Paths: files, folders, what is skipped, what cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.manifest.load import load

from .support import CATALOG, namespace


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_folder_is_read_recursively(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "m" / "catalog.yaml", CATALOG)
    write(tmp_path / "m" / "a" / "b" / "n.yml", namespace("n"))
    for skipped in (".hidden/x.yaml", "overlays/prod/x.yaml", "a/overlays/x.yaml", ".x.yaml", "notes.txt", "x.json"):
        write(tmp_path / "m" / skipped, "not: a manifest")
    monkeypatch.chdir(tmp_path)
    loaded = load(["m"])
    assert loaded.diagnostics == []
    assert loaded.documents == 2
    assert loaded.desired.namespaces["lake"][("n",)].source.file == "m/a/b/n.yml"


def test_file_is_read_whatever_its_suffix_and_once(tmp_path: Path) -> None:
    file = write(tmp_path / "catalog.txt", CATALOG)
    link = tmp_path / "link.yaml"
    link.symlink_to(file)
    loaded = load([str(file), str(file), str(link), str(tmp_path)])
    assert (loaded.diagnostics, loaded.documents) == ([], 1)


def test_missing_path_and_empty_folder(tmp_path: Path) -> None:
    (absolute,) = load([str(tmp_path / "no")]).diagnostics
    assert (absolute.code, absolute.hint) == ("M100", "check the path")
    (relative,) = load(["no/where"]).diagnostics
    assert (relative.code, relative.hint) == ("M100", "check the path; it is relative to the working directory")
    (tmp_path / "lake").mkdir()
    (near,) = load([str(tmp_path / "lakes")]).diagnostics
    assert (near.code, near.hint) == ("M100", f"did you mean {tmp_path / 'lake'}?")
    (far,) = load([str(tmp_path / "elsewhere" / "lake")]).diagnostics
    assert "did you mean" not in far.hint
    assert [d.code for d in load([str(tmp_path)]).diagnostics] == ["M102"]
    assert [d.code for d in load([]).diagnostics] == ["M102"]
    write(tmp_path / "empty.yaml", "# nothing\n")
    assert [d.code for d in load([str(tmp_path)]).diagnostics] == ["M102"]
    assert [d.code for d in load(["a\0b"]).diagnostics] == ["M101"]


def test_links_that_go_in_circles_or_nowhere(tmp_path: Path) -> None:
    write(tmp_path / "m" / "catalog.yaml", CATALOG)
    (tmp_path / "m" / "again").symlink_to(tmp_path / "m")
    (tmp_path / "m" / "self.yaml").symlink_to("self.yaml")
    (tmp_path / "m" / "gone.yaml").symlink_to("nothing")
    loaded = load([str(tmp_path / "m")])
    assert [d.code for d in loaded.diagnostics] == ["M101", "M101"]
    assert loaded.documents == 1


def test_special_files_in_a_folder_do_not_block(tmp_path: Path) -> None:
    write(tmp_path / "catalog.yaml", CATALOG)
    os.mkfifo(tmp_path / "pipe.yaml")
    assert [d.code for d in load([str(tmp_path)]).diagnostics] == ["M117"]


def test_folder_named_as_a_file_is_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "x.yaml" / "catalog.yaml", CATALOG)
    assert load([str(tmp_path)]).documents == 1


def test_file_that_cannot_be_read() -> None:
    """Opens, then fails to read, for every user."""
    assert [d.code for d in load(["/proc/self/mem"]).diagnostics] == ["M101"]


def test_a_broken_file_does_not_hide_the_others(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", CATALOG)
    write(tmp_path / "b.yaml", "kind: [")
    write(tmp_path / "c.yaml", namespace("n", "nothing: 1"))
    assert [d.code for d in load([str(tmp_path)]).diagnostics] == ["M105", "M203"]


@pytest.mark.parametrize("name", ["M.YAML", "m.YML", "m.Yaml"])
def test_a_suffix_counts_in_either_case(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(CATALOG)
    assert [*load([str(tmp_path)]).desired.catalogs] == ["lake"]
