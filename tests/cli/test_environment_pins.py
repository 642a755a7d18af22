"""A run that was aimed at the wrong environment ends before it reads anything: another account, region, path or
address than `management.expect` wants, or no `--env` where the catalog requires one. Where that was not asked for, a
root that does not exist says so, and which of our tables are beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Run, catalog, check_schema, namespace, reconciler, table, write
from servers.glue_moto import KEYS, GlueServer
from servers.moto import Moto, moto

__all__ = ["moto"]


def dir_catalog(path: str, expect: dict[str, str] | None = None, **spec: Any) -> str:
    management = {"owner": "team", **({"expect": expect} if expect else {})}
    given = json.dumps({"type": "dir", "path": path, "management": management, **spec})
    return f"apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {{name: lake}}\nspec: {given}\n"


def refused(run: Run, code: str, *said: str) -> None:
    assert run.code == 1, run
    for text in (f"error[{code}]", *said):
        assert text in run.err


# options


@pytest.mark.parametrize("expected", ["./prod", "./pr*", "./pro[a-d]"])
def test_an_option_is_what_is_expected(tmp_path: Path, expected: str) -> None:
    write(tmp_path, dir_catalog("./prod", {"path": expected}), table("t"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    assert reconciler(tmp_path, "plan", "m.yaml", "--detailed-exitcode").code == 0


@pytest.mark.parametrize("arguments", [("plan",), ("apply", "--yes"), ("drift",), ("status",), ("plan", "--prune")])
def test_another_option_ends_the_run(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """As it is once references are resolved: that is where environments are mixed up."""
    write(tmp_path, dir_catalog("${env:ROOT}", {"path": "./prod"}), table("t"))
    run = reconciler(tmp_path, arguments[0], "m.yaml", *arguments[1:], env={"ROOT": "./dev"})
    refused(run, "M443", "`path` is ./dev, and management.expect wants ./prod", "nothing was read")
    assert [p.name for p in tmp_path.iterdir()] == ["m.yaml"]
    assert reconciler(tmp_path, "plan", "m.yaml", env={"ROOT": "./prod"}).code == 0


@pytest.mark.parametrize("there", ["./prod2", "./prod/", "x./prod", "./Prod", "./pro"])
def test_what_only_begins_or_ends_alike_is_another(tmp_path: Path, there: str) -> None:
    write(tmp_path, dir_catalog(there, {"path": "./prod"}), table("t"))
    refused(reconciler(tmp_path, "plan", "m.yaml"), "M443", "management.expect wants ./prod")


@pytest.mark.slow
def test_a_fleet_is_not_read_in_another_place(tmp_path: Path) -> None:
    write(tmp_path, dir_catalog("${env:ROOT}", {"path": "./prod"}), table("t"))
    run = reconciler(tmp_path, "pipeline", "inventory", "m.yaml", "--history", "h.lance", env={"ROOT": "./dev"})
    refused(run, "M443", "`path` is ./dev")
    assert not (tmp_path / "h.lance").exists()


def test_a_saved_plan_is_applied_where_it_was_made_for(tmp_path: Path) -> None:
    write(tmp_path, dir_catalog("${env:ROOT}", {"path": "./prod"}), table("t"))
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json", env={"ROOT": "./prod"}).code == 0
    refused(reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", env={"ROOT": "./dev"}), "M443", "is ./dev")
    assert not (tmp_path / "dev").exists()
    assert reconciler(tmp_path, "apply", "--plan", "p.json", "--yes", env={"ROOT": "./prod"}).code == 0


def test_an_option_that_is_not_set(tmp_path: Path) -> None:
    rest = {"type": "iceberg", "endpoint": "http://127.0.0.1:9", "management": {"expect": {"warehouse": "prod"}}}
    text = f"apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {{name: lake}}\nspec: {json.dumps(rest)}\n"
    write(tmp_path, text, namespace("prod", "n"))
    refused(reconciler(tmp_path, "plan", "m.yaml"), "M443", "`warehouse` is not set")


@pytest.mark.parametrize("what", ["pth", "account", "storage.secret_access_key"])
def test_what_cannot_be_expected(tmp_path: Path, what: str) -> None:
    write(tmp_path, dir_catalog("./prod", {what: "x"}), table("t"))
    run = reconciler(tmp_path, "validate", "m.yaml")
    assert run.code == 1
    assert f"error[M442]: a catalog of type dir has no {what!r} that could be expected" in run.out


# account and region


@pytest.fixture
def glue() -> Iterator[GlueServer]:
    with GlueServer() as server:
        yield server


def glue_catalog(glue: GlueServer, expect: dict[str, str], **more: str | int) -> str:
    options = {"type": "glue", "endpoint": glue.endpoint, **KEYS, **more}
    given = json.dumps({**options, "management": {"owner": "team", "expect": expect}})
    return f"apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {{name: lake}}\nspec: {given}\n"


@pytest.mark.parametrize(
    ("expect", "problem"),
    [
        ({"account": "123456789012", "region": "us-east-1"}, None),
        ({"account": "12345678901?"}, None),
        ({"account": "999999999999"}, "`account` is 123456789012, and management.expect wants 999999999999"),
        ({"region": "eu-central-1"}, "`region` is us-east-1, and management.expect wants eu-central-1"),
    ],
)
def test_account_and_region(
    glue: GlueServer, moto: Moto, tmp_path: Path, expect: dict[str, str], problem: str | None
) -> None:
    write(tmp_path, glue_catalog(glue, expect), namespace("n"))
    run = reconciler(tmp_path, "plan", "m.yaml", env={"AWS_ENDPOINT_URL_STS": moto.endpoint_of("sts")})
    if problem is None:
        assert run.code == 0, run
        assert "GetDatabases" in glue.calls
    else:
        refused(run, "M443", problem)
        assert not glue.calls


def test_the_account_of_a_role_and_of_another_catalog(glue: GlueServer, moto: Moto, tmp_path: Path) -> None:
    env = {"AWS_ENDPOINT_URL_STS": moto.endpoint_of("sts")}
    role = {"assume_role_arn": "arn:aws:iam::222233334444:role/deployer"}
    write(tmp_path, glue_catalog(glue, {"account": "222233334444"}, **role), namespace("n"))
    assert reconciler(tmp_path, "plan", "m.yaml", env=env).code == 0
    write(tmp_path, glue_catalog(glue, {"account": "123456789012"}, catalog_id="555566667777"), namespace("n"))
    refused(reconciler(tmp_path, "plan", "m.yaml", env=env), "M443", "`account` is 555566667777")


def test_the_region_of_the_environment(glue: GlueServer, tmp_path: Path) -> None:
    text = glue_catalog(glue, {"region": "eu-central-1"}).replace('"region": "us-east-1", ', "")
    write(tmp_path, text, namespace("n"))
    refused(reconciler(tmp_path, "plan", "m.yaml", env={"AWS_REGION": "eu-west-1"}), "M443", "is eu-west-1")
    assert reconciler(tmp_path, "plan", "m.yaml", env={"AWS_REGION": "eu-central-1"}).code == 0


def test_an_account_that_nobody_tells_is_no_match(glue: GlueServer, tmp_path: Path) -> None:
    write(tmp_path, glue_catalog(glue, {"account": "123456789012"}, max_retries=0), namespace("n"))
    run = reconciler(tmp_path, "plan", "m.yaml", env={"AWS_ENDPOINT_URL_STS": "http://127.0.0.1:9"})
    assert run.code == 1
    assert "ask STS for the account" in run.err
    assert not glue.calls


# --env


def two_environments(folder: Path, **spec: Any) -> None:
    write(folder, dir_catalog("./dev", **spec), table("t"))
    overlay = folder / "overlays" / "prod"
    overlay.mkdir(parents=True)
    patch = "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\nspec: {path: ./prod}\n"
    (overlay / "c.yaml").write_text(patch)


@pytest.mark.parametrize("arguments", [("plan",), ("apply", "--yes"), ("drift",), ("plan", "--prune")])
def test_a_catalog_that_requires_an_environment(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    two_environments(tmp_path, requireEnvironment=True)
    run = reconciler(tmp_path, arguments[0], ".", *arguments[1:])
    refused(run, "M516", "--env is not given", "environments: prod")
    assert not (tmp_path / "dev").exists()
    assert reconciler(tmp_path, arguments[0], ".", "--env", "prod", *arguments[1:]).code in (0, 2)
    refused(reconciler(tmp_path, "plan", "m.yaml"), "M516", "no folder overlays/ is in the paths")


def test_one_that_does_not(tmp_path: Path) -> None:
    two_environments(tmp_path, requireEnvironment=False)
    assert reconciler(tmp_path, "apply", ".", "--yes").code == 0
    assert (tmp_path / "dev" / "t.lance").is_dir()


# a root that does not exist


def test_our_tables_beside_a_new_root_are_told(tmp_path: Path) -> None:
    write(tmp_path, catalog(path="./prod"), namespace("n"), table("n", "t"), table("u"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, catalog(path="./prdo"), namespace("n"), table("n", "t"), table("u"))
    for arguments in (("plan", "m.yaml"), ("plan", "m.yaml", "--format", "json"), ("drift", "m.yaml")):
        run = reconciler(tmp_path, *arguments)
        said = "warning[M444]: nothing exists at ./prdo yet, and our table n.t (and 1 more) exists at ./prod"
        assert said in run.err, run
    check_schema("plan", made := reconciler(tmp_path, "plan", "m.yaml", "--format", "json").json)
    assert made["catalogs"]["lake"]["new_at"] == "./prdo"
    write(tmp_path, catalog(owner="others", path="./prdo"), namespace("n"), table("n", "t"), table("u"))
    assert "M444" not in reconciler(tmp_path, "plan", "m.yaml").err
    write(tmp_path, catalog(path="./prdo"), table("other"))
    assert "M444" not in reconciler(tmp_path, "plan", "m.yaml").err


def test_our_tables_beside_a_new_root_in_a_bucket(moto: Moto, tmp_path: Path) -> None:
    bucket = moto.make_bucket(f"beside-{tmp_path.name.lower().replace('_', '-')}")
    storage = {f"storage.{k}": v for k, v in moto.storage_options.items()}
    write(tmp_path, dir_catalog(f"{bucket}/prod", **storage), table("t"))
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    write(tmp_path, dir_catalog(f"{bucket}/prdo", **storage), table("t"))
    run = reconciler(tmp_path, "plan", "m.yaml")
    said = f"nothing exists at {bucket}/prdo yet, and our table t exists at {bucket}/prod"
    assert said in run.err, run
    write(tmp_path, dir_catalog(moto.make_bucket("alone-" + bucket[-20:].strip("-")), **storage), table("t"))
    assert "M444" not in reconciler(tmp_path, "plan", "m.yaml").err


def test_what_is_beside_a_new_root_may_be_anything(tmp_path: Path) -> None:
    """Nobody else's folders are complained about, and nothing is written to them."""
    for name in ("empty", "notes", "prod"):
        (tmp_path / name).mkdir()
    (tmp_path / "notes" / "a.txt").write_text("a")
    (tmp_path / "prod" / "__reconciler").write_text("not a folder")
    write(tmp_path, catalog(path="./prdo"), table("t"))
    before = sorted(tmp_path.rglob("*"))
    run = reconciler(tmp_path, "plan", "m.yaml")
    assert (run.code, run.err) == (0, "")
    assert sorted(tmp_path.rglob("*")) == before
