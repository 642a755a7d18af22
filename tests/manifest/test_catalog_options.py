"""The options of catalog services: what is refused, where, and with which hint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.manifest.plugin_options import PluginTypes, with_storage
from reconciler.manifest.problem import ManifestError
from reconciler.manifest.schema_files import catalog_types, options_of
from reconciler.manifest.secrets import connection_options
from reconciler.model.errors import CatalogError, Code

from .support import codes, load_text, namespace, places

HEAD = "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\nspec:\n"
NEEDED = {
    "rest": "uri: http://h",
    "iceberg": "endpoint: http://h",
    "unity": "endpoint: http://h\n  catalog: c",
    "glue": "region: eu-west-1",
}


def catalog(type_: str, *options: str, needed: bool = True) -> str:
    return HEAD + "".join(f"  {o}\n" for o in (f"type: {type_}", *([NEEDED[type_]] if needed else ()), *options))


@pytest.mark.parametrize("type_", NEEDED)
def test_minimal_documents(tmp_path: Path, type_: str) -> None:
    assert codes(load_text(tmp_path, catalog(type_))) == []


REFUSED = [
    ("rest", "delimeter: '.'", "M203", "did you mean delimiter?"),
    ("rest", "header: {a: b}", "M203", "write each option as its own key: header.NAME: value"),
    ("rest", "header.x: 5", "M206", "put it in quotes"),
    ("iceberg", "tls: {ca_file: x}", "M203", "write each option as its own key: tls.KEY: value"),
    ("iceberg", "tls.ca: x", "M203", "did you mean tls.ca_file?"),
    ("iceberg", "warehous: x", "M203", "did you mean warehouse?"),
    ("iceberg", "read_timeout: soon", "M207", ""),
    ("iceberg", "read_timeout: '30'", "M207", ""),
    ("iceberg", "read_timeout: 1.5", "M205", ""),
    ("iceberg", "read_timeout: true", "M205", ""),
    ("iceberg", "read_timeout:", "M210", ""),
    ("iceberg", "read_timeout: 0", "M208", "from 1 to 86400000"),
    ("iceberg", "max_retries: -1", "M208", "from 0 to 100"),
    ("iceberg", "max_retries: 101", "M208", "from 0 to 100"),
    ("iceberg", "auth_token: 12345", "M206", "put it in quotes"),
    ("iceberg", "auth_token: ''", "M210", ""),
    ("iceberg", "tls.verify: maybe", "M207", ""),
    ("iceberg", "tls.key_file: k.pem", "M209", "add tls.cert_file, or remove tls.key_file"),
    ("iceberg", "scope: PRINCIPAL", "M209", "add credential, or remove scope"),
    ("unity", "read_timeout: 86401", "M208", "from 1 to 86400"),
    ("unity", "credential: a:b", "M203", ""),
    ("unity", "header.x: y", "M203", ""),
    ("unity", "api_path: api/2.1", "M207", ""),
    ("glue", "access_key_id: AKIA", "M209", "add secret_access_key, or remove access_key_id"),
    ("glue", "secret_access_key: abcd", "M209", "add access_key_id, or remove secret_access_key"),
    ("glue", "assume_role_external_id: abcd", "M209", "add assume_role_arn, or remove assume_role_external_id"),
    ("glue", "assume_role_arn: a\n  assume_role_timeout_sec: 900", "M208", "from 901 to 43200"),
    ("glue", "endpoint: s3.example.com", "M207", ""),
    ("glue", "catalogs: 1", "M205", ""),
    ("glue", "storage: {a: b}", "M203", "write each option as its own key: storage.KEY: value"),
]


@pytest.mark.parametrize(("type_", "option", "code", "hint"), REFUSED)
def test_refused_options(tmp_path: Path, type_: str, option: str, code: str, hint: str) -> None:
    text = catalog(type_, option)
    found = load_text(tmp_path, text).diagnostics
    assert [d.code for d in found] == [code]
    assert text.splitlines()[found[0].source.line - 1].strip() == option.splitlines()[-1].strip()
    assert hint in found[0].hint
    if "put it in quotes" in hint:
        assert "5" not in found[0].message, "a secret is not repeated"


def test_a_session_token_needs_both_keys(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, catalog("glue", "session_token: t"))
    assert codes(loaded) == ["M209", "M209"]
    keys = ("access_key_id: a", "secret_access_key: b")
    assert codes(load_text(tmp_path, catalog("glue", "session_token: t", *keys))) == ["M447", "M447", "M447"]


@pytest.mark.parametrize("type_", ["rest", "iceberg"])
def test_one_way_to_sign_in(tmp_path: Path, type_: str) -> None:
    (found,) = load_text(tmp_path, catalog(type_, "credential: a:b", "auth_token: t")).diagnostics
    assert found.code == "M209"
    assert "`credential` and `auth_token`" in found.message


@pytest.mark.parametrize(("type_", "key"), [("rest", "uri"), ("iceberg", "endpoint"), ("unity", "catalog")])
def test_needed_keys(tmp_path: Path, type_: str, key: str) -> None:
    loaded = load_text(tmp_path, catalog(type_, needed=False))
    assert "M204" in codes(loaded)
    assert any(repr(key) in d.message for d in loaded.diagnostics)


def test_addresses(tmp_path: Path) -> None:
    for good in ("https://h:8181/x", "${env:URL}", "https://${env:HOST}/x", "${file:url}"):
        assert codes(load_text(tmp_path, catalog("iceberg", f"endpoint: {good}", needed=False))) == [], good
    for bad in ("h:8181", "ftp://h", "http://", "http:///x", "/x"):
        assert codes(load_text(tmp_path, catalog("iceberg", f"endpoint: {bad}", needed=False))) == ["M207"], bad
    (found,) = load_text(tmp_path, catalog("iceberg", "endpoint: https://me:hunter2@h", needed=False)).diagnostics
    assert (found.code, found.source.line) == ("M417", 6)
    assert "hunter2" not in found.message + found.hint


def test_variables_give_numbers(tmp_path: Path) -> None:
    text = catalog("iceberg", "read_timeout: ${var:ms}", "max_retries: ${env:N}")
    loaded = load_text(tmp_path, text, variables={"ms": "250"})
    assert codes(loaded) == []
    assert loaded.desired.catalogs["lake"].options["read_timeout"] == 250
    assert codes(load_text(tmp_path, text, variables={"ms": "soon"})) == ["M207"]


RESOLVED = [
    ("iceberg", "read_timeout", "30x", "M205"),
    ("iceberg", "read_timeout", "", "M205"),
    ("iceberg", "read_timeout", "-77", "M208"),
    ("glue", "assume_role_timeout_sec", "877", "M208"),
    ("glue", "catalogs", "perhaps", "M205"),
    ("rest", "uri", "ftp://hunter2", "M207"),
    ("rest", "api_key", "", "M210"),
]


@pytest.mark.parametrize(("type_", "key", "value", "code"), RESOLVED)
def test_what_a_reference_became_is_checked(type_: str, key: str, value: str, code: str) -> None:
    with pytest.raises(ManifestError) as caught:
        connection_options({key: "${env:X}"}, options_of(type_), {"X": value})
    assert caught.value.code == code
    assert f"`spec.{key}`" in caught.value.message
    assert not value or value not in str(caught.value)


EMPTY_PARTS = [
    ("dir", "path", "${env:X}/lake", [0]),
    ("dir", "path", "${env:X}", [0]),
    ("dir", "path", "s3://${env:FULL}/${env:X}/${file:%s}", [17, 26]),
    ("dir", "path", "./lake-${env:NOT_SET:-}", [7]),
    ("rest", "uri", "https://h/${env:X}", [10]),
    ("iceberg", "endpoint", "https://${env:X}.example.com", [8]),
    ("iceberg", "root", "s3://${file:%s}/x", [5]),
    ("glue", "root", "s3://${env:X}/x", [5]),
]


@pytest.mark.parametrize("nothing", ["", " ", "\n \t"])
@pytest.mark.parametrize(("type_", "key", "written", "offsets"), EMPTY_PARTS)
def test_no_part_of_a_place_is_empty(
    tmp_path: Path, type_: str, key: str, written: str, offsets: list[int], nothing: str
) -> None:
    """What is left is another place, and it may well be there."""
    (tmp_path / "empty").write_text(nothing + "\n")
    environ = {"X": nothing, "FULL": "full"}
    with pytest.raises(ManifestError) as caught:
        connection_options({key: written.replace("%s", str(tmp_path / "empty"))}, options_of(type_), environ)
    assert [(p.code, p.path, p.offset) for p in caught.value.problems] == [("M210", ("spec", key), o) for o in offsets]
    assert all(f"`spec.{key}`: ${{" in p.message for p in caught.value.problems)


def test_an_empty_part_elsewhere_is_a_value() -> None:
    written = {"path": "./${env:Y}", "storage.prefix": "a${env:X}", "assume_role_session_name": "a${env:X}"}
    resolved, _ = connection_options(written, options_of("dir"), {"X": "", "Y": "y"})
    assert resolved == {"path": "./y", "storage.prefix": "a", "assume_role_session_name": "a"}


def test_an_empty_variable_in_a_place_is_told_by_validate(tmp_path: Path) -> None:
    text = HEAD + "  type: dir\n  path: s3://lake/${var:stage}/${var:no:-}x\n  storage.region: b${var:stage}\n"
    loaded = load_text(tmp_path, text, variables={"stage": " "})
    assert places(loaded, "M210") == [(6, 9 + len("s3://lake/")), (6, 9 + len("s3://lake/${var:stage}/"))]
    assert codes(loaded) == ["M210", "M210"]
    assert loaded.diagnostics[0].message == "`spec.path`: ${var:stage} is empty, or only white space"
    assert codes(load_text(tmp_path, text.replace("${var:no:-}", ""), variables={"stage": "dev"})) == []


def test_values_become_strings() -> None:
    options = {"read_timeout": 20.0, "max_retries": "${env:N}", "tls.verify": False, "header.a": "abcd"}
    resolved, secrets = connection_options(options, options_of("iceberg"), {"N": "7"})
    assert resolved == {"read_timeout": "20", "max_retries": "7", "tls.verify": "false", "header.a": "abcd"}
    assert secrets == {"abcd"}


# types that are not built in

TOY: dict[str, Any] = {
    "properties": {
        "file": {"type": "string", "minLength": 1},
        "pin": {"type": "string", "x-secret": True},
        "size": {"type": "integer", "minimum": 1},
    },
    "required": ["file"],
}


def _broken(type_: str) -> Mapping[str, Any]:
    raise CatalogError(Code.INVALID_INPUT, f"the plug-in for catalog type {type_!r} cannot be loaded: No module x")


def toy(known: Any = lambda type_: TOY if type_ == "toy" else None) -> PluginTypes:
    return PluginTypes(lambda: (*catalog_types(), "toy"), known)


def plug_in(*options: str, type_: str = "toy") -> str:
    return HEAD + "".join(f"  {o}\n" for o in (f"type: {type_}", *options))


def test_an_unknown_type_names_the_known_ones(tmp_path: Path) -> None:
    loaded = load_text(tmp_path, plug_in("x: y", type_="icberg"), namespace("n"), plugins=toy())
    assert codes(loaded) == ["M207"]
    assert places(loaded, "M207") == [(5, 9)]
    hint = loaded.diagnostics[0].hint
    assert "did you mean iceberg?" in hint
    assert "dir, rest, iceberg, unity, glue, toy" in hint
    assert codes(load_text(tmp_path, plug_in("file: x"))) == ["M207"], "without plug-ins nobody serves it"


def test_a_plug_in_has_its_own_keys(tmp_path: Path) -> None:
    fine = plug_in("file: x", "pin: abcd", "size: 3", "storage.region: eu", "management: {owner: me}")
    loaded = load_text(tmp_path, fine, plugins=toy())
    assert codes(loaded) == []
    assert loaded.desired.catalogs["lake"].type == "toy"
    assert loaded.desired.catalogs["lake"].management.owner == "me"
    assert codes(load_text(tmp_path, plug_in("file: ${env:F}", "size: ${env:S}"), plugins=toy())) == []


BAD_TOYS = [
    (("fil: x",), ["M203", "M204"]),
    (("file: x", "pn: y"), ["M203"]),
    (("file: x", "size: 0"), ["M208"]),
    (("file: x", "size: many"), ["M205"]),
    (("file: x", "pin: 123456"), ["M206"]),
    (("file: ''",), ["M210"]),
    (("file: x", "storage.a: 1"), ["M206"]),
    (("file: x", "management: {owners: me}"), ["M203"]),
]


@pytest.mark.parametrize(("options", "expected"), BAD_TOYS)
def test_wrong_keys_of_a_plug_in(tmp_path: Path, options: tuple[str, ...], expected: list[str]) -> None:
    loaded = load_text(tmp_path, plug_in(*options), namespace("n"), plugins=toy())
    assert sorted(codes(loaded)) == expected
    assert not any("123456" in d.message + d.hint for d in loaded.diagnostics)
    if "pn: y" in options:
        assert loaded.diagnostics[0].hint == "did you mean pin?"


def test_a_plug_in_that_cannot_be_used(tmp_path: Path) -> None:
    (found,) = load_text(tmp_path, plug_in("file: x"), namespace("n"), plugins=toy(_broken)).diagnostics
    assert (found.code, found.source.line) == ("M440", 5)
    assert "No module x" in found.message
    nonsense = {"properties": {"file": {"type": "no such type"}}}
    (found,) = load_text(tmp_path, plug_in("file: x"), plugins=toy(lambda _: nonsense)).diagnostics
    assert found.code == "M440"
    assert "JSON Schema" in found.message


def test_a_secret_is_marked_by_way_of_a_definition(tmp_path: Path) -> None:
    """What is marked once for several keys is as secret as what is marked on the spot."""
    options: dict[str, Any] = {
        "$defs": {"hush": {"type": "string", "x-secret": True}, "deep": {"allOf": [{"$ref": "#/$defs/hush"}]}},
        "properties": {"a": {"$ref": "#/$defs/hush"}, "b": {"$ref": "#/$defs/deep"}, "c": {"type": "string"}},
    }
    options["properties"]["d"] = {"enum": ["one", "two"], "x-secret": True}
    spec: dict[str, object] = {"a": "secret-a", "b": "secret-b", "c": "plain-c", "storage.x": "secret-x"}
    assert connection_options(spec, with_storage(options))[1] == {"secret-a", "secret-b", "secret-x"}
    loaded = load_text(tmp_path, plug_in("a: 123456", "b: x", "c: y"), plugins=toy(lambda _: options))
    assert codes(loaded) == ["M206"]
    assert "123456" not in loaded.diagnostics[0].message + loaded.diagnostics[0].hint
    loaded = load_text(tmp_path, plug_in("d: three"), plugins=toy(lambda _: options))
    assert codes(loaded) == ["M207"]
    assert "three" not in loaded.diagnostics[0].message


def test_a_plug_in_may_take_an_address_with_a_password(tmp_path: Path) -> None:
    options = {"properties": {"dsn": {"type": "string", "x-secret": True}}}
    text = plug_in("dsn: postgres://me:hunter2@db/x")
    assert codes(load_text(tmp_path, text, plugins=toy(lambda _: options))) == []
