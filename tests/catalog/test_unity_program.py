"""Unity from the outside: the program on manifests, another client on what it made, and TLS."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pytest
from catalog.unity_support import N, T, Unity, fresh_unity
from cli.cli_runs import check_schema, command, environment, reconciler
from servers.proxy import Exchange, Proxy
from servers.tls import authority

from reconciler.model.change import ReplaceTable
from reconciler.model.errors import CatalogError
from reconciler.model.observed import Scope
from reconciler.model.state import Marks

__all__ = ["authority"]

TABLE = """---
apiVersion: reconciler.lance/v1
kind: Table
metadata: {catalog: lake, id: [lake, n, t]}
spec:
  description: photos
  properties: {a: "%s"}
  schema: [{name: id, type: int64}%s]
"""
SCHEMA = "---\napiVersion: reconciler.lance/v1\nkind: Namespace\nmetadata: {catalog: lake, id: [lake, n]}\n"
TOKEN = "canary-token-7f3a"


@pytest.fixture
def unity(tmp_path: Path) -> Iterator[Unity]:
    with fresh_unity(tmp_path / "lake") as made:
        yield made


def catalog(unity: Unity, more: str = "") -> str:
    return (
        "apiVersion: reconciler.lance/v1\nkind: Catalog\nmetadata: {name: lake}\nspec:\n  type: unity\n"
        f"  endpoint: {unity.server.endpoint}\n  catalog: lake\n  root: {unity.root}\n"
        f"  management: {{owner: us}}\n{more}"
    )


def test_from_the_manifest_to_the_table_and_back(unity: Unity, tmp_path: Path) -> None:
    unity.server.token = TOKEN
    file = tmp_path / "m.yaml"
    head = catalog(unity, "  auth_token: ${env:UNITY}\n")
    env = {"UNITY": TOKEN}
    file.write_text(head + SCHEMA + TABLE % (1, ""))
    runs = [reconciler(tmp_path, "apply", "--yes", file, env=env)]
    assert runs[-1].code == 0, runs[-1].err
    file.write_text(head + SCHEMA + TABLE % (2, ", {name: more, type: string}"))
    runs.append(reconciler(tmp_path, "plan", file, "--format", "json", env=env))
    check_schema("plan", runs[-1].json)
    steps = {s["action"]: (s["verdict"], s["blocked_by"]) for s in runs[-1].json["steps"]}
    assert steps["replace_table"] == ("blocked", "allow:replace_table")
    assert steps["add_columns"] == ("allowed", None)
    runs.append(reconciler(tmp_path, "apply", "--yes", file, "--allow", "replace_table", env=env))
    assert runs[-1].code == 0, runs[-1].err
    assert unity.wire()["properties"]["a"] == "2"
    assert [x["name"] for x in unity.wire()["columns"]] == ["id", "more"]
    runs.append(reconciler(tmp_path, "plan", file, "--detailed-exitcode", env=env))
    assert runs[-1].code == 0, runs[-1].out
    head_only = tmp_path / "catalog.yaml"
    head_only.write_text(head)
    runs.append(reconciler(tmp_path, "import", head_only, "-o", tmp_path / "imported", env=env))
    assert runs[-1].code == 0, runs[-1].err
    imported = "".join(p.read_text() for p in (tmp_path / "imported").rglob("*.yaml"))
    assert "photos" in imported
    assert "table_type" not in imported
    runs.append(reconciler(tmp_path, "plan", tmp_path / "imported", "--detailed-exitcode", env=env))
    assert runs[-1].code == 0, runs[-1].out + runs[-1].err
    assert all(TOKEN not in run.out + run.err + imported for run in runs)


@pytest.mark.slow
def test_a_saved_plan_goes_on_where_a_kill_cut_the_replacement(unity: Unity, tmp_path: Path) -> None:
    """DELETE has landed, POST has not: what the entry was is in the record, so this is still the plan's own work."""
    with Proxy(unity.server.endpoint) as proxy:
        head = catalog(unity).replace(unity.server.endpoint, proxy.endpoint)
        file = tmp_path / "m.yaml"
        file.write_text(head + SCHEMA + TABLE % (1, ""))
        assert reconciler(tmp_path, "apply", "--yes", file).code == 0
        unity.wire()["properties"]["theirs"] = "x"
        file.write_text(head + SCHEMA + TABLE % (2, ", {name: more, type: string}"))
        saved = ("apply", "--yes", "--plan", "plan.json", "--report", "report.json")
        assert reconciler(tmp_path, "plan", file, "--allow", "replace_table", "-o", "plan.json").code == 0
        running: list[subprocess.Popen[bytes]] = []

        async def kill(exchange: Exchange) -> None:
            running[0].kill()
            running[0].wait()
            exchange.cut()

        proxy.fault(kill, method="POST", path="/tables$")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running.append(subprocess.Popen(command(*saved), cwd=tmp_path, env=environment(), **quiet))
        assert running[0].wait(60) == -9
        assert unity.server.state.schema(*N).leaves["tables"] == []
        done = reconciler(tmp_path, *saved)
        assert done.code == 0, done.out + done.err
        assert proxy.count("POST", "/tables$") == 3
    assert unity.wire()["properties"] | {"a": "2", "theirs": "x"} == unity.wire()["properties"]
    assert [x["name"] for x in unity.wire()["columns"]] == ["id", "more"]
    assert not [p for p in (unity.root / "__reconciler").rglob("*") if p.is_file() and p.parent.name != "lease"]
    file.write_text(catalog(unity) + SCHEMA + TABLE % (2, ", {name: more, type: string}"))
    assert reconciler(tmp_path, "plan", file, "--detailed-exitcode").code == 0
    assert [s["status"] for s in json.loads((tmp_path / "report.json").read_text())["steps"]] == ["skipped", "done"]


def test_a_saved_plan_is_stale_when_somebody_else_removed_the_table(unity: Unity, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(catalog(unity) + SCHEMA + TABLE % (1, ""))
    assert reconciler(tmp_path, "apply", "--yes", file).code == 0
    file.write_text(catalog(unity) + SCHEMA + TABLE % (2, ""))
    assert reconciler(tmp_path, "plan", file, "--allow", "replace_table", "-o", "plan.json").code == 0
    unity.server.state.schema(*N).leaves["tables"].clear()
    done = reconciler(tmp_path, "apply", "--yes", "--plan", "plan.json")
    assert done.code == 4, done.out + done.err
    assert unity.server.state.schema(*N).leaves["tables"] == []


def cut_replacement(unity: Unity, folder: Path) -> Path:
    """A saved plan that replaces T, killed in the middle. The manifests that it was made of."""
    file = folder / "m.yaml"
    file.write_text(catalog(unity) + SCHEMA + TABLE % (1, ""))
    assert reconciler(folder, "apply", "--yes", file).code == 0
    file.write_text(catalog(unity) + SCHEMA + TABLE % (2, ""))
    assert reconciler(folder, "plan", file, "--allow", "replace_table", "-o", "plan.json").code == 0
    unity.cut(ReplaceTable(T, {"a": "2"}, (), Marks("us", False, ("a",))))
    return file


@pytest.mark.slow
def test_a_saved_plan_does_not_go_on_when_the_data_is_another_table_by_now(unity: Unity, tmp_path: Path) -> None:
    cut_replacement(unity, tmp_path)
    theirs = {
        "table_type": "EXTERNAL",
        "data_source_format": "TEXT",
        "columns": [],
        "properties": {"table_type": "lance"},
    }
    unity.post("tables", name="theirs", storage_location=f"file://{unity.root}/lake/n/t", **theirs)
    done = reconciler(tmp_path, "apply", "--yes", "--plan", "plan.json")
    assert done.code == 4, done.out + done.err
    assert "is table lake.n.theirs now" in done.out + done.err
    assert [t["name"] for t in unity.server.state.schema(*N).leaves["tables"]] == ["theirs"]


@pytest.mark.slow
def test_a_cut_table_whose_manifest_is_gone_keeps_its_schema(unity: Unity, tmp_path: Path) -> None:
    """And is a drift: else it would never be heard of again."""
    file = cut_replacement(unity, tmp_path)
    file.write_text(catalog(unity) + SCHEMA)
    drift = reconciler(tmp_path, "drift", file)
    assert drift.code == 2, drift.out + drift.err
    assert "lake.n.t" in drift.out
    assert "its replacement was cut when its entry was removed" in drift.out
    file.write_text(catalog(unity))
    done = reconciler(tmp_path, "apply", "--yes", "--prune", file)
    assert done.code == 3, done.out + done.err
    assert "it still holds t" in done.out
    assert unity.namespace(N).marks.owner == "us"


@pytest.mark.slow
def test_a_cut_table_whose_data_is_gone_is_not_made_anew(unity: Unity, tmp_path: Path) -> None:
    file = cut_replacement(unity, tmp_path)
    data = unity.root / "lake" / "n" / "t"
    data.rename(tmp_path / "moved")
    for code, arguments in ((3, (file,)), (1, ("--plan", "plan.json"))):
        done = reconciler(tmp_path, "apply", "--yes", *arguments)
        assert done.code == code, done.out + done.err
        assert "the data of lake.n.t is gone" in done.out + done.err
    assert unity.server.state.schema(*N).leaves["tables"] == []
    (tmp_path / "moved").rename(data)
    assert reconciler(tmp_path, "apply", "--yes", file).code == 0
    assert unity.wire()["properties"]["a"] == "2"


def test_columns_that_lag_behind_are_said_and_are_no_change(unity: Unity, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(catalog(unity) + SCHEMA + TABLE % (1, ""))
    assert reconciler(tmp_path, "apply", "--yes", file).code == 0
    file.write_text(catalog(unity) + SCHEMA + TABLE % (1, ", {name: more, type: string}"))
    assert reconciler(tmp_path, "apply", "--yes", file).code == 0
    plan = reconciler(tmp_path, "plan", file, "--format", "json", "--detailed-exitcode")
    assert (plan.code, plan.json["steps"]) == (0, [])
    assert plan.json["catalogs"]["lake"]["projection_stale"] == [["lake", "n", "t"]]


@pytest.mark.parametrize(
    ("more", "line", "says"),
    [
        ("  read_timeout: soon\n", 10, "read_timeout"),
        ("  enpoint: http://x\n", 10, "endpoint"),
        ("  max_retries: -1\n", 10, "max_retries"),
        (SCHEMA.replace("n]", "a.b]"), 13, "a.b"),
        (SCHEMA.replace("[lake, n]", "[other, n]"), 13, "configured catalog"),
        (SCHEMA.replace("[lake, n]", "[lake]"), 13, "declare its schemas"),
        (SCHEMA + f"spec: {{properties: {{k: {'v' * 256}}}}}\n", 14, "255"),
        (SCHEMA + TABLE % (1, "") + "  location: s3a://b/x\n", 22, "s3a"),
    ],
)
def test_mistakes_are_found_at_their_line(unity: Unity, tmp_path: Path, more: str, line: int, says: str) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(catalog(unity, more))
    run = reconciler(tmp_path, "validate", file, "--format", "json")
    assert run.code == 1
    found = [(d["line"], d["message"] + (d["hint"] or "")) for d in run.json["diagnostics"] if d["severity"] == "error"]
    assert [at for at, _ in found] == [line], found
    assert says in found[0][1]
    assert not unity.server.requests


NO_OTHER_CLIENT = "the package lance-namespace-impls[unity] is missing: it comes with the extra `dev`"


@pytest.mark.slow
def test_another_client_finds_the_table(unity: Unity) -> None:
    impl: Any = pytest.importorskip("lance_namespace_impls.unity", reason=NO_OTHER_CLIENT)
    import lance_namespace as ln

    unity.fill({"a": "1"})
    theirs = impl.UnityNamespace(**{"unity.endpoint": unity.server.endpoint, "unity.root": str(unity.root)})
    assert set(theirs.list_tables(ln.ListTablesRequest(id=list(N))).tables) == {"t"}
    location = theirs.describe_table(ln.DescribeTableRequest(id=list(T))).location
    assert lance.dataset(location.removeprefix("file://")).schema.names == ["id", "v"]


@pytest.mark.slow
def test_a_table_of_another_client_is_read(unity: Unity) -> None:
    """It writes `type_json` in a way that 0.6.0 refuses; an older server took it."""
    impl: Any = pytest.importorskip("lance_namespace_impls.unity", reason=NO_OTHER_CLIENT)
    import lance_namespace as ln

    unity.post("schemas", name="n")
    unity.server.state.lenient = True
    theirs = impl.UnityNamespace(**{"unity.endpoint": unity.server.endpoint, "unity.root": str(unity.root)})
    theirs.declare_table(ln.DeclareTableRequest(id=list(T)))
    state = unity.table()
    assert state.columns is not None
    assert [(x.name, x.type) for x in state.columns] == [("__placeholder_id", "long")]
    assert state.marks.owner is None


def test_a_private_authority(unity: Unity, authority: Any) -> None:
    with Proxy(unity.server.endpoint, tls=authority.server_context(client_needed=True)) as proxy:
        certificate, key = authority.client_files()
        trusted = {"endpoint": proxy.endpoint, "tls.ca_file": str(authority.ca_file)}
        ours = {"tls.cert_file": str(certificate), "tls.key_file": str(key)}
        assert list(unity.open(**trusted, **ours).scan(Scope()))
        for options in ({"endpoint": proxy.endpoint}, {"endpoint": proxy.endpoint, **ours}):
            with pytest.raises(CatalogError):
                list(unity.open(**options).scan(Scope()))
        assert list(unity.open(endpoint=proxy.endpoint, **{"tls.verify": "false"}, **ours).scan(Scope()))


def test_a_table_that_its_principal_could_not_make_again_is_unsupported_in_the_plan(
    unity: Unity, tmp_path: Path
) -> None:
    unity.fill({"a": "1"})
    unity.server.token, unity.server.principal = TOKEN, "ci@acme.io"
    unity.server.state.catalog("lake").info["owner"] = unity.wire(N)["owner"] = "admin@acme.io"
    unity.wire()["owner"] = "ci@acme.io"
    file = tmp_path / "m.yaml"
    wanted = TABLE.replace("schema: [{name: id, type: int64}%s]", "allow: [replace_table]") % 2
    file.write_text(catalog(unity, "  auth_token: ${env:UNITY}\n") + SCHEMA + wanted)
    run = reconciler(tmp_path, "plan", file, "--format", "json", env={"UNITY": TOKEN})
    (step,) = (s for s in json.loads(run.out)["steps"] if s["action"] == "replace_table")
    assert step["verdict"] == "unsupported"
    assert "may not make it again: grant CREATE TABLE and USE SCHEMA on schema lake.n" in step["reason"]
