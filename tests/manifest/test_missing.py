"""What references ask for and is not there: all of it in one run, each once, where it stands, with a guess."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.cli_runs import reconciler

from reconciler.manifest.limits import Limits
from reconciler.manifest.load import load
from reconciler.manifest.missing import Missing
from reconciler.manifest.variables import Resolver

from .support import CATALOG, load_text, table

CATALOGS = """\
apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {name: lake}
spec:
  type: dir
  path: ./${var:base:-somewhere}/${env:LAKE_FOLDR}
  storage.key: "${env:KEY_ONE}"
  storage.both: 'a$${x}${env:KEY_ONE}${env:KEY_TWO}'
---
apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {name: pond}
spec: {type: dir, path: ./pond, storage.k: "${env:KEY_THREE}", storage.f: "${file:no/such/file}"}
"""


def told(tmp_path: Path, *documents: str, environ: dict[str, str] | None = None) -> list[tuple[str, int, int, str]]:
    loaded = load_text(tmp_path, *documents, environ=environ or {})
    return [(d.code, d.source.line, d.source.column, d.message) for d in loaded.diagnostics]


def test_each_is_told_once_with_how_many_more_places(tmp_path: Path) -> None:
    many = "properties: {a: '${env:ONE}', b: 'x-${env:ONE}', c: '${env:TWO}', d: '${var:three}'}"
    found = told(tmp_path, CATALOG, *(table(f"t{n}", many) for n in range(300)))
    assert [(code, message) for code, _, _, message in found] == [
        ("M302", "the environment variable ONE is not set (and in 599 more places)"),
        ("M302", "the environment variable TWO is not set (and in 299 more places)"),
        ("M301", "the variable three is not defined (and in 299 more places)"),
    ]
    first = (tmp_path / "m.yaml").read_text().split("\n")
    for (_, line, column, _), reference in zip(found, ("${env:ONE}", "${env:TWO}", "${var:three}"), strict=True):
        assert first[line - 1][column - 1 :].lstrip("'").startswith(reference)


def test_places_of_all_files_count(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CATALOG + "---\n" + table("a", "properties: {k: '${env:ONE}'}"))
    (tmp_path / "b.yaml").write_text(table("b", "properties: {k: '${env:ONE}', l: '${env:ONE}'}"))
    (found,) = load([str(tmp_path)], environ={}).diagnostics
    assert (Path(found.source.file).name, found.message) == (
        "a.yaml",
        "the environment variable ONE is not set (and in 2 more places)",
    )


def test_a_repeated_reference_gives_no_other_error(tmp_path: Path) -> None:
    """In an identifier, where a flag is wanted, in a policy and in defaults: each document has a failed reference, and
    only the first is told."""
    odd = table("b", "protect: ${var:x}").replace("id: [b]", "id: ['${var:x}']")
    policy = (
        "apiVersion: reconciler.lance/v1\nkind: Policy\nmetadata: {name: p}\nspec:\n  rules:\n"
        "  - {rule: naming, table: '${var:x}'}\n"
    )
    defaults = "kind: Defaults\nmetadata: {catalog: lake}\nspec: {protect: '${var:x}'}\n"
    defaults = f"apiVersion: reconciler.lance/v1\n{defaults}"
    loaded = load_text(tmp_path, CATALOG, table("a", "location: 'a${var:x}'"), odd, policy, environ={})
    assert [d.message for d in loaded.diagnostics] == ["the variable x is not defined (and in 3 more places)"]
    loaded = load_text(tmp_path, CATALOG, defaults, table("a", "location: 'a${var:x}'"), environ={})
    assert [d.message for d in loaded.diagnostics] == ["the variable x is not defined (and in 1 more place)"]


@pytest.mark.parametrize(
    ("environ", "limits", "guess"),
    [
        ({"LAKE_STAGE": "x"}, Limits(), "did you mean LAKE_STAGE? Or "),
        ({"lake_stage_": "x"}, Limits(), "did you mean lake_stage_? Or "),
        ({"LAKE": "x", "STAGE": "x"}, Limits(), ""),
        ({"LAKE_STAGE": "x"}, Limits(env=("LAKE_STAGES", "R_")), ""),
    ],
)
def test_a_near_name_is_suggested_when_it_could_be_used(environ: dict[str, str], limits: Limits, guess: str) -> None:
    (trouble,) = Resolver({}, environ, limits=limits).expand("${env:LAKE_STAGES}").troubles
    assert trouble.hint == f"{guess}set it, or give a default: ${{env:LAKE_STAGES:-value}}"


def test_other_problems_are_never_counted_together() -> None:
    missing = Missing()
    assert [missing.again("M300", "malformed") for _ in range(2)] == [False, False]
    assert [missing.again("M302", "x") for _ in range(2)] == [False, True]
    missing.next_file()
    assert not missing.again("M302", "x")


@pytest.mark.parametrize("command", ["plan", "apply", "drift", "status", "unlock"])
def test_opening_catalogs_tells_all_that_is_missing(tmp_path: Path, command: str) -> None:
    (tmp_path / "m.yaml").write_text(CATALOGS)
    yes = ["--yes"] if command == "apply" else []
    run = reconciler(tmp_path, command, "m.yaml", *yes, env={"LAKE_FOLDER": "x"})
    assert run.code == 1
    lines, text = [line for line in run.err.splitlines() if "error[" in line], CATALOGS.splitlines()
    asked = ("LAKE_FOLDR", "KEY_ONE", "KEY_ONE", "KEY_TWO", "KEY_THREE", "no/such/file")
    for told_, name in zip(lines, asked, strict=True):
        line, column = map(int, told_.split(":")[1:3])
        assert text[line - 1][column - 1 :].startswith((f"${{env:{name}}}", f"${{file:{name}}}")), told_
        assert name in told_.partition(": error[")[2]
    assert len({line.partition(": error[")[0] for line in lines}) == len(asked)
    assert "did you mean LAKE_FOLDER?" in run.err
    assert "the catalogs lake, pond cannot be opened" in run.err


def test_an_overlay_is_pointed_at_where_it_is_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(CATALOG)
    (tmp_path / "overlays" / "prod").mkdir(parents=True)
    (tmp_path / "overlays" / "prod" / "m.yaml").write_text(
        CATALOG.replace("path: ./lake", 'path: "./${env:NO_SUCH_LAKE}"')
    )
    run = reconciler(tmp_path, "plan", ".", "--env", "prod")
    assert "overlays/prod/m.yaml:" in run.err
    place = run.err.partition(": error[M302]")[0].rpartition("\n")[2]
    line, column = map(int, place.split(":")[1:])
    text = (tmp_path / "overlays" / "prod" / "m.yaml").read_text().split("\n")
    assert text[line - 1][column - 1 :].startswith("${env:NO_SUCH_LAKE}")


def test_an_empty_part_of_a_path_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "m.yaml").write_text(CATALOG.replace("./lake", '"${file:empty}/lake-of-tests"'))
    assert reconciler(tmp_path, "validate", "m.yaml").code == 0
    run = reconciler(tmp_path, "plan", "m.yaml")
    assert (run.code, run.out) == (1, "")
    place = "m.yaml:4:" + str(len('spec: {type: dir, path: "') + 1)
    told_ = "error[M210]: catalog lake: `spec.path`: ${file:empty} is empty, or only white space"
    assert f"{place}: {told_}" in run.err


WRITTEN = {
    "plain": ("./a/${env:NO_SUCH}", "${env"),
    "in double quotes": ('"./a/${env:NO_SUCH}"', "${env"),
    "in single quotes": ("'./ä/${env:NO_SUCH}'   # why", "${env"),
    "with an escape": ('"./a\\u002f${env:NO_SUCH}"', '"./a'),
    "with a doubled quote": ("'./it''s/${env:NO_SUCH}'", "'./it"),
    "on two lines": ('"./a\n    b/${env:NO_SUCH}"', '"./a'),
    "plain, on two lines": ("./a\n    b/${env:NO_SUCH}", "./a"),
    "as a block": ("|\n    ./a/\n    b/${env:NO_SUCH}", "|"),
    "folded": (">-\n    ./a/${env:NO_SUCH}", ">-"),
    "with an anchor": ("&a ./a/${env:NO_SUCH}", "&a"),
    "with a tag": ("!!str ./a/${env:NO_SUCH}", "!!str"),
    "where a default looks like one": ("./${var:x:-${env:OTHER}}/${env:NO_SUCH}", "./${var"),
}


@pytest.mark.parametrize(("written", "pointed_at"), WRITTEN.values(), ids=WRITTEN)
def test_a_place_is_that_of_the_reference_or_of_the_value(tmp_path: Path, written: str, pointed_at: str) -> None:
    """Where the file shows other characters than the value has, a column counted in the value is none of the file."""
    text = CATALOG.replace("spec: {type: dir, path: ./lake}", f"spec:\n  type: dir\n  path: {written}")
    lines = text.splitlines()
    spec = load_text(tmp_path, text, environ={}).desired.catalogs["lake"]
    (offset,) = (offset for key, offset in spec.places if key == "path")
    place = spec.places["path", offset]
    assert str(spec.options["path"])[offset:].startswith("${env:NO_SUCH}")
    assert (place.line, lines[place.line - 1][place.column - 1 :][: len(pointed_at)]) == (6, pointed_at)
    if pointed_at != "./${var":
        ((code, line, column, _),) = told(tmp_path, CATALOG, table("t", f"\ndescription: {written}"))
        found = (tmp_path / "m.yaml").read_text().splitlines()[line - 1][column - 1 :]
        assert (code, found[: len(pointed_at)]) == ("M302", pointed_at)
