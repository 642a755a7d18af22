"""References: where each kind is replaced, what is an error, and that secrets stay secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.manifest.limits import Limits
from reconciler.manifest.problem import ManifestError
from reconciler.manifest.secrets import connection_options, resolved_source
from reconciler.manifest.variables import MAX_EXPANSION, Resolver

from .support import CATALOG, codes, load_text, places, table


def properties(tmp_path: Path, text: str, **options: object) -> dict[str, str]:
    loaded = load_text(tmp_path, CATALOG, table("t", f"properties:\n  k: {text}\n"), **options)
    assert loaded.diagnostics == []
    return dict(loaded.desired.tables["lake"][("t",)].properties)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${var:x}", "1.0"),
        ("a-${var:x}-${var:y}", "a-1.0-no"),
        ("${var:none:-fallback}", "fallback"),
        ("${var:none:-}", ""),
        ("${env:HOST}", "h"),
        ("${env:NONE:-d}", "d"),
        ("$${var:x}", "${var:x}"),
        ("$$${x", "$${x"),
        ("$x ${var:y}", "$x no"),
        ("${var:evil}", "${env:HOST}"),
        ("'${var:x}'", "1.0"),
    ],
)
def test_values(tmp_path: Path, text: str, value: str) -> None:
    variables = {"x": "1.0", "y": "no", "evil": "${env:HOST}"}
    assert properties(tmp_path, text, variables=variables, environ={"HOST": "h"}) == {"k": value}


def test_files(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("line\n\n")
    assert properties(tmp_path, f"${{file:{tmp_path}/secret}}") == {"k": "line\n"}
    assert properties(tmp_path, f"${{file:{tmp_path}/nothing:-d}}") == {"k": "d"}


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("${var:nme}", "M301", 6),
        ("ab ${var:nme}", "M301", 9),
        ("${env:NONE}", "M302", 6),
        ("${file:/nowhere/at/all}", "M303", 6),
        ("${file:/}", "M303", 6),
        ("${HOME}", "M300", 6),
        ("${var:}", "M300", 6),
        ("${var:a b}", "M300", 6),
        ("${env:x", "M300", 6),
        ("x${}", "M300", 7),
    ],
)
def test_errors(tmp_path: Path, text: str, code: str, column: int) -> None:
    loaded = load_text(
        tmp_path, CATALOG, table("t", f"properties:\n  k: {text}\n"), variables={"name": "x"}, environ={}
    )
    assert codes(loaded) == [code]
    assert places(loaded, code) == [(11, column + 2)]


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("nowhere", "the path is relative to the working directory"),
        ("/nowhere", "check the path, and that what holds it is mounted"),
    ],
)
def test_the_hint_for_a_missing_file_fits_its_path(tmp_path: Path, path: str, hint: str) -> None:
    (found,) = load_text(tmp_path, CATALOG, table("t", f"properties: {{k: '${{file:{path}}}'}}\n")).diagnostics
    assert (found.code, found.message, found.hint) == ("M303", f"the file {path} does not exist", hint)


FOLLOW_UPS = {
    "empty": "location: ${var:x}",
    "flag": "protect: ${var:x}",
    "word": "state: ${var:x}",
    "type": "schema: [{name: a, type: '${var:x}'}]",
    "inside a type": "schema: [{name: a, type: 'list<${var:x}>'}]",
    "name": "schema: [{name: '${var:x}', type: int8}]",
    "index column": "schema: [{name: a, type: int8}]\nindexes: [{column: 'b${var:x}', type: btree}]",
    "index type": "indexes: [{column: a, type: '${var:x}'}]",
    "number": "indexes: [{column: a, type: inverted, params: {max_token_length: '${var:x}'}}]",
    "list element": "renamedFrom: ['${var:x}']",
    "path": "ignoreDifferences: ['${var:x}']",
    "word in a list": "allow: ['${var:x}']",
    "malformed": "location: ${x}",
    "environment": "location: ${env:NONE}",
}


@pytest.mark.parametrize("name", FOLLOW_UPS)
def test_an_undefined_variable_is_one_error(tmp_path: Path, name: str) -> None:
    loaded = load_text(tmp_path, CATALOG, table("t", FOLLOW_UPS[name]), environ={})
    assert [c[:3] for c in codes(loaded)] == ["M30"], loaded.diagnostics


@pytest.mark.parametrize(
    "ident",
    [
        "catalog: '${var:x}', id: [t]",
        "catalog: 'la${var:x}', id: [t]",
        "catalog: lake, id: ['${var:x}']",
        "catalog: lake, id: ['n${var:x}', t]",
    ],
)
def test_an_undefined_variable_in_the_identifier_is_one_error(tmp_path: Path, ident: str) -> None:
    text = table("t").replace("catalog: lake, id: [t]", ident)
    assert codes(load_text(tmp_path, CATALOG, text, table("n"))) == ["M301"]


def test_an_undefined_variable_in_a_catalog_is_one_error(tmp_path: Path) -> None:
    for old, new in (("./lake", "'${var:x}'"), ("{name: lake}", "{name: 'la${var:x}'}"), ("dir", "'${var:x}'")):
        assert codes(load_text(tmp_path, CATALOG.replace(old, new))) == ["M301"]


def test_other_errors_beside_an_undefined_variable_stay(tmp_path: Path) -> None:
    text = table("t", "protect: ${var:x}\nstate: gone\nlocation: ''\nunknown: 1\n")
    assert sorted(codes(load_text(tmp_path, CATALOG, text))) == ["M203", "M207", "M210", "M301"]
    text = table("t", "location: 'a${var:x}'\nschema: [{name: a, type: strng}]\n")
    assert sorted(codes(load_text(tmp_path, CATALOG, text, table("t")))) == ["M211", "M301", "M400"]


def test_hints(tmp_path: Path) -> None:
    loaded = load_text(
        tmp_path, CATALOG, table("t", "properties:\n  a: ${var:nme}\n  b: ${HOME}\n"), variables={"name": ""}
    )
    assert loaded.diagnostics[0].hint == "did you mean name?"
    assert "${env:HOME}" in loaded.diagnostics[1].hint


def test_plain_references_take_the_type_their_place_wants(tmp_path: Path) -> None:
    spec = """\
    protect: ${var:flag}
    description: ${var:flag}
    schema:
    - name: ${var:number}
      type: int64
      nullable: ${var:flag}
      default: ${var:number}
    - name: s
      type: string
      default: "${var:number}"
    indexes:
    - column: s
      type: inverted
      params:
        max_token_length: ${var:number}
    """
    loaded = load_text(tmp_path, CATALOG, table("t", spec), variables={"flag": "no", "number": "12"})
    assert codes(loaded) == []
    found = loaded.desired.tables["lake"][("t",)]
    assert found.protect is False
    assert found.properties["description"] == "no"
    assert found.fields is not None
    assert [(f.name, f.nullable, f.default) for f in found.fields] == [("12", False, "12"), ("s", True, "'12'")]
    assert dict(found.indexes[0].params) == {"max_token_length": 12}


def test_keys_are_not_replaced(tmp_path: Path) -> None:
    assert codes(load_text(tmp_path, CATALOG, table("t", 'properties: {"${var:a}": x}'), variables={"a": "b"})) == [
        "M304"
    ]


def test_catalog_references_stay_until_the_connection(tmp_path: Path) -> None:
    text = """\
apiVersion: reconciler.lance/v1
kind: Catalog
metadata: {name: lake}
spec:
  type: dir
  path: "s3://${var:bucket}/${env:FOLDER}"
  manifest_enabled: ${env:FLAG}
  storage.account_key: "x-${env:KEY}"
  storage.sas_token: "$${env:KEY}"
  storage.token: "${var:evil}"
"""
    loaded = load_text(tmp_path, text, variables={"bucket": "b", "evil": "${env:KEY}"}, environ={})
    assert codes(loaded) == ["M447", "M447"], "what looks like a reference and is none stands there as it is"
    options = loaded.desired.catalogs["lake"].options
    assert options["path"] == "s3://b/${env:FOLDER}"
    assert options["storage.account_key"] == "x-${env:KEY}"
    resolved, secrets = connection_options(options, environ={"FOLDER": "f", "FLAG": "true", "KEY": "hush-hush"})
    assert resolved == {
        "path": "s3://b/f",
        "manifest_enabled": "true",
        "storage.account_key": "x-hush-hush",
        "storage.sas_token": "${env:KEY}",
        "storage.token": "${env:KEY}",
    }
    assert {"hush-hush", "x-hush-hush"} <= secrets
    assert "s3://b/f" not in secrets


def test_connection_errors_name_the_key_and_no_value() -> None:
    with pytest.raises(
        ManifestError, match=r"`spec\.storage\.account_key`: the environment variable NONE is not set"
    ) as caught:
        connection_options({"storage.account_key": "hush-hush-${env:NONE}"}, environ={})
    assert "hush" not in str(caught.value)
    assert caught.value.code == "M302"


def test_harmless_values_are_not_redacted() -> None:
    options = {"path": "x", "storage.allow_http": "true", "storage.n": "12", "plain_folders": True}
    resolved, secrets = connection_options(options, environ={})
    assert resolved["plain_folders"] == "true"
    assert secrets == frozenset()


def test_expansion_is_bounded() -> None:
    resolver = Resolver({"big": "x" * (1 << 20)})
    found = resolver.expand("${var:big}" * 1000)
    assert [t.code for t in found.troubles] == ["M109"]
    assert len(found.text) <= MAX_EXPANSION + 20_000


SECRETS = {"SECRET": "hush-hush"}
PIECES = [
    ("${var:d}{env:SECRET}", "${env:SECRET}"),
    ("${var:d}${var:open}env:SECRET}", "${env:SECRET}"),
    ("${var:none:-$}{env:SECRET}", "${env:SECRET}"),
    ("${var:half}env:SECRET}", "${env:SECRET}"),
    ("${var:d}{${var:env}:SECRET}", "${env:SECRET}"),
    ("${var:d}$${env:SECRET}", "$${env:SECRET}"),
    ("x${var:d}${var:d}{env:SECRET}", "x$${env:SECRET}"),
    ("${var:d}{file:/etc/hostname}", "${file:/etc/hostname}"),
    ("a${var:d}{b}${env:SECRET}", "a${b}hush-hush"),
]


@pytest.mark.parametrize(("text", "value"), PIECES)
def test_values_that_make_a_reference_together_are_text(tmp_path: Path, text: str, value: str) -> None:
    """In a connection, in the source of a table, and in everything else: one pass, whatever stands beside what."""
    variables = {"d": "$", "open": "{", "half": "${", "env": "env"}
    catalog = CATALOG.replace("path: ./lake", f"path: ./lake, storage.user_agent: '{text}'")
    data = f"data: {{source: {{format: json, path: x, storage.user_agent: '{text}'}}, mode: once}}\n"
    spec = f"properties: {{k: '{text}'}}\nschema: [{{name: a, type: int8}}]\n" + data
    loaded = load_text(tmp_path, catalog, table("t", spec), variables=variables, environ=SECRETS)
    assert codes(loaded) == []
    found = loaded.desired.tables["lake"]["t",]
    assert found.properties == {"k": value}
    assert connection_options(loaded.desired.catalogs["lake"].options, None, SECRETS)[0]["storage.user_agent"] == value
    assert found.data is not None
    assert resolved_source(found.data.source, SECRETS)[0]["storage.user_agent"] == value


def test_a_dollar_right_before_a_reference_is_no_escape(tmp_path: Path) -> None:
    """`$${env:X}` is a text, so that a variable may not make one of a reference: here it cannot be written, and an
    error says so."""
    catalog = CATALOG.replace("path: ./lake", "path: ./lake, storage.x: '${var:d}${env:SECRET}'")
    found = load_text(tmp_path, catalog, variables={"d": "$"}, environ=SECRETS)
    assert codes(found) == ["M300"]


def test_a_kind_that_a_variable_gives_is_that_kind(tmp_path: Path) -> None:
    """What looks like a reference in it is a text once, and stays one."""
    catalog = CATALOG.replace("kind: Catalog", "kind: '${var:kind}'")
    catalog = catalog.replace("path: ./lake", "path: ./lake, storage.x: '$${env:SECRET}'")
    found = load_text(tmp_path, catalog, variables={"kind": "Catalog"}, environ=SECRETS)
    assert connection_options(found.desired.catalogs["lake"].options, None, SECRETS)[0]["storage.x"] == "${env:SECRET}"


@pytest.mark.parametrize("dollar", [r"\x24", r"\u0024", r"\U00000024", "$\\\n    "])
def test_an_escape_of_yaml_hides_no_reference(tmp_path: Path, dollar: str) -> None:
    catalog = CATALOG.replace("path: ./lake", f'path: ./lake, storage.x: "{dollar}{{env:SECRET}}"')
    assert codes(load_text(tmp_path, catalog, environ=SECRETS, limits=Limits(env=()))) == ["M310"]


def test_limits_hold_where_a_reference_is_resolved() -> None:
    """Whoever overlooks one before."""
    limits = Limits(env=("PUBLIC_",), files=())
    for text in ("${env:SECRET}", "x${env:SECRET:-y}", "${file:/etc/hostname}"):
        for resolve in (connection_options, resolved_source):
            with pytest.raises(ManifestError) as refused:
                resolve({"storage.x": text}, environ=SECRETS, limits=limits)
            assert refused.value.code in ("M310", "M311")
