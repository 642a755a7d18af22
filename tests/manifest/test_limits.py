"""`--env-allow`, `--file-root` and `--no-resolve`: what references may reach, and what is said where they may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.manifest.limits import Limits, limits_of
from reconciler.model.desired import CatalogSpec, Management
from reconciler.model.diagnostic import Source
from reconciler.model.reading import Reading
from reconciler.session import Failure, Session

from .support import CATALOG, codes, load_text, places, table
from .test_variables import FOLLOW_UPS


def with_property(text: str) -> str:
    return table("t", f"properties:\n  k: {text}\n")


ENVIRON = {"PUBLIC_REGION": "eu", "TOKEN": "hush-hush", "PUBLIC": "x"}


def test_only_names_that_begin_as_allowed_are_read(tmp_path: Path) -> None:
    limits = Limits(env=("PUBLIC_", "CI_"))
    allowed = load_text(tmp_path, CATALOG, with_property("${env:PUBLIC_REGION}"), environ=ENVIRON, limits=limits)
    assert allowed.desired.tables["lake"]["t",].properties == {"k": "eu"}
    for name in ("TOKEN", "PUBLIC", "public_region", "XPUBLIC_"):
        refused = load_text(tmp_path, CATALOG, with_property(f"a${{env:{name}}}"), environ=ENVIRON, limits=limits)
        assert codes(refused) == ["M310"]
        assert places(refused, "M310") == [(11, 9)]


@pytest.mark.parametrize("reference", ["${env:TOKEN}", "${env:TOKEN:-d}", "x${env:TOKEN}", "${env:TOKEN}${env:TOKEN}"])
def test_what_is_refused_looks_the_same_whether_it_is_set_or_not(tmp_path: Path, reference: str) -> None:
    said = []
    for environ in (ENVIRON, {}):
        found = load_text(tmp_path, CATALOG, with_property(reference), environ=environ, limits=Limits(env=()))
        assert set(codes(found)) == {"M310"}
        assert "hush-hush" not in str(found)
        said.append(found.diagnostics)
    assert said[0] == said[1]


def test_the_references_of_connections_and_sources_count_too(tmp_path: Path) -> None:
    """They are read when the catalog is opened, and refused before."""
    catalog = CATALOG.replace("path: ./lake", 'path: ./lake, storage.token: "${env:TOKEN}"')
    source = 'schema: [{name: a, type: int8}]\ndata: {source: {format: json, path: "${env:TOKEN}/x"}, mode: once}\n'
    found = load_text(tmp_path, catalog, table("t", source), limits=Limits(env=("PUBLIC_",)))
    assert codes(found) == ["M310", "M310"]
    assert codes(load_text(tmp_path, catalog, table("t", source), limits=Limits(env=("TOKEN",)))) == []


@pytest.mark.parametrize("below", ["f", "sub/../f", "./sub/f", "here"])
def test_files_below_the_root_are_read(tmp_path: Path, below: str) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    for name in ("f", "sub/f"):
        (root / name).write_text("text\n")
    (root / "here").symlink_to("sub/f")
    found = load_text(tmp_path, CATALOG, with_property(f"${{file:{root}/{below}}}"), limits=Limits(files=(str(root),)))
    assert found.desired.tables["lake"]["t",].properties == {"k": "text"}


@pytest.mark.parametrize(
    "path", ["../secret", "sub/../../secret", "link", "folder/secret", "../root2/secret", "../nothing", "/etc/passwd"]
)
def test_files_elsewhere_are_not(tmp_path: Path, path: str) -> None:
    root, other = tmp_path / "root", tmp_path / "root2"
    (root / "sub").mkdir(parents=True)
    other.mkdir()
    for secret in (tmp_path / "secret", other / "secret"):
        secret.write_text("hush-hush")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "folder").symlink_to(other)
    place = path if path.startswith("/") else f"{root}/{path}"
    found = load_text(tmp_path, CATALOG, with_property(f"${{file:{place}:-d}}"), limits=Limits(files=(str(root),)))
    assert codes(found) == ["M311"]
    assert "hush-hush" not in str(found)


@pytest.mark.parametrize("root", ["files", "sub/files", "{here}/files", "../{name}/files"])
def test_a_root_that_is_a_link_is_not_used(tmp_path: Path, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever made the folder could have made it a link to anything; below the working directory a checkout lies."""
    here, secrets = tmp_path / "here", tmp_path / "secrets"
    (here / "real").mkdir(parents=True)
    (here / "real" / "f").write_text("text")
    (secrets / "files").mkdir(parents=True)
    for place in (secrets, secrets / "files"):
        (place / "f").write_text("hush-hush")
    (here / "files").symlink_to("../secrets")
    (here / "sub").symlink_to("../secrets")
    monkeypatch.chdir(here)
    given = root.format(here=here, name="here")
    text = with_property(f"${{file:{given}/f}}")
    found = load_text(tmp_path, CATALOG, text, limits=Limits(files=(given,)))
    assert codes(found) == ["M311"]
    assert (
        found.diagnostics[0].hint
        == f"not used: --file-root {given} is a link that leads elsewhere; give the folder itself"
    )
    assert codes(load_text(tmp_path, CATALOG, text, limits=Limits(files=(str(secrets),)))) == [], "what is said counts"
    (here / "files").unlink()
    (here / "files").symlink_to("real")
    inside = load_text(tmp_path, CATALOG, with_property("${file:files/f}"), limits=Limits(files=("files",)))
    assert inside.desired.tables["lake"]["t",].properties == {"k": "text"}, "a link within the checkout does no harm"


UNREAD = {
    **{name: text.replace("${var:x}", "${env:NONE}") for name, text in FOLLOW_UPS.items() if name != "malformed"},
    "file": "location: ${file:/nowhere}",
    "flag of a column": "schema: [{name: a, type: int8, nullable: '${env:NONE}'}]",
    "dimension": "schema: [{name: a, type: 'fixed_size_list<float32>[${env:NONE}]'}]",
    "beside the known": "properties: {a: 'x${env:NONE}y'}",
}


@pytest.mark.parametrize("name", UNREAD)
def test_without_resolving_an_unknown_value_is_no_error(tmp_path: Path, name: str) -> None:
    assert codes(load_text(tmp_path, CATALOG, table("t", UNREAD[name]), limits=Limits(resolve=False))) == []


@pytest.mark.parametrize("ident", ["catalog: '${env:X}', id: [t]", "catalog: lake, id: ['n${env:X}', t]"])
def test_without_resolving_an_unknown_identifier_is_no_error(tmp_path: Path, ident: str) -> None:
    text = f"apiVersion: reconciler.lance/v1\nkind: Table\nmetadata: {{{ident}}}\nspec: {{}}\n"
    assert codes(load_text(tmp_path, CATALOG, text, limits=Limits(resolve=False))) == []


def test_without_resolving_the_form_and_everything_else_is_checked(tmp_path: Path) -> None:
    wrong = table("t", "properties: {a: '${env:no name}', b: '${HOME}', c: '${file:}'}\nprotct: true\n")
    found = load_text(tmp_path, CATALOG, wrong, limits=Limits(resolve=False))
    assert codes(found) == ["M300", "M300", "M300", "M203"]


def test_without_resolving_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("hush-hush")
    text = with_property(f"${{file:{tmp_path}/f}}-${{env:TOKEN}}")
    found = load_text(tmp_path, CATALOG, text, environ=ENVIRON, limits=Limits(resolve=False))
    assert "hush-hush" not in str(found)


def test_variables_are_resolved_all_the_same(tmp_path: Path) -> None:
    limits = Limits(env=(), files=(), resolve=False)
    found = load_text(tmp_path, CATALOG, with_property("${var:x}"), variables={"x": "1"}, limits=limits)
    assert found.desired.tables["lake"]["t",].properties == {"k": "1"}


def test_manifests_of_others_may_name_nothing_that_is_not_allowed() -> None:
    assert limits_of(Reading()) == Limits()
    assert limits_of(Reading(env_allow=("A",))) == Limits(env=("A",))
    assert limits_of(Reading(catalogs_from=("d",))) == Limits(env=(), files=(), late=False)
    assert limits_of(Reading(catalogs_from=("d",), file_root=("r",))) == Limits(env=(), files=("r",), late=False)


def test_a_run_opens_catalogs_within_its_limits() -> None:
    """Also one that no manifest check has seen."""
    spec = CatalogSpec("lake", "dir", {"path": "./lake", "storage.token": "${env:TOKEN:-x}"}, Management(), Source("c"))
    session = Session()
    session.keep_to(Reading(env_allow=("PUBLIC_",)))
    with pytest.raises(Failure) as refused:
        session.resolved(spec)
    assert [d.code for d in refused.value.diagnostics] == ["M310"]
    session.keep_to(Reading(env_allow=("PUBLIC_",), catalogs_from=("base",)))
    assert session.resolved(spec)[0]["storage.token"], "where catalogs are not the strangers' own, they are no business"
