"""Files that are skipped for a slip in their names: told of, and nothing is pruned meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.manifest.load import load
from reconciler.manifest.suffixes import almost_manifest, is_manifest

from .support import CATALOG, namespace

SLIPS = (
    "t.yaml.txt", "t.YAML.TXT", "t.yml~", "t.yml ", "t.yaml.", "t.yaml\u00a0", "t.ya\u200bml", "t.yalm", "t.ymal",
    "t.ylm", "t.yamll", "t.ymll", "t.yam", "t.y\u0430ml", "t,yaml", "t_yml", "t. yml", "tyaml", "t.yaml.txt~",
    "t.yaml.j2", "t.yml.tmpl", "t.YAML.J2", "t.yaml.gz", "t.yaml.enc", "t.yaml.disabled", "t.yaml.off", "t.yaml.new",
    "t.yaml-off", "t.yaml.1", "t.yaml(1)", "t.yaml - Copy", "t.yaml.d.j2",
)  # fmt: skip
NO_SLIPS = (
    "t.yaml.bak", "t.yml.bak", "t.yaml.orig", "t.yaml.swp", "#t.yaml#", ".t.yaml.swp", "t.yaml.old", "t.yaml-old",
    "t.yaml.tmp", "t.yaml.example", "t.yaml.j2.bak", "t.yaml.bak2", "t.yaml.2024.orig",
    "README.md", "t.txt", "t.json", "t.xml", "t.toml", "t.ml", "t.aml", "t.html", "Makefile",
)  # fmt: skip


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "lake.yaml").write_text(CATALOG)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / name).write_text(namespace("n"))
    (told,) = load([str(tmp_path)]).diagnostics
    assert (told.code, told.severity, told.source.file) == ("M119", "warning", str(tmp_path / "deep" / name))


@pytest.mark.parametrize("name", NO_SLIPS)
def test_what_was_put_aside_is_not(tmp_path: Path, name: str) -> None:
    (tmp_path / "lake.yaml").write_text(CATALOG)
    (tmp_path / name).write_text(namespace("n"))
    assert load([str(tmp_path)]).diagnostics == []


def test_the_backup_of_an_editor_is_known_by_what_is_beside_it() -> None:
    assert not almost_manifest("t.yml~", ["t.yml", "t.yml~"])
    assert almost_manifest("t.yml~", ["s.yml", "t.yml~"])
    assert not almost_manifest("t.yaml.j2", ["t.yaml", "t.yaml.j2"]), "what was made of the template is read"
    assert almost_manifest("t.yaml.j2", ["t.yml", "t.yaml.j2"])
    assert all(is_manifest(name) for name in ("t.yaml", "t.YML", "t.Yaml"))


def test_alone_it_is_no_manifest_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "lake.yaml.txt").write_text(CATALOG)
    assert {d.code for d in load([str(tmp_path)]).diagnostics} == {"M102", "M119"}


def test_overlays_are_looked_at_too_and_folders_are_read_whatever_their_name(tmp_path: Path) -> None:
    (tmp_path / "lake.yaml").write_text(CATALOG)
    (tmp_path / "overlays" / "prod").mkdir(parents=True)
    (tmp_path / "overlays" / "prod" / "n.yml.txt").write_text(namespace("n"))
    (tmp_path / "old.yalm").mkdir()
    (told,) = load([str(tmp_path)], environment="prod").diagnostics
    assert told.source.file.endswith("prod/n.yml.txt")
    assert load([str(tmp_path)]).diagnostics == []


def test_a_file_that_is_named_is_read(tmp_path: Path) -> None:
    (tmp_path / "lake.yaml.txt").write_text(CATALOG)
    assert load([str(tmp_path / "lake.yaml.txt")]).diagnostics == []
