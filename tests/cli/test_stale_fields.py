"""A stale plan says what changed, field by field; `drift` and `status` say what differs, live against declared."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from cli_runs import catalog, check_schema, environment, namespace, reconciler, table, write

from reconciler.model.codec import canonical

COLUMNS = "[{name: id, type: int64}, {name: label, type: string}, {name: n, type: int32}]"
HIDDEN = "hunter2-hunter2"


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    """A lake with a saved plan that changes a namespace and a table."""
    old = "[{name: id, type: int64}, {name: label, type: string}]"
    secret = f'properties: {{team: one, db_password: "{HIDDEN}", other: x}}'
    write(
        tmp_path, catalog(), namespace("a", spec="{properties: {team: one}}"), table("a", "t", schema=old, spec=secret)
    )
    assert reconciler(tmp_path, "apply", "m.yaml", "--yes").code == 0
    secret = secret.replace("team: one", "team: two")
    write(
        tmp_path,
        catalog(),
        namespace("a", spec="{properties: {team: two}}"),
        table("a", "t", schema=COLUMNS, spec=secret),
    )
    assert reconciler(tmp_path, "plan", "m.yaml", "-o", "p.json").code == 0
    return tmp_path


def dataset(folder: Path) -> Any:
    (found,) = (folder / "lake").glob("*a$t")
    return lance.dataset(str(found))


def change(folder: Path) -> None:
    live = dataset(folder)
    live.alter_columns({"path": "label", "data_type": pa.large_string()})
    live.add_columns({"theirs": "cast(1 as bigint)"})
    live.update_config({"their.config": "v"})


def stale(folder: Path, plan: str = "p.json") -> dict[str, Any]:
    run = reconciler(folder, "apply", "--plan", plan, "--yes", "--format", "json", "--report", "r.json")
    assert (run.code, run.json["outcome"]) == (4, "stale")
    check_schema("report", run.json)
    assert json.loads((folder / "r.json").read_text()) == run.json
    return run.json


def test_every_field_is_in_the_report_and_in_every_format(planned: Path) -> None:
    change(planned)
    report = stale(planned)
    (found,) = report["stale"]
    assert found["object"] == {"kind": "Table", "id": ["a", "t"]}
    fields = {d["field"]: (d["before"], d["after"]) for d in found["differences"]}
    assert fields == {
        "config.their.config": (None, "v"),
        "schema.label.type": ("string", "large_string"),
        "schema.theirs": (None, {"type": "int64", "nullable": False}),
    }
    assert 'schema.label.type "string" -> "large_string"' in report["message"]
    text = reconciler(planned, "apply", "--plan", "p.json", "--yes").out
    assert '      ~ schema.label.type = "string" -> "large_string"\n' in text
    assert text.splitlines()[-1].startswith(
        "Stale: nothing was written: 1 object is not as the plan expects. Make a new"
    )
    for how in ("text", "markdown", "html"):
        shown = reconciler(planned, "show", "r.json", "--format", how).out
        assert "schema.label.type" in shown
        assert "large_string" in shown


def test_a_column_that_takes_nulls_now_says_false_and_true(planned: Path) -> None:
    """A column's `nullable` is written only when it is false: its absence is no removal."""
    schema = "[{name: id, type: int64, nullable: false}, {name: label, type: string}]"
    write(planned, catalog(), table("strict", schema=schema))
    assert reconciler(planned, "apply", "m.yaml", "--yes").code == 0
    write(planned, catalog(), table("strict", schema=schema, spec="config: {a: b}"))
    assert reconciler(planned, "plan", "m.yaml", "-o", "p.json").code == 0
    lance.dataset(str(planned / "lake" / "strict.lance")).alter_columns({"path": "id", "nullable": True})
    (found,) = stale(planned)["stale"]
    assert found["differences"] == [{"field": "schema.id.nullable", "before": False, "after": True}]


def test_a_masked_value_that_changed_is_named_and_stays_masked(planned: Path) -> None:
    text = (planned / "m.yaml").read_text()
    (planned / "m.yaml").write_text(text.replace(HIDDEN, "hunter3-hunter3"))
    assert reconciler(planned, "apply", "m.yaml", "--yes").code == 0
    report = stale(planned)
    (found,) = report["stale"]
    assert found["differences"] == [{"field": "properties.db_password", "before": "***", "after": "***"}]
    assert "properties.db_password" in report["message"]
    assert "hunter" not in json.dumps(report)


def test_an_object_that_is_gone_and_one_that_came(planned: Path) -> None:
    write(planned, catalog(), namespace("a"), table("a", "t", spec="state: absent").replace("schema", "x-schema"))
    documents = (planned / "m.yaml").read_text().split("spec:\n  x-schema")[0] + "spec: {state: absent}\n"
    (planned / "m.yaml").write_text(documents)
    assert reconciler(planned, "apply", "m.yaml", "--yes").code == 0
    found = {tuple(s["object"]["id"]): s["differences"] for s in stale(planned)["stale"]}
    assert found["a", "t"] == [{"field": "state", "before": "present", "after": "detached"}]


def test_a_plan_without_what_it_compared_is_stale_without_details(planned: Path) -> None:
    """As plans of earlier versions."""
    value = json.loads((planned / "p.json").read_text())
    for step in value["steps"]:
        for part in ("expect", "yields"):
            step[part].pop("compared", None)
    del value["plan_id"]
    value["plan_id"] = "sha256:" + hashlib.sha256(canonical(value).encode()).hexdigest()
    (planned / "old.json").write_text(json.dumps(value))
    change(planned)
    report = stale(planned, "old.json")
    assert [s["differences"] for s in report["stale"]] == [[]]
    assert "it exists and differs" in reconciler(planned, "apply", "--plan", "old.json", "--yes").out


def test_no_credential_of_a_live_object_gets_into_the_plan(planned: Path) -> None:
    """One that no step changes: by its name, by its form, or because the run knows it."""
    token = "ghp_" + "a1B2" * 9
    live = dataset(planned)
    live.update_config({"api_token": "CANARYname12", "note": token, "free": "CANARYknown1"})
    known = catalog().replace("path: ./lake", 'path: ./lake\n  storage.token: "${env:KEY}"')
    text = (planned / "m.yaml").read_text().replace(catalog(), known)
    (planned / "m.yaml").write_text(text)
    run = reconciler(planned, "plan", "m.yaml", "-o", "p.json", "--format", "json", env={"KEY": "CANARYknown1"})
    assert run.code == 0, run.err
    plan = (planned / "p.json").read_text()
    assert '"compared"' in plan
    for secret in (HIDDEN, "CANARYname12", token, "CANARYknown1"):
        assert secret not in plan
        assert secret not in run.out
    live.update_config({"api_token": "CANARYother2", "free": "CANARYknown1", "added": "x"})
    flags = ("--plan", "p.json", "--yes", "--format", "json")
    report = reconciler(planned, "apply", *flags, env={"KEY": "CANARYknown1"}).json
    fields = [d["field"] for s in report["stale"] for d in s["differences"]]
    assert fields == ["config.added"]
    assert "CANARY" not in json.dumps(report)


def test_the_same_plan_has_the_same_bytes_and_only_what_it_touches(planned: Path) -> None:
    more = (planned / "m.yaml").read_text() + "".join(table("a", f"u{n}") for n in range(30))
    (planned / "m.yaml").write_text(more)
    assert reconciler(planned, "apply", "m.yaml", "--yes").code == 0
    (planned / "m.yaml").write_text(more.replace("other: x", "other: y"))
    first = reconciler(planned, "plan", "m.yaml", "--format", "json").out
    assert first == reconciler(planned, "plan", "m.yaml", "--format", "json").out
    assert first.count('"compared"') == 1
    assert "u17" not in first


def test_drift_and_status_give_each_field(planned: Path) -> None:
    drift = reconciler(planned, "drift", "m.yaml", "--format", "json")
    check_schema("plan", drift.json)
    found = {(tuple(d["object"]["id"]), d["field"]): (d["live"], d["declared"]) for d in drift.json["differences"]}
    assert found == {
        (("a",), "properties.team"): ("one", "two"),
        (("a", "t"), "properties.team"): ("one", "two"),
        (("a", "t"), "schema.n"): (None, "int32"),
    }
    status = reconciler(planned, "status", "m.yaml", "--format", "json").json
    pending = {tuple(p["object"]["id"]): p["differences"] for p in status["catalogs"]["lake"]["pending"]}
    assert pending["a", "t"] == [
        {"field": "properties.team", "live": "one", "declared": "two"},
        {"field": "schema.n", "live": None, "declared": "int32"},
    ]
    assert "~ properties.team one -> two, + schema.n int32" in reconciler(planned, "status", "m.yaml").out
    (planned / "d.json").write_text(drift.out)
    assert reconciler(planned, "apply", "--plan", "d.json", "--yes").code == 0
    assert reconciler(planned, "drift", "m.yaml", "--format", "json").json["differences"] == []


@pytest.mark.slow
def test_a_run_without_a_stale_object_never_loads_deepdiff(planned: Path) -> None:
    """It takes a second or two where pandas is installed."""

    def loaded(*words: str) -> bool:
        program = (
            "import sys; from reconciler.__main__ import main\ntry: main()\nfinally: print('deepdiff' in sys.modules)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, *words],
            cwd=planned, env=environment(), capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        return done.stdout.splitlines()[-1] == "True"

    assert not loaded("plan", "m.yaml")
    assert not loaded("drift", "m.yaml", "--format", "json")
    assert not loaded("status", "m.yaml")
    assert not loaded("apply", "--plan", "p.json", "--yes")
    assert reconciler(planned, "plan", "m.yaml", "-o", "p.json").code == 0
    assert not loaded("apply", "--plan", "p.json", "--yes")
    write(planned, catalog(), namespace("a", spec="{properties: {team: three}}"), name="n.yaml")
    assert reconciler(planned, "plan", "n.yaml", "-o", "p.json").code == 0
    write(planned, catalog(), namespace("a", spec="{properties: {team: four}}"), name="n.yaml")
    assert reconciler(planned, "apply", "n.yaml", "--yes").code == 0
    assert loaded("apply", "--plan", "p.json", "--yes")
