"""Git keeps what is imported: no secret gets there, however it is called, and nothing is lost by that."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_runs import catalog, namespace, reconciler, table, write
from lance.namespace import DirectoryNamespace
from lance_namespace import CreateNamespaceRequest

from reconciler.core.secret_names import names_credential

TOKEN = "TOKcanary77"
ENV = {"TOK": TOKEN}
CREDENTIALS = {"password": "pw-canary", "api_token": "to-canary", "s3.secret-access-key": "k-canary", "sas": "canary"}
PLAIN = {"tokenizer": "bert", "max_tokens": "512", "primary_key": "id", "region": "us-east-1", "token.note": ""}


def live(folder: Path, schema: str, properties: dict[str, str], spec: str = "") -> None:
    """Made by us, with the catalog's secret unknown: then every key is one that we set."""
    said = json.dumps(properties)
    documents = namespace("a", spec=f"{{properties: {said}, description: 'by {TOKEN}'}}")
    more = table("a", "t", schema=schema, spec=f"properties: {said}{spec}")
    write(folder, catalog(), documents, more)
    assert reconciler(folder, "apply", "m.yaml", "--yes").code == 0
    (folder / "m.yaml").unlink()
    write(folder, catalog(storage__token="${env:TOK}", storage__aws_region="us-east-1"), name="c.yaml")


def imported(folder: Path, code: int = 0) -> tuple[str, str]:
    run = reconciler(folder, "import", "c.yaml", "-o", "live", env=ENV)
    assert run.code == code, run.err
    files = sorted((folder / "live").rglob("*.yaml"))
    return "".join(f.read_text() for f in files), run.out + run.err


SETTINGS = {**ENV, "RECONCILER_LAKE_STORAGE_AWS_REGION": "us-east-1"}


def variables() -> dict[str, str]:
    """What the notes ask for."""
    properties = {"NOTE": f"uses {TOKEN} here", "PASSWORD": "pw-canary", "API_TOKEN": "to-canary", "SAS": "canary"}
    properties |= {"S3_SECRET_ACCESS_KEY": "k-canary"}
    inside = {f"RECONCILER_LAKE_A_{t}PROPERTIES_{k}": v for k, v in properties.items() for t in ("", "T_")}
    columns = {"ID_COMMENT": f"see {TOKEN}", "V_METADATA": TOKEN, "S_X_COMMENT": TOKEN}
    more = {f"RECONCILER_LAKE_A_T_SCHEMA_{k}": v for k, v in columns.items()}
    about = {"RECONCILER_LAKE_A_DESCRIPTION": f"by {TOKEN}", "RECONCILER_LAKE_A_T_SCHEMAMETADATA_ABOUT": TOKEN}
    return {**SETTINGS, **inside, **more, **about}


def test_what_we_set_becomes_a_variable(tmp_path: Path) -> None:
    comment = f"{{name: id, type: int64, comment: see {TOKEN}}}"
    noted = f"{{name: v, type: int8, comment: fine, metadata: {{k: '{TOKEN}', other: '${{{{x}}'}}}}"
    nested = f"{{name: s, type: struct, fields: [{{name: x, type: int8, comment: {TOKEN}}}]}}"
    named = f"{{name: c{TOKEN}, type: int8}}"
    schema = f"[{comment}, {noted}, {nested}, {named}]".replace("${{x}", "$${x}")
    maps = f"\n  schemaMetadata: {{about: '{TOKEN}', fine: x}}"
    live(tmp_path, schema, {"note": f"uses {TOKEN} here", "fine": "x", **CREDENTIALS, **PLAIN}, maps)
    text, told = imported(tmp_path)
    assert "canary" not in text + told
    for key in (*CREDENTIALS, "note"):
        assert f"the property {key!r} is not written out" in text
    for key in PLAIN:
        assert f"{key}: " in text
    assert "set RECONCILER_LAKE_A_T_SCHEMA_S_X_COMMENT to it" in told
    assert "the column 'c***' (int8) is left out: a name or comment in it holds a secret" in told
    unset = reconciler(tmp_path, "plan", "live", env=SETTINGS)
    assert unset.code == 1
    assert "the environment variable RECONCILER_LAKE_A_PROPERTIES_API_TOKEN is not set" in unset.err
    plan = reconciler(tmp_path, "plan", "live", "--detailed-exitcode", env=variables())
    assert plan.code == 0, plan.out + plan.err
    again = reconciler(tmp_path, "import", "c.yaml", "-o", "live", env=variables())
    assert again.out == "", "nothing has changed"


@pytest.mark.slow
def test_a_key_that_is_a_secret_is_left_out_and_stays_live(tmp_path: Path) -> None:
    """We set it, and can no longer say so without its name: it is no longer ours, and that is all that changes."""
    live(tmp_path, "[{name: id, type: int64}]", {f"k{TOKEN}": "x", "fine": "x"})
    text, told = imported(tmp_path)
    assert "canary" not in text + told
    assert "a property is left out: its name holds a secret" in told
    given = {**SETTINGS, "RECONCILER_LAKE_A_DESCRIPTION": f"by {TOKEN}"}
    applied = reconciler(tmp_path, "apply", "live", "--yes", env=given)
    assert applied.code == 0, applied.err
    assert reconciler(tmp_path, "plan", "live", "--detailed-exitcode", env=given).code == 0
    shutil.rmtree(tmp_path / "live")
    assert imported(tmp_path)[1].count("its name holds a secret") == 2, "still there"


def test_an_object_with_such_a_name_is_told_and_not_written(tmp_path: Path) -> None:
    write(tmp_path, catalog(), namespace(f"n{TOKEN}"), namespace("b"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    (tmp_path / "m.yaml").unlink()
    write(tmp_path, catalog(storage__token="${env:TOK}"), name="c.yaml")
    text, told = imported(tmp_path, 5)
    assert "canary" not in text + told
    assert "1 object of it is in no file: do not --prune with them" in told, "it is ours: a plan calls it an orphan"
    assert "namespace n*** cannot be written as a manifest: a name or comment in it holds a secret" in told


def test_what_a_manifest_says_there_already_stays(tmp_path: Path) -> None:
    live(tmp_path, "[{name: id, type: int64, comment: now}]", {"api_token": "new", "fine": "x"})
    columns = "[{name: id, type: int64, comment: now}]"
    said = "properties: {api_token: '${env:TOK}', fine: y}"
    (tmp_path / "live").mkdir()
    write(tmp_path / "live", namespace("a"), table("a", "t", schema=columns, spec=said))
    run = reconciler(tmp_path, "import", "c.yaml", "-o", "live", env=ENV)
    assert run.code == 0, run.err
    after = (tmp_path / "live/m.yaml").read_text()
    assert "api_token: '${env:TOK}', fine: x" in after


@pytest.mark.parametrize(
    ("key", "is_one"),
    [*((k, True) for k in CREDENTIALS), *((k, False) for k in PLAIN if k != "token.note"), ("client_secret", True),
     ("tokens.max", True), ("num_tokens", False), ("token_count", False), ("AccessKey", True), ("keyword", False)],
)  # fmt: skip
def test_names(key: str, is_one: bool) -> None:
    assert names_credential(key) is is_one


FORMS = {
    "note": "AKIA" + "IOSFODNN7EXAMPLE",
    "gh": "ghp_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789",
    "jwt": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\nMIIEcanary\n-----END RSA PRIVATE KEY-----",
}


def test_a_value_that_is_a_credential_by_its_form_is_not_written(tmp_path: Path) -> None:
    """Whatever its key is called: in a property, a description, a comment, metadata; set by us or by others."""
    columns = [{"name": "id", "type": "int64", "comment": f"read with {FORMS['gh']}", "metadata": {"k": FORMS["jwt"]}}]
    maps = f"\n  config: {{k: {FORMS['gh']}}}\n  schemaMetadata: {{k: {json.dumps(FORMS['pem'])}}}"
    live(tmp_path, json.dumps(columns), {**FORMS, "fine": "x"}, maps)
    description = {"description": f"ask {FORMS['gh']}", "theirs": FORMS["jwt"]}
    DirectoryNamespace(root=str(tmp_path / "lake")).create_namespace(
        CreateNamespaceRequest(id=["others"], properties=description)
    )
    text, told = imported(tmp_path)
    for value in (*FORMS.values(), "MIIEcanary", FORMS["gh"][4:], FORMS["jwt"][-20:]):
        assert value not in text + told
    assert "namespace others: the property 'description' is left out: it holds a secret, a GitHub token" in told
    assert "namespace others: the property 'theirs' is left out: it holds a secret, a JSON web token" in told
    assert "table a.t: the property 'pem' is not written out: it holds a secret, a private key by its form; set" in told
    assert "table a.t: the comment of the column 'id' is not written out" in told
    assert "fine: x" in text
