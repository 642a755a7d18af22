"""`reconciler explain`: every code and word has an entry, and what the entries show is what happens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from cli.cli_runs import reconciler

from reconciler.catalog import registry
from reconciler.core.policy import judge_manifests
from reconciler.explain.catalogue import explanations, find
from reconciler.manifest.codes import CODES
from reconciler.manifest.load import Loaded, load
from reconciler.manifest.plugin_options import PluginTypes
from reconciler.model import plan
from reconciler.model.desired import ALLOW_WORDS
from reconciler.model.errors import Code
from reconciler.model.explanation import Example, Explanation, Repeated
from reconciler.model.policy import TITLES
from reconciler.model.report import EXIT_CODES
from reconciler.model.run import CHECK_FAILED, DONE, OUTCOMES
from reconciler.render.ran import WORDS

BESIDE = """\
apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {name: lake}
spec: {type: dir, path: ./lake}
---
apiVersion: reconciler.lance/v1
kind: Namespace
metadata: {catalog: lake, id: [n]}
"""
BLOCKED = {
    value
    for name, value in vars(plan).items()
    if name.isupper() and isinstance(value, str) and name not in ("FORMAT_VERSION", "ALLOW")
}
ALL = [*explanations()]


def test_every_code_and_word_has_one_entry() -> None:
    source = Path(plan.__file__).parents[1] / "core"
    planning = {
        w for p in source.glob("*.py") for w in p.read_text("utf-8").split('"') if w.startswith("P1") and len(w) == 4
    }
    assert planning == {"P101", "P102", "P103", "P104"}
    wanted = {*CODES, *TITLES, *planning, *(c.title for c in Code), *BLOCKED}
    wanted |= {f"allow:{w}" for w in ALLOW_WORDS} | {f"status {s}" for s in WORDS}
    wanted |= {f"outcome {o}" for o in (*OUTCOMES, DONE, CHECK_FAILED)}
    wanted |= {f"exit {n}" for n in (*EXIT_CODES.values(), 2, 6)}
    codes = [e.code for e in ALL if e.kind not in ("action", "word")]
    assert sorted(codes) == sorted(wanted)


@pytest.mark.parametrize("entry", ALL, ids=lambda e: e.code)
def test_an_entry_is_complete(entry: Explanation) -> None:
    assert entry.title
    assert entry.means.endswith(".")
    assert entry.fix.endswith(".")
    assert entry.bad is not None or entry.kind == "word"
    assert not entry.not_run or not entry.not_run.endswith(".")
    if not entry.not_run:
        assert entry.good is not None
        assert entry.good != entry.bad or entry.setting.paths or entry.setting.encoding or entry.setting.environment


def _loaded(folder: Path, entry: Explanation, which: str) -> Loaded:
    example: Example | None = entry.bad if which == "bad" else entry.good
    assert example is not None
    texts: Mapping[str, str]
    if isinstance(example, Repeated):
        texts = {"m.yaml": example.whole}
    else:
        texts = {"m.yaml": example} if isinstance(example, str) else example
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode(entry.setting.encoding.get(which, "utf-8")))
    paths = entry.setting.paths.get(which) or [name for name in texts if name.endswith(".yaml")]
    if not entry.setting.alone and "." in paths:
        (folder / "beside.yaml").write_text(BESIDE)
    elif not entry.setting.alone:
        (folder / "beside.yaml").write_text(BESIDE)
        paths = [*paths, "beside.yaml"]
    environment = entry.setting.environment.get(which, "")
    plugins = PluginTypes()
    return load(paths, capabilities_of=registry.capabilities_of, plugins=plugins, environ={}, environment=environment)


RUN = [e for e in ALL if not e.not_run and "$ reconciler " not in str(e.bad)]
"""Manifests. Command lines are run by test_explained_commands."""


@pytest.mark.parametrize("entry", [e for e in RUN if e.kind == "diagnostic"], ids=lambda e: e.code)
def test_an_example_gives_its_code_and_the_corrected_one_nothing(
    entry: Explanation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for which, wanted in (("bad", {entry.code, *entry.setting.also}), ("good", set())):
        folder = tmp_path / which
        folder.mkdir()
        monkeypatch.chdir(folder)
        assert {d.code for d in _loaded(folder, entry, which).diagnostics} == wanted


@pytest.mark.parametrize("entry", [e for e in RUN if e.kind == "policy"], ids=lambda e: e.code)
def test_an_example_of_a_rule_breaks_it(entry: Explanation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for which, wanted in (("bad", [entry.code]), ("good", [])):
        loaded = _loaded(tmp_path, entry, which)
        assert loaded.diagnostics == []
        rules = {n: c for n, spec in loaded.desired.catalogs.items() if (c := registry.capabilities_of(spec))}
        assert [f.code for f in judge_manifests(loaded.desired, rules, None, "2026-01-01").findings] == wanted


def test_nearly_all_diagnostics_are_executed() -> None:
    skipped = {e.code for e in ALL if e.kind == "diagnostic" and e.not_run}
    assert skipped == {
        *(f"M31{n}" for n in range(5)),
        "P101",
        "P102",
        "P103",
        "P104",
    }


@pytest.mark.parametrize(
    ("word", "codes"),
    [
        ("m203", ["M203"]),
        ("exit 3", ["exit 3"]),
        ("3", ["NamespaceNotEmpty", "exit 3"]),
        ("error 3", ["NamespaceNotEmpty"]),
        ("namespace_not_empty", ["NamespaceNotEmpty"]),
        ("drop_column", ["allow:drop_column"]),
        ("allow:drop_column", ["allow:drop_column"]),
        ("failed", ["outcome failed", "status failed"]),
        ("orphans", ["orphaned"]),
        ("Unsupported", ["Unsupported", "verdict unsupported"]),
        ("adopt", ["adopt", "action adopt"]),
        ("projection: stale", ["stale projection"]),
        ("-", ["sign -"]),
        ("needs_two_applies", ["needs_two_applies"]),
        ("nonsense", []),
    ],
)
def test_what_can_be_asked_for(word: str, codes: list[str]) -> None:
    assert [e.code for e in find(word)] == codes


def test_the_command(tmp_path: Path) -> None:
    shown = reconciler(tmp_path, "explain", "M203")
    assert (shown.code, shown.out.splitlines()[0]) == (0, "M203: unknown key")
    assert "propertys: {team: vision}" in shown.out
    given = reconciler(tmp_path, "explain", "M100").out
    assert "Example, `reconciler validate manifest.yaml`:" in given
    assert "Corrected, `reconciler validate m.yaml`:" in given
    assert "Example, saved as latin-1" in reconciler(tmp_path, "explain", "M103").out
    both = reconciler(tmp_path, "explain", "exit", "3", "P001", "--format", "json")
    assert [e["code"] for e in both.json["explanations"]] == ["exit 3", "P001"]
    words = reconciler(tmp_path, "explain", "left", "out", "unowned", "-", "status", "not_run", "--format", "json")
    assert [e["code"] for e in words.json["explanations"]] == ["left out", "unowned", "sign -", "status not_run"]
    listed = reconciler(tmp_path, "explain")
    assert all(e.code in listed.out and e.title in listed.out for e in ALL)
    assert len(json.loads(reconciler(tmp_path, "explain", "--format", "json").out)["explanations"]) == len(ALL)
    page = reconciler(tmp_path, "explain", "M104", "--format", "markdown").out
    assert page.startswith("## M104: ")
    assert "<U+0007>" in page
    assert "\x07" not in page


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("M2033", "; did you mean M203?"),
        ("m999", f"; diagnostics are M100 to {max(CODES)}"),
        ("M259", "; the nearest is M211"),
        ("M463", "; the nearest are M460 and M470"),
        ("M20", "; codes that begin so are M200 to M209"),
        ("M4999", ""),
        ("P099", f"; the nearest is {max(TITLES)}"),
        ("P999", "; policies and plans have P001 to P104"),
        ("99", "; errors of catalogs are 0 to 23, exit codes 0, 1, 2, 3, 4, 5, 6, 130"),
        ("error 99", "; errors of catalogs are 0 to 23"),
        ("::error::x", "; did you mean error?"),
        ("drop_colum", "; did you mean allow:drop_column?"),
        ("NamespaceNotEmtpy", "; did you mean NamespaceNotEmpty?"),
        ("orphand", "; did you mean orphaned?"),
        ("nonsense", ""),
        ("s4x", ""),
        ("X203", ""),
        ("٣", ""),
    ],
)
def test_only_what_is_near_is_suggested(word: str, said: str, tmp_path: Path) -> None:
    missed = reconciler(tmp_path, "explain", word)
    assert missed.code == 1
    assert f"nothing is called {word}{said} (`reconciler explain` lists all codes and words)" in missed.err


def test_a_word_that_nobody_knows(tmp_path: Path) -> None:
    missed = reconciler(tmp_path, "explain", "M2033")
    assert missed.code == 1
    assert "did you mean M203?" in missed.err
    assert missed.out == ""
    assert "nothing is called exit 99" in reconciler(tmp_path, "explain", "exit", "99").err
    assert "exit is one of 0, 1, 2, 3, 4, 5, 6, 130 (" in reconciler(tmp_path, "explain", "exit", "99").err
    assert "lease is one of waiting, " in reconciler(tmp_path, "explain", "lease helt").err
    step = reconciler(tmp_path, "explain", "s4")
    assert "`reconciler explain s4 --report FILE`" in step.err
    assert "did you mean" not in step.err
    assert reconciler(tmp_path, "explain", "lease").out.startswith("lease: ")
    assert "fixed_size_list<float32>[768]" in reconciler(tmp_path, "explain", "types").out
