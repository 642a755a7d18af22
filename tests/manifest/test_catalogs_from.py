"""`--catalogs-from`: where the program connects to does not come from the manifests of others."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from reconciler.manifest.limits import limits_of
from reconciler.manifest.load import Loaded, load
from reconciler.model.reading import Reading

from .support import CATALOG, codes, table

SECRET = CATALOG.replace("path: ./lake", 'path: ./lake, storage.token: "${env:TOKEN}"')


def read(folder: Path, reading: Reading = Reading(catalogs_from=("base",))) -> Loaded:  # noqa: B008
    old = os.getcwd()
    os.chdir(folder)
    try:
        return load(["pr"], limits=limits_of(reading), catalogs_from=reading.catalogs_from, environ={"TOKEN": "hush"})
    finally:
        os.chdir(old)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("base", "pr"):
        (tmp_path / name).mkdir()
    put(tmp_path, "base/lake.yaml", SECRET)
    return tmp_path


def put(folder: Path, name: str, *documents: str) -> None:
    (folder / name).write_text("---\n".join(documents))


def test_an_equal_document_is_nothing_to_tell(folder: Path) -> None:
    put(folder, "pr/all.yaml", table("t"), "# moved and commented\n" + SECRET)
    found = read(folder)
    assert found.diagnostics == []
    assert found.desired.catalogs["lake"].source.file == "base/lake.yaml"


@pytest.mark.parametrize(
    "changed",
    [
        SECRET.replace("./lake", "s3://elsewhere"),
        SECRET.replace("type: dir, path: ./lake", "type: rest, uri: http://127.0.0.1:9"),
        SECRET.replace("path: ./lake", "path: ./lake, storage.endpoint: http://127.0.0.1:9"),
        SECRET.replace("path: ./lake", "path: ./lake, management: {owner: me}"),
    ],
)
def test_another_document_is_not_used(folder: Path, changed: str) -> None:
    put(folder, "pr/all.yaml", table("t"), changed)
    found = read(folder)
    (told,) = found.diagnostics
    assert (told.code, told.severity, told.source.file, told.source.line) == ("M312", "warning", "pr/all.yaml", 9)
    assert "not used: Catalog documents are taken from base" in told.message
    assert found.desired.catalogs["lake"].options == {"path": "./lake", "storage.token": "${env:TOKEN}"}


def test_a_removed_document_is_still_used(folder: Path) -> None:
    put(folder, "pr/all.yaml", table("t"))
    found = read(folder)
    assert found.diagnostics == []
    assert list(found.desired.catalogs) == ["lake"]


def test_a_catalog_that_is_only_theirs_is_an_error(folder: Path) -> None:
    put(folder, "pr/all.yaml", CATALOG.replace("name: lake", "name: mine"), table("t", catalog="mine"))
    assert codes(read(folder)) == ["M313"]


def test_a_catalog_that_is_nowhere_is_an_error(folder: Path) -> None:
    put(folder, "pr/all.yaml", table("t", catalog="mine"))
    assert codes(read(folder)) == ["M402"]


def test_the_digest_is_that_of_what_is_used(folder: Path) -> None:
    """A plan made with the catalogs of the base branch is not taken for one of the merged branch."""
    put(folder, "pr/all.yaml", SECRET, table("t"))
    same = read(folder).desired.digest
    assert same == read(folder, Reading()).desired.digest
    put(folder, "pr/all.yaml", SECRET.replace("./lake", "./other"), table("t"))
    assert read(folder).desired.digest == same
    assert read(folder, Reading()).desired.digest != same


@pytest.mark.parametrize("text", ["properties: {k: '${env:TOKEN}'}", "description: '${env:TOKEN:-x}'"])
def test_their_objects_name_no_variable(folder: Path, text: str) -> None:
    put(folder, "pr/all.yaml", table("t", text))
    assert codes(read(folder)) == ["M310"]
    assert codes(read(folder, Reading(catalogs_from=("base",), env_allow=("TOK",)))) == []


def test_their_objects_name_no_file(folder: Path) -> None:
    put(folder, "pr/all.yaml", table("t", "properties: {k: '${file:base/lake.yaml}'}"))
    assert codes(read(folder)) == ["M311"]
    assert codes(read(folder, Reading(catalogs_from=("base",), file_root=(str(folder / "base"),)))) == []


def source(path: str, more: str = "") -> str:
    place = f"{{format: json, path: '{path}', storage.key: '${{env:TOKEN}}'{more}}}"
    return table("t", f"schema: [{{name: a, type: int8}}]\ndata: {{source: {place}, mode: once}}\n")


def test_a_source_is_looked_at_when_the_base_has_it(folder: Path) -> None:
    put(folder, "base/tables.yaml", source("s3://raw/x"))
    put(folder, "pr/all.yaml", source("s3://raw/x"))
    found = read(folder)
    assert found.diagnostics == []
    data = found.desired.tables["lake"]["t",].data
    assert data is not None
    assert data.unread is None


@pytest.mark.parametrize(
    "changed", [source("s3://other/x"), source("s3://raw/x", ", storage.endpoint: 'http://127.0.0.1:9'")]
)
@pytest.mark.parametrize("there", [True, False])
def test_any_other_source_is_not_looked_at(folder: Path, changed: str, there: bool) -> None:
    if there:
        put(folder, "base/tables.yaml", source("s3://raw/x"))
    put(folder, "pr/all.yaml", changed)
    data = read(folder).desired.tables["lake"]["t",].data
    assert data is not None
    assert data.unread is not None
    assert "taken from base" in data.unread


@pytest.mark.parametrize("how", ["file", "folder", "path"])
def test_links_out_of_the_checkout_are_not_followed(folder: Path, how: str) -> None:
    """What is wrong with a file is shown with parts of it."""
    outside = folder.parent / f"{folder.name}-outside"
    outside.mkdir()
    put(outside, "credentials.yaml", "aws_secret_access_key: hush-hush\n")
    if how == "path":
        (folder / "pr").rmdir()
        (folder / "pr").symlink_to(outside)
    else:
        put(folder, "pr/all.yaml", table("t"))
        target = outside if how == "folder" else outside / "credentials.yaml"
        (folder / "pr" / ("sub" if how == "folder" else "link.yaml")).symlink_to(target)
    found = read(folder)
    assert codes(found) == ["M314"]
    assert "aws_secret" not in str(found.diagnostics)
    assert "M314" not in codes(read(folder, Reading()))


@pytest.mark.parametrize("given", [["pr"], ["pr/all.yaml", "pr/link.yaml"]], ids=["folder", "files"])
@pytest.mark.parametrize(
    "target", ["../credentials.yaml", "../base/private.yaml", "../.cache/x.yaml", "../other/../credentials.yaml"]
)
def test_links_to_the_rest_of_the_workspace_are_not_followed(
    folder: Path, target: str, given: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the folder of the pull request are the base branch and what earlier steps of the job have written."""
    for name in ("credentials.yaml", "base/private.yaml", ".cache/x.yaml", "other/x.yaml"):
        (folder / name).parent.mkdir(exist_ok=True)
        put(folder, name, "aws_secret_access_key: hush-hush\n")
    put(folder, "pr/all.yaml", table("t"))
    (folder / "pr" / "link.yaml").symlink_to(target)
    monkeypatch.chdir(folder)
    found = load(
        given,
        limits=limits_of(Reading(catalogs_from=("b",))),
        catalogs_from=["base/lake.yaml"],
        environ={"TOKEN": "x"},
    )
    assert "M314" in codes(found)
    assert "aws_secret" not in str(found.diagnostics)


def test_links_between_given_folders_are_followed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, "pr/all.yaml", table("t"))
    (folder / "shared").mkdir()
    put(folder, "shared/u.txt", table("u"))
    (folder / "pr" / "link.yaml").symlink_to("../shared/u.txt")
    monkeypatch.chdir(folder)
    found = load(
        ["pr", "shared"],
        limits=limits_of(Reading(catalogs_from=("b",))),
        catalogs_from=["base"],
        environ={"TOKEN": "x"},
    )
    assert codes(found) == []


def test_links_inside_are(folder: Path) -> None:
    put(folder, "pr/all.txt", table("t"))
    (folder / "pr" / "link.yaml").symlink_to("all.txt")
    assert read(folder).diagnostics == []


def test_what_else_is_wrong_in_the_base_does_not_count(folder: Path) -> None:
    put(folder, "base/tables.yaml", table("t", "protct: true"))
    put(folder, "pr/all.yaml", table("t"))
    assert codes(read(folder)) == []


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [("lake.yaml", SECRET.replace("path", "pth"), "M203"), ("x.yaml", "a: [", "M105")],
)
def test_what_hides_a_catalog_does(folder: Path, name: str, text: str, code: str) -> None:
    put(folder, f"base/{name}", text)
    put(folder, "pr/all.yaml", table("t"))
    assert code in codes(read(folder))


def test_a_base_without_catalogs_is_an_error(folder: Path) -> None:
    put(folder, "base/lake.yaml", table("t"))
    put(folder, "pr/all.yaml", table("t"))
    assert "M102" in codes(read(folder))


POLICY = """\
apiVersion: reconciler.lance/v1
kind: Policy
metadata: {name: house}
spec: {rules: [{rule: required-owner, severity: %s}]}
"""
VARIABLES = """\
apiVersion: reconciler.lance/v1
kind: Variables
spec: {values: {place: %s}}
"""


def test_policies_of_the_base_stay_in_force(folder: Path) -> None:
    put(folder, "base/policy.yaml", POLICY % "error")
    put(folder, "pr/all.yaml", table("t"), POLICY % '"off"')
    found = read(folder)
    (told,) = found.diagnostics
    assert (told.code, told.severity, told.source.file) == ("M312", "warning", "pr/all.yaml")
    assert [p.source.file for p in found.desired.policies] == ["base/policy.yaml"]
    put(folder, "pr/all.yaml", table("t"))
    assert [p.source.file for p in read(folder).desired.policies] == ["base/policy.yaml"]
    put(folder, "pr/all.yaml", table("t"), (POLICY % "error").replace("house", "more"))
    assert [p.name for p in read(folder).desired.policies] == ["house", "more"]


def test_a_policy_of_the_base_that_cannot_be_read_is_told(folder: Path) -> None:
    put(folder, "base/policy.yaml", POLICY % "nonsense")
    put(folder, "pr/all.yaml", table("t"))
    assert [d.source.file for d in read(folder).diagnostics] == ["base/policy.yaml"]


def test_their_variables_and_overlays_do_not_reach_the_catalogs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, "base/lake.yaml", SECRET.replace("./lake", '"${var:place}"'), VARIABLES % "./lake")
    put(folder, "pr/all.yaml", table("t"), SECRET.replace("./lake", '"${var:place}"'), VARIABLES % "s3://elsewhere")
    for name in ("base", "pr"):
        (folder / name / "overlays" / "prod").mkdir(parents=True)
    patch = CATALOG.replace("type: dir, path: ./lake", "path: %s")
    put(folder, "pr/overlays/prod/lake.yaml", patch % "s3://elsewhere")
    put(folder, "base/overlays/prod/lake.yaml", patch % "./prod")
    assert read(folder).desired.catalogs["lake"].options["path"] == "./lake"
    monkeypatch.chdir(folder)
    reading = Reading(environment="prod", catalogs_from=("base",))
    found = load(["pr"], environment="prod", limits=limits_of(reading), catalogs_from=("base",), environ={"TOKEN": "x"})
    assert found.desired.catalogs["lake"].options["path"] == "./prod"
    assert [d.code for d in found.diagnostics] == ["M312"]


def in_prod(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    monkeypatch.chdir(folder)
    limits = limits_of(Reading(catalogs_from=("base",)))
    return load(["pr"], environment="prod", limits=limits, catalogs_from=("base",), environ={"TOKEN": "x"})


def overlay(folder: Path, name: str, *documents: str) -> None:
    (folder / name / "overlays" / "prod").mkdir(parents=True, exist_ok=True)
    put(folder, f"{name}/overlays/prod/x.yaml", *documents)


PATCH = CATALOG.replace("type: dir, path: ./lake", "path: ./prod")


def test_the_first_overlay_of_an_environment_can_be_planned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, "pr/all.yaml", table("t"), SECRET)
    overlay(folder, "pr", table("t", "properties: {a: x}"))
    found = in_prod(folder, monkeypatch)
    assert found.diagnostics == []
    assert found.desired.tables["lake"]["t",].properties == {"a": "x"}
    overlay(folder, "pr", PATCH)
    found = in_prod(folder, monkeypatch)
    assert [(d.code, d.severity) for d in found.diagnostics] == [("M312", "warning")]
    assert found.desired.catalogs["lake"].options["path"] == "./lake", "that of the base is used, which has no other"


def test_an_environment_that_neither_has_is_unknown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, "pr/all.yaml", table("t"))
    (told,) = in_prod(folder, monkeypatch).diagnostics
    assert (told.code, told.source.file) == ("M511", "pr")


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(
    "theirs",
    [
        SECRET.replace("type: dir, path: ./lake", "type: rest, uri: http://127.0.0.1:9"),
        SECRET.replace("type: dir, path: ./lake", "type: dir, path: ./a"),
        "",
    ],
)
def test_their_overlay_of_a_catalog_is_not_used(
    folder: Path, theirs: str, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is what it makes of their document an error: `path` is no key of a document that they made `rest`."""
    put(folder, "pr/all.yaml", table("t"), *([theirs] if theirs else []))
    overlay(folder, "pr", PATCH.replace("./prod", "./theirs"))
    if there:
        overlay(folder, "base", PATCH)
    found = in_prod(folder, monkeypatch)
    assert {(d.code, d.severity) for d in found.diagnostics} == {("M312", "warning")}
    assert found.desired.catalogs["lake"].options["path"] == ("./prod" if there else "./lake")


def test_an_overlay_that_both_have_is_nothing_to_tell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("base", "pr"):
        overlay(folder, name, PATCH)
    for documents in ([table("t")], [table("t"), SECRET]):
        put(folder, "pr/all.yaml", *documents)
        assert in_prod(folder, monkeypatch).diagnostics == []


def test_what_is_wrong_without_the_overlay_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, "pr/all.yaml", table("t"), SECRET.replace("path", "pth"))
    overlay(folder, "pr", PATCH.replace("path: ./prod", "paath: ./prod"))
    assert [d.code for d in in_prod(folder, monkeypatch).diagnostics if d.severity == "error"] == ["M204", "M203"]


def test_an_overlay_of_a_catalog_that_is_nowhere_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, "pr/all.yaml", table("t"))
    overlay(folder, "pr", PATCH.replace("name: lake", "name: lkae"))
    assert codes(in_prod(folder, monkeypatch)) == ["M512"]


def far(folder: Path) -> Path:
    """Credentials that no pull request has to do with."""
    outside = folder.parent / f"{folder.name}-outside"
    outside.mkdir()
    put(outside, "credentials.yaml", "aws_secret_access_key: hush-hush\n")
    return outside


@pytest.mark.parametrize("link", ["overlays/prod", "overlays", "overlays/prod/x.yaml", "overlays/prod/sub", "sub"])
@pytest.mark.parametrize("given", ["pr", "{cwd}/pr", "../{name}/pr", "{elsewhere}/pr"])
def test_links_out_are_not_followed_from_overlays_or_however_the_path_is_written(
    folder: Path, link: str, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = far(folder)
    put(folder, "pr/all.yaml", table("t"))
    for name in ("base", "pr"):
        (folder / name / "overlays" / "prod").mkdir(parents=True)
        put(folder, f"{name}/overlays/prod/t.yaml", "")
    place = folder / "pr" / link
    if place.is_dir():
        shutil.rmtree(place)
    place.symlink_to(outside / "credentials.yaml" if link.endswith(".yaml") else outside)
    work = folder.parent / f"{folder.name}-work"
    work.mkdir()
    monkeypatch.chdir(work if "elsewhere" in given else folder)
    path = given.format(cwd=folder, name=folder.name, elsewhere=folder)
    found = load(
        [path],
        environment="prod",
        limits=limits_of(Reading(catalogs_from=("b",))),
        catalogs_from=[str(folder / "base")],
        environ={"TOKEN": "x"},
    )
    assert [d.source.file for d in found.diagnostics if d.code == "M314"] == [f"{path}/{link}"]
    assert "aws_secret" not in str(found.diagnostics)
    assert "credentials" not in str(found.diagnostics), "not even names are told"


@pytest.mark.parametrize("given", ["pr", "{cwd}/pr", "../{name}/pr", "{elsewhere}/pr"])
def test_a_path_that_a_pull_request_made_a_link(folder: Path, given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = far(folder)
    work = folder.parent / f"{folder.name}-work"
    work.mkdir()
    monkeypatch.chdir(work if "elsewhere" in given else folder)
    path = given.format(cwd=folder, name=folder.name, elsewhere=folder)
    from_base = {"limits": limits_of(Reading(catalogs_from=("b",))), "catalogs_from": [str(folder / "base")]}
    (folder / "pr").rmdir()
    (folder / "pr").symlink_to(outside)
    assert "M314" in codes(load([path], **from_base))  # type: ignore[arg-type]
    (folder / "pr").unlink()
    (folder / "real").mkdir()
    put(folder, "real/all.yaml", table("t"))
    (folder / "pr").symlink_to("real")
    found = load([path], environ={"TOKEN": "x"}, **from_base)  # type: ignore[arg-type]
    assert found.diagnostics == [], "one that stays where it is does no harm"


DEFAULTS = (
    "apiVersion: reconciler.lance/v1\nkind: Defaults\nmetadata: {catalog: %s}\nspec: {match: [t], properties: {a: b}}\n"
)


def test_defaults_for_a_catalog_that_is_only_there(folder: Path) -> None:
    put(folder, "pr/all.yaml", table("t"), DEFAULTS % "lake")
    found = read(folder)
    assert found.diagnostics == []
    assert found.desired.tables["lake"]["t",].properties == {"a": "b"}
    put(folder, "pr/all.yaml", table("t"), DEFAULTS % "lkae")
    assert codes(read(folder)) == ["M402"]


def test_no_number_of_other_warnings_hides_it(folder: Path) -> None:
    """Of each file only so many are told."""
    nested = "schema: [{name: s, type: 'struct<x: int64>'}]\nindexes: [{column: s.x, type: btree}]\n"
    tables = [table(f"t{i}", nested) for i in range(150)]
    put(folder, "pr/all.yaml", *tables, SECRET.replace("./lake", "s3://elsewhere"))
    told = codes(read(folder))
    assert told.count("M427") == 100
    assert told.count("M312") == 1
